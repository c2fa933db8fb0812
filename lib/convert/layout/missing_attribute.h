/* The attribute _FillValue of Zarr 3, in xarray's words. */
#ifndef CM_CONVERT_LAYOUT_MISSING_ATTRIBUTE_H
#define CM_CONVERT_LAYOUT_MISSING_ATTRIBUTE_H

#include "base/json.h"
#include "model/dtype.h"

/* Into ATTRS: ELEMENT, a number of TYPE, a truth value or complex. */
int cm_job_set_missing(cm_json *attrs, const cm_dtype *type, const uint8_t *element, cm_error *err);

/* ELEMENT of TYPE, an integer, as a number; NULL: no memory. */
cm_json *cm_job_integer_json(const cm_dtype *type, const uint8_t *element);

#endif
