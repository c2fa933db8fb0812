/*
 * A file behind a network as one on this machine: NetCDF and HDF5 are read at many places, by
 * libraries that know no other files.
 */
#ifndef CM_JOB_FETCH_H
#define CM_JOB_FETCH_H

#include <chunkmill/net.h>

/*
 * Fetches URL whole into a file of FOLDER, by ranges of which several are under way.  *path, on
 * the heap, is the caller's to remove: libhdf5 opens nothing that has no name.  The file has the
 * time of the object.  CM_ENOTFOUND; CM_ENOSPC before anything is fetched.
 */
int cm_fetch_file(const char *url, cm_net *net, const char *folder, char **path, cm_error *err);

#endif
