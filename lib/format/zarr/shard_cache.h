/*
 * Caches the indices of recently read shards, and keeps a few shards open.
 *
 * Bounded by the bytes of the indices (the latest is always kept) and the number of open objects.
 * One thread reads an index while others that need it wait.  All calls but create and free may come
 * from many threads at once.
 */
#ifndef CM_FORMAT_ZARR_SHARD_CACHE_H
#define CM_FORMAT_ZARR_SHARD_CACHE_H

#include "codec/shard.h"
#include "store/store.h"

typedef struct cm_shard_cache cm_shard_cache;

/* Borrows STORE. */
int cm_shard_cache_create(cm_store *store, size_t max_nbytes, cm_shard_cache **out, cm_error *err);
/* No shard may be in use.  NULL accepted. */
void cm_shard_cache_free(cm_shard_cache *cache);

/* A shard in use: its index and its open object stay until it is released. */
typedef struct cm_shard {
    const cm_shard_entry *entry; /* one for each inner chunk; NULL: the shard is absent */
    cm_object_reader *object;
} cm_shard;

/* Cost of one call in requests and bytes. */
typedef struct cm_shard_cost {
    uint32_t nrequests; /* 1: the index was read, or the shard found absent */
    uint64_t nbytes;
} cm_shard_cost;

/*
 * Acquires shard NUMBER, whose object is KEY, and whose LAYOUT (borrowed) is always the same.  An
 * absent shard is not an error.
 */
int cm_shard_cache_acquire(cm_shard_cache *cache, uint64_t number, const cm_shard_layout *layout,
                           const char *key, const cm_shard **out, cm_shard_cost *cost,
                           cm_error *err);
/*
 * True when acquiring shard NUMBER needs no request, and the indices are within their limit:
 * asynchronous reads that hold shards must not exceed it.
 */
bool cm_shard_cache_is_at_hand(cm_shard_cache *cache, uint64_t number);
void cm_shard_cache_release(cm_shard_cache *cache, const cm_shard *shard);
/*
 * Releases SHARD after reading it failed.  True if the object was replaced: the cached index is
 * dropped, and acquiring the shard again reads the new one.
 */
bool cm_shard_cache_renew(cm_shard_cache *cache, const cm_shard *shard);

/* True when the index of shard NUMBER is cached and inner chunk LOCAL is missing in it.  No I/O. */
bool cm_shard_cache_knows_missing(cm_shard_cache *cache, uint64_t number, uint64_t local);

#endif
