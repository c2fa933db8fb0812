#include "say.h"

#include <stdlib.h>
#include <string.h>

#include "base/visible.h"

void cm_print_clean(const char *text, FILE *to)
{
    char shown[CM_VISIBLE_SIZE];
    size_t left = strlen(text), nshown;
    for (size_t used; left > 0; text += used, left -= used) {
        used = cm_visible(text, left, shown, &nshown);
        fwrite(shown, 1, nshown, to);
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
