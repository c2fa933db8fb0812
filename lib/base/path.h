#ifndef CM_BASE_PATH_H
#define CM_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include <chunkmill/error.h>

/* PATH after the last '/': the name of a file, or of a variable in its group. */
const char *cm_path_last(const char *path);

/* PATH without links and dots, to be freed; *OUT is NULL where nothing is there. */
int cm_path_real(const char *path, char **out, cm_error *err);
/* The file that PATH leads to; *THERE is false where nothing is. */
int cm_path_stat(const char *path, struct stat *out, bool *there, cm_error *err);

/* Length of NAME's ending (NAME has NBYTES) if it is one of NetCDF or HDF5; 0: it is not. */
size_t cm_path_netcdf_ending(const char *name, size_t nbytes);

#endif
