/* Whether chunks of files are chunks of an array that is there. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/layout/codec_text.h"
#include "convert/layout/refer.h"
#include "plan/meetings.h"

static int differ(const char *what, const char *here, const char *there, cm_error *err)
{
    return cm_fail(err, CM_EUNSUPPORTED, "%s %s, and %s in the repository", what, here, there);
}

/* The codecs by which V's chunks become elements are those of ARRAY. */
static int match_codecs(const cm_job_var *v, const cm_zarr_meta *array, cm_error *err)
{
    cm_zarr_meta own = {.dtype = array->dtype, .rank = array->rank, .zarr_format = 3};
    int rc = cm_job_refer_codecs(v, &own.codecs, &own.ncodecs, err);
    if (rc != CM_OK)
        return rc;
    cm_form here = {.kind = CM_LOCATED_CHUNKS, .codecs = own.codecs, .ncodecs = own.ncodecs};
    const cm_form there = {
        .kind = CM_LOCATED_CHUNKS, .codecs = array->codecs, .ncodecs = array->ncodecs};
    /* A byte has no order. */
    if (array->dtype.nbytes == 1 && own.ncodecs > 0 && array->ncodecs > 0 &&
        own.codecs[0].id == CM_CODEC_BYTES && array->codecs[0].id == CM_CODEC_BYTES)
        own.codecs[0].big_endian = array->codecs[0].big_endian;
    if (!cm_form_decodes_alike(&here, &there)) {
        char *text[2] = {cm_codec_text(&own, err), cm_codec_text(array, err)};
        rc = text[0] == NULL || text[1] == NULL ? CM_ENOMEM
                                                : differ("its codec is", text[0], text[1], err);
        free(text[0]);
        free(text[1]);
    }
    cm_codec_specs_free(own.codecs, own.ncodecs);
    return rc;
}

/* Whether part P has whole rows of V. */
static bool has_rows(const cm_job_var *v, const cm_refer_part *p)
{
    for (unsigned j = 1; j < v->view.rank; j++)
        if (p->count[j] != v->view.shape[j])
            return false;
    return true;
}

/* Chunks of ARRAY are whole rows of contiguous data, and as many as lie one behind the other. */
static int match_slabs(const cm_job_var *v, const cm_zarr_meta *array, cm_error *err)
{
    uint64_t row = array->dtype.nbytes;
    for (unsigned j = 1; j < array->rank; j++)
        row = cm_mul_sat(row, array->shape[j]);
    for (size_t i = 0; array->rank > 0 && i < v->layout.refer->nparts; i++) {
        const cm_refer_part *p = &v->layout.refer->part[i];
        if (p->located->form->kind != CM_LOCATED_SLAB)
            continue;
        if (!has_rows(v, p))
            return cm_fail(err, CM_EUNSUPPORTED,
                           "it is contiguous, and several files have elements of one row");
        if (p->located->row_stride != row && array->chunk[0] > 1)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "rows of other variables lie between its own, and a chunk in the "
                           "repository has %" PRIu64 " of them",
                           array->chunk[0]);
        if (p->count[0] % array->chunk[0] != 0)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "a file has %" PRIu64 " rows, which do not fill chunks of %" PRIu64,
                           p->count[0], array->chunk[0]);
    }
    for (unsigned j = 1; j < array->rank; j++)
        if (array->chunk[j] != array->shape[j])
            return cm_fail(err, CM_EUNSUPPORTED,
                           "its rows are contiguous, and chunks in the repository are not rows");
    return CM_OK;
}

static bool has_holes(const cm_located *l)
{
    bool any = l->form->kind == CM_LOCATED_UNWRITTEN;
    for (uint64_t k = 0; l->place != NULL && k < l->nplaces && !any; k++)
        any = l->place[k].nbytes == 0;
    return any;
}

/* Chunks that are not stored are the fill value of ARRAY, as those of the files are theirs. */
static int match_fill(const cm_job_var *v, const cm_zarr_meta *array, cm_error *err)
{
    const cm_refer *r = v->layout.refer;
    for (size_t i = 0; i < r->nparts; i++) {
        const cm_refer_part *p = &r->part[i];
        const cm_form *form = p->located->form;
        if (!form->has_fill || !has_holes(p->located) ||
            (array->fill != NULL && memcmp(form->fill, array->fill, array->dtype.nbytes) == 0))
            continue;
        return cm_fail(err, CM_EUNSUPPORTED,
                       "chunks are not stored in %s, and what they hold is not the fill value in "
                       "the repository",
                       p->path);
    }
    return CM_OK;
}

static int match_chunks(const cm_job_var *v, const cm_zarr_meta *array, cm_error *err)
{
    char here[CM_MAX_RANK * 21], there[CM_MAX_RANK * 21];
    const cm_form *form = v->layout.refer->form;
    if (form == NULL)
        return CM_OK;
    if (form->kind == CM_LOCATED_SLAB)
        return match_slabs(v, array, err);
    if (memcmp(form->chunk, array->chunk, array->rank * sizeof(array->chunk[0])) == 0)
        return CM_OK;
    return differ("its chunks are", cm_shape_text(array->rank, form->chunk, here, sizeof(here)),
                  cm_shape_text(array->rank, array->chunk, there, sizeof(there)), err);
}

int cm_refer_match(cm_job_var *v, const cm_zarr_meta *array, cm_error *err)
{
    cm_refer *r = v->layout.refer;
    memcpy(v->layout.chunk, array->chunk, sizeof(v->layout.chunk));
    const char *why = cm_refer_form_obstacle(v, r);
    int rc = why == NULL ? match_chunks(v, array, err) : cm_fail(err, CM_EUNSUPPORTED, "%s", why);
    if (rc == CM_OK && r->form != NULL)
        rc = match_codecs(v, array, err);
    if (rc == CM_OK && (why = cm_refer_cut_obstacle(r, v)) != NULL)
        rc = cm_fail(err, CM_EUNSUPPORTED, "%s", why);
    return rc == CM_OK ? match_fill(v, array, err) : rc;
}
