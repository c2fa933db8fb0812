/*
 * Counts of one array while its elements pass, in boxes, in any order and from any thread: a tally
 * of each step along one dimension, a fingerprint of each step's field, and samples of it on a
 * coarse grid.
 *
 * An array with very many steps is counted in bins of several neighbours, so that memory stays
 * within a budget.  Sums are kept in twice the precision of a double, so that the order in which
 * boxes come does not show.
 */
#ifndef CM_PASSPORT_COUNTER_H
#define CM_PASSPORT_COUNTER_H

#include <pthread.h>
#include <stdatomic.h>

#include "model/box.h"
#include "model/tally.h"

enum {
    CM_COUNTER_PICTURES = 3
};

typedef struct cm_counter_options {
    cm_tally_rule rule;
    const uint8_t *fill; /* elements that are not stored; NULL: zero */
    unsigned rank;       /* at least 1 */
    uint64_t shape[CM_MAX_RANK];
    unsigned step;   /* the dimension that is counted step by step */
    uint64_t nbytes; /* to take at most, but for a minimum */
} cm_counter_options;

/* Positions along each dimension: an even sample. */
typedef struct cm_lattice {
    unsigned count[CM_MAX_RANK]; /* 1 for the step dimension */
    uint32_t npoints;
} cm_lattice;

typedef struct cm_wide { /* a sum in two doubles */
    double high, low;
} cm_wide;

typedef struct cm_bin {
    uint64_t count, missing, hash;
    double min, max;
    cm_wide sum, square;
} cm_bin;

typedef struct cm_counter {
    cm_counter_options o;
    uint64_t nsteps, together, nbins;
    cm_bin *bin;
    cm_lattice sketch;
    double *sample; /* NPOINTS of each bin's first step; NaN: missing */
    cm_lattice grid;
    bool whole; /* one picture of all steps, one a row; else one of each of PICTURED */
    unsigned npictures;
    uint64_t pictured[CM_COUNTER_PICTURES];
    float *picture;       /* GRID's points of each */
    pthread_mutex_t lock; /* guards the bins */
    _Atomic uint64_t ns;  /* that counting took, all threads */
} cm_counter;

/* Bytes that a counter takes. */
uint64_t cm_counter_nbytes(const cm_counter_options *o);
int cm_counter_create(const cm_counter_options *o, cm_counter **out, cm_error *err);
void cm_counter_free(cm_counter *c); /* NULL accepted */

/*
 * The elements BOX of the array, which lie at DATA as a block of shape EXTENT in C order, from its
 * origin.  DATA NULL: all are the fill value.  Each element once.
 */
void cm_counter_see(cm_counter *c, const cm_box *box, const uint64_t *extent, const uint8_t *data);

#endif
