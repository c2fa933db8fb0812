#include "result.h"

#include <stdio.h>
#include <unistd.h>

#include "base/outstream.h"

static cm_outstream result;

int cm_result_open(void)
{
    if (result.file != NULL)
        return 0;
    int errnum = cm_outstream_borrow(&result, STDOUT_FILENO);
    if (errnum != 0)
        return errnum;
    /* As stdio does it: whoever looks on sees whole lines at once. */
    if (isatty(STDOUT_FILENO))
        setvbuf(result.file, NULL, _IOLBF, BUFSIZ);
    stdout = result.file; /* a variable like any other in glibc */
    return 0;
}

int cm_result_flush(void)
{
    return result.file == NULL ? 0 : cm_outstream_flush(&result);
}
