/* Limits of child processes that open NetCDF files, and what their ends mean. */
#ifndef CM_FORMAT_NC_TRIAL_H
#define CM_FORMAT_NC_TRIAL_H

#include "base/trial.h"

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

#endif
