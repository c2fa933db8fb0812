/*
 * Numbers of any type in blocks that stay in the first-level cache, through one of two wide types:
 * double, or 64-bit integers where a double would lose digits.
 */
#ifndef CM_MODEL_WIDE_IMPL_H
#define CM_MODEL_WIDE_IMPL_H

#include "model/dtype.h"

enum {
    CM_WIDE_BLOCK = 512
};

typedef union cm_wide_block {
    double d[CM_WIDE_BLOCK];
    uint64_t u[CM_WIDE_BLOCK];
} cm_wide_block;

static inline bool cm_is_integer(const cm_dtype *t)
{
    return t->kind == CM_KIND_INT || t->kind == CM_KIND_UINT;
}

/* N elements from S. */
void cm_wide_load_float(unsigned nbytes, const uint8_t *s, size_t n, double *out);
void cm_wide_load_doubles(const cm_dtype *t, const uint8_t *s, size_t n, double *out);
/* Integers, extended to 64 bits by their own sign. */
void cm_wide_load_integers(const cm_dtype *t, const uint8_t *s, size_t n, uint64_t *out);

/* The first of N, at most a block, that is BAD and not to be skipped; or N. */
size_t cm_wide_first_bad(const uint8_t *bad, const uint8_t *skip, size_t n);
/*
 * Each check returns the index of the first element that T cannot hold and that
 * is not skipped, or N.  Nothing is stored before, so that work in place leaves
 * the element for the message.
 */
size_t cm_wide_check_integers(const cm_dtype *t, bool src_signed, const uint64_t *v,
                              const uint8_t *skip, size_t n);
/* Rounds to 64-bit integers as well; V and U may be one memory. */
size_t cm_wide_check_rounded(const cm_dtype *t, const double *v, const uint8_t *skip, size_t n,
                             uint64_t *u);
size_t cm_wide_check_float(unsigned nbytes, const double *v, const uint8_t *skip, size_t n);

/* The end of T's range instead of what lies beyond; infinities stay in a float, and so does NaN. */
void cm_wide_clamp_integers(const cm_dtype *t, bool src_signed, uint64_t *v, size_t n);
void cm_wide_clamp_floats(const cm_dtype *t, double *v, size_t n);
/* From doubles to integers; how many before the first NaN that is not to be skipped. */
size_t cm_wide_saturate_to_integers(const cm_dtype *t, cm_wide_block *w, const uint8_t *skip,
                                    size_t n);

void cm_wide_store_integers(unsigned nbytes, const uint64_t *v, size_t n, uint8_t *d);
void cm_wide_store_float(unsigned nbytes, const double *v, size_t n, uint8_t *d);
/* 64-bit integers to float32 at one stroke: by way of double they would be rounded twice. */
void cm_wide_store_float32(bool src_signed, const uint64_t *v, size_t n, uint8_t *d);

#endif
