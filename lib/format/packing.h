/*
 * CF packing of a variable: how its attributes scale_factor, add_offset and _Unsigned decode stored
 * numbers (CF conventions, section 8.1).
 */
#ifndef CM_FORMAT_PACKING_H
#define CM_FORMAT_PACKING_H

#include "format/dataset.h"

/* All that tells the type to which xarray decodes numbers; borrowed. */
typedef struct cm_packing_words {
    cm_dtype type; /* stored */
    const cm_json *attrs;
    const uint8_t *fill;                  /* _FillValue, or NULL */
    unsigned scale_nbytes, offset_nbytes; /* as of cm_variable */
} cm_packing_words;

/*
 * The type to which xarray decodes them, and computes in (2026.9, _choose_float_dtype): float32
 * where both attributes are, or the scale alone; float64 for 32-bit integers with both, where the
 * types differ, and wherever there is an offset alone.  Floats of which nothing is missing but NaN,
 * by a _FillValue or missing_value, keep theirs.  An integer scale alone counts as float64: in
 * xarray's integers fractions are cut, and large numbers wrap around.
 */
cm_dtype cm_packing_shown(const cm_packing_words *w);

typedef struct cm_packing {
    bool packed;   /* scale_factor or add_offset is there */
    cm_dtype type; /* of the stored numbers, after _Unsigned */
    double scale;  /* value = stored * scale + offset */
    double offset;
    cm_dtype shown;  /* type to which xarray decodes the file's numbers */
    bool keeps_type; /* which is the stored one: nothing but NaN is missing */
} cm_packing;

/* Without such attributes scale is 1 and offset 0. */
cm_packing cm_packing_of(const cm_variable *v);

/*
 * The N values of V, a prepared variable of numbers with one dimension, unpacked: OUT has room for
 * them.
 */
int cm_packing_read(const cm_variable *v, uint64_t n, double *out, cm_error *err);

/*
 * Whether the attribute _Unsigned in ATTRS makes readers take integers of type T with the other
 * sign, as xarray does.
 */
bool cm_packing_other_sign(const cm_json *attrs, const cm_dtype *t);
/* The type T as it is read by that. */
cm_dtype cm_packing_type_read(const cm_json *attrs, const cm_dtype *t);

#endif
