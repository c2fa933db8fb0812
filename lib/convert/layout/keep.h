/*
 * --codec keep: stored bytes that go to the output unchanged.
 */
#ifndef CM_CONVERT_LAYOUT_KEEP_H
#define CM_CONVERT_LAYOUT_KEEP_H

#include "convert/job.h"

/*
 * Decides for V, whose codec is keep or keep:gzip and whose chunks are the
 * source's: sets the layout's pass, or leaves that alone, sets its codec to the default
 * and notes why V is recoded.
 */
int cm_job_keep(cm_job *job, const cm_job_var *v, cm_layout *out, cm_error *err);

/*
 * Why Zarr's readers cannot undo the N codecs SPEC of a chunk of NBYTES; NULL: they can.
 */
const char *cm_job_codecs_obstacle(const cm_codec_spec *spec, size_t n, size_t nbytes);

/*
 * The codecs of V's chunks as the output's metadata has them; to be freed with
 * cm_codec_specs_free.
 */
int cm_job_kept_codecs(const cm_job_var *v, cm_codec_spec **out, size_t *n, cm_error *err);

/* The readers that open an array with these codecs; NULL: all. */
const char *cm_job_kept_readers(const cm_job_var *v, int zarr_format);

#endif
