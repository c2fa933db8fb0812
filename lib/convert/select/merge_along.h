/*
 * `merge_along`: drops a dimension along which the source has several values of one element, such
 * as final and provisional data.  Takes the first that is not missing.
 */
#ifndef CM_CONVERT_SELECT_MERGE_ALONG_H
#define CM_CONVERT_SELECT_MERGE_ALONG_H

#include "convert/job.h"

/* Lays datasets without the dimensions that the options name over the job's source. */
int cm_job_merge_along(cm_job *job, cm_error *err);
/* Takes them away again, and frees what they are made of. */
void cm_job_unmerge(cm_job *job);

#endif
