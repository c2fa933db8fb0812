#include "print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/outstream.h"
#include "base/visible.h"
#include "say.h"

/* TEXT without control characters on the heap, or NULL. */
static char *clean_copy(const char *text)
{
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    if (!f)
        return NULL;
    cm_print_clean(text, f);
    return cm_outtext_close(&t);
}

static bool push(cm_table *t, const char *text)
{
    char **cell = cm_make_room(t->cell, t->ncells, &t->capacity, sizeof(*cell), 64);
    if (!cell)
        return false;
    t->cell = cell;
    char *copy = clean_copy(text);
    if (copy)
        t->cell[t->ncells++] = copy;
    return copy != NULL;
}

void cm_table_cell(cm_table *table, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0 || !push(table, text))
        table->failed = true;
    if (n >= 0)
        free(text);
}

/* Columns that TEXT takes, counting the characters of UTF-8 as one each. */
static size_t width(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

bool cm_table_print(const cm_table *table, int indent, FILE *to)
{
    size_t widest[CM_TABLE_COLUMNS] = {0}, nc = table->ncolumns;
    if (table->failed || nc == 0)
        return false;
    for (size_t i = 0; i < table->ncells; i++) {
        size_t w = width(table->cell[i]);
        if (w > widest[i % nc])
            widest[i % nc] = w;
    }
    for (size_t i = 0; i < table->ncells; i++) {
        size_t c = i % nc;
        bool last = c == nc - 1 || i == table->ncells - 1;
        int pad = (int)(widest[c] - width(table->cell[i]));
        fprintf(to, "%*s", c == 0 ? indent : 2, "");
        if (table->right[c])
            fprintf(to, "%*s", pad, "");
        fputs(table->cell[i], to);
        if (!table->right[c] && !last)
            fprintf(to, "%*s", pad, "");
        if (last)
            putc('\n', to);
    }
    return true;
}

void cm_table_release(cm_table *table)
{
    for (size_t i = 0; i < table->ncells; i++)
        free(table->cell[i]);
    free(table->cell);
    memset(table, 0, sizeof(*table));
}

char *cm_format_shapes(unsigned rank, const uint64_t *shortest, const uint64_t *longest, char *buf,
                       size_t size)
{
    snprintf(buf, size, "scalar");
    size_t at = 0;
    for (unsigned d = 0; d < rank; d++) {
        char first[24] = "";
        if (shortest[d] != longest[d])
            snprintf(first, sizeof(first), "%" PRIu64 "-", shortest[d]);
        int n = snprintf(buf + at, size - at, "%s%s%" PRIu64, d ? "x" : "", first, longest[d]);
        if (n < 0 || (size_t)n >= size - at) {
            if (size > 4)
                memcpy(buf + size - 4, "...", 4);
            break;
        }
        at += (size_t)n;
    }
    return buf;
}

char *cm_format_shape(unsigned rank, const uint64_t *shape, char *buf, size_t size)
{
    return cm_format_shapes(rank, shape, shape, buf, size);
}

char *cm_format_percent(double part, double whole, char *buf, size_t size)
{
    double p = whole > 0 ? 100 * part / whole : 0;
    if (whole <= 0)
        snprintf(buf, size, "-");
    else
        snprintf(buf, size, p > 0 && p < 9.95 ? "%.1f %%" : "%.0f %%", p);
    return buf;
}

char *cm_format_count(uint64_t n, char *buf, size_t size)
{
    char digits[24];
    int nd = snprintf(digits, sizeof(digits), "%" PRIu64, n);
    size_t at = 0;
    for (int i = 0; i < nd && at + 2 < size; i++) {
        if (i > 0 && (nd - i) % 3 == 0)
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

/* The bytes at TEXT that are shown as they are; 0: its first character is not. */
static size_t plain_nbytes(const char *text)
{
    char shown[CM_VISIBLE_SIZE];
    size_t n = 0, left = strlen(text), nshown;
    for (size_t used; left > 0; n += used, left -= used) {
        used = cm_visible(text + n, left, shown, &nshown);
        if (nshown != used || memcmp(shown, text + n, used) != 0)
            break;
    }
    return n;
}

/* In the words of bash, zsh and ksh, byte by byte what is not shown as it is: $'a\x1bb'. */
static void print_shown_word(const char *text, FILE *to)
{
    fputs("$'", to);
    while (*text != '\0') {
        const size_t n = plain_nbytes(text);
        for (size_t i = 0; i < n; i++)
            fprintf(to, "%s%c", text[i] == '\'' || text[i] == '\\' ? "\\" : "", text[i]);
        text += n;
        if (*text == '\0')
            break;
        do
            fprintf(to, "\\x%02x", (unsigned char)*text++);
        while ((*text & 0xc0) == 0x80);
    }
    putc('\'', to);
}

void cm_print_shell_word(const char *text, FILE *to)
{
    static const char SAFE[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-./:=,+@%";
    if (*text && text[strspn(text, SAFE)] == '\0') {
        fputs(text, to);
        return;
    }
    if (text[plain_nbytes(text)] != '\0') {
        print_shown_word(text, to);
        return;
    }
    putc('\'', to);
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", to);
        else
            putc(*text, to);
    }
    putc('\'', to);
}

int cm_print_json(const cm_json *j, FILE *to, cm_error *err)
{
    cm_buf text = {0};
    int status = cm_json_write(j, true, &text, err);
    if (status == CM_OK) {
        fwrite(text.data, 1, text.nbytes, to);
        putc('\n', to);
    }
    cm_buf_release(&text);
    return status;
}
