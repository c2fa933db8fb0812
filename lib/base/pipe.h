/* Writes to descriptors that may be pipes. */
#ifndef CM_BASE_PIPE_H
#define CM_BASE_PIPE_H

#include <sys/types.h>

/* write that gives EPIPE without raising SIGPIPE. */
ssize_t cm_pipe_write(int fd, const void *data, size_t nbytes);

#endif
