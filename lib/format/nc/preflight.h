/*
 * Opening a file in a child process first: netCDF-C and HDF5 crash, loop or ask for all
 * memory on some damaged files.
 */
#ifndef CM_FORMAT_NC_PREFLIGHT_H
#define CM_FORMAT_NC_PREFLIGHT_H

#include "base/trial.h"

/* Child processes that open NetCDF files are held to this; CANCELED may be NULL. */
void cm_nc_trial_limits(const char *path, bool (*canceled)(void *context), void *context,
                        cm_trial_limits *out);
/*
 * The sentence for a trial that opened PATH and did not return; CM_OK where it did, or there
 * was none.
 */
int cm_nc_trial_failed(const char *path, const cm_trial_limits *limits, const cm_trial_fate *fate,
                       cm_error *err);

/*
 * Opens PATH, and what libraries will be asked of its variables, in a child.  Errors are
 * those of cm_nc_open; CM_EFORMAT where the child crashed or did not come to an end,
 * CM_ECANCELED.  Where no process can be made, CM_OK: then the file is opened untried.
 */
int cm_nc_preflight(const char *path, bool (*canceled)(void *context), void *context,
                    cm_error *err);

#endif
