/* The census of a Zarr source, taken while its chunks are looked for. */
#ifndef CM_CONVERT_SOURCE_HOLES_H
#define CM_CONVERT_SOURCE_HOLES_H

#include "convert/job.h"

/* Room in the report for the arrays of JOB; before cm_holes_find. */
int cm_holes_begin(cm_job *job, cm_error *err);
/* Finds the chunks of V (cm_presence_find) and counts its holes. */
int cm_holes_find(cm_job *job, cm_job_var *v, cm_error *err);
/* Counts those of arrays that are read as part of another one, and warns of all. */
int cm_holes_end(cm_job *job, cm_error *err);

#endif
