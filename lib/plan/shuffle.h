/*
 * Randomness of the plans: reproducible, keyed by what the user can name.
 */
#ifndef CM_PLAN_SHUFFLE_H
#define CM_PLAN_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

/* Purpose of a key: the same seed and epoch give each purpose numbers of its own. */
typedef enum cm_shuffle_purpose {
    CM_SHUFFLE_SAMPLES,
    CM_SHUFFLE_RUNS,
    CM_SHUFFLE_WITHIN_RUNS,
    CM_SHUFFLE_SHORT_RUN,
    CM_SHUFFLE_BLOCKS,
    CM_SHUFFLE_WITHIN_BLOCKS,
    CM_SHUFFLE_STEPS
} cm_shuffle_purpose;

uint64_t cm_shuffle_key(uint64_t seed, uint64_t epoch, cm_shuffle_purpose purpose);

/* A bijection of 64-bit numbers that spreads every bit over all (the finalizer of splitmix64). */
uint64_t cm_mix64(uint64_t x);

/* KEY, which is mixed, as a number below N (>= 1). */
uint64_t cm_below(uint64_t key, uint64_t n);

#endif
