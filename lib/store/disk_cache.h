/* The inside of a cache on disk, shared by disk_cache.c and cache_reader.c: objects in ranges. */
#ifndef CM_STORE_DISK_CACHE_H
#define CM_STORE_DISK_CACHE_H

#include <sys/uio.h>

#include "store/cache_copy.h"

typedef struct cm_disk_cache {
    cm_store base;
    char *slow_name; /* of base.inner */
    cm_cache_dir dir;
    atomic_uint_fast64_t hits, misses, nbytes, requests, stored_nbytes;
} cm_disk_cache;

static inline cm_disk_cache *cm_disk_cache_of(cm_store *store)
{
    return (cm_disk_cache *)store;
}

/* Counts requests to the slow store, and the bytes that it gave. */
static inline void cm_cache_count(cm_disk_cache *cache, uint64_t nrequests, uint64_t nbytes)
{
    atomic_fetch_add(&cache->requests, nrequests);
    atomic_fetch_add(&cache->stored_nbytes, nbytes);
}

/*
 * Identifies the present object KEY, as the slow store describes it.  That counts as a request only
 * where there is no object, of which nothing else is asked.
 */
static inline int cm_cache_identify(cm_disk_cache *cache, const char *key, cm_cache_key *out,
                                    cm_error *err)
{
    *out = (cm_cache_key){.store = cache->slow_name, .key = key};
    const int rc = cm_store_identity(cache->base.inner, key, &out->identity, err);
    cm_cache_count(cache, rc == CM_ENOTFOUND, 0);
    return rc;
}

int cm_cache_reader_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err);
int cm_cache_reader_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                         cm_error *err);
void cm_cache_reader_close(cm_object_reader *reader);

#endif
