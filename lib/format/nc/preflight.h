/*
 * Opens a file in a child process first: netCDF-C and HDF5 crash, loop or ask for all memory on
 * some damaged files.
 */
#ifndef CM_FORMAT_NC_PREFLIGHT_H
#define CM_FORMAT_NC_PREFLIGHT_H

#include "format/dataset.h"
#include "format/nc/nc.h"

/*
 * In a child: opens PATH, and makes the library calls that its variables need; READS: reads an
 * element, too, if libraries will read them.
 */
int cm_nc_open_and_ask(const char *path, bool reads, cm_nc_file **out, cm_error *err);

/*
 * Tries opening PATH, and the library calls for its variables, in a child that ends.  Errors are
 * those of cm_nc_open; CM_EFORMAT if the child crashed or did not finish; CM_ECANCELED.  CM_OK if
 * no process can be started: then the file is opened untried.
 */
int cm_nc_preflight(const char *path, const cm_dataset_options *options, cm_error *err);

#endif
