/*
 * NetCDF-4 files that need no library.
 *
 * netCDF-C and HDF5 take 0.3 ms to open a small file, most of it for what nobody asks.  Most
 * files of archives are of one kind: one group, dimensions with scales, numbers and characters
 * in chunks or in one piece, and object headers with checksums.  Of those all is known here, by
 * the rules of netCDF-C (libhdf5/hdf5open.c of 4.9.0, which later versions keep): which
 * variables and dimensions there are, in which order, and of which length.  A file with
 * anything else in it, and a file that is damaged, is left to the libraries.
 */
#ifndef CM_FORMAT_NC_PLAIN_H
#define CM_FORMAT_NC_PLAIN_H

#include "format/nc/file.h"

/* Reads a small file at once: whoever reads FILE's bytes then finds them in memory. */
int cm_nc_plain_load(cm_nc_file *file, cm_error *err);
/*
 * Fills in FILE, an HDF5 file whose superblock was read, and prepares all variables.
 * CM_EUNSUPPORTED, without a reason, where that is for libraries; FILE is then to be emptied.
 */
int cm_nc_plain_read(cm_nc_file *file, cm_error *err);

#endif
