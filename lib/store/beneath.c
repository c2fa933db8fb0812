/*
 * Resolves names by one system call if the kernel has openat2 (Linux 5.6), otherwise folder by
 * folder.
 */
#include "store/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel's interface, which older headers of the C library lack. */
enum {
    NUMBER_OPENAT2 = 437, /* on every architecture */
    RESOLVE_MAGIC_LINKS = 2,
    RESOLVE_LINKS = 4,
    RESOLVE_INSIDE = 8
};

struct how {
    uint64_t flags, mode, resolve;
};

static int open_at_once(int root, const char *path, int flags, mode_t mode)
{
    struct how how = {.flags = (uint64_t)flags,
                      .mode = flags & O_CREAT ? mode : 0,
                      .resolve = RESOLVE_MAGIC_LINKS | RESOLVE_LINKS | RESOLVE_INSIDE};
    return (int)syscall(NUMBER_OPENAT2, root, path, &how, sizeof how);
}

/* For a link, O_NOFOLLOW with O_DIRECTORY gives ENOTDIR: turn it into ELOOP for the caller. */
static void tell_link(int folder, const char *name)
{
    struct stat st;
    int errnum = errno;
    if (errnum == ENOTDIR && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(st.st_mode))
        errnum = ELOOP;
    errno = errnum;
}

static int step(int folder, const char *name, int flags, mode_t mode)
{
    int fd = openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        tell_link(folder, name);
    return fd;
}

static int walk(int root, const char *path, int flags, mode_t mode)
{
    char name[NAME_MAX + 1];
    int folder = root;
    for (;;) {
        size_t n = strcspn(path, "/");
        int fd = -1;
        if (n > NAME_MAX) {
            errno = ENAMETOOLONG;
        } else {
            memcpy(name, path, n);
            name[n] = '\0';
            fd = path[n] == '\0' ? step(folder, name, flags, mode)
                                 : step(folder, name, O_PATH | O_DIRECTORY, 0);
        }
        int errnum = errno;
        if (folder != root)
            close(folder);
        errno = errnum;
        if (fd < 0 || path[n] == '\0')
            return fd;
        folder = fd;
        path += n + 1;
    }
}

int cm_beneath_open(int root, const char *path, int flags, mode_t mode)
{
    if (*path == '\0')
        path = ".";
    int fd = open_at_once(root, path, flags | O_CLOEXEC, mode);
    /* EPERM: a container with an older list of system calls.  EAGAIN: a concurrent rename. */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN || errno == EINVAL))
        fd = walk(root, path, flags, mode);
    return fd;
}

int cm_beneath_parent(int root, const char *path, const char **name)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - path);
    *name = slash == NULL ? path : slash + 1;
    if (n >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, path, n);
    folder[n] = '\0';
    return cm_beneath_open(root, folder, O_PATH | O_DIRECTORY, 0);
}
