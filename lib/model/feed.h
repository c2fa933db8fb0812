/*
 * Converts elements for training: numbers of any type to float64, float32, float16
 * or bfloat16, with CF packing undone and fill values as NaN.
 *
 * Each element takes these steps: it is compared with the fill values, in its
 * own type; it is unpacked as value * scale + offset in double (each of the two
 * operations rounded, as NumPy does it), and normalized as (value - mean) / std in
 * double, too; it is rounded ONCE, to the nearest, ties to even, to the type
 * wanted.  Without unpacking and normalizing the one rounding starts
 * from the exact value, for 64-bit integers too.  Overflow becomes
 * infinity, NaN stays NaN with its sign, a fill value becomes the quiet NaN
 * 0x7fc00000 (0x7e00 in float16, 0x7fc0 in bfloat16).
 */
#ifndef CM_MODEL_FEED_H
#define CM_MODEL_FEED_H

#include "model/dtype.h"

enum {
    CM_FEED_MAX_FILLS = 4
};

typedef enum cm_feed_to {
    CM_FEED_SAME, /* the type of the source, which must be floating point to unpack or hold NaN */
    CM_FEED_FLOAT32,
    CM_FEED_FLOAT16,
    CM_FEED_BFLOAT16, /* the upper half of a float32 */
    CM_FEED_FLOAT64
} cm_feed_to;

/* Mean and standard deviation that elements are normalized by. */
typedef struct cm_feed_normal {
    double mean;
    double std; /* above 0 */
} cm_feed_normal;

/* Zeroed memory with a source type is "unchanged". */
typedef struct cm_feed {
    /* bool, int, uint or float; with CM_FEED_SAME and nothing else to do any fixed size */
    cm_dtype src;
    cm_feed_to to;
    bool unpack;
    double scale;
    double offset;
    bool normalize;
    cm_feed_normal normal;
    /* Of each place along dimension LEVEL_DIM of the array, borrowed; NULL: NORMAL is of all. */
    const cm_feed_normal *level;
    unsigned level_dim;
    unsigned nfills; /* _FillValue, missing_value, ... */
    /* In the source type, little-endian.  Floats are equal as numbers (-0 is 0). */
    uint8_t fill[CM_FEED_MAX_FILLS][8];
} cm_feed;

/* "float64", "float32", "float16" or "bfloat16". */
int cm_feed_parse(const char *text, cm_feed_to *out, cm_error *err);

/* Refuses what has no meaning; nothing below needs checking afterwards. */
int cm_feed_check(const cm_feed *f, cm_error *err);
/* True when elements pass unchanged. */
bool cm_feed_is_identity(const cm_feed *f);
/* Bytes of an element fed. */
uint32_t cm_feed_nbytes(const cm_feed *f);
/* "float32", "bfloat16", ... of the elements fed; BUF of 32 bytes suffices. */
char *cm_feed_type_name(const cm_feed *f, char *buf, size_t size);

/* F for place K along its dimension of levels; F itself where there are none, else *OWN. */
const cm_feed *cm_feed_at_level(const cm_feed *f, uint64_t k, cm_feed *own);

/*
 * NELEM elements of one level from SRC to DST.  Neither needs alignment.  DST may be SRC
 * when an element does not grow; otherwise they must not overlap.  Allocates
 * nothing, cannot fail, any thread.
 */
void cm_feed_run(const cm_feed *f, void *dst, const void *src, uint64_t nelem);

#endif
