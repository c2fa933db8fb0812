#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "load/workers/pool.h"

int cm_arena_create(size_t nbytes, bool shared, bool resident, cm_arena *out, cm_error *err)
{
    *out = (cm_arena){.shared = shared};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole;
    if (!cm_add_size(nbytes, page - 1, &whole) || whole > (size_t)INT64_MAX)
        return cm_fail(err, CM_ENOMEM, "no memory for %zu bytes of batches", nbytes);
    whole = whole < page ? page : whole / page * page;

    int flags = (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS;
    flags |= resident ? MAP_POPULATE : 0;
    void *data = mmap(NULL, whole, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (data == MAP_FAILED)
        return cm_fail_errno(err, errno, "no memory for %zu bytes of batches", nbytes);
    (void)madvise(data, whole, MADV_HUGEPAGE); /* fewer faults, where the system has such pages */
    out->data = data;
    out->nbytes = whole;
    return CM_OK;
}

void cm_arena_release(cm_arena *arena)
{
    if (arena->data != NULL)
        munmap(arena->data, arena->nbytes);
    *arena = (cm_arena){0};
}
