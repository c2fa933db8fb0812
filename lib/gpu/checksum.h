/*
 * The checksum with which memory of a device is compared with memory of the
 * host, without copying it back.
 *
 * The bytes are taken as little-endian 32-bit words w[0], w[1], ..., the last
 * one filled up with zero bytes.  Modulo 2^64
 *
 *     sum      = w[0] + w[1] + w[2] + ...
 *     weighted = 1 * w[0] + 2 * w[1] + 3 * w[2] + ...
 *
 * Addition commutes, so that any number of threads may sum in any order.  Any
 * change confined to two words is found, not with high probability but always:
 * to leave `sum` alone the words must change by d and -d, with 0 < d < 2^32,
 * and then `weighted` changes by d times the distance of the words, which lies
 * between 1 and 2^64 - 1.  The same definition stands in kernels.ptx.
 */
#ifndef CM_GPU_CHECKSUM_H
#define CM_GPU_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cm_checksum {
    uint64_t sum;
    uint64_t weighted;
} cm_checksum;

/* The distance of two words must stay below 2^32: this many bytes at most. */
#define CM_CHECKSUM_MAX_NBYTES (UINT64_C(4) << 32)

/* Of NBYTES at DATA, which need not be aligned.  Any thread. */
cm_checksum cm_checksum_of(const void *data, size_t nbytes);

static inline bool cm_checksum_equal(cm_checksum a, cm_checksum b)
{
    return a.sum == b.sum && a.weighted == b.weighted;
}

#endif
