/* What the two ways of describing an array share. */
#ifndef CM_JOB_DESCRIBE_H
#define CM_JOB_DESCRIBE_H

#include "job/transform/job.h"

/* The chain of V's chunks, and its shards, into v->meta, whose old codecs it frees. */
int cm_job_set_codecs(cm_job_var *v, cm_error *err);

#endif
