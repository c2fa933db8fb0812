/* Missing values of an array whose metadata go into another version of Zarr. */
#ifndef CM_CONVERT_LAYOUT_TRANSLATE_H
#define CM_CONVERT_LAYOUT_TRANSLATE_H

#include "convert/job.h"

/*
 * In Zarr 2 readers mask the fill value, in Zarr 3 the attribute _FillValue: META, which is that of
 * S in JOB's version, says in its own way what S says.  Those are xarray's rules: of an array
 * without names of dimensions, which it does not open, the fill value stays.  Warns of an attribute
 * that version 3 has no words for.
 */
int cm_job_translate_missing(cm_job *job, const cm_variable *s, cm_zarr_meta *meta, cm_error *err);

#endif
