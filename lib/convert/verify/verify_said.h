/* Verification of the elements that a join computes itself. */
#ifndef CM_CONVERT_VERIFY_VERIFY_SAID_H
#define CM_CONVERT_VERIFY_VERIFY_SAID_H

#include "convert/job.h"
#include "format/zarr/open.h"

/*
 * Compares variable V of the store, opened as ARRAY, with what the files say of it; each
 * difference is told.  Nothing where V is not computed.
 */
int cm_job_verify_said(cm_job *job, cm_job_var *v, const cm_zarr_tree *tree, cm_array *array,
                       bool full, cm_error *err);

#endif
