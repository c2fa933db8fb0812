#include "format/icechunk/shelf.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum {
    NBUCKETS = 256
};

typedef struct volume {
    cm_ice_manifest_view manifest; /* first: callers hold a pointer to it */
    uint8_t id[CM_ICE_ID];
    enum {
        LOADING,
        READY,
        FAILED /* out of the table; those who wait take the error */
    } state;
    unsigned users;
    cm_error error;
    struct volume *next;        /* in the same bucket */
    TAILQ_ENTRY(volume) recent; /* used latest first */
} volume;

TAILQ_HEAD(volumes, volume);

struct cm_ice_shelf {
    cm_store *root;
    size_t max_nbytes;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t loaded;
    volume *bucket[NBUCKETS];
    struct volumes recent;
    size_t nbytes;
};

int cm_ice_shelf_create(cm_store *root, size_t max_nbytes, cm_ice_shelf **out, cm_error *err)
{
    cm_ice_shelf *shelf = *out = cm_calloc(1, sizeof(*shelf), err);
    if (shelf == NULL)
        return CM_ENOMEM;
    shelf->root = root;
    shelf->max_nbytes = max_nbytes;
    pthread_mutex_init(&shelf->lock, NULL);
    pthread_cond_init(&shelf->loaded, NULL);
    TAILQ_INIT(&shelf->recent);
    return CM_OK;
}

static size_t nbytes_of(const volume *v)
{
    return sizeof(*v) + v->manifest.flat.capacity;
}

static void free_volume(volume *v)
{
    cm_ice_manifest_release(&v->manifest);
    free(v);
}

void cm_ice_shelf_free(cm_ice_shelf *shelf)
{
    if (shelf == NULL)
        return;
    for (volume *next, *v = TAILQ_FIRST(&shelf->recent); v != NULL; v = next) {
        next = TAILQ_NEXT(v, recent);
        free_volume(v);
    }
    pthread_mutex_destroy(&shelf->lock);
    pthread_cond_destroy(&shelf->loaded);
    free(shelf);
}

/* Ids are random: any byte of one is a hash. */
static volume **place_of(cm_ice_shelf *shelf, const uint8_t *id)
{
    volume **p = &shelf->bucket[id[0]];
    while (*p != NULL && memcmp((*p)->id, id, CM_ICE_ID) != 0)
        p = &(*p)->next;
    return p;
}

static void take_out(cm_ice_shelf *shelf, volume *v)
{
    *place_of(shelf, v->id) = v->next;
    TAILQ_REMOVE(&shelf->recent, v, recent);
}

static void touch(cm_ice_shelf *shelf, volume *v)
{
    TAILQ_REMOVE(&shelf->recent, v, recent);
    TAILQ_INSERT_HEAD(&shelf->recent, v, recent);
}

static void evict(cm_ice_shelf *shelf)
{
    volume *before;
    for (volume *v = TAILQ_LAST(&shelf->recent, volumes);
         v != NULL && shelf->nbytes > shelf->max_nbytes; v = before) {
        before = TAILQ_PREV(v, volumes, recent);
        if (v->users > 0 || v == TAILQ_FIRST(&shelf->recent))
            continue;
        shelf->nbytes -= nbytes_of(v);
        take_out(shelf, v);
        free_volume(v);
    }
}

/* Reads V, which is LOADING.  The lock is held, and released meanwhile. */
static void load(cm_ice_shelf *shelf, volume *v)
{
    pthread_mutex_unlock(&shelf->lock);
    const int rc = cm_ice_manifest_read(shelf->root, v->id, &v->manifest, &v->error);
    pthread_mutex_lock(&shelf->lock);
    v->state = rc == CM_OK ? READY : FAILED;
    if (rc == CM_OK) {
        shelf->nbytes += nbytes_of(v);
        evict(shelf);
    } else {
        take_out(shelf, v);
    }
    pthread_cond_broadcast(&shelf->loaded);
}

int cm_ice_shelf_take(cm_ice_shelf *shelf, const uint8_t id[CM_ICE_ID],
                      const cm_ice_manifest_view **out, cm_error *err)
{
    int rc = CM_OK;
    pthread_mutex_lock(&shelf->lock);
    volume *v = *place_of(shelf, id);
    if (v == NULL && (v = cm_calloc(1, sizeof(*v), err)) != NULL) {
        memcpy(v->id, id, CM_ICE_ID);
        v->users = 1;
        *place_of(shelf, id) = v;
        TAILQ_INSERT_HEAD(&shelf->recent, v, recent);
        load(shelf, v);
    } else if (v != NULL) {
        v->users++;
        while (v->state == LOADING)
            pthread_cond_wait(&shelf->loaded, &shelf->lock);
        if (v->state == READY)
            touch(shelf, v);
    }
    *out = v != NULL ? &v->manifest : NULL;
    if (v == NULL) {
        rc = CM_ENOMEM;
    } else if (v->state == FAILED) {
        rc = cm_fail(err, v->error.status, "%s", v->error.text);
        if (--v->users == 0)
            free_volume(v);
    }
    pthread_mutex_unlock(&shelf->lock);
    return rc;
}

const cm_ice_manifest_view *cm_ice_shelf_peek(cm_ice_shelf *shelf, const uint8_t id[CM_ICE_ID])
{
    pthread_mutex_lock(&shelf->lock);
    volume *v = *place_of(shelf, id);
    const bool ready = v != NULL && v->state == READY;
    if (ready) {
        v->users++;
        touch(shelf, v);
    }
    pthread_mutex_unlock(&shelf->lock);
    return ready ? &v->manifest : NULL;
}

void cm_ice_shelf_give(cm_ice_shelf *shelf, const cm_ice_manifest_view *m)
{
    volume *v = (volume *)(uintptr_t)m;
    if (v == NULL)
        return;
    pthread_mutex_lock(&shelf->lock);
    v->users--;
    evict(shelf);
    pthread_mutex_unlock(&shelf->lock);
}
