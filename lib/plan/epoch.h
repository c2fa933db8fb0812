/*
 * The plan of an epoch whose order is known when it starts: every stored chunk
 * is read and decoded once, and given to all samples that meet it.
 *
 * The samples are those that the order would deliver; the plan chooses the order
 * in which chunks are read, and from it the order of delivery.  Chunks are cut
 * into windows of K.  A sample is complete in the window of its last chunk, and
 * the samples complete in a window are shuffled among themselves and follow those
 * of the windows before it.  So a batch is known from its number, and a decoded
 * chunk can be scattered straight into the batches of its window; a sample that
 * has chunks in several windows waits in a *stash*.
 *
 * The order of chunks is the first of these whose stash fits: windows of K chunks
 * drawn at random; runs of K chunks in C order, the runs shuffled; C order.  C
 * order is that of the chunks' places in the sample space, so that the chunks of
 * all arrays that belong to the same samples follow each other; dimensions that
 * some array lacks vary fastest, for its chunks meet samples all along them.
 *
 * Pure arithmetic; the plan takes about 16 bytes for each meeting of a sample and
 * a chunk while it is made, and 8 afterwards.
 */
#ifndef CM_PLAN_EPOCH_H
#define CM_PLAN_EPOCH_H

#include "plan/samples.h"

typedef struct cm_epoch_request {
    const cm_sample_space *space;
    const cm_epoch_share *share;
    uint64_t epoch;
    const cm_sample_part *part;
    size_t nparts;
    const cm_grid *const *grid; /* of each array */
    size_t narrays;
    uint64_t window;       /* K chunks, >= 1 */
    uint64_t max_stash;    /* samples that may wait */
    uint64_t max_meetings; /* CM_EBUDGET above; 0: no limit but 2^32 - 1 */
} cm_epoch_request;

typedef enum cm_chunk_order {
    CM_CHUNKS_RANDOM,
    CM_CHUNKS_RUNS,
    CM_CHUNKS_SEQUENTIAL
} cm_chunk_order;

typedef struct cm_epoch_chunk {
    uint64_t number; /* in its array's grid */
    uint32_t array;
    uint32_t nuses;
    uint64_t first_use; /* in cm_epoch_plan.use */
} cm_epoch_chunk;

typedef struct cm_epoch_use { /* one part of one sample needs one chunk */
    uint32_t place;           /* of the sample in the order of delivery */
    uint32_t part;
} cm_epoch_use;

typedef struct cm_epoch_plan {
    cm_chunk_order order;
    uint64_t nplaces;      /* samples delivered: batch b holds places b * batch ... */
    uint64_t first_place;  /* those before it are not read: cm_epoch_plan_skip */
    uint64_t *sample;      /* by place: its number in the epoch, for cm_sample_at */
    uint32_t *missing;     /* by place: uses until it is complete */
    uint64_t *window_of;   /* by place: the window in which it is complete */
    bool *stashed;         /* by place: its chunks lie in several windows */
    cm_epoch_chunk *chunk; /* in the order of reading; window w holds chunks w * K ... */
    uint64_t nchunks;      /* distinct chunks: each is read and decoded once */
    cm_epoch_use *use;
    uint64_t nuses;
    uint64_t nwindows;
    /*
     * With chunks taken one after the other, both ends counted: the samples that wait
     * at once at most, a stashed one from its first chunk to its last; and the batches
     * that are open at once at most, from the first sample that is put in (a stashed
     * one with its last chunk, another with its first) to the last one complete.
     */
    uint64_t peak_stash;
    uint64_t peak_open;
    double displacement; /* of the delivery, as cm_sample_displacement */
} cm_epoch_plan;

/*
 * CM_EBUDGET when no order's stash fits: the sentence says the least that would.
 * CM_EINVAL: parts, arrays and space do not belong together.  PLAN is valid, and to
 * be released, whatever is returned.
 */
int cm_epoch_plan_make(const cm_epoch_request *request, cm_epoch_plan *plan, cm_error *err);
/*
 * Samples before FIRST_PLACE were delivered before: they are not read, nor are chunks that only
 * they meet.  Orders and places stay; peaks are as they were, which suffices.
 */
void cm_epoch_plan_skip(cm_epoch_plan *plan, uint64_t first_place);
void cm_epoch_plan_release(cm_epoch_plan *plan);

#endif
