#ifndef CM_BASE_PATH_H
#define CM_BASE_PATH_H

#include <stddef.h>

/* The part of PATH behind the last '/': the name of a file, or of a variable in its group. */
const char *cm_path_last(const char *path);

/* The bytes of the ending by which NAME, of NBYTES, is a file of NetCDF or HDF5; 0: it has none. */
size_t cm_path_netcdf_ending(const char *name, size_t nbytes);

#endif
