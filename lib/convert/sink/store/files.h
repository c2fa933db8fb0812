/* The files that the options name beside the target. */
#ifndef CM_CONVERT_SINK_STORE_FILES_H
#define CM_CONVERT_SINK_STORE_FILES_H

#include "convert/job.h"

/*
 * Claims them: none is the source SOURCE, lies in the target TARGET (NULL: there is
 * none), or is somebody's document.  Touches nothing.
 */
int cm_job_claim_files(cm_job *job, const char *source, const char *target, cm_outfile *certificate,
                       cm_error *err);
/* Writes them when the run, whose status is RC, is done.  Returns RC, or what failed. */
int cm_job_finish_files(cm_job *job, int rc, cm_outfile *certificate, cm_error *err);

#endif
