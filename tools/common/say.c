#include "say.h"

#include <stdlib.h>

void cm_print_clean(const char *text, FILE *to)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p < 0x20 || *p == 0x7f)
            fprintf(to, "\\x%02x", *p);
        else if (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f) { /* C1 controls, in UTF-8 */
            fprintf(to, "\\x%02x", p[1]);
            p++;
        } else
            putc(*p, to);
    }
}

void cm_vsay(const char *tool, const char *format, va_list args)
{
    /* A sentence of the library fits here: that there is no memory can always be said. */
    char fits[2048], *longer = NULL;
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(fits, sizeof(fits), format, args);
    if (n >= (int)sizeof(fits) && vasprintf(&longer, format, again) < 0)
        longer = NULL;
    va_end(again);
    flockfile(stderr);
    fprintf(stderr, "%s: ", tool);
    cm_print_clean(longer ? longer : fits, stderr);
    putc('\n', stderr);
    fflush(stderr);
    funlockfile(stderr);
    free(longer);
}

void cm_say(const char *tool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cm_vsay(tool, format, args);
    va_end(args);
}
