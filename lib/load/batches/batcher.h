/*
 * One rank's batcher: gives batches of an epoch one after the other, while the
 * pool's workers make the next ones.
 *
 * Map loader, in PyTorch's terms: batch b belongs to worker b mod W, each worker
 * has up to PREFETCH batches under way, a worker gets its next one when one of
 * its batches is taken; batches come in order.  With `unordered` they come as they
 * are ready, and the next one goes to the worker that has the fewest.
 *
 * Planned loader (plan/epoch.h): chunks are handed out in the order of the plan,
 * each to the worker that has the fewest, PREFETCH for each worker in all, as many
 * as the slots allow; a batch is ready when its samples are complete, and batches
 * come in order.
 *
 * Batches lie in slots of the arena.  With CM_POOL_SYNC they are made inside
 * cm_batcher_next.  One thread a batcher, but for cm_batcher_release, which any thread
 * may call, also while another one waits for a batch.
 */
#ifndef CM_LOAD_BATCHES_BATCHER_H
#define CM_LOAD_BATCHES_BATCHER_H

#include "load/workers/pool.h"
#include "plan/epoch.h"

typedef struct cm_batcher cm_batcher;

typedef struct cm_batcher_options {
    unsigned client; /* of the pool */
    /* workers first_worker .. + nworkers - 1 of the pool are this loader's */
    unsigned first_worker;
    unsigned nworkers;
    unsigned prefetch; /* batches a worker, >= 1 */
    bool unordered;
    size_t arena_offset; /* of this loader's share of the arena */
    unsigned nslots;     /* batches that can be held, >= 1; those handed out are among them */
    size_t slot_nbytes;  /* one batch, >= what a source delivers */
    /* one sample, as delivered: the planned loader's stash is counted in these */
    size_t sample_nbytes;
    size_t nstash; /* samples that fit behind the slots (planned loader) */
    /*
     * Where part p of the sample at PLACE of a batch of N lies in its slot, and how
     * many bytes: batches are laid out part after part, each [batch, ...].
     */
    size_t nparts;
    const size_t *part_nbytes; /* of one sample */
} cm_batcher_options;

typedef struct cm_load_batch {
    uint64_t number; /* of the epoch, of this rank */
    uint64_t nsamples;
    const uint64_t *sample; /* their numbers in the epoch, valid until release */
    uint8_t *data;
    size_t nbytes;
    unsigned slot;
    int status; /* a batch that failed has a sentence and no data that counts */
    char error[CM_LOAD_ERROR_SIZE];
    bool missing;    /* it has elements of chunks that were not stored */
    uint32_t worker; /* map loader: who made it */
    uint32_t deaths;
    bool has_crc32c; /* the source gave one (load_exec.h) */
    uint32_t crc32c;
    uint64_t queued_ns;        /* handed to a worker; planned: the first of its chunks */
    uint64_t begin_ns, end_ns; /* begun and ready */
    uint64_t rss_nbytes;
    /* Map: of this batch.  Planned: of the chunks that came in since the batch before was ready. */
    cm_load_counts counts;
} cm_load_batch;

int cm_batcher_create(cm_pool *pool, cm_arena *arena, const cm_batcher_options *options,
                      cm_batcher **out, cm_error *err);
/* Waits for tasks under way, then frees.  NULL accepted. */
void cm_batcher_free(cm_batcher *loader);

/*
 * What a plan needs at least, when batches are taken in order and each is given
 * back before the next is waited for.  More slots let workers go further ahead.
 */
typedef struct cm_batcher_needs {
    uint64_t nslots;
    uint64_t nstash;
    uint64_t max_pieces; /* of the pool */
} cm_batcher_needs;

/* CM_EINVAL: the plan contradicts itself or SHARE.  Takes about 16 bytes a sample while it runs. */
int cm_batcher_plan_needs(const cm_epoch_plan *plan, const cm_epoch_share *share,
                          cm_batcher_needs *out, cm_error *err);

/*
 * Begins an epoch with batch FIRST, at most the number of its batches; a PLAN begins with that
 * batch's first sample (cm_epoch_plan_skip).  What is left of the epoch before is dropped, after
 * the tasks that
 * workers are at have ended.  Batches that were taken stay valid until their
 * release.  SHARE and PLAN (NULL: map loader) are borrowed until the next begin or end.
 * CM_EBUDGET: a batch does not fit a slot, or the plan needs more slots, stash or
 * pieces than there are; the sentence says how many would do.
 */
int cm_batcher_begin(cm_batcher *loader, const cm_epoch_share *share, uint64_t epoch,
                     uint64_t first, const cm_epoch_plan *plan, cm_error *err);

/*
 * Ends the epoch, if there is one: SHARE and PLAN are not looked at any more, also when a batch
 * is given back.
 */
void cm_batcher_end(cm_batcher *loader);

/*
 * The next batch, waiting for it.  CM_OK with *more false at the epoch's end;
 * CM_ECANCELED when STOP, asked every 100 ms, says so (NULL: never).  A batch that
 * failed is CM_OK with batch->status set.  CM_EINVAL: the caller holds so many
 * batches that no further one can be made.
 */
int cm_batcher_next(cm_batcher *loader, bool (*stop)(void *context), void *context,
                    cm_load_batch *batch, bool *more, cm_error *err);
/* Gives the batch's slot back, and has it filled again where that can be.  Any thread. */
void cm_batcher_release(cm_batcher *loader, const cm_load_batch *batch);

/* Batches queued or under way, and ready but not taken: for reports. */
void cm_batcher_in_flight(cm_batcher *loader, unsigned *underway, unsigned *ready);

#endif
