#include "wrap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/outstream.h"
#include "say.h"

enum {
    COLUMNS = 80,
    COLUMNS_LEAST = 40,
    COLUMNS_MOST = 200
};

unsigned cm_wrap_columns(int fd)
{
    struct winsize w;
    unsigned n = ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : COLUMNS;
    return n < COLUMNS_LEAST ? COLUMNS_LEAST : n > COLUMNS_MOST ? COLUMNS_MOST : n;
}

/* The N bytes of a word as they are shown, ties as spaces; NULL: no memory. */
static char *shown(const char *word, size_t n)
{
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    char *copy = f != NULL ? strndup(word, n) : NULL;
    for (char *p = copy; p != NULL && (p = strchr(p, CM_WRAP_TIE[0])) != NULL;)
        *p = ' ';
    if (copy != NULL)
        cm_print_clean(copy, f);
    free(copy);
    return f != NULL ? cm_outtext_close(&t) : NULL;
}

static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += (*text & 0xc0) != 0x80; /* bytes that begin a character of UTF-8 */
    return n;
}

void cm_print_wrapped(FILE *to, unsigned columns, unsigned indent, unsigned hang, const char *text)
{
    size_t at = indent;
    bool begins = true;
    cm_print(to, "%*s", (int)indent, "");
    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
        const size_t n = strcspn(text, " ");
        char *word = shown(text, n);
        const size_t width = word != NULL ? width_of(word) : 0;
        if (!begins && at + 1 + width > columns) {
            cm_print(to, "\n%*s", (int)hang, "");
            at = hang;
            begins = true;
        }
        cm_print(to, "%s%s", begins ? "" : " ", word != NULL ? word : "");
        at += width + !begins;
        begins = false;
        text += n;
        free(word);
    }
    putc('\n', to);
}
