/* Writing to what may be a pipe. */
#ifndef CM_BASE_PIPE_H
#define CM_BASE_PIPE_H

#include <sys/types.h>

/* write, without the signal that a pipe without readers raises: EPIPE alone. */
ssize_t cm_pipe_write(int fd, const void *data, size_t nbytes);

#endif
