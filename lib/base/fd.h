/* Reads and writes everything requested, despite signals and short calls. */
#ifndef CM_BASE_FD_H
#define CM_BASE_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Return 0 or an errno.  *GOT bytes were read: fewer than NBYTES only at the end of the file, or
 * after an error.
 */
int cm_fd_read(int fd, void *dst, size_t nbytes, size_t *got);
int cm_fd_read_at(int fd, void *dst, size_t nbytes, uint64_t offset, size_t *got);

/*
 * The first NBYTES of the file at PATH, *GOT of them: 0 where it cannot be read.  False: it is no
 * regular file; a pipe is not waited for.
 */
bool cm_file_head(const char *path, void *dst, size_t nbytes, size_t *got);

int cm_fd_write(int fd, const void *src, size_t nbytes);
int cm_fd_write_at(int fd, const void *src, size_t nbytes, uint64_t offset);

/* On a stream socket; false: the other end is closed, or the socket failed. */
bool cm_fd_send(int fd, const void *src, size_t nbytes);
bool cm_fd_recv(int fd, void *dst, size_t nbytes);
/* Receives at least one of *NBYTES bytes; advances *DST and decreases *NBYTES. */
bool cm_fd_recv_some(int fd, uint8_t **dst, size_t *nbytes);

#endif
