/*
 * What one worker does outside any lock: with source pieces (worker.c), with
 * target chunks (deliver.c), with chunks that are the same on both sides
 * (direct.c).  Tiny ones come several at once, of one transfer (need.c).
 */
#ifndef CM_EXEC_ENGINE_WORKER_H
#define CM_EXEC_ENGINE_WORKER_H

#include "exec/engine/slots.h"

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

/* Chunks that are the same in source and target: numbers LO to HI, in C order, of a box of chunks. */
typedef struct cm_same_chunks {
    const cm_transfer *transfer;
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK]; /* the box: a shard, or all */
    uint64_t lo, hi;
} cm_same_chunks;

/* One thread's own things, made once. */
typedef struct cm_worker {
    unsigned index;
    cm_codec_ctx *ctx;
    cm_buf stored;      /* one chunk as fetched */
    cm_fetch_many many; /* several */
    cm_buf decoded;     /* a source chunk, a box of the source, or a target chunk that is padded */
    cm_buf converted;   /* a target chunk in the target's type */
    cm_buf encoded;
    cm_buf packed;  /* encoded chunks of a shard, side by side */
    cm_buf spilled; /* what one source chunk has for one tile */

    /* The work in hand, of one transfer. */
    cm_piece *piece;
    size_t npieces;
    cm_slot **slot; /* of all pieces; nslots is its length */
    size_t nslots;
    cm_slot **target; /* chunks that are ready */
    size_t ntargets;
    cm_same_chunks same;
    cm_fetch_item *item; /* what is fetched for pieces or SAME */
    uint64_t *nelem;     /* inside the array, of each of these */
    cm_zarr_put *put;    /* encoded, but not yet handed to the writer */
    size_t nputs;

    cm_monitor *monitor;
    cm_trace *trace;
    cm_engine_stats stats;
} cm_worker;

/* Room for every transfer; so the hot loop allocates nothing. */
int cm_worker_init(cm_worker *w, unsigned index, const cm_transfer *transfer, size_t n,
                   const cm_engine_options *options, cm_error *err);
void cm_worker_release(cm_worker *w);

/* Fetches, decodes and scatters w->piece into their slots. */
int cm_worker_pieces(cm_worker *w, cm_error *err);
/* Converts, pads, encodes and puts, or skips, the target chunks in w->target. */
int cm_worker_targets(cm_worker *w, cm_error *err);
/* Fetches w->same and puts them, as stored or coded anew. */
int cm_worker_same(cm_worker *w, cm_error *err);

/* How many chunks of the source, and of the target, a worker takes at once. */
size_t cm_transfer_source_batch(const cm_transfer *t);
size_t cm_transfer_target_batch(const cm_transfer *t);
/* True when encoded chunks are put side by side before they go into a shard. */
bool cm_transfer_packs(const cm_transfer *t);
bool cm_transfer_is_sliceable(const cm_transfer *t);
/* True when source and target have the same chunks: they need neither slots nor scattering. */
bool cm_transfer_is_direct(const cm_transfer *t);

/* Where the elements of a piece lie once they are decoded. */
typedef struct cm_loaded {
    const uint8_t *data;          /* NULL: every element is the fill value */
    uint64_t origin[CM_MAX_RANK]; /* source element of data's first element */
    uint64_t shape[CM_MAX_RANK];  /* of data, C order */
    bool in_place;                /* already in the one slot it goes to */
} cm_loaded;

/* The stored bytes of w->item[0..N), which have numbers. */
int cm_worker_fetch(cm_worker *w, const cm_transfer *t, size_t n, cm_error *err);
int cm_worker_decode(cm_worker *w, const cm_transfer *t, const cm_fetch_item *item, uint8_t *dst,
                     cm_error *err);

/*
 * Target chunk COORD, number NUMBER, whose elements inside the array are VALID, is
 * ELEMENTS: whole, in the source's type, changed here.  Put before cm_worker_flush
 * has returned.
 */
int cm_worker_deliver(cm_worker *w, const cm_transfer *t, uint64_t number, const uint64_t *coord,
                      const cm_box *valid, uint8_t *elements, cm_error *err);
/* The same for a chunk that is encoded. */
int cm_worker_put(cm_worker *w, const cm_transfer *t, uint64_t number, const uint8_t *data,
                  size_t nbytes, cm_error *err);
/* The same, without a copy: DATA stays until cm_worker_flush has returned. */
void cm_worker_post(cm_worker *w, uint64_t number, const void *data, size_t nbytes);
int cm_worker_flush(cm_worker *w, const cm_transfer *t, cm_error *err);

/* Counts target chunks of T, NELEM elements inside the array, as put or left out. */
void cm_transfer_count_delivered(const cm_transfer *t, uint64_t nchunks, uint64_t nelem);

/* Books the time since START for STAGE and returns now. */
uint64_t cm_worker_stage(cm_worker *w, int stage, const cm_transfer *t, uint64_t chunk,
                         uint64_t start_ns);

#endif
