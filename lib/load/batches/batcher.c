#include "load/batches/batcher.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "load/batches/batcher_impl.h"

enum {
    ASK_MS = 100, /* between two questions whether to stop */
    MAX_SLOTS = 1 << 20
};

/* ---- creating ---- */

static int check_options(const cm_pool *pool, const cm_arena *arena, const cm_batcher_options *o,
                         cm_error *err)
{
    const cm_pool_options *p = cm_pool_get_options(pool);
    const size_t frame_nbytes = o->blocks != NULL ? o->blocks->frame_nbytes : 0;
    size_t slots, frames, end;
    if (o->client >= p->nclients || o->nworkers < 1 || o->first_worker >= p->nworkers ||
        o->nworkers > p->nworkers - o->first_worker)
        return cm_fail(err, CM_EINVAL,
                       "a loader's client %u and workers %u to %u are not all of its pool",
                       o->client, o->first_worker, o->first_worker + o->nworkers - 1);
    if (o->prefetch < 1 || o->nslots < 1 || o->nslots > MAX_SLOTS)
        return cm_fail(err, CM_EINVAL, "a loader has %u slots and %u batches a worker ahead",
                       o->nslots, o->prefetch);
    if (o->blocks != NULL && (o->window < 1 || o->nframes < o->window))
        return cm_fail(err, CM_EINVAL, "a loader has %u frames for a window of %llu blocks",
                       o->nframes, (unsigned long long)o->window);
    if (!cm_mul_size(o->nslots, o->slot_nbytes, &slots) ||
        !cm_mul_size(o->nframes, frame_nbytes, &frames) || !cm_add_size(slots, frames, &end) ||
        !cm_add_size(end, o->arena_offset, &end) || end > arena->nbytes)
        return cm_fail(err, CM_EINVAL,
                       "%u slots of %zu bytes and %u frames of %zu bytes from byte %zu on do not "
                       "fit %zu bytes",
                       o->nslots, o->slot_nbytes, o->nframes, frame_nbytes, o->arena_offset,
                       arena->nbytes);
    return CM_OK;
}

static int copy_parts(cm_batcher *l, cm_error *err)
{
    const cm_batcher_options *o = &l->options;
    l->part_nbytes = cm_calloc(o->nparts, sizeof(l->part_nbytes[0]), err);
    if (l->part_nbytes == NULL)
        return CM_ENOMEM;
    for (size_t p = 0; p < o->nparts; p++) {
        l->part_nbytes[p] = o->part_nbytes[p];
        if (!cm_add_size(l->part_total, o->part_nbytes[p], &l->part_total))
            return cm_fail(err, CM_EINVAL, "a sample is too large");
    }
    l->options.part_nbytes = l->part_nbytes;
    return CM_OK;
}

static int make_lists(cm_batcher *l, cm_error *err)
{
    const cm_batcher_options *o = &l->options;
    size_t max_pieces = cm_pool_get_options(l->pool)->max_pieces, pieces;
    if (!cm_mul_size(max_pieces, sizeof(cm_load_piece), &pieces))
        return cm_fail(err, CM_EINVAL, "tasks of %zu pieces are too large", max_pieces);
    l->slot = cm_calloc(o->nslots, sizeof(l->slot[0]), err);
    l->free_slot = l->slot == NULL ? NULL : cm_calloc(o->nslots, sizeof(l->free_slot[0]), err);
    l->given = l->free_slot == NULL ? NULL : cm_calloc(o->nworkers, sizeof(l->given[0]), err);
    l->task = l->given == NULL ? NULL : cm_calloc(1, sizeof(l->task[0]) + pieces, err);
    if (l->task == NULL)
        return CM_ENOMEM;
    /* The lowest are handed out first. */
    for (uint32_t i = o->nslots; i-- > 0;)
        cm_batcher_slot_put(l, i);
    return CM_OK;
}

int cm_batcher_create(cm_pool *pool, cm_arena *arena, const cm_batcher_options *options,
                      cm_batcher **out, cm_error *err)
{
    *out = NULL;
    int rc = check_options(pool, arena, options, err);
    if (rc != CM_OK)
        return rc;
    cm_batcher *l = cm_calloc(1, sizeof(*l), err);
    if (l == NULL)
        return CM_ENOMEM;
    *l = (cm_batcher){.pool = pool, .arena = arena, .options = *options};
    pthread_mutex_init(&l->lock, NULL);
    l->sync = cm_pool_get_options(pool)->mode == CM_POOL_SYNC;
    rc = copy_parts(l, err);
    if (rc == CM_OK)
        rc = make_lists(l, err);
    if (rc != CM_OK) {
        cm_batcher_free(l);
        return rc;
    }
    *out = l;
    return CM_OK;
}

/* Ends the epoch: no task is outstanding, and only the slots that the caller has are in use. */
static void end_epoch(cm_batcher *l)
{
    cm_load_result ignored;
    cm_pool_drop(l->pool, l->options.client);
    while (cm_pool_receive(l->pool, l->options.client, UINT64_MAX, &ignored))
        continue;
    l->outstanding = 0;
    for (uint32_t i = 0; i < l->options.nslots; i++)
        if (l->slot[i].state == CM_SLOT_FILLING || l->slot[i].state == CM_SLOT_READY)
            cm_batcher_slot_put(l, i);
    memset(l->given, 0, l->options.nworkers * sizeof(l->given[0]));
    cm_planned_end(l);
    l->nbatches = l->next = l->taken = 0;
}

void cm_batcher_free(cm_batcher *l)
{
    if (l == NULL)
        return;
    if (l->task != NULL)
        end_epoch(l);
    for (uint32_t i = 0; l->slot != NULL && i < l->options.nslots; i++)
        free(l->slot[i].sample);
    free(l->slot);
    free(l->free_slot);
    free(l->given);
    free(l->task);
    free(l->part_nbytes);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* ---- an epoch ---- */

static int check_batch(const cm_batcher *l, const cm_epoch_share *share, cm_error *err)
{
    const cm_batcher_options *o = &l->options;
    const size_t max_pieces = cm_pool_get_options(l->pool)->max_pieces;
    const uint64_t n = share->nbatches > 0 ? cm_epoch_share_batch(share, 0) : 0;
    size_t nbytes;
    if (n > UINT32_MAX || !cm_mul_size(n, l->part_total, &nbytes) || nbytes > o->slot_nbytes)
        return cm_fail(err, CM_EBUDGET,
                       "a batch of %llu samples of %zu bytes does not fit a slot of %zu",
                       (unsigned long long)n, l->part_total, o->slot_nbytes);
    if (n > max_pieces)
        return cm_fail(err, CM_EBUDGET, "a batch has %llu samples, a task of the pool at most %zu",
                       (unsigned long long)n, max_pieces);
    return CM_OK;
}

static int dispatch(cm_batcher *l, cm_error *err)
{
    return l->planned != NULL ? cm_planned_dispatch(l, err) : cm_batcher_map_dispatch(l, err);
}

/* Hands out tasks; after a failure the next call tries again and reports it. */
static void hand_out_more(cm_batcher *l)
{
    if (!l->sync)
        (void)dispatch(l, NULL);
}

static int begin(cm_batcher *l, const cm_epoch_share *share, uint64_t epoch, uint64_t first,
                 cm_error *err)
{
    end_epoch(l);
    int rc = check_batch(l, share, err);
    if (rc != CM_OK)
        return rc;
    if (first > share->nbatches)
        return cm_fail(err, CM_EINVAL, "an epoch of %llu batches cannot begin with batch %llu",
                       (unsigned long long)share->nbatches, (unsigned long long)first);
    l->share = share;
    l->epoch = epoch;
    l->nbatches = share->nbatches;
    l->next = l->taken = first;
    if (l->options.blocks != NULL)
        rc = cm_planned_begin(l, err);
    if (rc == CM_OK && !l->sync)
        rc = dispatch(l, err);
    if (rc != CM_OK)
        end_epoch(l);
    return rc;
}

int cm_batcher_begin(cm_batcher *l, const cm_epoch_share *share, uint64_t epoch, uint64_t first,
                     cm_error *err)
{
    pthread_mutex_lock(&l->lock);
    int rc = begin(l, share, epoch, first, err);
    pthread_mutex_unlock(&l->lock);
    return rc;
}

/*
 * Waits for results that something can be done with.  The lock is held by the caller and free
 * meanwhile, so that batches can be released.
 */
static void wait_for_results(cm_batcher *l)
{
    const unsigned nchunks = l->planned != NULL ? cm_planned_wanted(l) : 1;
    pthread_mutex_unlock(&l->lock);
    cm_pool_wait(l->pool, l->options.client, nchunks, (uint64_t)ASK_MS * 1000000u);
    pthread_mutex_lock(&l->lock);
}

/* Takes all results that have come. */
static void take_results(cm_batcher *l)
{
    cm_load_result r;
    for (;;) {
        pthread_mutex_unlock(&l->lock);
        const bool came = cm_pool_receive(l->pool, l->options.client, 0, &r);
        pthread_mutex_lock(&l->lock);
        if (!came)
            return;
        l->outstanding--;
        if (l->planned != NULL)
            cm_planned_result(l, &r);
        else
            cm_batcher_map_result(l, &r);
        if (l->sync) /* each batch is made when it is asked for */
            return;
    }
}

static void take(cm_batcher *l, uint32_t slot, cm_load_batch *batch)
{
    cm_batcher_slot *s = &l->slot[slot];
    s->state = CM_SLOT_TAKEN;
    l->taken++;
    if (l->planned == NULL)
        l->given[s->batch.worker - l->options.first_worker]--;
    *batch = s->batch;
}

static int next(cm_batcher *l, bool (*stop)(void *context), void *context, cm_load_batch *batch,
                bool *more, cm_error *err)
{
    *more = l->taken < l->nbatches;
    if (!*more)
        return CM_OK;
    if (!l->sync)
        take_results(l);
    for (;;) {
        uint32_t slot = cm_batcher_slot_ready(l);
        if (slot != CM_BATCHER_NONE) {
            take(l, slot, batch);
            hand_out_more(l);
            return CM_OK;
        }
        if (stop != NULL && stop(context))
            return cm_fail(err, CM_ECANCELED, "stopped while waiting for batch %llu",
                           (unsigned long long)l->taken);
        int rc = dispatch(l, err);
        if (rc != CM_OK)
            return rc;
        if (l->outstanding == 0)
            return cm_fail(err, CM_EINVAL,
                           "batch %llu has no slot: all %u are taken and none was given back",
                           (unsigned long long)l->taken, l->options.nslots);
        wait_for_results(l);
        take_results(l);
    }
}

int cm_batcher_next(cm_batcher *l, bool (*stop)(void *context), void *context, cm_load_batch *batch,
                    bool *more, cm_error *err)
{
    pthread_mutex_lock(&l->lock);
    int rc = next(l, stop, context, batch, more, err);
    pthread_mutex_unlock(&l->lock);
    return rc;
}

void cm_batcher_release(cm_batcher *l, const cm_load_batch *batch)
{
    pthread_mutex_lock(&l->lock);
    if (batch->slot < l->options.nslots && l->slot[batch->slot].state == CM_SLOT_TAKEN) {
        cm_batcher_slot_put(l, batch->slot);
        hand_out_more(l);
    }
    pthread_mutex_unlock(&l->lock);
}

void cm_batcher_in_flight(cm_batcher *l, unsigned *underway, unsigned *ready)
{
    unsigned came;
    *underway = *ready = 0;
    pthread_mutex_lock(&l->lock);
    for (uint32_t i = 0; i < l->options.nslots; i++) {
        *underway += l->slot[i].state == CM_SLOT_FILLING;
        *ready += l->slot[i].state == CM_SLOT_READY;
    }
    if (l->planned == NULL) { /* results that nobody received yet */
        unsigned working;
        cm_pool_pending(l->pool, l->options.client, &working, &came);
        *underway -= came;
        *ready += came;
    }
    pthread_mutex_unlock(&l->lock);
}
