/*
 * HDF5 strings of one length, which netCDF-C shows as NC_STRING.
 *
 * They are read through HDF5: netCDF-C up to 4.9.0 makes room for the first of
 * the strings asked for and then reads all of them into it.  Later versions give
 * what is given here: each string up to its first NUL, or all of its bytes.
 */
#ifndef CM_FORMAT_NC_FIXED_TEXT_H
#define CM_FORMAT_NC_FIXED_TEXT_H

#include "format/nc/file.h"

/* The strings of INSIDE, a part of BOX that lies in the dataset, to their places in OUT, which
   holds as many empty ones as BOX has elements.  The caller holds the lock. */
int cm_fixed_text_read(const cm_nc_node *node, const cm_box *box, const cm_box *inside,
                       cm_strings *out, cm_error *err);

#endif
