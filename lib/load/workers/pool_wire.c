#include "load/workers/pool_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for one file descriptor, aligned as the kernel wants it. */
typedef union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
} control;

int cm_wire_pair(int fd[2], cm_error *err)
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
        return cm_fail_errno(err, errno, "no socket for a worker process");
    return CM_OK;
}

bool cm_wire_send_fd(int fd, const void *data, size_t nbytes, int passed)
{
    if (passed < 0)
        return cm_fd_send(fd, data, nbytes);
    control c = {0};
    struct iovec part = {.iov_base = (void *)data, .iov_len = nbytes};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = c.bytes,
                             .msg_controllen = sizeof(c.bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &passed, sizeof(int));
    ssize_t n;
    do
        n = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n > 0 && cm_fd_send(fd, (const char *)data + n, nbytes - (size_t)n);
}

bool cm_wire_recv_fd(int fd, void *data, size_t nbytes, int *passed)
{
    control c = {0};
    struct iovec part = {.iov_base = data, .iov_len = nbytes};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = c.bytes,
                             .msg_controllen = sizeof(c.bytes)};
    *passed = -1;
    ssize_t n;
    do
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return false;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(passed, CMSG_DATA(header), sizeof(int));
    if (cm_fd_recv(fd, (char *)data + n, nbytes - (size_t)n))
        return true;
    if (*passed >= 0)
        close(*passed);
    *passed = -1;
    return false;
}
