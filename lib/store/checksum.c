#include "store/checksum.h"

#include <string.h>

/*
 * Four lanes of 64 bits, so that their multiplications overlap.  Every step is a
 * bijection of the lane for a given word and of the word for a given lane, which
 * is why a single changed word cannot be lost.
 */
enum {
    NLANES = 4,
    STRIPE = NLANES * 8
};

/* Odd, and without a pattern: the fractional parts of square roots of 2, 3, 5, 7. */
static const uint64_t odd[NLANES] = {0x6a09e667f3bcc909u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu,
                                     0xa54ff53a5f1d36f1u};

static inline uint64_t step(uint64_t lane, uint64_t word, uint64_t factor)
{
    lane = (lane ^ word) * factor;
    return lane << 29 | lane >> 35;
}

static inline void take_stripe(uint64_t *lane, const uint8_t *p)
{
    uint64_t word[NLANES];
    memcpy(word, p, STRIPE);
    for (unsigned i = 0; i < NLANES; i++)
        lane[i] = step(lane[i], word[i], odd[i]);
}

uint64_t cm_checksum64(const void *data, size_t nbytes, uint64_t seed)
{
    const uint8_t *p = data;
    uint64_t lane[NLANES], sum = seed ^ nbytes;
    for (unsigned i = 0; i < NLANES; i++)
        lane[i] = seed + odd[NLANES - 1 - i];
    size_t left = nbytes;
    for (; left >= STRIPE; left -= STRIPE, p += STRIPE)
        take_stripe(lane, p);
    if (left > 0) {
        uint8_t last[STRIPE] = {0};
        memcpy(last, p, left);
        take_stripe(lane, last);
    }
    for (unsigned i = 0; i < NLANES; i++)
        sum = step(sum, lane[i], odd[i]);
    return sum ^ sum >> 32;
}
