/*
 * A transfer: all elements of one array on their way into another.
 *
 * The caller fills one in, plan.h chooses the order and counts the memory, and
 * engine.h moves it.
 */
#ifndef CM_ENGINE_TRANSFER_H
#define CM_ENGINE_TRANSFER_H

#include <stdatomic.h>

#include "format/array.h"
#include "format/target.h"
#include "model/convert.h"
#include "plan/sweep.h"

/* How stored bytes are passed on; all but the first need equal chunks in source and target. */
typedef enum cm_pass {
    CM_PASS_NOTHING, /* every chunk is decoded and encoded */
    CM_PASS_BYTES,   /* the target's codecs are the source's: stored bytes go through unchanged */
    CM_PASS_GZIP     /* zlib streams become gzip streams around the same deflate data */
} cm_pass;

/* Counts of work for one transfer, or several that belong together. */
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
    /* Where chunks of SOURCE are of several lengths, in target elements; NULL: they are not. */
    const cm_cuts *cuts[CM_MAX_RANK];
    cm_target *target;
    cm_dtype target_type;
    cm_pass pass;
    const cm_conversion *conversion; /* NULL: elements are carried over bit for bit */
    const uint8_t *target_fill;      /* one element: pads edge chunks; NULL: zeros do */
    bool skip_empty;                 /* chunks that hold only target_fill may be left out */
    bool must_return; /* what is encoded must decode to the same elements; without a conversion */
    /* an unallocated source chunk becomes target_fill: skip_empty holds without looking */
    bool absent_is_empty;
    int (*on_skip)(void *context, uint64_t chunk,
                   cm_error *err); /* a chunk was left out; or NULL */
    void *on_skip_context;
    /*
     * Told of each target chunk once, before it is encoded: its elements in the target's type,
     * laid out as a whole chunk; NULL: all are TARGET_FILL.  Any thread.  NULL: nobody asks.
     */
    int (*see)(void *context, uint64_t chunk, const uint8_t *elements, cm_error *err);
    void *see_context;
    const uint64_t
        *present; /* one bit for each source chunk: it is stored; NULL: the source is asked */
    cm_transfer_counts *counts; /* or NULL */
    bool from_scratch; /* SOURCE is scratch, so what is read of it is not counted as read */
    const struct cm_spill *spill;    /* target chunks that go to scratch first; NULL: none */
    uint64_t first_block, end_block; /* of the sweep; end_block 0: all of them */
    /* where chunks stay: objects of the target's outer grid; end_object 0: all of them */
    uint64_t first_object, end_object;
    /*
     * So many blocks, or objects, are moved in one round of the engine, which nothing in memory
     * outlasts; 0: all of them.
     */
    uint64_t together;
    bool clips;              /* slots hold only what lies inside the array; else whole chunks */
    bool refuses_fill;       /* a written element may not equal target_fill */
    atomic_bool *found_fill; /* set when a written element equals target_fill; NULL: nobody asks */

    /* Set by cm_transfer_adopt, worker_nbytes by the caller. */
    cm_sweep sweep;
    size_t slot_nbytes;   /* one whole target chunk, in the source's type, in whole pages */
    size_t worker_nbytes; /* scratch of one worker */
    bool may_be_absent;   /* some source chunks are known to be unallocated: */
    bool absence_known;   /* that was looked for, chunk by chunk, by the first plan */
} cm_transfer;

/* The array's name in messages: "/" for the root. */
const char *cm_transfer_name(const cm_transfer *t);
/* True when source chunk NUMBER is known to be unallocated. */
bool cm_transfer_is_absent(const cm_transfer *t, uint64_t number);

/* Leaves target chunk CHUNK out, and tells on_skip. */
int cm_transfer_skip(const cm_transfer *t, uint64_t chunk, cm_error *err);
/* Counts target chunks of T, NELEM elements inside the array, as put or left out. */
void cm_transfer_count_delivered(const cm_transfer *t, uint64_t nchunks, uint64_t nelem);
/* True when source and target have the same chunks: they need neither slots nor scattering. */
bool cm_transfer_is_direct(const cm_transfer *t);
/* True when chunks of the target lie together in shards. */
bool cm_transfer_has_shards(const cm_transfer *t);

#endif
