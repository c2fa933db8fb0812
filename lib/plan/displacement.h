/* How far a delivery is from reading in C order. */
#ifndef CM_PLAN_DISPLACEMENT_H
#define CM_PLAN_DISPLACEMENT_H

#include "plan/samples.h"

/*
 * The displacement (cm_sample_displacement) of N deliveries of which number I is
 * sample SAMPLE[I] of the epoch, or sample I where SAMPLE is NULL.
 */
int cm_displacement_of(const cm_sample_space *space, uint64_t epoch, const uint64_t *sample,
                       uint64_t n, double *out, cm_error *err);

#endif
