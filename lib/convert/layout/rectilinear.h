/* --grid rectilinear: chunks of the source that differ in length along a dimension are kept. */
#ifndef CM_CONVERT_LAYOUT_RECTILINEAR_H
#define CM_CONVERT_LAYOUT_RECTILINEAR_H

#include "convert/job.h"

/* Why a rectilinear grid cannot have V's chunks, which differ in length; NULL: it can. */
const char *cm_job_rectilinear_obstacle(const cm_job *job, const cm_job_var *v);

/*
 * True when chunks of A, which differ in length along J, begin where the one before ends, and are
 * stored whole.
 */
bool cm_job_chunks_are_whole(cm_array *a, unsigned j);

/*
 * Whether V, whose chunks differ in length, keeps them with CHUNKS, the value of `chunks` (NULL:
 * not given), which NAMES V or is for all; notes why it cannot.
 */
int cm_job_choose_rectilinear(cm_job *job, const cm_job_var *v, const char *chunks, bool names,
                              cm_layout *out, cm_error *err);

/* CM_EINVAL where SHARDS, the value of that option (NULL: none), asks for shards of V's. */
int cm_job_check_unsharded(const cm_job *job, const cm_job_var *v, const char *shards,
                           cm_error *err);

/* Notes where there is nothing to keep: no chunks of the source differ in length. */
int cm_job_note_regular(cm_job *job, cm_error *err);

/* META's grid becomes that of V's chunks; not for shards. */
int cm_job_set_cuts(const cm_job_var *v, cm_zarr_meta *meta, cm_error *err);

/* The readers that open such an array. */
extern const char cm_job_rectilinear_readers[];

#endif
