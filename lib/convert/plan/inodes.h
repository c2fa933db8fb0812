/* Files and folders that a target takes: many of them fill a file system before its bytes do. */
#ifndef CM_CONVERT_PLAN_INODES_H
#define CM_CONVERT_PLAN_INODES_H

#include "convert/job.h"

/*
 * Counts what the writers of JOB will make, for the report; only a LOCAL target has folders.
 * FOLDER lies on its file system, which gets all of it anew: where that has too few inodes left, a
 * warning.  NULL: what is left cannot be told.
 */
int cm_job_count_inodes(cm_job *job, bool local, const char *folder, cm_error *err);

#endif
