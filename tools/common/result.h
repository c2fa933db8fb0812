/* Standard output: the result of a program. */
#ifndef CM_TOOLS_RESULT_H
#define CM_TOOLS_RESULT_H

/*
 * From here on `stdout` is a stream that remembers its first error (base/outstream.h).  Returns 0,
 * or an errno.  A second call does nothing.
 */
int cm_result_open(void);
/* Writes what is buffered.  0, or the errno of the first write that failed. */
int cm_result_flush(void);

#endif
