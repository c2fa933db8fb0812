/*
 * Decoded chunks in memory, up to a number of bytes.
 *
 * Chunks are known by (array, number).  Whoever looks for one that is not there
 * gets an entry to decode into, and everybody else waits for it, so that each
 * chunk is decoded once.  An entry is pinned from lookup to unpin, and pinned
 * entries are never thrown out.  All threads of a process share one cache.
 *
 * To keep clear of deadlocks a thread that holds entries which it has neither
 * published nor abandoned looks up with WAIT false, and comes back to the busy
 * ones when it holds none.
 */
#ifndef CM_LOAD_READER_CHUNK_CACHE_H
#define CM_LOAD_READER_CHUNK_CACHE_H

#include "base/mem.h"

typedef struct cm_chunk_cache cm_chunk_cache;
typedef struct cm_cached_chunk cm_cached_chunk;

typedef enum cm_cache_policy {
    CM_CACHE_LRU, /* what was not looked up for the longest time goes first */
    CM_CACHE_FIFO /* what has been there for the longest time goes first */
} cm_cache_policy;

/*
 * Holds at most NBYTES: decoded chunks, what belongs to each, and its own table.  CM_EINVAL
 * when that leaves no room for any chunk.
 */
int cm_chunk_cache_create(size_t nbytes, cm_cache_policy policy, cm_chunk_cache **out,
                          cm_error *err);
/* Nothing is pinned any more.  NULL accepted. */
void cm_chunk_cache_free(cm_chunk_cache *cache);

typedef enum cm_cache_answer {
    CM_CACHE_HIT,    /* *entry is pinned and its elements are there */
    CM_CACHE_MINE,   /* *entry is pinned and empty: decode into it, then publish or abandon it */
    CM_CACHE_BUSY,   /* another thread is decoding it; only without WAIT */
    CM_CACHE_NO_ROOM /* it fits in no way: decode it elsewhere */
} cm_cache_answer;

/*
 * Looks for chunk NUMBER of ARRAY, NBYTES when decoded.  The address of an array
 * is its name here: no array is freed before the cache it was looked up in.
 * *evicted grows by the chunks that had to go.
 */
cm_cache_answer cm_chunk_cache_lookup(cm_chunk_cache *cache, const void *array, uint64_t number,
                                      size_t nbytes, bool wait, cm_cached_chunk **entry,
                                      uint64_t *evicted);
/* Where the elements of a pinned entry lie, aligned to 64 bytes. */
uint8_t *cm_cached_chunk_data(const cm_cached_chunk *entry);
/* The elements are there; ENTRY stays pinned. */
void cm_chunk_cache_publish(cm_chunk_cache *cache, cm_cached_chunk *entry);
/* The elements will not come: the entry goes, and who waits looks anew. */
void cm_chunk_cache_abandon(cm_chunk_cache *cache, cm_cached_chunk *entry);
void cm_chunk_cache_unpin(cm_chunk_cache *cache, cm_cached_chunk *entry);

/* Bytes held now, counted as the limit counts them. */
size_t cm_chunk_cache_nbytes(cm_chunk_cache *cache);

#endif
