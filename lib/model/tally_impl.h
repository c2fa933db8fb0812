/* Tallies from inside: what tally.c and tally_small.c share. */
#ifndef CM_MODEL_TALLY_IMPL_H
#define CM_MODEL_TALLY_IMPL_H

#include "model/tally.h"

typedef void cm_tally_kernel(cm_tally_sum *s, const cm_tally_rule *rule, const void *data,
                             uint64_t n);

/* For fewer than 2^34 elements, with a shift that is one of RULE's type; NULL: there is none. */
cm_tally_kernel *cm_tally_float_kernel(const cm_tally_rule *rule);

/* Whether elements of TYPE, one that is taken, are summed as integers. */
bool cm_tally_is_small(const cm_dtype *type);
void cm_tally_small_run(cm_tally_small *s, const cm_tally_rule *rule, const void *data,
                        uint64_t nelem);
/* Into OUT, which is empty, all but what is missing. */
void cm_tally_small_end(const cm_tally_small *s, cm_tally *out);

#endif
