/*
 * The order of the planned loader: blocks in random order, and the samples of W blocks mixed.
 *
 * Blocks are permuted (cm_permute).  A *window* of W of them moves along, one block a step: each
 * block's samples, permuted, are shared out among the steps in which it is in the window, and
 * the samples of a step are permuted among themselves.  So a batch is drawn from W blocks all
 * along, a block's chunks are needed for W steps, and each step begins one block and ends one.
 * With N blocks there are N - W + 1 steps; the blocks at both ends of an epoch are in fewer
 * of them.  With W = N all samples of the epoch are permuted.
 *
 * Place p of an epoch is found from the sizes of the steps before it, which are added up on the
 * way: places in ascending order take no time to speak of, another place one addition for each
 * block in front of it.  Keeps 24 bytes for each block of the window.
 */
#ifndef CM_PLAN_BLOCK_ORDER_H
#define CM_PLAN_BLOCK_ORDER_H

#include "plan/blocks.h"

typedef struct cm_block_order {
    const cm_blocks *blocks;
    uint64_t window, nsteps;
    uint64_t block_key, within_key, step_key;
    uint64_t step;
    uint64_t first, nplaces; /* of the step */
    uint64_t known;          /* blocks up to here were looked at; the last `window` are kept */
    uint64_t *id, *nsamples; /* of block k, at k mod window */
    uint64_t *before;        /* places of the step in front of each block of the window */
} cm_block_order;

/* BLOCKS are borrowed.  To be released whatever is returned. */
int cm_block_order_make(const cm_blocks *blocks, uint64_t window, cm_block_order *out,
                        cm_error *err);
void cm_block_order_release(cm_block_order *order); /* zeroed memory is fine */

void cm_block_order_begin(cm_block_order *order, uint64_t seed, uint64_t epoch);

typedef struct cm_block_sample {
    uint64_t number; /* of the sample, in C order (cm_sample_space.by_number) */
    uint64_t
        block; /* its block's place among the permuted ones, in the window of the order's step */
} cm_block_sample;

/* The sample at PLACE, below the number of all samples of the space. */
void cm_block_order_at(cm_block_order *order, uint64_t place, cm_block_sample *out);

/* Different blocks among N samples in turn, in the mean. */
double cm_block_order_mixed(const cm_blocks *blocks, uint64_t window, uint64_t n);

#endif
