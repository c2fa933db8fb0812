#include "format/zarr/early.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/scratch.h"

/*
 * The scratch file only grows, so it needs no list of free space: a segment without waiting chunks
 * is returned to the disk (punched out).
 */
enum {
    SEGMENT_NBYTES = 1 << 20,
    SPARE_NBYTES = 64 << 20, /* of the disk, besides as much again as waits there */
    LARGE_NBYTES = 32 << 10,
    MOST_IDLE = 16 /* blocks */
};

typedef struct block {
    struct block *next; /* idle */
    size_t nbytes;
    uint8_t data[];
} block;

struct cm_early {
    size_t limit; /* of memory */
    char *folder; /* NULL: no scratch */
    atomic_uint_fast64_t memory_nbytes, scratch_nbytes, refused;
    pthread_mutex_t lock; /* guards the rest */
    size_t held;          /* bytes in memory, idle blocks included */
    block *idle;
    unsigned nidle;
    int fd;               /* -1: not made yet */
    bool broken;          /* it cannot be made, or the disk is full */
    uint64_t end, inside; /* of the file; and bytes waiting in it */
    uint32_t *waiting;    /* chunks in each segment */
    size_t nsegments, room;
};

int cm_early_create(cm_early **out, cm_error *err)
{
    cm_early *e = *out = cm_calloc(1, sizeof(*e), err);
    if (e == NULL)
        return CM_ENOMEM;
    e->limit = SIZE_MAX;
    e->fd = -1;
    pthread_mutex_init(&e->lock, NULL);
    return CM_OK;
}

int cm_early_limit(cm_early *e, size_t nbytes, const char *folder, cm_error *err)
{
    free(e->folder);
    e->folder = NULL;
    e->limit = nbytes;
    if (folder != NULL && (e->folder = cm_strdup(folder, err)) == NULL)
        return CM_ENOMEM;
    return CM_OK;
}

/* ---- memory ---- */

/* An idle block that fits NBYTES without much waste, or NULL.  Lock held. */
static block *take_idle(cm_early *e, size_t nbytes)
{
    for (block **at = &e->idle; *at != NULL; at = &(*at)->next) {
        block *b = *at;
        if (b->nbytes < nbytes || b->nbytes / 2 > nbytes)
            continue;
        *at = b->next;
        e->nidle--;
        return b;
    }
    return NULL;
}

/* Lock held. */
static bool drop_idle(cm_early *e)
{
    block *b = e->idle;
    if (b == NULL)
        return false;
    e->idle = b->next;
    e->nidle--;
    e->held -= b->nbytes;
    free(b);
    return true;
}

static block *take_block(cm_early *e, size_t nbytes)
{
    pthread_mutex_lock(&e->lock);
    block *b = take_idle(e, nbytes);
    bool fits = b != NULL;
    while (!fits && !(fits = e->held <= e->limit && nbytes <= e->limit - e->held) && drop_idle(e))
        continue;
    if (b == NULL && fits)
        e->held += nbytes;
    pthread_mutex_unlock(&e->lock);
    if (b != NULL || !fits)
        return b;
    if ((b = malloc(sizeof(*b) + nbytes)) != NULL) {
        b->nbytes = nbytes;
        return b;
    }
    pthread_mutex_lock(&e->lock);
    e->held -= nbytes;
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

/* Keep large blocks for reuse: fresh memory costs more than the copy. */
static void give_block(cm_early *e, block *b)
{
    pthread_mutex_lock(&e->lock);
    bool stays = b->nbytes >= LARGE_NBYTES && e->nidle < MOST_IDLE;
    if (stays) {
        b->next = e->idle;
        e->idle = b;
        e->nidle++;
    } else {
        e->held -= b->nbytes;
    }
    pthread_mutex_unlock(&e->lock);
    if (!stays)
        free(b);
}

static bool keep_in_memory(cm_early *e, const void *data, size_t nbytes, uint64_t *at)
{
    block *b = take_block(e, nbytes);
    if (b == NULL)
        return false;
    memcpy(b->data, data, nbytes);
    *at = (uintptr_t)b->data;
    atomic_fetch_add(&e->memory_nbytes, nbytes);
    return true;
}

/* ---- scratch ---- */

static size_t segment_of(uint64_t at)
{
    return (size_t)(at / SEGMENT_NBYTES);
}

/* Adds BY, 1 or -1, to the chunk counts of the segments of NBYTES from AT on.  Lock held. */
static void count(cm_early *e, uint64_t at, size_t nbytes, int by)
{
    for (size_t i = segment_of(at); i <= segment_of(at + nbytes - 1); i++) {
        e->waiting[i] += (uint32_t)by;
        /* If the disk cannot take it back, it stays until the end of the job. */
        if (e->waiting[i] == 0 && i < segment_of(e->end))
            (void)fallocate(e->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                            (off_t)i * SEGMENT_NBYTES, SEGMENT_NBYTES);
    }
}

/* Lock held. */
static bool make_segments(cm_early *e, size_t n)
{
    if (n > e->room) {
        uint32_t *more = realloc(e->waiting, 2 * n * sizeof(*more));
        if (more == NULL)
            return false;
        e->waiting = more;
        e->room = 2 * n;
    }
    for (; e->nsegments < n; e->nsegments++)
        e->waiting[e->nsegments] = 0;
    return true;
}

/* Leave disk space for the output; checked once per segment.  Lock held. */
static bool has_room(const cm_early *e, size_t nbytes)
{
    struct statvfs fs;
    if (segment_of(e->end) == segment_of(e->end + nbytes) && e->end > 0)
        return true;
    return fstatvfs(e->fd, &fs) != 0 ||
           (uint64_t)fs.f_bavail * fs.f_frsize > e->inside + nbytes + SPARE_NBYTES;
}

/* Allocates NBYTES at *at. */
static bool take_scratch(cm_early *e, size_t nbytes, uint64_t *at)
{
    bool taken = false;
    pthread_mutex_lock(&e->lock);
    if (e->fd < 0 && !e->broken && e->folder != NULL)
        e->broken = cm_scratch_open(e->folder, &e->fd, NULL) != CM_OK;
    if (e->fd >= 0 && !e->broken && has_room(e, nbytes) &&
        make_segments(e, segment_of(e->end + nbytes) + 1)) {
        *at = e->end;
        e->end += nbytes;
        e->inside += nbytes;
        count(e, *at, nbytes, 1);
        taken = true;
    }
    pthread_mutex_unlock(&e->lock);
    return taken;
}

static void give_scratch(cm_early *e, uint64_t at, size_t nbytes, bool broken)
{
    pthread_mutex_lock(&e->lock);
    count(e, at, nbytes, -1);
    e->inside -= nbytes;
    e->broken = e->broken || broken;
    pthread_mutex_unlock(&e->lock);
}

static bool keep_in_scratch(cm_early *e, const uint8_t *data, size_t nbytes, uint64_t *at)
{
    if (nbytes == 0 || !take_scratch(e, nbytes, at))
        return false;
    if (cm_fd_write_at(e->fd, data, nbytes, *at) != 0) {
        give_scratch(e, *at, nbytes, true);
        return false;
    }
    atomic_fetch_add(&e->scratch_nbytes, nbytes);
    return true;
}

int cm_early_read(cm_early *e, uint64_t at, void *dst, size_t nbytes, cm_error *err)
{
    size_t got;
    int errnum = cm_fd_read_at(e->fd, dst, nbytes, at, &got);
    if (errnum != 0)
        return cm_fail_errno(err, errnum, "%s: cannot read the scratch file of a shard", e->folder);
    return got == nbytes
               ? CM_OK
               : cm_fail(err, CM_EIO, "%s: the scratch file of a shard was cut", e->folder);
}

/* ---- memory or scratch ---- */

static block *block_of(uint64_t at)
{
    return (block *)((uintptr_t)at - offsetof(block, data));
}

cm_early_place cm_early_keep(cm_early *e, const void *data, size_t nbytes, uint64_t *at)
{
    if (keep_in_memory(e, data, nbytes, at))
        return CM_EARLY_MEMORY;
    if (keep_in_scratch(e, data, nbytes, at))
        return CM_EARLY_SCRATCH;
    atomic_fetch_add(&e->refused, 1);
    return CM_EARLY_NOWHERE;
}

void cm_early_drop(cm_early *e, cm_early_place place, uint64_t at, size_t nbytes)
{
    if (place == CM_EARLY_SCRATCH)
        give_scratch(e, at, nbytes, false);
    if (place == CM_EARLY_MEMORY)
        give_block(e, block_of(at));
}

cm_early_counts cm_early_count(const cm_early *e)
{
    return (cm_early_counts){.memory_nbytes = atomic_load(&e->memory_nbytes),
                             .scratch_nbytes = atomic_load(&e->scratch_nbytes),
                             .refused = atomic_load(&e->refused)};
}

uint64_t cm_early_scratch_nbytes(cm_early *e)
{
    struct stat st = {0};
    pthread_mutex_lock(&e->lock);
    if (e->fd >= 0 && fstat(e->fd, &st) != 0)
        st.st_blocks = 0;
    pthread_mutex_unlock(&e->lock);
    return (uint64_t)st.st_blocks * 512;
}

void cm_early_free(cm_early *e)
{
    if (e == NULL)
        return;
    if (e->fd >= 0)
        close(e->fd);
    while (drop_idle(e))
        continue;
    pthread_mutex_destroy(&e->lock);
    free(e->waiting);
    free(e->folder);
    free(e);
}
