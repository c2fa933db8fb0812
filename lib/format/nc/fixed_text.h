/*
 * HDF5 strings of fixed length, which netCDF-C shows as NC_STRING.
 *
 * They are read through HDF5: netCDF-C up to 4.9.0 allocates the first of the requested strings and
 * then reads all of them into it.  Like later versions, this gives each string up to its first NUL,
 * or all of its bytes.
 */
#ifndef CM_FORMAT_NC_FIXED_TEXT_H
#define CM_FORMAT_NC_FIXED_TEXT_H

#include "format/nc/file.h"

/*
 * Reads the strings of INSIDE, a part of BOX that lies in the dataset, to their places in OUT,
 * which holds as many empty strings as BOX has elements.  The caller holds the lock.
 */
int cm_fixed_text_read(const cm_nc_node *node, const cm_box *box, const cm_box *inside,
                       cm_strings *out, cm_error *err);

#endif
