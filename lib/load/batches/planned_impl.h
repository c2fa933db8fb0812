/*
 * The planned loader: samples in the order of blocks (plan/block_order.h), cut out of chunks
 * that were decoded once for all samples of their block.  Shared by its files, for them alone.
 *
 * The decoded chunks of a block lie in a *frame* of the arena, from its first sample to its last.
 * Block k has frame k mod F, for which it waits until the block before it there is through; as
 * F is more than the window, that one has no sample any more that is yet to be asked for.
 *
 * Batches are prepared in order: sample after sample, the chunks that it needs and its frame does
 * not have are handed out, each to the worker that has the fewest tasks.  A *run* is samples of
 * one batch that are cut together, once all their chunks have come: a whole batch, or less where
 * a frame has to be waited for.  Where workers would have too little to do meanwhile, chunks of
 * samples behind those batches are handed out, too: a frame costs nothing more, a slot would.
 */
#ifndef CM_LOAD_BATCHES_PLANNED_IMPL_H
#define CM_LOAD_BATCHES_PLANNED_IMPL_H

#include "load/batches/batcher_impl.h"
#include "plan/block_order.h"

enum {
    CM_PLANNED_RUNS = 64,   /* at most: one bit each */
    CM_PLANNED_AHEAD = 1024 /* samples whose place in the order is kept */
};

typedef enum cm_planned_state {
    CM_CHUNK_ABSENT,
    CM_CHUNK_UNDERWAY,
    CM_CHUNK_DECODED
} cm_planned_state;

typedef struct cm_planned_failure { /* of a chunk: all batches that need it fail with it */
    int status;
    struct cm_planned_failure *next;
    char text[CM_LOAD_ERROR_SIZE];
} cm_planned_failure;

typedef struct cm_planned_chunk {
    cm_planned_state state;
    bool missing;
    const cm_planned_failure *failure;
    uint64_t waiting; /* runs */
} cm_planned_chunk;

typedef struct cm_planned_frame {
    bool used;
    uint64_t block;
    unsigned nruns;          /* that are not cut yet */
    cm_planned_chunk *chunk; /* blocks->frame_nchunks of them */
} cm_planned_frame;

typedef struct cm_planned_run {
    bool used, submitted;
    uint32_t slot;
    uint64_t nwaiting; /* chunks */
    uint32_t first, n; /* samples of the batch */
} cm_planned_run;

/* A sample of the rank's share.  Blocks and steps count on from turn to turn of the order. */
typedef struct cm_planned_sample {
    uint64_t number, block;
    uint64_t step; /* no sample from here on is in a block before it */
} cm_planned_sample;

struct cm_planned {
    const cm_blocks *blocks;
    cm_block_order order;
    uint64_t turn; /* restarts of the order: a rank's last samples may be the epoch's first */
    uint64_t last_place;
    cm_planned_sample sample[CM_PLANNED_AHEAD]; /* of place K of the share: K mod their number */
    uint64_t found;                             /* places: those before it, at most so many */
    uint64_t looked;                            /* places whose chunks are all handed out */
    cm_planned_frame *frame;
    cm_planned_chunk *chunks;
    cm_planned_run run[CM_PLANNED_RUNS];
    unsigned nruns;
    uint32_t slot; /* of the batch that is being prepared; CM_BATCHER_NONE */
    uint32_t prepared;
    uint32_t open;      /* the run that takes its samples; CM_BATCHER_NONE */
    uint32_t *frame_of; /* by slot and place in its batch */
    uint64_t stride;    /* places of a slot there */
    uint32_t *left;     /* by slot: samples that are not cut */
    cm_planned_failure *failures;
    cm_load_counts counts; /* of chunks that came since the batch before was ready */
    uint32_t deaths;
    uint64_t rss_nbytes;
};

/* ---- planned_frames.c ---- */

/* Bytes of frame NUMBER from the arena's beginning. */
size_t cm_planned_frame_offset(const cm_batcher *l, size_t number);
/* The frame of BLOCK; NULL: another block's samples are still to be cut out of it. */
cm_planned_frame *cm_planned_frame_get(cm_batcher *l, uint64_t block);
/* Hands L->task to the idlest worker. */
int cm_planned_submit(cm_batcher *l, cm_error *err);
/*
 * Hands out the chunks that SAMPLE needs and FRAME does not have.  The run that is open, if any,
 * waits for those that are not decoded.
 */
int cm_planned_need(cm_batcher *l, cm_planned_frame *frame, const cm_box *sample, cm_error *err);
void cm_planned_take_chunk(cm_batcher *l, const cm_load_result *r);

/* ---- planned_ahead.c ---- */

/* Sample K of the share.  K is at least that of the call before, or found already. */
const cm_planned_sample *cm_planned_find(cm_batcher *l, uint64_t k);
/* Hands out chunks of samples from place NEXT on, the first that is not prepared. */
int cm_planned_look_ahead(cm_batcher *l, uint64_t next, cm_error *err);

#endif
