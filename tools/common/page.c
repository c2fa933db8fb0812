#include "page.h"

#include <stdbool.h>
#include <string.h>

void page_text(const char *text, FILE *to)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        switch (*p) {
        case '&':
            fputs("&amp;", to);
            break;
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        default:
            putc(*p < 0x20 || *p == 0x7f ? ' ' : *p, to);
        }
    }
}

void page_prose(const char *text, FILE *to)
{
    char word[128];

    while (*text) {
        size_t space = strspn(text, " "), n = strcspn(text + space, " ;,.:");
        bool option = strncmp(text + space, "--", 2) == 0 && n < sizeof(word);
        size_t part = option ? n : strcspn(text + space, " ");
        part = part < sizeof(word) ? part : sizeof(word) - 1;
        fprintf(to, "%.*s", (int)space, text);
        memcpy(word, text + space, part);
        word[part] = '\0';
        fputs(option ? "<span class=\"option\">" : "", to);
        page_text(word, to);
        fputs(option ? "</span>" : "", to);
        text += space + part;
    }
}

void page_line(const char *kind, const char *text, FILE *to)
{
    if (*text == '\0')
        return;
    fprintf(to, "<p class=\"%s\">", kind);
    page_text(text, to);
    fputs("</p>\n", to);
}

void page_tile(const char *label, const char *kind, const char *value, const char *note, FILE *to)
{
    fprintf(to, "<div class=\"tile%s\"><dt>%s</dt><dd>", kind, label);
    page_text(value, to);
    if (note[0] != '\0') {
        fputs("<small>", to);
        page_text(note, to);
        fputs("</small>", to);
    }
    fputs("</dd></div>\n", to);
}
