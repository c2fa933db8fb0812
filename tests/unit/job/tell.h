/* The outcome of a test's row as text, and its comparison with the text that was expected. */
#ifndef TESTS_JOB_TELL_H
#define TESTS_JOB_TELL_H

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "ok.h"

/* Appends to TEXT, which always ends with a NUL that is not counted. */
static inline void tell(cm_buf *text, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    OK(cm_buf_append(text, line, strlen(line) + 1, err));
    text->nbytes--;
}

static inline void tell_begin(cm_buf *text)
{
    text->nbytes = 0;
    tell(text, "%s", "");
}

/* Counts in *BAD, and prints, what is not as WANTED; NULL: it is not asked for. */
static inline void tell_compare(const char *row, const char *got, const char *wanted, unsigned *bad)
{
    if (wanted == NULL || strcmp(got, wanted) == 0)
        return;
    print_error("%s:\n  want %s\n  have %s\n", row, wanted, got);
    ++*bad;
}

#endif
