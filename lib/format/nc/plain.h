/*
 * Opens NetCDF-4 files without a library.
 *
 * netCDF-C and HDF5 take 0.3 ms to open a small file, mostly for information that is not needed.
 * Most files of archives are of one kind: one group, dimensions with scales, numbers and characters
 * in chunks or contiguous, and object headers with checksums.  This reader understands those
 * completely, by the rules of netCDF-C (libhdf5/hdf5open.c of 4.9.0, which later versions keep):
 * the variables and dimensions, their order and their lengths.  A file with anything else in it,
 * and a file that is damaged, is left to the libraries.
 */
#ifndef CM_FORMAT_NC_PLAIN_H
#define CM_FORMAT_NC_PLAIN_H

#include "format/nc/file.h"

/* Reads a small file at once, so that later reads of FILE's bytes find them in memory. */
int cm_nc_plain_load(cm_nc_file *file, cm_error *err);
/*
 * Fills in FILE, an HDF5 file whose superblock was read, and prepares all variables.
 * CM_EUNSUPPORTED, without a reason, if libraries are needed; the caller then empties FILE.
 */
int cm_nc_plain_read(cm_nc_file *file, cm_error *err);

#endif
