/*
 * A transfer: all elements of one array on their way into another.
 *
 * The engine moves any number of transfers with one set of workers, one after
 * the other but without a pause between them.  Work is a source piece (fetch,
 * decode, scatter into the target chunks that it meets) or a target chunk whose
 * last piece has come (convert, pad, encode, put).
 */
#ifndef CM_EXEC_ENGINE_TRANSFER_H
#define CM_EXEC_ENGINE_TRANSFER_H

#include <stdatomic.h>

#include "exec/watch/monitor.h"
#include "exec/watch/trace.h"
#include "format/array.h"
#include "format/zarr/writer.h"
#include "model/convert.h"
#include "plan/sweep.h"

/* What happens to stored bytes; all but the first: source and target have the same chunks. */
typedef enum cm_pass {
    CM_PASS_NOTHING, /* every chunk is decoded and encoded */
    CM_PASS_BYTES,   /* the target's codecs are the source's: stored bytes go through unchanged */
    CM_PASS_GZIP     /* zlib streams become gzip streams around the same deflate data */
} cm_pass;

/* What was done for a transfer, or for several that belong together. */
typedef struct cm_transfer_counts {
    _Atomic uint64_t fetched;       /* stored chunks asked for */
    _Atomic uint64_t decoded;       /* of those, decoded */
    _Atomic uint64_t nelem_read;    /* inside the array, of chunks that were there */
    _Atomic uint64_t delivered;     /* target chunks put or skipped */
    _Atomic uint64_t nelem_written; /* of those, inside the array */
    _Atomic uint64_t spilled;       /* bytes written to scratch */
    _Atomic uint64_t returned;      /* bytes read from scratch */
} cm_transfer_counts;

typedef struct cm_transfer {
    /* Set by the caller; borrowed, and unchanged until the engine has returned. */
    cm_array *source;            /* of fixed-size elements */
    uint64_t start[CM_MAX_RANK]; /* target element i is source element start + step * i */
    uint64_t step[CM_MAX_RANK];
    cm_zarr_writer *target;
    cm_dtype target_type;
    cm_pass pass;
    const cm_conversion *conversion; /* NULL: elements are carried over bit for bit */
    const uint8_t *target_fill;      /* one element: pads edge chunks; NULL: zeros do */
    bool skip_empty;                 /* chunks that hold only target_fill may be left out */
    bool must_return; /* what is encoded must decode to the same elements; without a conversion */
    bool
        absent_is_empty; /* an unallocated source chunk becomes target_fill: skip_empty holds without looking */
    int (*on_skip)(void *context, uint64_t chunk,
                   cm_error *err); /* a chunk was left out; or NULL */
    void *on_skip_context;
    const uint64_t
        *present; /* one bit for each source chunk: it is stored; NULL: the source is asked */
    cm_transfer_counts *counts;      /* or NULL */
    const struct cm_spill *spill;    /* target chunks that go to scratch first; NULL: none */
    uint64_t first_block, end_block; /* of the sweep; end_block 0: all of them */
    bool clips;              /* slots hold only what lies inside the array; else whole chunks */
    atomic_bool *found_fill; /* set when a written element equals target_fill; NULL: nobody asks */

    /* Set by cm_transfer_plan. */
    cm_sweep sweep;
    size_t slot_nbytes;   /* one whole target chunk, in the source's type, in whole pages */
    size_t worker_nbytes; /* scratch of one worker */
    bool may_be_absent;   /* some source chunks are known to be unallocated: */
    bool absence_known;   /* that was looked for, chunk by chunk, by the first plan */
} cm_transfer;

/* What messages call it: the root is "/". */
const char *cm_transfer_name(const cm_transfer *t);
/* True when source chunk NUMBER is known to be unallocated. */
bool cm_transfer_is_absent(const cm_transfer *t, uint64_t number);

/* Bytes of each of a worker's own buffers. */
typedef struct cm_worker_need {
    size_t stored, decoded, encoded, converted, spilled;
    size_t batch, packed;      /* several tiny chunks as stored: of the source, of a shard */
    size_t decoding, encoding; /* what codecs take beside them */
} cm_worker_need;

/* Raises NEED to what T needs, before any plan: one worker's buffers serve all transfers of a run. */
void cm_transfer_worker_need(const cm_transfer *t, size_t piece_nbytes, cm_worker_need *need);
size_t cm_worker_need_nbytes(const cm_worker_need *need);
/* Bytes of scratch that a worker needs for T alone. */
size_t cm_transfer_worker_nbytes(const cm_transfer *t, size_t piece_nbytes);
/* Bytes of one slot for a whole target chunk, whole pages. */
size_t cm_transfer_slot_nbytes(const cm_transfer *t);

/*
 * Chooses blocks and order so that at most MAX_SLOTS target chunks are held (0:
 * no limit).  PIECE_NBYTES is about what one read of a sliceable source takes.
 */
void cm_transfer_plan(cm_transfer *t, uint64_t max_slots, size_t piece_nbytes);

/* How many shards of the target are written at once by NTHREADS workers with slots as SWEEP has them. */
uint64_t cm_transfer_open_shards(const cm_transfer *t, const cm_sweep *sweep, unsigned nthreads);

/* Leaves target chunk CHUNK out, and tells on_skip. */
int cm_transfer_skip(const cm_transfer *t, uint64_t chunk, cm_error *err);

enum {
    CM_STAGE_READ,
    CM_STAGE_DECODE,
    CM_STAGE_SCATTER,
    CM_STAGE_ENCODE,
    CM_STAGE_WRITE,
    CM_STAGE_WAIT,
    CM_NSTAGES
};
extern const char *const cm_stage_names[CM_NSTAGES];

typedef struct cm_engine_stats {
    uint64_t stage_ns[CM_NSTAGES]; /* of all workers together */
    uint64_t stage_calls[CM_NSTAGES];
    uint64_t pieces;      /* source pieces read */
    uint64_t passed;      /* chunks whose stored bytes were passed on */
    uint64_t read_nbytes; /* stored bytes */
} cm_engine_stats;

typedef struct cm_engine_options {
    unsigned nthreads; /* >= 1 */
    size_t
        slots_nbytes; /* all slots together stay below; at least what the sweep of every transfer holds */
    cm_monitor *monitor; /* or NULL */
    cm_trace *trace;     /* or NULL */
} cm_engine_options;

/*
 * Moves everything; the first error stops all workers and is returned, with the
 * array and the chunk in front.  CM_ECANCELED when the monitor says so.  Each
 * chunk of each target that its writer does not have yet is put or skipped, once.
 */
int cm_engine_run(const cm_transfer *transfer, size_t n, const cm_engine_options *options,
                  cm_engine_stats *stats, cm_error *err);

#endif
