/* The inside of a cache on disk, shared by disk_cache.c and cache_reader.c. */
#ifndef CM_STORE_DISK_CACHE_H
#define CM_STORE_DISK_CACHE_H

#include <sys/uio.h>

#include "store/cache_copy.h"

typedef struct cm_disk_cache {
    cm_store base;
    cm_store *slow;
    char *slow_name;
    cm_cache_dir dir;
    atomic_uint_fast64_t hits, misses;
} cm_disk_cache;

static inline cm_disk_cache *cm_disk_cache_of(cm_store *store)
{
    return (cm_disk_cache *)store;
}

/* Identifies the present object KEY, as the slow store describes it. */
int cm_cache_identify(cm_disk_cache *cache, const char *key, cm_cache_key *out, cm_error *err);

/* Opens the copy of K and marks it as used; -1: no copy of that size. */
int cm_cache_open_copy(cm_disk_cache *cache, const cm_cache_key *k);

int cm_cache_reader_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err);
int cm_cache_reader_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                         cm_error *err);
void cm_cache_reader_close(cm_object_reader *reader);

#endif
