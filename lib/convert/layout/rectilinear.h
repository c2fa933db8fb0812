/* --grid rectilinear: chunks of the source that differ in length along a dimension are kept. */
#ifndef CM_CONVERT_LAYOUT_RECTILINEAR_H
#define CM_CONVERT_LAYOUT_RECTILINEAR_H

#include "convert/job.h"

/* Why a rectilinear grid cannot have V's chunks, which differ in length; NULL: it can. */
const char *cm_job_rectilinear_obstacle(const cm_job *job, const cm_job_var *v);

/* META's grid becomes that of V's chunks; not for shards. */
int cm_job_set_cuts(const cm_job_var *v, cm_zarr_meta *meta, cm_error *err);

/* The readers that open such an array. */
extern const char cm_job_rectilinear_readers[];

#endif
