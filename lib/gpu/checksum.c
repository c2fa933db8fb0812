#include "gpu/checksum.h"

#include <string.h>

enum {
    LANES = 16,
    /* Within a run weights are small, so that a product of 32 bits each is enough. */
    RUN = 1 << 16
};

/*
 * Lanes are summed apart, which the compiler turns into vectors: lane l of a
 * run holds the words l, l + LANES, ..., weighted by 1, 2, ... within the lane,
 * and the weights within the run follow from those.
 */
static cm_checksum of_run(const uint8_t *p, size_t nrows)
{
    uint64_t plain[LANES] = {0}, rows[LANES] = {0};
    for (size_t r = 0; r < nrows; r++)
        for (size_t l = 0; l < LANES; l++) {
            uint32_t w;
            memcpy(&w, p + (r * LANES + l) * 4, 4);
            plain[l] += w;
            rows[l] += (uint64_t)w * (uint32_t)r;
        }
    cm_checksum c = {0};
    for (size_t l = 0; l < LANES; l++) {
        c.sum += plain[l];
        c.weighted += rows[l] * LANES + plain[l] * (l + 1);
    }
    return c;
}

cm_checksum cm_checksum_of(const void *data, size_t nbytes)
{
    const uint8_t *p = data;
    cm_checksum c = {0};
    uint64_t first = 0; /* the word at P */
    while (nbytes >= LANES * 4) {
        size_t nrows = nbytes / (LANES * 4);
        if (nrows > RUN)
            nrows = RUN;
        const cm_checksum run = of_run(p, nrows);
        c.sum += run.sum;
        c.weighted += run.weighted + first * run.sum;
        first += nrows * LANES;
        p += nrows * LANES * 4;
        nbytes -= nrows * LANES * 4;
    }
    while (nbytes > 0) {
        const size_t n = nbytes < 4 ? nbytes : 4;
        uint32_t w = 0;
        memcpy(&w, p, n);
        c.sum += w;
        c.weighted += ++first * w;
        p += n;
        nbytes -= n;
    }
    return c;
}
