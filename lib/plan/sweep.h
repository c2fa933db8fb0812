/*
 * The order in which a transfer reads its source, and the memory this takes.
 *
 * The target's chunks are parted into blocks.  Within a block, source pieces
 * are read in lexicographic order of a permutation of the dimensions; a target
 * chunk is held in memory (a slot) from the first piece that touches it to the
 * last.  With one block every source chunk is decoded once.  Where the slots of
 * one block do not fit, blocks are halved, along the dimension that makes the
 * fewest source chunks be decoded again, until they do.
 *
 * A plan is small: blocks and pieces are computed from their numbers.
 */
#ifndef CM_PLAN_SWEEP_H
#define CM_PLAN_SWEEP_H

#include <stddef.h>

#include "model/box.h"
#include "plan/axis.h"

typedef struct cm_sweep_request {
    unsigned rank;
    uint64_t shape[CM_MAX_RANK];  /* of the target */
    uint64_t target[CM_MAX_RANK]; /* target chunk */
    uint64_t start[CM_MAX_RANK];  /* target element i is source element start + step * i */
    uint64_t step[CM_MAX_RANK];
    bool sliceable;               /* the source can be cut anywhere */
    uint64_t source[CM_MAX_RANK]; /* source chunk; ignored when sliceable */
    /* Where source chunks are of several lengths, in target elements; NULL: as SOURCE says. */
    const cm_cuts *cuts[CM_MAX_RANK];
    size_t itemsize;     /* bytes of a source element, for the size of pieces */
    size_t piece_nbytes; /* sliceable: about what one read takes */
    uint64_t max_slots;  /* target chunks that may be held; 0: no limit */
} cm_sweep_request;

typedef struct cm_sweep {
    unsigned rank;
    cm_axis axis[CM_MAX_RANK];
    unsigned order[CM_MAX_RANK]; /* outermost dimension first */
    uint64_t first[CM_MAX_RANK]; /* target chunk at which it begins; axes count from 0 */
    uint64_t block[CM_MAX_RANK]; /* target chunks of a block along each dimension */
    uint64_t nblocks[CM_MAX_RANK];
    uint64_t total_blocks;
    uint64_t total_pieces; /* of all blocks: source reads */
    /* distinct ones that are met; total_pieces / source_chunks decodes each */
    uint64_t source_chunks;
    uint64_t slots;       /* target chunks held at most, when pieces are done one after the other */
    uint64_t touched;     /* target chunks that one piece meets at most */
    uint64_t piece_nelem; /* source elements of the largest piece, whole source chunks counted */
} cm_sweep;

/*
 * Always finds a plan: blocks of one target chunk take one slot.  The array has no zero-length
 * dimension.
 */
void cm_sweep_plan(const cm_sweep_request *request, cm_sweep *out);

/*
 * The sweep with blocks of BLOCK target chunks in ORDER; max_slots is ignored.  Not for
 * sliceable sources.
 */
void cm_sweep_with(const cm_sweep_request *request, const uint64_t *block, const unsigned *order,
                   cm_sweep *out);

/*
 * SWEEP was planned for the target chunks from FIRST on as if they were an array: now it
 * is a sweep of those in the array itself.
 */
void cm_sweep_shift(cm_sweep *sweep, const uint64_t *first);

/*
 * Parts the blocks of SWEEP along its first dimension into shorter ones, of about ROWS target
 * chunks and a multiple of GRAIN, at places where no piece is cut: all counts stay what they are,
 * and no block holds more.  False where there are no such places; SWEEP is unchanged then.
 */
bool cm_sweep_split(cm_sweep *sweep, uint64_t rows, uint64_t grain);

/*
 * Slots that the same order and blocks would take with target chunks of TARGET (multiples of
 * the sweep's): shards being assembled.
 */
uint64_t cm_sweep_slots_for(const cm_sweep *sweep, const uint64_t *target);

/* A cursor over pieces, block by block. */
typedef struct cm_sweep_cursor {
    uint64_t block;               /* number, in C order of the block grid */
    cm_range span[CM_MAX_RANK];   /* positions of the block */
    cm_range pieces[CM_MAX_RANK]; /* of the block */
    uint64_t piece[CM_MAX_RANK];  /* the current one */
    bool done;
} cm_sweep_cursor;

/* At the first piece of BLOCK. */
void cm_sweep_begin(const cm_sweep *sweep, uint64_t block, cm_sweep_cursor *cursor);
void cm_sweep_next(const cm_sweep *sweep, cm_sweep_cursor *cursor);

/* Pieces of the cursor's block that meet target chunk COORD: one product per dimension. */
uint64_t cm_sweep_pieces_of(const cm_sweep *sweep, const cm_sweep_cursor *cursor,
                            const uint64_t *coord);

#endif
