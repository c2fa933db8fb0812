/* Reads boxes through HDF5 itself, where netCDF-C reads them wrongly. */
#ifndef CM_FORMAT_NC_H5_READ_H
#define CM_FORMAT_NC_H5_READ_H

#include "format/nc/file.h"

/*
 * Reads BOX of NODE's DATASET into DST as MEMORY_TYPE.  CM_EUNSUPPORTED, naming the filter, if HDF5
 * lacks one.  The caller holds the lock.
 */
int cm_h5_read(const cm_nc_node *node, hid_t dataset, hid_t memory_type, const cm_box *box,
               void *dst, cm_error *err);

#endif
