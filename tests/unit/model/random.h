/* Repeatable random numbers for property tests. */
#ifndef CM_TEST_RANDOM_H
#define CM_TEST_RANDOM_H

#include <stdint.h>

/* xorshift64; the state must not be 0. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

/* 0 ... N - 1 */
static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
    return (random_next(state) >> 11) % n;
}

#endif
