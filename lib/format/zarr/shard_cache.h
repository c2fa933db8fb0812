/*
 * The indices of shards that were read lately, and a few shards held open.
 *
 * Bounded by the bytes of the indices (the latest one is kept in any case) and
 * the number of open objects.  One
 * thread reads an index, others that want it wait for that one.  All calls but
 * create and free may come from many threads at once.
 */
#ifndef CM_FORMAT_ZARR_SHARD_CACHE_H
#define CM_FORMAT_ZARR_SHARD_CACHE_H

#include "codec/shard.h"
#include "store/store.h"

typedef struct cm_shard_cache cm_shard_cache;

/* Borrows STORE and LAYOUT. */
int cm_shard_cache_create(cm_store *store, const cm_shard_layout *layout, size_t max_nbytes,
                          cm_shard_cache **out, cm_error *err);
/* No shard may be in use.  NULL accepted. */
void cm_shard_cache_free(cm_shard_cache *cache);

/* A shard in use: its index stays, and its object stays open, until it is released. */
typedef struct cm_shard {
    const cm_shard_entry *entry; /* one for each inner chunk; NULL: the shard is absent */
    cm_object_reader *object;
} cm_shard;

/* What a call asked of storage. */
typedef struct cm_shard_cost {
    uint32_t nrequests; /* 1: the index was read, or the shard found absent */
    uint64_t nbytes;
} cm_shard_cost;

/* Shard NUMBER, whose object is KEY.  An absent shard is no error. */
int cm_shard_cache_acquire(cm_shard_cache *cache, uint64_t number, const char *key,
                           const cm_shard **out, cm_shard_cost *cost, cm_error *err);
/*
 * True when acquiring shard NUMBER would ask storage for nothing, and indices take no more memory
 * than they may: so who holds shards without being waited for does not make it more.
 */
bool cm_shard_cache_is_at_hand(cm_shard_cache *cache, uint64_t number);
void cm_shard_cache_release(cm_shard_cache *cache, const cm_shard *shard);
/*
 * Releases SHARD after reading of it failed.  True where another object has taken its name: the
 * index that was read is forgotten, and acquiring the shard again reads the new one.
 */
bool cm_shard_cache_renew(cm_shard_cache *cache, const cm_shard *shard);

/*
 * True when the index of shard NUMBER is at hand and says that inner chunk LOCAL is missing.
 * No I/O.
 */
bool cm_shard_cache_knows_missing(cm_shard_cache *cache, uint64_t number, uint64_t local);

#endif
