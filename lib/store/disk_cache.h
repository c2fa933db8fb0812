/* The inside of a cache on disk, shared by disk_cache.c and cache_reader.c: objects in ranges. */
#ifndef CM_STORE_DISK_CACHE_H
#define CM_STORE_DISK_CACHE_H

#include <sys/uio.h>

#include "store/cache_copy.h"

typedef struct cm_disk_cache {
    cm_store base;
    char *slow_name; /* of base.inner */
    cm_cache_dir dir;
    atomic_uint_fast64_t hits, misses;
} cm_disk_cache;

static inline cm_disk_cache *cm_disk_cache_of(cm_store *store)
{
    return (cm_disk_cache *)store;
}

/* Identifies the present object KEY, as the slow store describes it. */
static inline int cm_cache_identify(cm_disk_cache *cache, const char *key, cm_cache_key *out,
                                    cm_error *err)
{
    *out = (cm_cache_key){.store = cache->slow_name, .key = key};
    return cm_store_identity(cache->base.inner, key, &out->identity, err);
}

int cm_cache_reader_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err);
int cm_cache_reader_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                         cm_error *err);
void cm_cache_reader_close(cm_object_reader *reader);

#endif
