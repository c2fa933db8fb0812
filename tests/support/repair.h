/*
 * Checksums of an HDF5 file's own structures, set right after bytes were changed: what a reader
 * makes of them is to be seen, and not that it notices.
 */
#ifndef TESTS_REPAIR_H
#define TESTS_REPAIR_H

#include <string.h>

#include "format/nc/h5_bytes.h"

static inline void repair_part(uint8_t *data, size_t nbytes, size_t at, uint64_t n)
{
    if (n < 8 || n > nbytes - at)
        return;
    uint32_t sum = cm_h5_checksum(data + at, (size_t)n - 4);
    cm_store_le32(data + at + n - 4, sum);
}

/* The length of the object header at P. */
static inline uint64_t repair_header_nbytes(const uint8_t *p, size_t left)
{
    if (left < 40)
        return 0;
    unsigned flags = p[5], width = 1u << (flags & 3);
    size_t prefix = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
    uint64_t n = 0;
    memcpy(&n, p + prefix, width);
    return n > left ? 0 : prefix + width + n + 4;
}

/* Headers, and their continuations as far as a message in front of them tells their length. */
static inline void repair(uint8_t *data, size_t nbytes)
{
    if (nbytes > 48 && memcmp(data, "\x89HDF", 4) == 0 && data[8] >= 2)
        repair_part(data, nbytes, 0, 48);
    for (size_t i = 0; i + 40 < nbytes; i++) {
        if (memcmp(data + i, "OHDR", 4) == 0)
            repair_part(data, nbytes, i, repair_header_nbytes(data + i, nbytes - i));
        if (memcmp(data + i, "FRHP", 4) == 0)
            repair_part(data, nbytes, i, 146);
        if (memcmp(data + i, "BTHD", 4) == 0)
            repair_part(data, nbytes, i, 38);
        /* 0x10: a continuation, of 16 bytes. */
        if (data[i] != 0x10 || data[i + 1] != 16 || data[i + 2] != 0)
            continue;
        for (size_t prefix = 4; prefix <= 6; prefix += 2) {
            uint64_t at = cm_load_le64(data + i + prefix), n = cm_load_le64(data + i + prefix + 8);
            if (at < nbytes && nbytes - at > 8 && memcmp(data + at, "OCHK", 4) == 0)
                repair_part(data, nbytes, (size_t)at, n);
        }
    }
}

#endif
