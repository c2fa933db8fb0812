/*
 * The shares of several processes that make one store: which objects (shards, or
 * chunks without shards) of every array each of them makes.
 *
 * Objects are counted in C order, so along the first dimension first.  Part K of N
 * makes a run of them of every array, cut where 1/N of the source's bytes has
 * passed.  What rounding to whole objects gives one part too much of one array is
 * taken from it in the next: arrays are cut from the heaviest objects down, so no
 * part is off its Nth by much more than one of the lightest.
 *
 * Pure arithmetic on integers: every process that knows the same items finds the
 * same cuts, in memory that grows with N alone.
 */
#ifndef CM_PLAN_PARTS_H
#define CM_PLAN_PARTS_H

#include "model/box.h"

typedef struct cm_part_item {
    unsigned rank;
    uint64_t count[CM_MAX_RANK]; /* objects along each dimension */
    uint64_t nbytes;             /* that moving all of it reads */
    uint64_t grain; /* cuts at a multiple of so many rows of the first dimension cost least */
    bool whole;     /* all of it goes to one part */
    /*
     * Bytes below object i * nobjects / NBELOW, for i from 0 to NBELOW, ascending to
     * nbytes; NULL: every object weighs the same.
     */
    const uint64_t *below;
    size_t nbelow;
} cm_part_item;

/* Objects first <= i < end of an item. */
typedef struct cm_part_run {
    uint64_t first, end;
} cm_part_run;

uint64_t cm_part_nobjects(const cm_part_item *item);

/*
 * OUT[i * MANY + k], for each of the N items, is what part PART + k of NPARTS >= 1 makes of it,
 * for k below MANY.
 */
int cm_part_cut(const cm_part_item *item, size_t n, uint64_t nparts, uint64_t part, size_t many,
                cm_part_run *out, cm_error *err);

enum {
    CM_PART_MAX_BOXES = 2 * CM_MAX_RANK
};

/*
 * The run SHARE of a grid of COUNT objects as boxes of their coordinates, in order;
 * returns their number.
 */
unsigned cm_part_boxes(const uint64_t *count, unsigned rank, cm_part_run share,
                       cm_box box[CM_PART_MAX_BOXES]);

#endif
