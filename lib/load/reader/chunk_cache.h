/*
 * Cache of decoded chunks, limited in bytes and shared by all threads of a process.
 *
 * The key of a chunk is (array, number).  The first thread that misses it gets an empty entry to
 * decode into; others wait for that entry, so each chunk is decoded once.  A lookup pins the entry
 * until unpin; pinned entries are never evicted.
 *
 * Against deadlocks: a thread that holds entries which it has neither published nor abandoned looks
 * up with WAIT false, and comes back to busy entries when it holds none.
 */
#ifndef CM_LOAD_READER_CHUNK_CACHE_H
#define CM_LOAD_READER_CHUNK_CACHE_H

#include "base/mem.h"

typedef struct cm_chunk_cache cm_chunk_cache;
typedef struct cm_cached_chunk cm_cached_chunk;

typedef enum cm_cache_policy {
    CM_CACHE_LRU, /* evicts the entry least recently looked up */
    CM_CACHE_FIFO /* evicts the entry that came first */
} cm_cache_policy;

/*
 * Keeps decoded chunks, their entries and its own table within NBYTES.  CM_EINVAL: no chunk would
 * fit.
 */
int cm_chunk_cache_create(size_t nbytes, cm_cache_policy policy, cm_chunk_cache **out,
                          cm_error *err);
/* Frees a cache without pinned entries.  NULL accepted. */
void cm_chunk_cache_free(cm_chunk_cache *cache);

typedef enum cm_cache_answer {
    CM_CACHE_HIT,    /* *entry is pinned and its elements are there */
    CM_CACHE_MINE,   /* *entry is pinned and empty: decode into it, then publish or abandon it */
    CM_CACHE_BUSY,   /* another thread is decoding it; only without WAIT */
    CM_CACHE_NO_ROOM /* no eviction makes room for it: decode it elsewhere */
} cm_cache_answer;

/*
 * Looks up chunk NUMBER of ARRAY, NBYTES when decoded.  Arrays are told apart by their addresses,
 * so none may be freed before the cache.  Adds the number of evicted chunks to *evicted.
 */
cm_cache_answer cm_chunk_cache_lookup(cm_chunk_cache *cache, const void *array, uint64_t number,
                                      size_t nbytes, bool wait, cm_cached_chunk **entry,
                                      uint64_t *evicted);
/* Where the elements of a pinned entry lie, aligned to 64 bytes. */
uint8_t *cm_cached_chunk_data(const cm_cached_chunk *entry);
/* The elements are there; ENTRY stays pinned. */
void cm_chunk_cache_publish(cm_chunk_cache *cache, cm_cached_chunk *entry);
/* Drops ENTRY after a failure; threads that wait for it look it up again. */
void cm_chunk_cache_abandon(cm_chunk_cache *cache, cm_cached_chunk *entry);
void cm_chunk_cache_unpin(cm_chunk_cache *cache, cm_cached_chunk *entry);

/* Bytes held now, counted as the limit counts them. */
size_t cm_chunk_cache_nbytes(cm_chunk_cache *cache);

#endif
