/*
 * Cached objects that are opened and read in ranges: usually shards.  Opening one first copies all
 * of it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "store/disk_cache.h"

enum {
    COPY_NBYTES = 4 << 20 /* at once */
};

typedef struct cache_reader {
    cm_object_reader base;
    cm_cache_key of;
    int fd; /* of the copy; -1: no copy, read SLOW */
    uint8_t *head;
    atomic_uchar *checked; /* one for each block, set once it was checked */
    pthread_mutex_t lock;  /* guards SLOW */
    cm_object_reader *slow;
} cache_reader;

static int read_slow(cache_reader *r, uint64_t offset, void *dst, size_t nbytes, cm_error *err)
{
    const int rc = cm_object_read(r->slow, offset, dst, nbytes, err);
    cm_cache_count(cm_disk_cache_of(r->base.store), 1, rc == CM_OK ? nbytes : 0);
    return rc;
}

/* Copies the object of R, block by block, into FILE.  Errors are those of the slow store. */
static int copy_blocks(cache_reader *r, cm_cache_file *file, bool *written, cm_error *err)
{
    uint64_t head_nbytes = cm_cache_head_nbytes(&r->of), total = r->of.identity.nbytes;
    uint8_t *piece = cm_calloc(1, COPY_NBYTES, err);
    int rc = piece != NULL ? CM_OK : CM_ENOMEM;
    *written = rc == CM_OK;
    cm_cache_head_fill(&r->of, r->head);
    for (uint64_t at = 0; at < total && rc == CM_OK && *written;) {
        size_t n = total - at < COPY_NBYTES ? (size_t)(total - at) : COPY_NBYTES;
        rc = read_slow(r, at, piece, n, err);
        if (rc == CM_OK) {
            cm_cache_head_sum(&r->of, r->head, at, piece, n);
            *written = cm_fd_write_at(file->fd, piece, n, head_nbytes + at) == 0;
        }
        at += n;
    }
    free(piece);
    cm_cache_head_seal(&r->of, r->head);
    if (rc == CM_OK && *written)
        *written = cm_fd_write_at(file->fd, r->head, (size_t)head_nbytes, 0) == 0;
    return rc;
}

/* Makes R read the slow object: until it is copied, or for good. */
static int open_original(cm_disk_cache *cache, cache_reader *r, cm_error *err)
{
    int rc = cm_object_open(cache->base.inner, r->of.key, &r->slow, err);
    if (rc == CM_OK)
        r->base.nbytes = cm_object_nbytes(r->slow);
    return rc;
}

/* Opens the slow object of R and copies it; if that fails, R reads the slow one. */
static int copy_object(cm_disk_cache *cache, cache_reader *r, cm_error *err)
{
    cm_cache_file file;
    char name[CM_CACHE_NAME_SIZE];
    bool written = false;
    int rc = open_original(cache, r, err);
    if (rc != CM_OK)
        return rc;
    uint64_t nbytes = cm_cache_head_nbytes(&r->of) + r->of.identity.nbytes;
    if (r->base.nbytes != r->of.identity.nbytes ||
        cm_cache_file_create(&cache->dir, nbytes, &file, NULL) != CM_OK)
        return CM_OK;
    rc = copy_blocks(r, &file, &written, err);
    cm_cache_name(&r->of, name);
    if (rc != CM_OK || !written || cm_cache_file_commit(&cache->dir, &file, name, NULL) != CM_OK) {
        cm_cache_file_abort(&cache->dir, &file);
        return rc;
    }
    r->fd = file.fd;
    cm_object_close(r->slow);
    r->slow = NULL;
    return CM_OK;
}

static bool find_copy(cm_disk_cache *cache, cache_reader *r)
{
    int fd = cm_cache_open_copy(&cache->dir, &r->of);
    if (fd < 0)
        return false;
    struct iovec iov = {r->head, (size_t)cm_cache_head_nbytes(&r->of)};
    if (!cm_cache_read(fd, &iov, 1, 0) || !cm_cache_head_check(&r->of, r->head)) {
        close(fd);
        return false;
    }
    r->fd = fd;
    return true;
}

void cm_cache_reader_close(cm_object_reader *reader)
{
    cache_reader *r = (cache_reader *)reader;
    if (r->fd >= 0)
        close(r->fd);
    cm_object_close(r->slow);
    pthread_mutex_destroy(&r->lock);
    free(r->checked);
    free(r->head);
    free(reader->key);
    free(r);
}

static int open_either(cm_disk_cache *cache, cache_reader *r, cm_error *err)
{
    uint64_t nbytes = r->of.identity.nbytes, head_nbytes = cm_cache_head_nbytes(&r->of);
    if (nbytes > cache->dir.max_nbytes || head_nbytes > cache->dir.max_nbytes - nbytes) {
        atomic_fetch_add(&cache->misses, 1);
        return open_original(cache, r, err);
    }
    r->base.nbytes = nbytes;
    r->head = cm_calloc((size_t)head_nbytes, 1, err);
    r->checked = r->head != NULL ? cm_calloc((size_t)(nbytes / CM_CACHE_BLOCK) + 1, 1, err) : NULL;
    if (r->checked == NULL)
        return CM_ENOMEM;
    if (find_copy(cache, r)) {
        atomic_fetch_add(&cache->hits, 1);
        return CM_OK;
    }
    atomic_fetch_add(&cache->misses, 1);
    return copy_object(cache, r, err);
}

int cm_cache_reader_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err)
{
    cm_disk_cache *cache = cm_disk_cache_of(store);
    cache_reader *r = cm_calloc(1, sizeof *r, err);
    if (r == NULL)
        return CM_ENOMEM;
    pthread_mutex_init(&r->lock, NULL);
    r->fd = -1;
    r->base.store = store;
    r->base.key = cm_strdup(key, err);
    int rc = r->base.key != NULL ? cm_cache_identify(cache, r->base.key, &r->of, err) : CM_ENOMEM;
    if (rc == CM_OK)
        rc = open_either(cache, r, err);
    if (rc != CM_OK) {
        cm_cache_reader_close(&r->base);
        return rc;
    }
    *out = &r->base;
    return CM_OK;
}

static bool all_checked(const cache_reader *r, uint64_t first, uint64_t last)
{
    for (uint64_t b = first; b <= last; b++)
        if (!atomic_load_explicit(&r->checked[b], memory_order_relaxed))
            return false;
    return true;
}

/* Reads block B, into DST if all of it is wanted, otherwise through a buffer. */
static bool read_block(cache_reader *r, uint64_t b, uint64_t offset, uint8_t *dst, size_t nbytes)
{
    uint8_t block[CM_CACHE_BLOCK];
    uint64_t start = b * CM_CACHE_BLOCK, end = start + CM_CACHE_BLOCK;
    if (end > r->of.identity.nbytes)
        end = r->of.identity.nbytes;
    uint64_t from = offset > start ? offset : start;
    uint64_t to = offset + nbytes < end ? offset + nbytes : end;
    bool whole = from == start && to == end;
    uint8_t *at = whole ? dst + (start - offset) : block;
    struct iovec iov = {at, (size_t)(end - start)};
    if (!cm_cache_read(r->fd, &iov, 1, cm_cache_head_nbytes(&r->of) + start) ||
        !cm_cache_head_holds(&r->of, r->head, start, at, (size_t)(end - start)))
        return false;
    if (!whole)
        memcpy(dst + (from - offset), block + (from - start), (size_t)(to - from));
    atomic_store_explicit(&r->checked[b], 1, memory_order_relaxed);
    return true;
}

/* False when the copy is damaged.  Each block is checked when this reader first reads it. */
static bool read_from_copy(cache_reader *r, uint64_t offset, void *dst, size_t nbytes)
{
    uint64_t first = offset / CM_CACHE_BLOCK, last = (offset + nbytes - 1) / CM_CACHE_BLOCK;
    if (all_checked(r, first, last)) {
        struct iovec iov = {dst, nbytes};
        return cm_cache_read(r->fd, &iov, 1, cm_cache_head_nbytes(&r->of) + offset);
    }
    for (uint64_t b = first; b <= last; b++)
        if (!read_block(r, b, offset, dst, nbytes))
            return false;
    return true;
}

/* Opens the slow object after the copy was found damaged; the next opening copies it again. */
static int open_slow(cm_disk_cache *cache, cache_reader *r, cm_error *err)
{
    char name[CM_CACHE_NAME_SIZE];
    cm_cache_key now;
    int rc = CM_OK;
    pthread_mutex_lock(&r->lock);
    if (r->slow == NULL) {
        cm_cache_name(&r->of, name);
        unlinkat(cache->dir.fd, name, 0);
        rc = cm_cache_identify(cache, r->of.key, &now, err);
        if (rc == CM_OK && memcmp(&now.identity, &r->of.identity, sizeof now.identity) != 0)
            rc = cm_fail(err, CM_EFORMAT, "%s: changed while it was read", r->of.key);
        if (rc == CM_OK)
            rc = cm_object_open(cache->base.inner, r->of.key, &r->slow, err);
        atomic_fetch_add(&cache->misses, 1);
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}

int cm_cache_reader_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                         cm_error *err)
{
    cache_reader *r = (cache_reader *)reader;
    if (nbytes == 0)
        return CM_OK;
    if (r->fd >= 0 && read_from_copy(r, offset, dst, nbytes)) {
        atomic_fetch_add(&cm_disk_cache_of(reader->store)->nbytes, nbytes);
        return CM_OK;
    }
    int rc = r->fd >= 0 ? open_slow(cm_disk_cache_of(reader->store), r, err) : CM_OK;
    return rc != CM_OK ? rc : read_slow(r, offset, dst, nbytes, err);
}
