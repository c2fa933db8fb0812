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

#endif
