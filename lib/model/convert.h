/*
 * Changing element values, only ever at the user's request: casts, CF packing,
 * and rounding of mantissas.  All work on contiguous little-endian elements,
 * allocate nothing and may run in any thread.
 */
#ifndef CM_MODEL_CONVERT_H
#define CM_MODEL_CONVERT_H

#include "model/dtype.h"

enum {
    CM_NODATA_MAX = 8
};

/* A value that readers take for missing, as the source and as the result has it. */
typedef struct cm_nodata {
    uint8_t src[16], dst[16];
} cm_nodata;

/*
 * Steps for each element, in this order: unpack, cast, round.  Zeroed
 * memory is "nothing".  Values equal to the SRC of a NODATA skip them all and become its DST.
 */
typedef struct cm_conversion {
    cm_dtype src;
    cm_dtype dst;
    bool unpack; /* value * scale + offset, computed in double */
    bool single; /* each step of that is rounded to float32 */
    double scale;
    double offset;
    /* 0: keep all; else mantissa bits of float16, float32 or float64 kept, round to even */
    unsigned keepbits;
    bool saturate; /* a number beyond DST's range becomes the end of it; otherwise it is refused */
    /* A number that DST does not hold to the last digit is refused too; not in place. */
    bool exact;
    cm_nodata nodata[CM_NODATA_MAX];
    unsigned nnodata;
    bool apart; /* another number that becomes the DST of one is refused; not in place */
} cm_conversion;

/*
 * Refuses what cannot work (types that are no numbers, keepbits on integers or above the
 * mantissa's width).
 */
int cm_conversion_check(const cm_conversion *c, cm_error *err);
/* True when elements pass unchanged. */
bool cm_conversion_is_identity(const cm_conversion *c);

/*
 * NELEM elements from SRC to DST (which may be SRC when both types are as
 * large).  A value that DST cannot hold (NaN or out of range to an integer) is
 * CM_EINVAL and *bad is the index of the first; a fraction lost in a cast to
 * integer is rounded to the nearest, ties to even, and a finite number too large
 * for a smaller float, or to be rounded, is refused likewise.  With `saturate`
 * only NaN to an integer is.  `apart` refuses further numbers.
 */
int cm_conversion_run(const cm_conversion *c, void *dst, const void *src, uint64_t nelem,
                      uint64_t *bad, cm_error *err);

/* One number of any numeric type as double, and back; false where it cannot be held exactly. */
double cm_element_to_double(const cm_dtype *t, const void *element);
/*
 * For messages: the number, the text in quotes where it can be shown, or the bytes in hexadecimal;
 * cut where BUF is full.
 */
void cm_element_text(const cm_dtype *t, const uint8_t *element, char *buf, size_t size);
bool cm_element_from_double(const cm_dtype *t, double value, void *element);
/* The other element that readers take for ELEMENT: a zero's of the other sign; else itself. */
void cm_element_twin(const cm_dtype *t, const void *element, void *out);

/*
 * Rounds the mantissa to KEEPBITS, ties to even; NaN and infinities stay.  (Kouznetsov 2021,
 * and the bitround codec.)
 */
void cm_bitround(const cm_dtype *t, unsigned keepbits, void *data, uint64_t nelem);
/* The first finite number, but for those to SKIP, that this would make infinite; NELEM: none. */
uint64_t cm_bitround_beyond(const cm_dtype *t, unsigned keepbits, const void *data,
                            const uint8_t *skip, uint64_t nelem);

#endif
