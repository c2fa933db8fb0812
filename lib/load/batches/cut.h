/*
 * Samples cut out of decoded chunks, which lie in the frame of their block (plan/blocks.h).
 */
#ifndef CM_LOAD_BATCHES_CUT_H
#define CM_LOAD_BATCHES_CUT_H

#include "load/workers/pool.h"
#include "plan/blocks.h"

typedef struct cm_cut {
    const cm_blocks *blocks;
    uint32_t strip;         /* of the part */
    size_t itemsize;        /* of an element in the frame */
    size_t stored_itemsize; /* of one in the array, as counts have it */
    const uint8_t *frame;
} cm_cut;

/*
 * BOX of the strip's array, which is what a part takes of SAMPLE, into DST in C order.  All its
 * chunks have been decoded.  Adds to COUNTS the bytes, and those of missing chunks among them.
 */
void cm_cut_box(const cm_cut *cut, const cm_box *sample, const cm_box *box, uint8_t *dst,
                cm_load_counts *counts);

#endif
