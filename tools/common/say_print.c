/* printf for text from outside. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "say.h"

/* One conversion, as "%-8.3" with its numbers in it, and what stands behind them. */
typedef struct conversion {
    char text[64];
    bool left;
    int width, precision; /* -1: none */
    unsigned nlong;       /* 'l's */
    bool is_size;
    char kind;
} conversion;

/* A width or a precision; *P moves behind it. */
static int read_number(const char **p, va_list *args)
{
    if (**p == '*') {
        ++*p;
        return va_arg(*args, int);
    }
    char *end;
    long n = strtol(*p, &end, 10);
    bool any = end > *p;
    *p = end;
    return any ? (int)n : -1;
}

/* P is behind the '%'; returns what is behind the conversion. */
static const char *read_conversion(const char *p, va_list *args, conversion *c)
{
    const size_t nflags = strspn(p, "-+ #0");
    *c = (conversion){.precision = -1};
    int n = snprintf(c->text, sizeof(c->text), "%%%.*s", nflags < 8 ? (int)nflags : 8, p);
    c->left = memchr(p, '-', nflags) != NULL;
    p += nflags;
    c->width = read_number(&p, args);
    if (c->width >= 0)
        n += snprintf(c->text + n, sizeof(c->text) - (size_t)n, "%d", c->width);
    if (*p == '.') {
        p++;
        c->precision = read_number(&p, args);
        if (c->precision < 0)
            c->precision = 0;
        snprintf(c->text + n, sizeof(c->text) - (size_t)n, ".%d", c->precision);
    }
    for (; *p == 'l'; p++)
        c->nlong++;
    c->is_size = *p == 'z';
    p += c->is_size;
    c->kind = *p;
    return *p != '\0' ? p + 1 : p;
}

static void print_text(FILE *to, const conversion *c, const char *text)
{
    size_t n = c->precision >= 0 ? strnlen(text, (size_t)c->precision) : strlen(text);
    /* Cut at the end of a whole character. */
    for (size_t i = 0; text[n] != '\0' && i < 3 && n > 0 && (text[n] & 0xc0) == 0x80; i++)
        n--;
    const int pad = c->width > (int)n ? c->width - (int)n : 0;
    char *part = strndup(text, n);
    fprintf(to, "%*s", c->left ? 0 : pad, "");
    cm_print_clean(part != NULL ? part : "", to);
    fprintf(to, "%*s", c->left ? pad : 0, "");
    free(part);
}

static void print_signed(FILE *to, conversion *c, va_list *args)
{
    long long v = c->nlong > 1    ? va_arg(*args, long long)
                  : c->nlong == 1 ? va_arg(*args, long)
                  : c->is_size    ? va_arg(*args, ssize_t)
                                  : va_arg(*args, int);
    char format[sizeof(c->text) + 4];
    snprintf(format, sizeof(format), "%sll%c", c->text, c->kind);
    fprintf(to, format, v);
}

static void print_unsigned(FILE *to, conversion *c, va_list *args)
{
    unsigned long long v = c->nlong > 1    ? va_arg(*args, unsigned long long)
                           : c->nlong == 1 ? va_arg(*args, unsigned long)
                           : c->is_size    ? va_arg(*args, size_t)
                                           : va_arg(*args, unsigned);
    char format[sizeof(c->text) + 4];
    snprintf(format, sizeof(format), "%sll%c", c->text, c->kind);
    fprintf(to, format, v);
}

static void print_one(FILE *to, conversion *c, va_list *args)
{
    char format[sizeof(c->text) + 4];
    switch (c->kind) {
    case 's':
        print_text(to, c, va_arg(*args, const char *));
        return;
    case 'c':
        print_text(to, c, (const char[]){(char)va_arg(*args, int), '\0'});
        return;
    case 'd':
    case 'i':
        print_signed(to, c, args);
        return;
    case 'o':
    case 'u':
    case 'x':
    case 'X':
        print_unsigned(to, c, args);
        return;
    case '%':
        putc('%', to);
        return;
    default:
        snprintf(format, sizeof(format), "%s%c", c->text, c->kind);
        fprintf(to, format, va_arg(*args, double));
    }
}

void cm_print(FILE *to, const char *format, ...)
{
    va_list args;
    conversion c;
    va_start(args, format);
    for (const char *p = format; *p != '\0';) {
        size_t n = strcspn(p, "%");
        fwrite(p, 1, n, to);
        p += n;
        if (*p == '%') {
            p = read_conversion(p + 1, &args, &c);
            print_one(to, &c, &args);
        }
    }
    va_end(args);
}
