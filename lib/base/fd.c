#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_OFFSET UINT64_MAX

static int read_all(int fd, uint8_t *dst, size_t nbytes, uint64_t offset, size_t *got)
{
    for (*got = 0; *got < nbytes;) {
        uint8_t *to = dst + *got;
        ssize_t n = offset == NO_OFFSET ? read(fd, to, nbytes - *got)
                                        : pread(fd, to, nbytes - *got, (off_t)(offset + *got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : 0;
        *got += (size_t)n;
    }
    return 0;
}

int cm_fd_read(int fd, void *dst, size_t nbytes, size_t *got)
{
    return read_all(fd, dst, nbytes, NO_OFFSET, got);
}

int cm_fd_read_at(int fd, void *dst, size_t nbytes, uint64_t offset, size_t *got)
{
    return read_all(fd, dst, nbytes, offset, got);
}

bool cm_file_head(const char *path, void *dst, size_t nbytes, size_t *got)
{
    struct stat st;
    *got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    const bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (regular && cm_fd_read_at(fd, dst, nbytes, 0, got) != 0)
        *got = 0;
    close(fd);
    return regular;
}

static int write_all(int fd, const uint8_t *src, size_t nbytes, uint64_t offset)
{
    for (size_t done = 0; done < nbytes;) {
        ssize_t n = offset == NO_OFFSET
                        ? write(fd, src + done, nbytes - done)
                        : pwrite(fd, src + done, nbytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        done += (size_t)n;
    }
    return 0;
}

int cm_fd_write(int fd, const void *src, size_t nbytes)
{
    return write_all(fd, src, nbytes, NO_OFFSET);
}

int cm_fd_write_at(int fd, const void *src, size_t nbytes, uint64_t offset)
{
    return write_all(fd, src, nbytes, offset);
}

bool cm_fd_send(int fd, const void *src, size_t nbytes)
{
    const uint8_t *p = src;
    while (nbytes > 0) {
        ssize_t n = send(fd, p, nbytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        nbytes -= (size_t)n;
    }
    return true;
}

bool cm_fd_recv_some(int fd, uint8_t **dst, size_t *nbytes)
{
    ssize_t n;
    do
        n = recv(fd, *dst, *nbytes, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return false;
    *dst += n;
    *nbytes -= (size_t)n;
    return true;
}

bool cm_fd_recv(int fd, void *dst, size_t nbytes)
{
    for (uint8_t *p = dst; nbytes > 0;)
        if (!cm_fd_recv_some(fd, &p, &nbytes))
            return false;
    return true;
}
