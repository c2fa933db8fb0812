/* Values that readers take for missing, of a variable as it is stored. */
#ifndef CM_FORMAT_MISSING_H
#define CM_FORMAT_MISSING_H

#include "base/json.h"
#include "model/tally.h"

/*
 * How elements of TYPE with the attributes ATTRS are counted: xarray masks _FillValue,
 * missing_value, and FILL (or NULL), the fill value of the format where that is one.
 */
void cm_missing_rule(const cm_dtype *type, const cm_json *attrs, const uint8_t *fill,
                     cm_tally_rule *rule);

#endif
