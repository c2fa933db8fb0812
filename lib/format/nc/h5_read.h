/* Reads boxes through HDF5 itself, where netCDF-C reads them wrongly. */
#ifndef CM_FORMAT_NC_H5_READ_H
#define CM_FORMAT_NC_H5_READ_H

#include "format/nc/file.h"

/*
 * CM_EUNSUPPORTED, naming the filter, if HDF5 lacks one of NODE's DATASET: reading fails as a whole
 * then.  The caller holds the lock.
 */
int cm_h5_check_filters(const cm_nc_node *node, hid_t dataset, cm_error *err);

/*
 * Reads BOX of NODE's DATASET into DST as MEMORY_TYPE.  CM_EUNSUPPORTED, naming the filter, if HDF5
 * lacks one.  The caller holds the lock.
 */
int cm_h5_read(const cm_nc_node *node, hid_t dataset, hid_t memory_type, const cm_box *box,
               void *dst, cm_error *err);

#endif
