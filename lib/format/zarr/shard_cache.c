#include "format/zarr/shard_cache.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum {
    MAX_OPEN = 16, /* per array: arrays read side by side usually share 1024 descriptors */
    NBUCKETS = 1024
};

typedef enum slot_state {
    SLOT_LOADING, /* one thread is reading the index or opening the object */
    SLOT_READY,
    SLOT_FAILED /* already out of the table; waiting threads take the error */
} slot_state;

typedef struct slot {
    cm_shard shard; /* first: callers hold a pointer to it */
    uint64_t number;
    const cm_shard_layout *layout;
    slot_state state;
    unsigned users;
    bool gone; /* out of the table: its object was replaced */
    cm_error error;
    cm_shard_entry *entry;
    struct slot *next;        /* in the same bucket */
    TAILQ_ENTRY(slot) recent; /* all slots, most recently used first */
    TAILQ_ENTRY(slot) opened; /* those with an open object, in the same order */
} slot;

TAILQ_HEAD(slot_list, slot);

struct cm_shard_cache {
    cm_store *store;
    size_t max_nbytes;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t loaded;
    slot *bucket[NBUCKETS];
    struct slot_list recent, opened;
    size_t nbytes; /* of all slots */
    unsigned nopen;
};

int cm_shard_cache_create(cm_store *store, size_t max_nbytes, cm_shard_cache **out, cm_error *err)
{
    cm_shard_cache *cache = cm_calloc(1, sizeof *cache, err);
    if (cache == NULL)
        return CM_ENOMEM;
    cache->store = store;
    cache->max_nbytes = max_nbytes;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->loaded, NULL);
    TAILQ_INIT(&cache->recent);
    TAILQ_INIT(&cache->opened);
    *out = cache;
    return CM_OK;
}

static size_t slot_nbytes(const slot *s)
{
    return sizeof *s +
           (s->entry != NULL ? (size_t)cm_shard_nchunks(s->layout) * sizeof *s->entry : 0);
}

static void slot_free(slot *s);

/* Drops one user; the last user of a slot outside the table frees it. */
static void leave(slot *s)
{
    if (--s->users == 0 && s->gone)
        slot_free(s);
}

static void slot_free(slot *s)
{
    cm_object_close(s->shard.object);
    free(s->entry);
    free(s);
}

void cm_shard_cache_free(cm_shard_cache *cache)
{
    if (cache == NULL)
        return;
    for (slot *s = TAILQ_FIRST(&cache->recent), *next; s != NULL; s = next) {
        next = TAILQ_NEXT(s, recent);
        slot_free(s);
    }
    pthread_mutex_destroy(&cache->lock);
    pthread_cond_destroy(&cache->loaded);
    free(cache);
}

static slot **place_of(cm_shard_cache *cache, uint64_t number)
{
    slot **p = &cache->bucket[number * 0x9e3779b97f4a7c15u >> 54];
    while (*p != NULL && (*p)->number != number)
        p = &(*p)->next;
    return p;
}

static void close_object(cm_shard_cache *cache, slot *s)
{
    TAILQ_REMOVE(&cache->opened, s, opened);
    cache->nopen--;
    cm_object_close(s->shard.object);
    s->shard.object = NULL;
}

/* Removes S from the table and the lists; its object stays open. */
static void take_out(cm_shard_cache *cache, slot *s)
{
    if (s->shard.object != NULL) {
        TAILQ_REMOVE(&cache->opened, s, opened);
        cache->nopen--;
    }
    *place_of(cache, s->number) = s->next;
    TAILQ_REMOVE(&cache->recent, s, recent);
    cache->nbytes -= slot_nbytes(s);
}

static void forget(cm_shard_cache *cache, slot *s)
{
    take_out(cache, s);
    cm_object_close(s->shard.object);
    s->shard.object = NULL;
}

/*
 * Evicts the least recently used slots that are not in use.  The latest slot always stays: reading
 * the chunks of one shard in turn must not read its index every time.
 */
static void evict(cm_shard_cache *cache)
{
    slot *before;
    /* Behind a network an open object is only its size. */
    const unsigned most = cm_store_is_remote(cache->store) ? UINT_MAX : MAX_OPEN;
    for (slot *s = TAILQ_LAST(&cache->opened, slot_list); s != NULL && cache->nopen > most;
         s = before) {
        before = TAILQ_PREV(s, slot_list, opened);
        if (s->users == 0)
            close_object(cache, s);
    }
    for (slot *s = TAILQ_LAST(&cache->recent, slot_list);
         s != NULL && cache->nbytes > cache->max_nbytes; s = before) {
        before = TAILQ_PREV(s, slot_list, recent);
        if (s->users == 0 && s != TAILQ_FIRST(&cache->recent)) {
            forget(cache, s);
            slot_free(s);
        }
    }
}

/* ---- without the lock ---- */

/* Opens KEY and reads its index, by one request if the store can. */
static int open_with_index(const cm_shard_cache *cache, const cm_shard_layout *layout,
                           const char *key, cm_object_reader **object, cm_buf *encoded,
                           cm_error *err)
{
    return cm_object_open_part(cache->store, key, !cm_shard_index_at_start(layout),
                               cm_shard_index_nbytes(layout), encoded, object, err);
}

static int decode_index(const cm_shard_layout *layout, const cm_buf *encoded, uint64_t total,
                        const char *key, cm_shard_entry **out, cm_error *err)
{
    size_t nbytes = cm_shard_index_nbytes(layout);
    if (total < nbytes || encoded->nbytes < nbytes)
        return cm_fail(err, CM_EFORMAT,
                       "%s: the shard has %llu bytes, and its index alone needs %zu", key,
                       (unsigned long long)total, nbytes);
    /* The object has at least the index's size, so this allocation is bounded by it. */
    cm_shard_entry *entry = cm_calloc(cm_shard_nchunks(layout), sizeof *entry, err);
    int rc = entry != NULL ? cm_shard_index_decode(layout, encoded->data, nbytes, total, entry, err)
                           : CM_ENOMEM;
    if (rc != CM_OK) {
        if (entry != NULL)
            cm_error_prefix(err, "%s", key);
        free(entry);
        return rc;
    }
    *out = entry;
    return CM_OK;
}

/* Opens KEY and reads its index unless ENTRY is set.  An absent object leaves both NULL. */
static int load(const cm_shard_cache *cache, const cm_shard_layout *layout, const char *key,
                cm_object_reader **object, cm_shard_entry **entry, cm_shard_cost *cost,
                cm_error *err)
{
    cm_buf encoded = {0};
    int rc = *entry != NULL ? cm_object_open(cache->store, key, object, err)
                            : open_with_index(cache, layout, key, object, &encoded, err);
    if (*entry == NULL) /* opening alone is part of the following read */
        cost->nrequests = 1;
    if (rc == CM_ENOTFOUND && *entry == NULL)
        rc = CM_OK;
    else if (rc == CM_OK && *entry == NULL) {
        rc = decode_index(layout, &encoded, cm_object_nbytes(*object), key, entry, err);
        cost->nbytes = rc != CM_OK ? 0 : cm_shard_index_nbytes(layout);
        if (rc != CM_OK) {
            cm_object_close(*object);
            *object = NULL;
        }
    }
    cm_buf_release(&encoded);
    return rc;
}

/* ---- acquire and release ---- */

static slot *new_slot(cm_shard_cache *cache, uint64_t number, const cm_shard_layout *layout,
                      cm_error *err)
{
    slot *s = cm_calloc(1, sizeof *s, err);
    if (s == NULL)
        return NULL;
    s->number = number;
    s->layout = layout;
    s->state = SLOT_LOADING;
    *place_of(cache, number) = s;
    TAILQ_INSERT_HEAD(&cache->recent, s, recent);
    cache->nbytes += slot_nbytes(s);
    return s;
}

static void touch(cm_shard_cache *cache, slot *s)
{
    TAILQ_REMOVE(&cache->recent, s, recent);
    TAILQ_INSERT_HEAD(&cache->recent, s, recent);
    if (s->shard.object != NULL) {
        TAILQ_REMOVE(&cache->opened, s, opened);
        TAILQ_INSERT_HEAD(&cache->opened, s, opened);
    }
}

/* Loads S, which is in state LOADING, in this thread.  Lock held, and released meanwhile. */
static void load_slot(cm_shard_cache *cache, slot *s, const char *key, cm_shard_cost *cost)
{
    cm_object_reader *object = NULL;
    cm_shard_entry *entry = s->entry;
    bool had_entry = entry != NULL;
    cm_error error = {0};
    pthread_mutex_unlock(&cache->lock);
    int rc = load(cache, s->layout, key, &object, &entry, cost, &error);
    pthread_mutex_lock(&cache->lock);
    if (rc != CM_OK) {
        forget(cache, s);
        s->state = SLOT_FAILED;
        s->error = error;
    } else {
        s->state = SLOT_READY;
        s->entry = entry;
        s->shard.entry = entry;
        if (!had_entry && entry != NULL)
            cache->nbytes += (size_t)cm_shard_nchunks(s->layout) * sizeof *entry;
        if (object != NULL) {
            s->shard.object = object;
            TAILQ_INSERT_HEAD(&cache->opened, s, opened);
            cache->nopen++;
        }
        evict(cache);
    }
    pthread_cond_broadcast(&cache->loaded);
}

int cm_shard_cache_acquire(cm_shard_cache *cache, uint64_t number, const cm_shard_layout *layout,
                           const char *key, const cm_shard **out, cm_shard_cost *cost,
                           cm_error *err)
{
    *cost = (cm_shard_cost){0};
    pthread_mutex_lock(&cache->lock);
    slot *s = *place_of(cache, number);
    if (s != NULL) {
        s->users++;
        while (s->state == SLOT_LOADING)
            pthread_cond_wait(&cache->loaded, &cache->lock);
        if (s->state == SLOT_READY && !s->gone) {
            touch(cache, s);
            if (s->entry != NULL &&
                s->shard.object == NULL) { /* the object was closed to make room */
                s->state = SLOT_LOADING;
                load_slot(cache, s, key, cost);
            }
        }
    } else if ((s = new_slot(cache, number, layout, err)) != NULL) {
        s->users++;
        load_slot(cache, s, key, cost);
    }
    int rc = s != NULL ? CM_OK : CM_ENOMEM;
    if (s != NULL && s->state == SLOT_FAILED) {
        rc = cm_fail(err, s->error.status, "%s", s->error.text);
        if (--s->users == 0)
            slot_free(s);
    } else if (s != NULL) {
        *out = &s->shard;
    }
    pthread_mutex_unlock(&cache->lock);
    return rc;
}

bool cm_shard_cache_is_at_hand(cm_shard_cache *cache, uint64_t number)
{
    pthread_mutex_lock(&cache->lock);
    const slot *s = *place_of(cache, number);
    bool at_hand = s != NULL && s->state == SLOT_READY &&
                   (s->entry == NULL || s->shard.object != NULL) &&
                   cache->nbytes <= cache->max_nbytes;
    pthread_mutex_unlock(&cache->lock);
    return at_hand;
}

void cm_shard_cache_release(cm_shard_cache *cache, const cm_shard *shard)
{
    slot *s = (slot *)(uintptr_t)shard;
    pthread_mutex_lock(&cache->lock);
    leave(s);
    evict(cache);
    pthread_mutex_unlock(&cache->lock);
}

bool cm_shard_cache_renew(cm_shard_cache *cache, const cm_shard *shard)
{
    slot *s = (slot *)(uintptr_t)shard;
    pthread_mutex_lock(&cache->lock);
    bool changed = s->shard.object != NULL && cm_object_changed(s->shard.object);
    if (changed && !s->gone) {
        take_out(cache, s);
        s->gone = true;
    }
    leave(s);
    pthread_mutex_unlock(&cache->lock);
    return changed;
}

bool cm_shard_cache_knows_missing(cm_shard_cache *cache, uint64_t number, uint64_t local)
{
    pthread_mutex_lock(&cache->lock);
    const slot *s = *place_of(cache, number);
    bool missing = s != NULL && s->state == SLOT_READY &&
                   (s->entry == NULL || (s->entry[local].offset == CM_SHARD_MISSING &&
                                         s->entry[local].nbytes == CM_SHARD_MISSING));
    pthread_mutex_unlock(&cache->lock);
    return missing;
}
