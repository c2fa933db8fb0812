/*
 * One worker: the work that it has in hand, its own buffers, and what all kinds of
 * work share.  Tiny pieces and chunks come several at once, of one transfer (plan.c).
 */
#ifndef CM_ENGINE_WORKER_H
#define CM_ENGINE_WORKER_H

#include "engine/outbox.h"
#include "engine/slots.h"
#include "engine/stages.h"
#include "watch/monitor.h"
#include "watch/trace.h"

/* A source piece and the slots that it goes to. */
typedef struct cm_source_piece {
    const cm_transfer *transfer;
    cm_range span[CM_MAX_RANK];    /* target positions that it covers */
    uint64_t coord[CM_MAX_RANK];   /* source chunk that it lies in; not for runs */
    uint64_t number;               /* of that chunk; of a run, its first element's target chunk */
    cm_range targets[CM_MAX_RANK]; /* target chunks that it meets */
    bool absent;                   /* known to be unallocated */
    uint64_t nslots;               /* product of the targets' counts */
    cm_slot **slot;                /* in C order of targets; NULL where nothing is to be done */
} cm_source_piece;

/*
 * Chunks that are the same in source and target: numbers LO to HI, in C order, of a box of
 * chunks.
 */
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
    cm_source_piece *piece;
    size_t npieces;
    cm_slot **slot; /* of all pieces; nslots is its length */
    size_t nslots;
    cm_slot **target; /* chunks that are ready */
    size_t ntargets;  /* each NULL once it is the outbox's */
    cm_slot
        *delivered; /* of them, the one that is being delivered; NULL where it was handed over */
    cm_same_chunks same;
    cm_fetch_item *item; /* what is fetched for pieces or SAME */
    uint64_t *nelem;     /* inside the array, of each of these */
    cm_put *put;         /* encoded, but not yet handed to the writer */
    size_t nputs;
    cm_outbox outbox;

    cm_monitor *monitor;
    cm_trace *trace;
    cm_engine_stats stats;
} cm_worker;

/*
 * Room for every transfer; so the hot loop allocates nothing but, once, what is on its way: AHEAD
 * chunks at most.  MONITOR and TRACE: or NULL.
 */
int cm_worker_init(cm_worker *w, unsigned index, const cm_transfer *transfer, size_t n,
                   unsigned ahead, cm_monitor *monitor, cm_trace *trace, cm_error *err);
void cm_worker_release(cm_worker *w);

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

/* Books the time since START for STAGE and returns now. */
uint64_t cm_worker_stage(cm_worker *w, int stage, const cm_transfer *t, uint64_t chunk,
                         uint64_t start_ns);

#endif
