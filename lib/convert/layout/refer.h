/*
 * References instead of a copy: where the chunks of the target lie in the files that are there
 * (fsspec.github.io/kerchunk/spec.html, version 1).
 *
 *     open -> select -> view -> refer (in place of layout) -> describe -> document
 *
 * A variable is *referred to* where its stored bytes are chunks that Zarr's readers decode.
 * Small ones, coordinates and what is made of names or units stand in the document itself: they
 * are converted into a store in memory, without compression, as any conversion would.
 */
#ifndef CM_CONVERT_LAYOUT_REFER_H
#define CM_CONVERT_LAYOUT_REFER_H

#include "convert/job.h"
#include "format/located.h"
#include "format/multi/multi.h"

/* Decoded bytes of variables up to which they are converted. */
#define CM_REFER_INLINE_NBYTES (UINT64_C(16) << 10)
/* The decoded bytes of V's elements. */
uint64_t cm_refer_nbytes(const cm_job_var *v);

/* The share of one file in a variable; one for a file that is not joined. */
typedef struct cm_refer_part {
    const char *path;
    const cm_located *located;
    uint64_t origin[CM_MAX_RANK]; /* in the variable, */
    uint64_t first[CM_MAX_RANK];  /* in the file, */
    uint64_t count[CM_MAX_RANK];  /* so many elements, */
    uint64_t length[CM_MAX_RANK]; /* of so many in the file */
} cm_refer_part;

typedef struct cm_refer {
    cm_refer_part *part;
    size_t nparts;
    cm_located own;      /* of a file that is not joined */
    const cm_form *form; /* of all parts; NULL: nothing is stored anywhere */
    uint64_t nmissing;   /* chunks without bytes: the fill value */
} cm_refer;

/* Chooses, for every variable of JOB, references or a place in the document, and the chunks. */
int cm_job_refer_layout(cm_job *job, cm_error *err);
/* The codecs of the chunks of V, which is referred to. */
int cm_job_refer_codecs(const cm_job_var *v, cm_codec_spec **out, size_t *n, cm_error *err);
void cm_refer_free(cm_refer *r); /* NULL accepted */

/* ---- for an array that is there, whose new chunks are referred to ---- */

/* With room for N parts. */
int cm_refer_create(size_t n, cm_refer **out, cm_error *err);
/* Adds FROM, a part of variable M of SPEC that is taken as it is, located at L. */
void cm_refer_add(cm_refer *r, const cm_multi_spec *spec, const cm_multi_var *m,
                  const cm_multi_part *from, const cm_located *l);
/* The reason why readers could not decode the stored bytes of R, of V, by one chain; or NULL. */
const char *cm_refer_form_obstacle(const cm_job_var *v, cm_refer *r);
/* The same where parts do not begin, or all but the last not end, where a chunk of V does. */
const char *cm_refer_cut_obstacle(const cm_refer *r, const cm_job_var *v);

/* ---- refer_match.c ---- */

/*
 * CM_EUNSUPPORTED with what differs where the parts of V, all of the array as it will be, are not
 * chunks of it by ARRAY, its document.  V's layout becomes that of ARRAY.
 */
int cm_refer_match(cm_job_var *v, const cm_zarr_meta *array, cm_error *err);

#endif
