/* Versions of this library and of those it runs on. */
#ifndef CHUNKMILL_VERSION_H
#define CHUNKMILL_VERSION_H

#include <stddef.h>

const char *cm_version(void);

/* "netCDF 4.9.0, HDF5 1.10.8, zstd 1.5.4, ..." into BUF, which is returned; 256 bytes suffice. */
char *cm_library_versions(char *buf, size_t size);

#endif
