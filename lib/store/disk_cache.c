/*
 * A store over a slower one that keeps the objects it reads in a directory (cache_dir.c).
 *
 * For every object the slow store is first asked for size and time of change: one request for
 * metadata guarantees that no stale byte is returned.  Objects that cannot be kept, because the
 * disk is full or they exceed the cache, are read from the slow store.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "store/disk_cache.h"

enum {
    HEAD_ON_STACK = 4096
};

/* ---- whole objects ---- */

/* A head, on the stack if it fits. */
typedef struct head_room {
    uint8_t small[HEAD_ON_STACK];
    uint8_t *data;
    size_t nbytes;
} head_room;

static bool head_room_init(head_room *room, const cm_cache_key *k)
{
    room->nbytes = (size_t)cm_cache_head_nbytes(k);
    room->data = room->nbytes <= sizeof room->small ? room->small : malloc(room->nbytes);
    return room->data != NULL;
}

static void head_room_release(head_room *room)
{
    if (room->data != room->small)
        free(room->data);
}

static bool read_copy(cm_disk_cache *cache, const cm_cache_key *k, void *dst)
{
    head_room head;
    int fd = cm_cache_open_copy(&cache->dir, k);
    bool good = fd >= 0 && head_room_init(&head, k);
    if (good) {
        size_t nbytes = (size_t)k->identity.nbytes;
        struct iovec iov[2] = {{head.data, head.nbytes}, {dst, nbytes}};
        good = cm_cache_read(fd, iov, 2, 0) && cm_cache_head_check(k, head.data) &&
               cm_cache_head_holds(k, head.data, 0, dst, nbytes);
        head_room_release(&head);
    }
    if (fd >= 0)
        close(fd);
    return good;
}

static void keep_copy(cm_disk_cache *cache, const cm_cache_key *k, const void *data)
{
    head_room head;
    cm_cache_file file;
    char name[CM_CACHE_NAME_SIZE];
    if (!head_room_init(&head, k))
        return;
    size_t nbytes = (size_t)k->identity.nbytes;
    if (cm_cache_file_create(&cache->dir, head.nbytes + nbytes, &file, NULL) == CM_OK) {
        cm_cache_name(k, name);
        cm_cache_head_fill(k, head.data);
        cm_cache_head_sum(k, head.data, 0, data, nbytes);
        cm_cache_head_seal(k, head.data);
        if (cm_fd_write_at(file.fd, head.data, head.nbytes, 0) == 0 &&
            cm_fd_write_at(file.fd, data, nbytes, head.nbytes) == 0 &&
            cm_cache_file_commit(&cache->dir, &file, name, NULL) == CM_OK)
            close(file.fd);
        else
            cm_cache_file_abort(&cache->dir, &file);
    }
    head_room_release(&head);
}

/* Appends the object KEY to BUF. */
static int append_object(cm_disk_cache *cache, const char *key, uint64_t max_nbytes, cm_buf *buf,
                         cm_error *err)
{
    cm_cache_key k;
    size_t at = buf->nbytes;
    int rc = cm_cache_identify(cache, key, &k, err);
    if (rc != CM_OK)
        return rc;
    if (k.identity.nbytes > max_nbytes)
        return cm_object_too_long(key, k.identity.nbytes, max_nbytes, err);
    rc = cm_buf_extend(buf, k.identity.nbytes, err);
    if (rc != CM_OK)
        return rc;
    if (read_copy(cache, &k, buf->data + at)) {
        atomic_fetch_add(&cache->hits, 1);
        atomic_fetch_add(&cache->nbytes, k.identity.nbytes);
        return CM_OK;
    }
    atomic_fetch_add(&cache->misses, 1);
    buf->nbytes = at;
    cm_store_read read = {.key = key, .nbytes = UINT64_MAX, .max_nbytes = max_nbytes};
    uint64_t nrequests = 0;
    rc = cm_store_read_more(cache->base.inner, &read, 1, buf, &nrequests, err);
    cm_cache_count(cache, nrequests, read.got_nbytes);
    if (rc == CM_OK && read.absent)
        return cm_fail(err, CM_ENOTFOUND, "%s: no such object", key);
    if (rc == CM_OK && read.got_nbytes == k.identity.nbytes)
        keep_copy(cache, &k, buf->data + at);
    return rc;
}

static int cache_read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf,
                           cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        cm_store_read *r = &read[i];
        r->at = buf->nbytes;
        if (r->reader != NULL) {
            rc = cm_buf_extend(buf, r->nbytes, err);
            if (rc == CM_OK)
                rc = cm_cache_reader_read(r->reader, r->offset, buf->data + r->at,
                                          (size_t)r->nbytes, err);
        } else {
            rc = append_object(cm_disk_cache_of(store), r->key, r->max_nbytes, buf, err);
            r->absent = rc == CM_ENOTFOUND;
        }
        if (r->absent) {
            buf->nbytes = r->at;
            rc = CM_OK;
        }
        r->got_nbytes = buf->nbytes - r->at;
    }
    return rc;
}

/* ---- opening ---- */

static void cache_free(cm_store *store)
{
    cm_disk_cache *cache = cm_disk_cache_of(store);
    cm_cache_dir_close(&cache->dir);
    free(cache->slow_name);
    free(store->name);
    free(cache);
}

static const cm_store_ops cache_ops = {
    .read_only = "a cache is only read from",
    .free = cache_free,
    .open = cm_cache_reader_open,
    .read = cm_cache_reader_read,
    .close = cm_cache_reader_close,
    .read_many = cache_read_many,
};

int cm_store_open_disk_cache(cm_store *slow, const char *path, uint64_t nbytes, cm_store **out,
                             cm_error *err)
{
    *out = NULL;
    if (!cm_store_has_identity(slow))
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: cannot be cached: it does not tell when an object changed", slow->name);
    cm_disk_cache *cache = cm_calloc(1, sizeof *cache, err);
    if (cache == NULL)
        return CM_ENOMEM;
    cache->base.ops = &cache_ops;
    cache->base.inner = slow;
    cache->dir.fd = -1;
    cache->base.name = cm_strdup(slow->name, err);
    /*
     * Identify objects by the real path: relative paths of two folders may be equal, and one folder
     * may have two.
     */
    char *real = realpath(slow->name, NULL);
    cache->slow_name = real != NULL ? real : cm_strdup(slow->name, err);
    int rc = cache->base.name != NULL && cache->slow_name != NULL
                 ? cm_cache_dir_open(&cache->dir, path, nbytes, err)
                 : CM_ENOMEM;
    if (rc != CM_OK) {
        cache_free(&cache->base);
        return rc;
    }
    *out = &cache->base;
    return CM_OK;
}

cm_disk_cache_counts cm_store_disk_cache_counts(const cm_store *store)
{
    if (store->ops != &cache_ops)
        return (cm_disk_cache_counts){0};
    const cm_disk_cache *cache = (const cm_disk_cache *)store;
    return (cm_disk_cache_counts){
        .hits = atomic_load(&cache->hits),
        .misses = atomic_load(&cache->misses),
        .evictions = atomic_load(&cache->dir.evictions),
        .nbytes = atomic_load(&cache->nbytes),
        .requests = atomic_load(&cache->requests),
        .stored_nbytes = atomic_load(&cache->stored_nbytes),
    };
}
