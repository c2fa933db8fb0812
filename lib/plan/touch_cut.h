/*
 * Chunks that a read meets along one dimension, with their lengths: outcomes by the offset of the
 * read, equal ones together.
 */
#ifndef CM_PLAN_TOUCH_CUT_H
#define CM_PLAN_TOUCH_CUT_H

#include "plan/touch.h"

typedef struct cm_touch_outcome {
    uint64_t chunks, shards;
    uint64_t nelem; /* of those chunks, as they are stored */
    long double p;  /* how probable it is */
} cm_touch_outcome;

/*
 * The outcomes of AXIS, whose chunks or shards are of several lengths; *LIST is to be freed.
 * CM_EUNSUPPORTED: they take more than 2^24 steps to count.
 */
int cm_touch_cut_axis(const cm_touch_axis *axis, cm_touch_outcome **list, size_t *n, cm_error *err);

/* Sorts N outcomes, and merges equal ones; how many are left. */
size_t cm_touch_merge(cm_touch_outcome *list, size_t n);

#endif
