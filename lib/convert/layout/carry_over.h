/*
 * An array that is not understood can only stay as it is: its objects and its document are copied,
 * and what would change either is refused.
 */
#ifndef CM_CONVERT_LAYOUT_CARRY_OVER_H
#define CM_CONVERT_LAYOUT_CARRY_OVER_H

#include "convert/job.h"

/*
 * The chunks of V, which is copied as objects.  Chunks and shards that are asked of all arrays are
 * not asked of it; a codec is, since readers that lack this one are why.
 */
int cm_job_carry_over(cm_job *job, const cm_job_var *v, cm_layout *out, cm_varopts *chunks,
                      cm_varopts *shards, cm_varopts *codec, cm_error *err);

#endif
