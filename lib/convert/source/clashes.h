#ifndef CM_CONVERT_SOURCE_CLASHES_H
#define CM_CONVERT_SOURCE_CLASHES_H

#include "convert/job.h"
#include "format/multi/multi.h"

/*
 * Of a joined dataset: CM_EFORMAT with both files, variable and first element where two of them
 * must be the same and are not.  Once: a job that was compared is CM_OK.
 */
int cm_job_compare_inputs(cm_job *job, cm_error *err);
/* CM_EFORMAT with the name of a file that is not as it was surveyed. */
int cm_job_inputs_unchanged(cm_job *job, cm_error *err);

#endif
