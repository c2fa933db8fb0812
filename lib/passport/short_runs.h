/*
 * Sums of many steps at once, where each has few elements side by side: a chunk of whole time
 * series has one element of a step every few bytes.  An element of each of up to CM_SHORT_STEPS
 * steps is added in one call, so that the work for each is a few instructions.
 */
#ifndef CM_PASSPORT_SHORT_RUNS_H
#define CM_PASSPORT_SHORT_RUNS_H

#include "model/tally.h"

enum {
    CM_SHORT_STEPS = 256
};

typedef struct cm_short_sums {
    unsigned n; /* steps */
    bool has_shift;
    double shift;
    uint64_t count[CM_SHORT_STEPS], hash[CM_SHORT_STEPS];
    double sum[CM_SHORT_STEPS], square[CM_SHORT_STEPS]; /* of differences to the shift */
    double min[CM_SHORT_STEPS], max[CM_SHORT_STEPS];
} cm_short_sums;

void cm_short_begin(cm_short_sums *s, unsigned n);
/* An element of each step, STRIDE bytes apart; the NTH of each, for its fingerprint. */
void cm_short_add(cm_short_sums *s, const cm_tally_rule *rule, const uint8_t *data, int64_t stride,
                  uint64_t nth);
/* Of step K, that NELEM elements were added of. */
cm_tally cm_short_tally(const cm_short_sums *s, unsigned k, uint64_t nelem);

#endif
