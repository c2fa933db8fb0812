/* Shared by the two ways of describing an array. */
#ifndef CM_CONVERT_LAYOUT_DESCRIBE_H
#define CM_CONVERT_LAYOUT_DESCRIBE_H

#include "convert/job.h"

/* The chain of V's chunks, and its shards, into the document, whose old codecs it frees. */
int cm_job_set_codecs(const cm_job_var *v, cm_array_doc *doc, cm_error *err);

/* _FillValue into ATTRS: ELEMENT, a number of TYPE, as xarray reads it in Zarr 3. */
int cm_job_set_missing(cm_json *attrs, const cm_dtype *type, const uint8_t *element, cm_error *err);

#endif
