/*
 * A digest that does not depend on the layout.
 *
 * The sum modulo 2^128, over all elements, of a 128-bit mix of (linear index in
 * C order, the element's bytes in little-endian order).  Being a sum it is free
 * of order: chunks may come in any order and be summed apart, and the result is
 * the same for NetCDF, Zarr v2 and v3, any chunks and any codec.  It guards
 * against accident, not against an adversary.
 *
 * With all arithmetic modulo 2^64, >> filling with zeros, and i the index:
 *
 *     A = 0x9e3779b97f4a7c15                      B = 0xc2b2ae3d27d4eb4f
 *     f(x): x = (x ^ x >> 33) * 0xff51afd7ed558ccd
 *           x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53
 *           f = x ^ x >> 33
 *     g(x): x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9
 *           x = (x ^ x >> 27) * 0x94d049bb133111eb
 *           g = x ^ x >> 31
 *
 * Elements of a fixed length of at most 8 bytes: v is the element's bytes as a
 * little-endian number, zero-extended; lo = f(v + (i + 1) A), hi = g(v + (i + 1) B).
 * All others, strings of any length included, are n bytes: lo = (i + 1) A and
 * hi = (i + 1) B at first; for each 8 bytes w, the last ones filled up with
 * zeros, lo = f(lo + w) and hi = g(hi + w); at the end lo = f(lo + n) and
 * hi = g(hi + n).  The element's mix is hi * 2^64 + lo.
 *
 * The same definition, with test vectors, is in the man page chunkmill-digest(7).
 */
#ifndef CM_MODEL_DIGEST_H
#define CM_MODEL_DIGEST_H

#include "model/box.h"

typedef struct cm_digest {
    uint64_t lo, hi;
} cm_digest;

/*
 * *sum += the digests of NELEM elements of ITEMSIZE bytes at DATA, whose linear indices are
 * FIRST, FIRST + 1, ...
 */
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
