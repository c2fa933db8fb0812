/*
 * One number of a NetCDF type, and its conversion to the type of a variable.
 */
#ifndef CM_FORMAT_NC_FILL_H
#define CM_FORMAT_NC_FILL_H

#include "model/dtype.h"

/*
 * The element at VALUE, of numeric type FROM, as type TO; false where TO cannot hold it.  float64
 * to float32 may lose digits; a float with a fraction, or NaN, is not converted to an integer.
 */
bool cm_fill_convert(const cm_dtype *from, const void *value, const cm_dtype *to, void *out);

/* Shortest text of the element; BUF of 48 bytes suffices. */
char *cm_fill_text(const cm_dtype *type, const void *value, char *buf, size_t size);

#endif
