/*
 * The fingerprint of a run, the first line of its journal: equal ones mean the same run.
 */
#ifndef CM_CONVERT_SINK_STORE_FINGERPRINT_H
#define CM_CONVERT_SINK_STORE_FINGERPRINT_H

#include "convert/job.h"

/* A member: an object that has, of each array that is read by samples, its chunk's lengths. */
#define CM_FINGERPRINT_CHUNKS "chunks for the sample"

/* The source and every option that changes what is stored. */
int cm_fingerprint(const cm_job *job, cm_json **out, cm_error *err);

#endif
