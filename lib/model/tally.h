/*
 * Statistics of elements: number, number missing, least, largest, mean, spread.
 *
 * A sum of one chunk is made of eight running sums of differences to a value of the chunk, in an
 * order that neither threads nor the CPU's instructions change, or, of small integers, of integers;
 * chunks are merged in a fixed tree (the caller's).  So a tally has the same bits however it was
 * computed.
 */
#ifndef CM_MODEL_TALLY_H
#define CM_MODEL_TALLY_H

#include <stdbool.h>

#include "base/cpu.h"
#include "model/dtype.h"

typedef struct cm_tally {
    uint64_t count; /* not missing */
    uint64_t missing;
    double min, max;
    double mean,
        rest;  /* the mean is their sum: chunks' means may differ in its last digits alone */
    double m2; /* sum of squares of the differences to the mean */
} cm_tally;

enum {
    CM_TALLY_MAX_FILLS = 8,
    CM_TALLY_LANES = 8
};

/* Elements to count: numbers of TYPE; NaN and the FILLs are missing. */
typedef struct cm_tally_rule {
    cm_dtype type;
    cm_simd simd; /* changes no bit */
    unsigned nfills;
    uint8_t fill[CM_TALLY_MAX_FILLS][8];
} cm_tally_rule;

/* True where elements of TYPE can be counted. */
bool cm_tally_takes(const cm_dtype *type);
bool cm_tally_is_missing(const cm_tally_rule *rule, const void *element);

/* Integers of 8 and 16 bits, exactly. */
typedef struct cm_tally_small {
    uint64_t count;
    int64_t sum;
    uint64_t square;
    int32_t min, max;
} cm_tally_small;

/* The elements of one chunk, run by run. */
typedef struct cm_tally_sum {
    bool has_shift;
    double shift;
    uint64_t nelem;
    cm_tally_small small; /* instead of what follows */
    uint64_t count[CM_TALLY_LANES];
    double sum[CM_TALLY_LANES], square[CM_TALLY_LANES]; /* of differences to the shift */
    double min[CM_TALLY_LANES], max[CM_TALLY_LANES];
} cm_tally_sum;

/* SHIFT NULL: the first element that is not missing. */
void cm_tally_begin(cm_tally_sum *s, const double *shift);
void cm_tally_run(cm_tally_sum *s, const cm_tally_rule *rule, const void *data, uint64_t nelem);
/*
 * False: the shift is so far from the mean that digits were lost; the same runs are to be summed
 * again, with OUT's mean.
 */
bool cm_tally_end(const cm_tally_sum *s, cm_tally *out);

/* A tally of nothing. */
cm_tally cm_tally_empty(void);
/* All of N, halved again and again at the largest power of two. */
cm_tally cm_tally_tree(const cm_tally *tally, size_t n);
/* NELEM elements, each of them ELEMENT (NULL: zero). */
cm_tally cm_tally_of_one(const cm_tally_rule *rule, const void *element, uint64_t nelem);
/* As element * SCALE + OFFSET are counted. */
cm_tally cm_tally_unpacked(const cm_tally *t, double scale, double offset);
/* Of all that were counted (population); 0 of one, NaN of none and where one is infinite. */
double cm_tally_std(const cm_tally *t);

#endif
