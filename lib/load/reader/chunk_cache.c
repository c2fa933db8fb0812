#include "load/reader/chunk_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGNMENT = 64,
    PAGE = 4096,
    FROM_PAGES = 128 << 10, /* larger blocks get whole pages from malloc */
    BLOCK_HEADER = 16,      /* what malloc keeps with each block */
    MIN_BUCKETS = 16,
    MAX_BUCKETS = 1 << 20,
    BUCKET_SHARE = 1024 /* bytes of the limit for each bucket of 8 bytes */
};

struct cm_cached_chunk {
    uint8_t *data;
    size_t block; /* bytes at data */
    const void *array;
    uint64_t number;
    bool ready;
    uint32_t pins;
    cm_cached_chunk *next; /* in its bucket */
    cm_cached_chunk *newer, *older;
};

struct cm_chunk_cache {
    pthread_mutex_t lock;
    pthread_cond_t settled; /* an entry was published or abandoned */
    unsigned waiting;
    cm_cache_policy policy;
    size_t limit, held, pinned; /* of held, what cannot go */
    cm_cached_chunk **bucket;
    size_t nbuckets;                  /* a power of two */
    cm_cached_chunk *newest, *oldest; /* the oldest is evicted first */
};

static size_t block_of(size_t nbytes)
{
    size_t unit = nbytes >= FROM_PAGES ? PAGE : ALIGNMENT;
    return nbytes > SIZE_MAX / 2 ? SIZE_MAX / 2 : (nbytes + unit - 1) / unit * unit;
}

static size_t cost_of(size_t block)
{
    return block + sizeof(cm_cached_chunk) + 2 * BLOCK_HEADER + ALIGNMENT;
}

int cm_chunk_cache_create(size_t nbytes, cm_cache_policy policy, cm_chunk_cache **out,
                          cm_error *err)
{
    size_t nbuckets = MIN_BUCKETS;
    while (nbuckets < MAX_BUCKETS && nbuckets * BUCKET_SHARE < nbytes)
        nbuckets *= 2;
    size_t own = sizeof(cm_chunk_cache) + nbuckets * sizeof(cm_cached_chunk *);
    if (nbytes < own + cost_of(1))
        return cm_fail(err, CM_EINVAL, "a cache of %zu bytes holds no chunk", nbytes);
    cm_chunk_cache *cache = cm_calloc(1, sizeof(*cache), err);
    if (cache == NULL)
        return CM_ENOMEM;
    if ((cache->bucket = cm_calloc(nbuckets, sizeof(cm_cached_chunk *), err)) == NULL) {
        free(cache);
        return CM_ENOMEM;
    }
    cache->policy = policy;
    cache->limit = nbytes;
    cache->held = cache->pinned = own;
    cache->nbuckets = nbuckets;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->settled, NULL);
    *out = cache;
    return CM_OK;
}

void cm_chunk_cache_free(cm_chunk_cache *cache)
{
    if (cache == NULL)
        return;
    for (cm_cached_chunk *e = cache->newest, *next; e != NULL; e = next) {
        next = e->older;
        free(e->data);
        free(e);
    }
    pthread_cond_destroy(&cache->settled);
    pthread_mutex_destroy(&cache->lock);
    free(cache->bucket);
    free(cache);
}

/* ---- lists; all under the lock ---- */

static cm_cached_chunk **bucket_of(cm_chunk_cache *cache, const void *array, uint64_t number)
{
    uint64_t h = (number ^ (uint64_t)(uintptr_t)array >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return &cache->bucket[(h ^ h >> 32) & (cache->nbuckets - 1)];
}

static cm_cached_chunk *find(cm_chunk_cache *cache, const void *array, uint64_t number)
{
    cm_cached_chunk *e = *bucket_of(cache, array, number);
    while (e != NULL && (e->number != number || e->array != array))
        e = e->next;
    return e;
}

static void push(cm_chunk_cache *cache, cm_cached_chunk *e)
{
    e->newer = NULL;
    e->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = e;
    cache->newest = e;
}

static void unlink_order(cm_chunk_cache *cache, cm_cached_chunk *e)
{
    *(e->newer != NULL ? &e->newer->older : &cache->newest) = e->older;
    *(e->older != NULL ? &e->older->newer : &cache->oldest) = e->newer;
}

static void pin(cm_chunk_cache *cache, cm_cached_chunk *e)
{
    if (e->pins++ == 0)
        cache->pinned += cost_of(e->block);
}

static void unpin(cm_chunk_cache *cache, cm_cached_chunk *e)
{
    if (--e->pins == 0)
        cache->pinned -= cost_of(e->block);
}

static void take_out(cm_chunk_cache *cache, cm_cached_chunk *e)
{
    cm_cached_chunk **at = bucket_of(cache, e->array, e->number);
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    unlink_order(cache, e);
    cache->held -= cost_of(e->block);
}

static void destroy(cm_cached_chunk *e)
{
    if (e != NULL)
        free(e->data);
    free(e);
}

/*
 * An entry of BLOCK bytes, in no list yet; NULL when the pinned entries leave no room.  It takes
 * over the memory of an evicted entry of the same size, whose pages are mapped already.
 */
static cm_cached_chunk *make_room(cm_chunk_cache *cache, size_t block, uint64_t *evicted)
{
    size_t cost = cost_of(block);
    cm_cached_chunk *reuse = NULL, *next;
    if (cache->pinned + cost > cache->limit)
        return NULL; /* evicting the others would not make enough room */
    for (cm_cached_chunk *e = cache->oldest; e != NULL && cache->held + cost > cache->limit;
         e = next) {
        next = e->newer;
        if (e->pins > 0)
            continue;
        take_out(cache, e);
        ++*evicted;
        if (reuse == NULL && e->block == block)
            reuse = e;
        else
            destroy(e);
    }
    if (reuse == NULL && (reuse = calloc(1, sizeof(*reuse))) != NULL &&
        (reuse->data = aligned_alloc(ALIGNMENT, block)) == NULL) {
        free(reuse);
        return NULL;
    }
    if (reuse != NULL)
        reuse->block = block;
    return reuse;
}

static cm_cached_chunk *reserve(cm_chunk_cache *cache, const void *array, uint64_t number,
                                size_t nbytes, uint64_t *evicted)
{
    size_t block = block_of(nbytes > 0 ? nbytes : 1);
    if (cost_of(block) > cache->limit)
        return NULL;
    cm_cached_chunk *e = make_room(cache, block, evicted);
    if (e == NULL)
        return NULL;
    cm_cached_chunk **bucket = bucket_of(cache, array, number);
    e->array = array;
    e->number = number;
    e->ready = false;
    e->pins = 0;
    e->next = *bucket;
    *bucket = e;
    push(cache, e);
    cache->held += cost_of(block);
    pin(cache, e);
    return e;
}

/* ---- what readers call ---- */

cm_cache_answer cm_chunk_cache_lookup(cm_chunk_cache *cache, const void *array, uint64_t number,
                                      size_t nbytes, bool wait, cm_cached_chunk **entry,
                                      uint64_t *evicted)
{
    cm_cache_answer answer = CM_CACHE_HIT;
    pthread_mutex_lock(&cache->lock);
    cm_cached_chunk *e;
    while ((e = find(cache, array, number)) != NULL && !e->ready && wait) {
        cache->waiting++;
        pthread_cond_wait(&cache->settled, &cache->lock);
        cache->waiting--;
    }
    if (e == NULL) {
        e = reserve(cache, array, number, nbytes, evicted);
        answer = e != NULL ? CM_CACHE_MINE : CM_CACHE_NO_ROOM;
    } else if (!e->ready) {
        answer = CM_CACHE_BUSY;
        e = NULL;
    } else {
        pin(cache, e);
        if (cache->policy == CM_CACHE_LRU && e != cache->newest) {
            unlink_order(cache, e);
            push(cache, e);
        }
    }
    pthread_mutex_unlock(&cache->lock);
    *entry = e;
    return answer;
}

uint8_t *cm_cached_chunk_data(const cm_cached_chunk *entry)
{
    return entry->data;
}

void cm_chunk_cache_publish(cm_chunk_cache *cache, cm_cached_chunk *entry)
{
    pthread_mutex_lock(&cache->lock);
    entry->ready = true;
    if (cache->waiting > 0)
        pthread_cond_broadcast(&cache->settled);
    pthread_mutex_unlock(&cache->lock);
}

void cm_chunk_cache_abandon(cm_chunk_cache *cache, cm_cached_chunk *entry)
{
    pthread_mutex_lock(&cache->lock);
    unpin(cache, entry);
    take_out(cache, entry); /* threads that wait hold no pin yet */
    if (cache->waiting > 0)
        pthread_cond_broadcast(&cache->settled);
    pthread_mutex_unlock(&cache->lock);
    destroy(entry);
}

void cm_chunk_cache_unpin(cm_chunk_cache *cache, cm_cached_chunk *entry)
{
    pthread_mutex_lock(&cache->lock);
    unpin(cache, entry);
    pthread_mutex_unlock(&cache->lock);
}

size_t cm_chunk_cache_nbytes(cm_chunk_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    size_t held = cache->held;
    pthread_mutex_unlock(&cache->lock);
    return held;
}
