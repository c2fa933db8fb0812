/*
 * How one array gets from one chunk grid to another within a memory.
 *
 * A route is a sweep (sweep.h) by given blocks and order and, where its target
 * chunks are more than the memory holds, tiles: target chunks in the first tile
 * of each block stay in memory, those of the others go through a scratch file
 * and are finished tile by tile.  All counts are exact and agree with what the
 * engine counts, if every source chunk is there.
 *
 * Pure arithmetic, deterministic, any thread.
 */
#ifndef CM_PLAN_RECHUNK_H
#define CM_PLAN_RECHUNK_H

#include "plan/sweep.h"

/* Decoded bytes a second, all workers together; 0: not known. */
typedef struct cm_rates {
    double read;    /* reading and decoding a source chunk */
    double write;   /* encoding and writing a target chunk */
    double scratch; /* writing to or reading from scratch */
} cm_rates;

typedef struct cm_route_request {
    unsigned rank;
    uint64_t shape[CM_MAX_RANK];
    uint64_t source[CM_MAX_RANK]; /* chunk */
    uint64_t target[CM_MAX_RANK];
    /* Where source chunks are of several lengths (cm_sweep_request): swept, it never spills. */
    const cm_cuts *cuts[CM_MAX_RANK];
    size_t itemsize;
    /*
     * A part of the source (target element i is source element start + step * i),
     * or a source that can be cut anywhere, is swept: it never spills.
     */
    bool is_part;
    uint64_t start[CM_MAX_RANK], step[CM_MAX_RANK]; /* with is_part */
    uint64_t whole[CM_MAX_RANK];                    /* the source's shape, with is_part */
    bool sliceable;
    size_t piece_nbytes; /* sliceable: about what one read takes */
    bool few_slots;      /* of orders that read everything once, the one that holds least */
    /*
     * Target chunks are held whole or, where they may be and that saves
     * traffic, clipped: only what lies inside the array, and up to CLIP_SPARE
     * bytes more for each.
     */
    size_t slot_nbytes;   /* one whole target chunk in memory, >= 1 */
    uint64_t room_nbytes; /* for target chunks, >= slot_nbytes */
    bool may_clip;
    size_t clip_spare;
    bool may_spill;          /* there is scratch space */
    uint64_t scratch_nbytes; /* of it; UINT64_MAX: not known */
    uint64_t memory_nelem;   /* elements that all of the memory would hold: for the bound */
    cm_rates rates;
    bool (*canceled)(void *context); /* asked now and then while routes are looked at, or NULL */
    void *context;
} cm_route_request;

typedef enum cm_route_kind {
    CM_ROUTE_SWEEP,
    CM_ROUTE_COLUMN,
    CM_ROUTE_SPILL,
    CM_ROUTE_REREAD
} cm_route_kind;

typedef struct cm_route {
    cm_route_kind kind;
    cm_sweep sweep;
    bool spills;
    uint64_t tile[CM_MAX_RANK]; /* target chunks; of SPILL */
    cm_sweep tiled;             /* with blocks of TILE: how what was spilled is finished */
    uint64_t slots;             /* target chunks held at most */
    bool clips;                 /* they are held clipped */
    uint64_t held_nbytes;       /* what they take of the room */

    uint64_t chunk_reads;
    uint64_t nelem_read;    /* of source chunks, inside the array */
    uint64_t nelem_written; /* of the array */
    uint64_t nelem_spilled; /* written to, and once read from, scratch */
    uint64_t scratch_nelem; /* at most at one time */
    uint64_t traffic;       /* elements read, written, and twice those spilled */
    uint64_t least;         /* traffic of the route that has the least; 0: none beside it */
    uint64_t bound;         /* no way of moving the array within the memory has less */
    double seconds;         /* by the rates; 0: not known */
} cm_route;

/*
 * Times expected from rates that a short probe gives are not told apart within
 * this: so that the next probe leads to the same route.
 */
#define CM_ROUTE_NOISE 1.1

/*
 * Chooses the route of the least traffic.  Where that is not the least possible
 * and the rates are known, routes with at most half as much again, and never
 * more than four volumes on that account, compete by time: of those that take
 * at most CM_ROUTE_NOISE times as long as the quickest, the one of the least
 * traffic.  The array has no zero-length dimension.  There is always a route:
 * one target chunk after the other takes one slot.  Only CM_ENOMEM and
 * CM_ECANCELED can come.
 */
int cm_route_plan(const cm_route_request *request, cm_route *out, cm_error *err);

/*
 * Least traffic, in elements.  Where along every dimension one chunk length
 * divides the other, each source chunk of a box of max(s, t) meets each target
 * chunk of it; when the last source comes only M of the box's V elements can
 * have stayed, so 2 (V - M) are spilled or, what is more, read again.  Elsewhere:
 * everything is read once and written once.
 */
uint64_t cm_route_bound(const cm_route_request *request);

#endif
