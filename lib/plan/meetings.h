/*
 * How pieces and target chunks meet along one dimension, and from that the
 * number of target chunks that a sweep holds.
 */
#ifndef CM_PLAN_MEETINGS_H
#define CM_PLAN_MEETINGS_H

#include <stddef.h>

#include "plan/axis.h"

enum {
    CM_MAX_MEETINGS = 16
};

/*
 * How target chunks along one dimension relate to the piece at the cursor:
 * begun before and going on after it (mid), begun at it and going on (opening),
 * begun before and ending at it (closing), or met by it alone (nested).
 */
typedef struct cm_meeting {
    uint64_t mid, opening, closing, nested;
} cm_meeting;

/* How target chunks are counted. */
typedef enum cm_measure {
    CM_MEASURE_CHUNKS, /* each is one */
    CM_MEASURE_LENGTHS /* elements along the dimension, inside the array */
} cm_measure;

/* The distinct meetings along one dimension, for one block length. */
typedef struct cm_meetings {
    cm_meeting item[CM_MAX_MEETINGS];
    size_t n;
    uint64_t targets; /* of the longest block */
    uint64_t pieces;  /* of all blocks together */
    uint64_t touched; /* target chunks that one piece meets at most, whatever is measured */
} cm_meetings;

/* For blocks of BLOCK target chunks, of which MEASURE is counted. */
void cm_meetings_find(const cm_axis *axis, uint64_t block, cm_measure measure, cm_meetings *out);

/*
 * Target chunks, or their elements, held at most when pieces come in lexicographic order of
 * ORDER.
 */
uint64_t cm_meetings_held(const cm_meetings *m, const unsigned *order, unsigned rank);

/* Positions of block B of BLOCK target chunks each. */
cm_range cm_axis_block_span(const cm_axis *axis, uint64_t block, uint64_t b);

/* The next of N! orders; false after the last.  Begins with ascending numbers. */
bool cm_next_permutation(unsigned *order, unsigned n);

/* Products and sums of counts saturate: such a plan never fits. */
uint64_t cm_mul_sat(uint64_t a, uint64_t b);
uint64_t cm_add_sat(uint64_t a, uint64_t b);

#endif
