/*
 * Runs of numbers between their stored type and one that can be computed with,
 * converting as numpy's casts do: integers wrap, fractions are cut off.
 */
#ifndef CM_CODEC_NUMBER_BLOCK_H
#define CM_CODEC_NUMBER_BLOCK_H

#include "model/dtype.h"
#include "model/half.h"

/*
 * Elements that a loop takes at a time: two blocks of 8 bytes each stay in the first-level
 * cache.
 */
enum {
    CM_BLOCK_NELEM = 1024
};

/*
 * True for types that these functions take: numbers, bool, and datetimes, which count as
 * integers.
 */
bool cm_block_takes(const cm_dtype *t);
bool cm_block_is_float(const cm_dtype *t);

/*
 * Integers sign-extended; floats truncated; what does not fit 64 bits becomes 2^63, as x86 has
 * it.
 */
void cm_block_load_int(const cm_dtype *t, const void *src, size_t n, uint64_t *dst);
/* Keeps the low bits; floats are the nearest to the value, taken as unsigned where IS_UNSIGNED. */
void cm_block_store_int(const cm_dtype *t, const uint64_t *src, size_t n, bool is_unsigned,
                        void *dst);
void cm_block_load_double(const cm_dtype *t, const void *src, size_t n, double *dst);
void cm_block_store_double(const cm_dtype *t, const double *src, size_t n, void *dst);

/*
 * X as the nearest value of T, when that is a floating-point type; arithmetic on
 * integers is done in double.  For one sum, product or quotient of two narrower
 * floats, rounding to double first changes nothing.
 */
static inline double cm_block_narrow(const cm_dtype *t, double x)
{
    if (t->kind != CM_KIND_FLOAT || t->nbytes == 8)
        return x;
    return t->nbytes == 4 ? (double)(float)x : cm_half_to_double(cm_half_from_double(x));
}

/* N elements of SRC_TYPE at SRC become DST_TYPE at DST. */
void cm_block_cast(const cm_dtype *src_type, const void *src, const cm_dtype *dst_type, void *dst,
                   size_t n);

#endif
