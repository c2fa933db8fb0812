/*
 * Opening a file in a child process first: netCDF-C and HDF5 crash, loop or ask for all
 * memory on some damaged files.
 */
#ifndef CM_FORMAT_NC_PREFLIGHT_H
#define CM_FORMAT_NC_PREFLIGHT_H

#include "base/trial.h"
#include "format/dataset.h"
#include "format/nc/nc.h"

/* Before a child is forked that opens files. */
int cm_nc_trial_begin(cm_error *err);

/*
 * Child processes that open NetCDF files are held to this; CANCELED may be NULL.  MEMORY is what
 * the user allows for all (0: nothing is said), of which metadata may take the half.
 */
void cm_nc_trial_limits(const char *path, uint64_t memory, bool (*canceled)(void *context),
                        void *context, cm_trial_limits *out);
/*
 * The sentence for a trial that did not return from DOING ("opening it") with PATH; CM_OK where
 * it did, or there was none.
 */
int cm_nc_trial_failed(const char *path, const char *doing, const cm_trial_limits *limits,
                       const cm_trial_fate *fate, cm_error *err);
/* The result of a trial of opening PATH that returned RC: CM_EBUDGET where memory was short. */
int cm_nc_trial_judge(int rc, const char *path, const cm_trial_limits *limits,
                      const cm_trial_fate *fate, cm_error *err);
/*
 * In a child: opens PATH, and asks what libraries will be asked of its variables; READS: an
 * element too, where libraries will read them.
 */
int cm_nc_open_and_ask(const char *path, bool reads, cm_nc_file **out, cm_error *err);

/*
 * As cm_nc_open, after a child has tried it; the child stays and reads what libraries read
 * (reader.h).  Errors are those of cm_nc_preflight too.
 */
int cm_nc_open_tried(const char *path, const cm_dataset_options *options, cm_nc_file **out,
                     cm_error *err);

/*
 * From now on a child reads what libraries read of FILE, which is open; nothing where one does.
 * Before other threads read.
 */
int cm_nc_guard(cm_nc_file *file, const cm_dataset_options *options, cm_error *err);

/*
 * Opens PATH, and what libraries will be asked of its variables, in a child that ends.  Errors are
 * those of cm_nc_open; CM_EFORMAT where the child crashed or did not come to an end,
 * CM_ECANCELED.  Where no process can be made, CM_OK: then the file is opened untried.
 */
int cm_nc_preflight(const char *path, const cm_dataset_options *options, cm_error *err);

#endif
