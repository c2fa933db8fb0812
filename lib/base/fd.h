/* All of what is to be read or written, whatever signals come and however little a call takes. */
#ifndef CM_BASE_FD_H
#define CM_BASE_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Return 0 or an errno.  *GOT bytes were read: fewer than NBYTES only where the file ends, or a
 * call fails.
 */
int cm_fd_read(int fd, void *dst, size_t nbytes, size_t *got);
int cm_fd_read_at(int fd, void *dst, size_t nbytes, uint64_t offset, size_t *got);

int cm_fd_write(int fd, const void *src, size_t nbytes);
int cm_fd_write_at(int fd, const void *src, size_t nbytes, uint64_t offset);

/* On a stream socket; false: the other end is gone, or the socket broke. */
bool cm_fd_send(int fd, const void *src, size_t nbytes);
bool cm_fd_recv(int fd, void *dst, size_t nbytes);
/* Receives at least one of *NBYTES bytes; advances *DST and decreases *NBYTES. */
bool cm_fd_recv_some(int fd, uint8_t **dst, size_t *nbytes);

#endif
