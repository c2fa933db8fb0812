/*
 * One dimension of a transfer: where source pieces and target chunks meet.
 *
 * Positions are target elements.  Target element i is source element
 * start + step * i.  A piece is what is read at once: a stored source chunk
 * along this dimension, or, where the source can be cut anywhere, a run that
 * the plan chose.
 */
#ifndef CM_PLAN_AXIS_H
#define CM_PLAN_AXIS_H

#include <stdint.h>

#include "model/cuts.h"

typedef enum cm_piece_kind {
    CM_PIECE_CHUNK, /* piece k is source chunk k; step <= source, so none of them is empty */
    /* piece k is target element k, alone in its source chunk, since step > source */
    CM_PIECE_POINT,
    CM_PIECE_RUN, /* pieces are runs of `source` target elements, counted from the block's start */
    CM_PIECE_CUT  /* piece k is where CUTS say, whose positions are target elements */
} cm_piece_kind;

typedef struct cm_axis {
    cm_piece_kind kind;
    uint64_t n;      /* target elements, >= 1 */
    uint64_t target; /* target chunk length, >= 1 */
    /* CHUNK, POINT: source chunk length; RUN: piece length in target elements; CUT: the longest */
    uint64_t source;
    uint64_t start;
    uint64_t step;       /* >= 1 */
    const cm_cuts *cuts; /* CUT; borrowed */
} cm_axis;

/* Positions lo <= i < hi. */
typedef struct cm_range {
    uint64_t lo, hi;
} cm_range;

/* Numbers of the pieces that meet the positions R inside BLOCK; R is not empty. */
cm_range cm_axis_pieces(const cm_axis *axis, cm_range block, cm_range r);

/* Positions inside BLOCK that piece K covers. */
cm_range cm_axis_piece_span(const cm_axis *axis, cm_range block, uint64_t k);

/* Target chunks that the positions R (not empty) meet. */
cm_range cm_axis_targets(const cm_axis *axis, cm_range r);

/* Positions inside the array that target chunk Q covers. */
cm_range cm_axis_target_span(const cm_axis *axis, uint64_t q);

/* The source chunk that piece K lies in (not for RUN). */
uint64_t cm_axis_source_chunk(const cm_axis *axis, uint64_t k);

#endif
