/*
 * Opens a file in a child process first: netCDF-C and HDF5 crash, loop or ask for all memory on
 * some damaged files.
 */
#ifndef CM_FORMAT_NC_PREFLIGHT_H
#define CM_FORMAT_NC_PREFLIGHT_H

#include "base/trial.h"
#include "format/dataset.h"
#include "format/nc/nc.h"

/* Call it before forking a child that opens files. */
int cm_nc_trial_begin(cm_error *err);

/*
 * Limits of child processes that open NetCDF files; CANCELED may be NULL.  MEMORY is the user's
 * limit for everything (0: none), half of which metadata may take.
 */
void cm_nc_trial_limits(const char *path, uint64_t memory, bool (*canceled)(void *context),
                        void *context, cm_trial_limits *out);
/*
 * The error of a trial that did not return from DOING ("opening it") with PATH; CM_OK if it
 * returned, or there was none.
 */
int cm_nc_trial_failed(const char *path, const char *doing, const cm_trial_limits *limits,
                       const cm_trial_fate *fate, cm_error *err);
/* The result of a trial of opening PATH that returned RC: CM_EBUDGET if memory was short. */
int cm_nc_trial_judge(int rc, const char *path, const cm_trial_limits *limits,
                      const cm_trial_fate *fate, cm_error *err);
/*
 * In a child: opens PATH, and makes the library calls that its variables need; READS: reads an
 * element, too, if libraries will read them.
 */
int cm_nc_open_and_ask(const char *path, bool reads, cm_nc_file **out, cm_error *err);

/*
 * cm_nc_open after a child has tried it; the child stays and reads for the libraries (reader.h).
 * Errors are those of cm_nc_preflight too.
 */
int cm_nc_open_tried(const char *path, const cm_dataset_options *options, cm_nc_file **out,
                     cm_error *err);

/*
 * Starts a child that reads for the libraries from now on, unless FILE, which is open, has one.
 * Call it before other threads read.
 */
int cm_nc_guard(cm_nc_file *file, const cm_dataset_options *options, cm_error *err);

/*
 * Tries opening PATH, and the library calls for its variables, in a child that ends.  Errors are
 * those of cm_nc_open; CM_EFORMAT if the child crashed or did not finish; CM_ECANCELED.  CM_OK if
 * no process can be started: then the file is opened untried.
 */
int cm_nc_preflight(const char *path, const cm_dataset_options *options, cm_error *err);

#endif
