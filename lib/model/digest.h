/*
 * A digest that does not depend on the layout.
 *
 * The sum modulo 2^128, over all elements, of a 128-bit mix of (linear index in
 * C order, the element's bytes in little-endian order).  Being a sum it is free
 * of order: chunks may come in any order and be summed apart, and the result is
 * the same for NetCDF, Zarr v2 and v3, any chunks and any codec.  It guards
 * against accident, not against an adversary.
 *
 * The definition, with test vectors, is in the man page chunkmill-digest(7).
 */
#ifndef CM_MODEL_DIGEST_H
#define CM_MODEL_DIGEST_H

#include "model/box.h"

typedef struct cm_digest {
    uint64_t lo, hi;
} cm_digest;

/* *sum += the digests of NELEM elements of ITEMSIZE bytes at DATA, whose linear indices are FIRST, FIRST + 1, ... */
void cm_digest_run(cm_digest *sum, uint64_t first, const void *data, uint64_t nelem,
                   size_t itemsize);
/* *sum += the digest of one element of any length (strings: their UTF-8 bytes). */
void cm_digest_element(cm_digest *sum, uint64_t index, const void *data, size_t nbytes);
/* *sum += the digests of BOX of an array of SHAPE; DATA is BOX in C order. */
void cm_digest_box(cm_digest *sum, const uint64_t *shape, const cm_box *box, const void *data,
                   size_t itemsize);
void cm_digest_add(cm_digest *sum, const cm_digest *other);
/* 32 lower-case hexadecimal digits, high half first, and a NUL. */
char *cm_digest_text(const cm_digest *d, char buf[33]);

#endif
