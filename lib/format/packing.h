/*
 * CF packing of a variable: what its attributes scale_factor, add_offset and
 * _Unsigned make of its stored numbers (CF conventions, section 8.1).
 */
#ifndef CM_FORMAT_PACKING_H
#define CM_FORMAT_PACKING_H

#include "format/dataset.h"

typedef struct cm_packing {
    bool packed;   /* scale_factor or add_offset is there */
    cm_dtype type; /* of the stored numbers: _Unsigned makes signed ones unsigned */
    double scale;  /* value = stored * scale + offset */
    double offset;
    cm_dtype shown; /* that xarray decodes the file's numbers to */
} cm_packing;

/* Without such attributes scale is 1 and offset 0. */
cm_packing cm_packing_of(const cm_variable *v);

/* Whether _Unsigned, of ATTRS, has integers of type T read with the other sign, as xarray does. */
bool cm_packing_other_sign(const cm_json *attrs, const cm_dtype *t);

#endif
