/*
 * Copies an array that is not understood: its objects and its document stay as they are, and
 * options that would change them are refused.
 */
#ifndef CM_CONVERT_LAYOUT_CARRY_OVER_H
#define CM_CONVERT_LAYOUT_CARRY_OVER_H

#include "convert/job.h"
#include "options/layout_option.h"

/*
 * Whether a shape without a name is of V: it has two dimensions or more, as coordinates have not,
 * or is the only array.
 */
bool cm_job_takes_shapes(const cm_job *job, const cm_job_var *v);

/*
 * The chunks of V, which is copied as objects.  Options for the chunks and shards of all arrays,
 * and SAMPLE (NULL: none), do not apply to it if another array takes them.  A codec does, and is
 * refused, since it is often asked for because readers lack V's.
 */
int cm_job_carry_over(cm_job *job, const cm_job_var *v, cm_layout *out, cm_varopts *chunks,
                      cm_varopts *shards, cm_varopts *codec, const cm_shape_option *sample,
                      cm_error *err);

#endif
