/*
 * The passport of what a job writes, counted while it is written: each target chunk before it is
 * encoded, beside the statistics that may be asked for, too.
 */
#ifndef CM_CONVERT_PASSPORT_JOB_PASSPORT_H
#define CM_CONVERT_PASSPORT_JOB_PASSPORT_H

#include "convert/job.h"

/* Describes each variable.  After the job's own description. */
int cm_job_passport_prepare(cm_job *job, cm_error *err);
/* V's transfer tells of each chunk, after whom it told before.  Once V's writer is made. */
int cm_job_passport_watch(cm_job_var *v, cm_error *err);
/* Bytes that counting takes. */
uint64_t cm_job_passport_nbytes(const cm_job *job);
/* Everything was told of: the passport goes into the report. */
int cm_job_passport_finish(cm_job *job, cm_error *err);
void cm_job_passport_free(cm_job *job);

#endif
