/*
 * One rank's batcher: gives batches of an epoch one after the other, while the
 * pool's workers make the next ones.
 *
 * Map loader, in PyTorch's terms: batch b belongs to worker b mod W, each worker
 * has up to PREFETCH batches under way, a worker gets its next one when one of
 * its batches is taken; batches come in order.  With `unordered` they come as they
 * are ready, and the next one goes to the worker that has the fewest.
 *
 * Planned loader (plan/block_order.h): samples come in the order of blocks.  Their chunks are
 * decoded once for all samples of a block, each by the worker that has the fewest tasks, and
 * batches are cut out of them; PREFETCH batches for each worker are under way in all, and
 * come in order.
 *
 * Batches lie in slots of the arena.  With CM_POOL_SYNC they are made inside
 * cm_batcher_next.  One thread a batcher, but for cm_batcher_release, which any thread
 * may call, also while another one waits for a batch.
 */
#ifndef CM_LOAD_BATCHES_BATCHER_H
#define CM_LOAD_BATCHES_BATCHER_H

#include "load/workers/pool.h"
#include "plan/blocks.h"

typedef struct cm_batcher cm_batcher;

enum {
    CM_BATCHER_CHUNK_NBYTES = 40 /* kept of each chunk in a frame, besides its elements */
};

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
    /*
     * Where part p of the sample at PLACE of a batch of N lies in its slot, and how
     * many bytes: batches are laid out part after part, each [batch, ...].
     */
    size_t nparts;
    const size_t *part_nbytes; /* of one sample */
    /* The planned loader: borrowed until the batcher is freed.  NULL: map loader. */
    const cm_blocks *blocks;
    const cm_sample_part *part;
    uint64_t window;  /* blocks that are mixed */
    unsigned nframes; /* of decoded chunks, behind the slots; no fewer than the window */
} cm_batcher_options;

typedef struct cm_load_batch {
    uint64_t number; /* of the epoch, of this rank */
    uint64_t nsamples;
    const uint64_t *sample; /* their numbers (cm_sample_at), valid until release */
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
    uint64_t queued_ns;        /* handed out */
    uint64_t begin_ns, end_ns; /* begun and ready */
    uint64_t rss_nbytes;
    /* Planned: counts of chunks are of those that came since the batch before was ready. */
    cm_load_counts counts;
} cm_load_batch;

int cm_batcher_create(cm_pool *pool, cm_arena *arena, const cm_batcher_options *options,
                      cm_batcher **out, cm_error *err);
/* Waits for tasks under way, then frees.  NULL accepted. */
void cm_batcher_free(cm_batcher *loader);

/*
 * Begins an epoch with batch FIRST, at most the number of its batches.  The rest of the epoch
 * before is dropped, after the tasks that workers are at have ended.  Batches that were taken
 * stay valid until their release.  SHARE is borrowed until the next begin.
 * CM_EBUDGET: a batch does not fit a slot, or a task of the pool.
 */
int cm_batcher_begin(cm_batcher *loader, const cm_epoch_share *share, uint64_t epoch,
                     uint64_t first, cm_error *err);

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
