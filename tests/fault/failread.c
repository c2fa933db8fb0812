/*
 * LD_PRELOAD library: reading from files below FAILREAD_PATH fails with EIO once the
 * file FAILREAD_AFTER is there: a disk that goes bad when the output is complete.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(int fd)
{
    const char *path = getenv("FAILREAD_PATH"), *after = getenv("FAILREAD_AFTER");
    char link[64], name[4096];
    if (path == NULL || after == NULL || access(after, F_OK) != 0)
        return 0;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof(name) - 1);
    name[n < 0 ? 0 : n] = '\0';
    if (strncmp(name, path, strlen(path)) != 0)
        return 0;
    errno = EIO;
    return 1;
}

#define NEXT(name) (*(__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t read(int fd, void *buf, size_t n)
{
    return fails(fd) ? -1 : NEXT(read)(fd, buf, n);
}

ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
    return fails(fd) ? -1 : NEXT(pread)(fd, buf, n, at);
}

ssize_t pread64(int fd, void *buf, size_t n, off64_t at)
{
    return fails(fd) ? -1 : NEXT(pread64)(fd, buf, n, at);
}
