/* Values of attributes as xarray writes them to Zarr. */
#ifndef CM_FORMAT_ATTR_VALUE_H
#define CM_FORMAT_ATTR_VALUE_H

#include "base/json.h"
#include "model/dtype.h"

/* A number, or xarray's base64 of a float64, the exact form of version 3. */
bool cm_attr_number(const cm_json *j, double *out);
/* cm_attr_number as one element of the numeric type TYPE; false where no element has that value. */
bool cm_attr_element(const cm_json *j, const cm_dtype *type, uint8_t *out);

#endif
