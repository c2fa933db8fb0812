/*
 * What one worker does with one piece or one target chunk, outside any lock.
 */
#ifndef CM_EXEC_WORKER_H
#define CM_EXEC_WORKER_H

#include "exec/slots.h"

/* A source piece and the slots that it goes to. */
typedef struct cm_piece {
    const cm_transfer *transfer;
    cm_range span[CM_MAX_RANK];    /* target positions that it covers */
    uint64_t coord[CM_MAX_RANK];   /* source chunk that it lies in; not for runs */
    uint64_t number;               /* of that chunk; of a run, its first element's target chunk */
    cm_range targets[CM_MAX_RANK]; /* target chunks that it meets */
    bool absent;                   /* known to be unallocated */
    uint64_t nslots;               /* product of the targets' counts */
    cm_slot **slot;                /* in C order of targets; NULL where nothing is to be done */
} cm_piece;

/* One thread's own things, made once. */
typedef struct cm_worker {
    unsigned index;
    cm_codec_ctx *ctx;
    cm_buf stored;    /* as fetched */
    cm_buf decoded;   /* a source chunk, a box of the source, or a clipped target chunk padded */
    cm_buf converted; /* a target chunk in the target's type */
    cm_buf encoded;
    cm_buf spilled; /* what one source chunk has for one tile */
    cm_piece piece;
    cm_monitor *monitor;
    cm_trace *trace;
    cm_engine_stats stats;
} cm_worker;

/* Room for every transfer; so the hot loop allocates nothing. */
int cm_worker_init(cm_worker *w, unsigned index, const cm_transfer *transfer, size_t n,
                   const cm_engine_options *options, cm_error *err);
void cm_worker_release(cm_worker *w);

/* Fetches, decodes and scatters w->piece into its slots. */
int cm_worker_piece(cm_worker *w, cm_error *err);
/* Converts, pads, encodes and puts the target chunk in SLOT, or skips it. */
int cm_worker_target(cm_worker *w, cm_slot *slot, cm_error *err);

/* Where the elements of a piece lie once they are decoded. */
typedef struct cm_loaded {
    const uint8_t *data;          /* NULL: every element is the fill value */
    uint64_t origin[CM_MAX_RANK]; /* source element of data's first element */
    uint64_t shape[CM_MAX_RANK];  /* of data, C order */
    bool in_place;                /* already in the one slot it goes to */
} cm_loaded;

/* Counts target chunk VALID of T as put or left out. */
void cm_transfer_count_delivered(const cm_transfer *t, const cm_box *valid);

/* Books the time since START for STAGE and returns now. */
uint64_t cm_worker_stage(cm_worker *w, int stage, const cm_transfer *t, uint64_t chunk,
                         uint64_t start_ns);

#endif
