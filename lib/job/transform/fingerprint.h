/*
 * What makes a run the same run: the first line of its journal.
 */
#ifndef CM_JOB_FINGERPRINT_H
#define CM_JOB_FINGERPRINT_H

#include "job/transform/job.h"

/* The source and every option that changes what is stored. */
int cm_fingerprint(const cm_job *job, cm_json **out, cm_error *err);

#endif
