/*
 * Sums of the part of a step that lies in one chunk: what a passport counts of each element.
 *
 * Unlike a tally (model/tally.h), which training relies on to the last bit, these are for people: a
 * mean and a standard deviation to about six digits.  So floats are summed as floats in short
 * blocks, which takes a third of the time, and elements are looked at once.
 */
#ifndef CM_PASSPORT_PART_SUMS_H
#define CM_PASSPORT_PART_SUMS_H

#include "model/tally.h"

enum {
    CM_PART_STEPS = 256 /* that are summed together where each has few elements side by side */
};

typedef struct cm_part {
    uint64_t nelem, count; /* of all, and of those that are not missing */
    double min, max;
    double shift, sum, square; /* of differences to the shift */
} cm_part;

/* Elements of a step: ROWS runs of LENGTH, STRIDE bytes apart. */
typedef struct cm_part_rows {
    uint64_t length, nrows;
    int64_t stride;
} cm_part_rows;

cm_part cm_part_empty(void);
/* T, a tally of NELEM elements. */
cm_part cm_part_of_tally(const cm_tally *t);

/* part_float.c: of single floats, whether this CPU does it fast. */
bool cm_part_takes(const cm_tally_rule *rule);
/* Adds to P, which has a shift that is a float. */
void cm_part_add(cm_part *p, const cm_tally_rule *rule, const uint8_t *data,
                 const cm_part_rows *rows);
/* The sums have kept their digits; else they are made again, with another shift or as a tally. */
bool cm_part_is_good(const cm_part *p);

/* part_short.c: an element of each of N steps, STRIDE bytes apart, added to PART of each. */
void cm_part_add_short(cm_part *part, unsigned n, const cm_tally_rule *rule, const uint8_t *data,
                       int64_t stride);

#endif
