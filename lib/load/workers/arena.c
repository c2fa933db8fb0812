#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "load/workers/pool.h"

/* A file without a name whose size nobody can change; -1 where the kernel has none. */
static int open_memfd(size_t nbytes, cm_error *err)
{
    int fd = memfd_create("chunkmill-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (ftruncate(fd, (off_t)nbytes) != 0) {
        cm_fail_errno(err, errno, "no shared memory of %zu bytes", nbytes);
        close(fd);
        return -2;
    }
    /* Against a worker that would cut off what others have mapped; not needed to work. */
    (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    return fd;
}

int cm_arena_create(size_t nbytes, bool shared, cm_arena *out, cm_error *err)
{
    *out = (cm_arena){.fd = -1, .shared = shared};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole;
    if (!cm_add_size(nbytes, page - 1, &whole) || whole > (size_t)INT64_MAX)
        return cm_fail(err, CM_ENOMEM, "no memory for %zu bytes of batches", nbytes);
    whole = whole < page ? page : whole / page * page;

    int fd = shared ? open_memfd(whole, err) : -1;
    if (fd == -2)
        return CM_ENOMEM;
    /* Resident at once: no batch waits for a page, and the memory taken is the memory planned. */
    int flags = (shared ? MAP_SHARED : MAP_PRIVATE) | (fd < 0 ? MAP_ANONYMOUS : 0) | MAP_POPULATE;
    void *data = mmap(NULL, whole, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (data == MAP_FAILED) {
        int rc = cm_fail_errno(err, errno, "no memory for %zu bytes of batches", nbytes);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    out->data = data;
    out->nbytes = whole;
    out->fd = fd;
    return CM_OK;
}

void cm_arena_release(cm_arena *arena)
{
    if (arena->data != NULL) {
        munmap(arena->data, arena->nbytes);
        if (arena->fd >= 0)
            close(arena->fd);
    }
    *arena = (cm_arena){.fd = -1};
}
