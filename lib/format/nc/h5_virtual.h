/* Sources of virtual datasets (HDF5 1.10, H5Pset_virtual). */
#ifndef CM_FORMAT_NC_H5_VIRTUAL_H
#define CM_FORMAT_NC_H5_VIRTUAL_H

#include <chunkmill/error.h>

#include "format/nc/h5.h"

/*
 * The first source file of a virtual dataset of FILE that is not beside it, in *OUT, which the
 * caller frees; NULL: all are there.  HDF5 reads the fill value in its place, without an error.
 * Names with a pattern ("%b") stand for any number of files and are passed over.
 */
int cm_h5_virtual_absent(hid_t file, hid_t dcpl, char **out, cm_error *err);

#endif
