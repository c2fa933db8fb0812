#include "plan/shuffle.h"

#include "plan/samples.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15) /* 2^64 over the golden ratio: the step of splitmix64 */

/*
 * Rounds of the Feistel network.  Over halves of a few bits it needs more than the
 * four to six that are known to do: with 8 the orders of 7 numbers differ visibly in
 * frequency, with 12 they do not (10^3 keys for each order).
 */
enum {
    SMALL_HALF = 8, /* bits */
    SMALL_ROUNDS = 12,
    ROUNDS = 6
};

uint64_t cm_mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t cm_shuffle_key(uint64_t seed, uint64_t epoch, cm_shuffle_purpose purpose)
{
    uint64_t key = cm_mix64(seed + GOLDEN);
    key = cm_mix64(key + epoch * GOLDEN + 1);
    return cm_mix64(key + ((uint64_t)purpose + 1) * GOLDEN);
}

uint64_t cm_below(uint64_t key, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)key * n) >> 64);
}

static uint64_t feistel(unsigned half, uint64_t key, uint64_t x)
{
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    const unsigned nrounds = half <= SMALL_HALF ? SMALL_ROUNDS : ROUNDS;
    uint64_t left = x >> half, right = x & mask;

    for (unsigned r = 0; r < nrounds; r++) {
        const uint64_t next = left ^ (cm_mix64(right ^ (key + r * GOLDEN)) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t cm_permute(uint64_t n, uint64_t key, uint64_t i)
{
    unsigned half = 1;

    if (n < 2)
        return i;
    while (half < 32 && (n - 1) >> (2 * half) != 0)
        half++;
    /*
     * A Feistel network of 4 bits and more makes even permutations only, which shows in
     * small ranges; exchanging two numbers or not makes all of them equally frequent.
     */
    if (i < 2)
        i ^= cm_mix64(key) & 1;
    /* A number outside the range is permuted again; this ends, for its cycle began inside. */
    do {
        i = feistel(half, key, i);
    } while (i >= n);
    return i;
}
