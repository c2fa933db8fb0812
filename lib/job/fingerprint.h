/*
 * What makes a run the same run: the first line of its journal.
 */
#ifndef CM_JOB_FINGERPRINT_H
#define CM_JOB_FINGERPRINT_H

#include "job/job.h"

/* Adds the texts of one option, in their order. */
int cm_fingerprint_texts(cm_json *j, const char *option, const cm_texts *texts, cm_error *err);
/* Adds the full name of PATH as NAME. */
int cm_fingerprint_path(cm_json *j, const char *name, const char *path, cm_error *err);

/* Of a conversion of the file PATH: the input and every option that changes what is stored. */
int cm_fingerprint_conversion(const cm_job *job, const char *path, cm_json **out, cm_error *err);

#endif
