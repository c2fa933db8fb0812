#include "convert/layout/rectilinear.h"

#include <stdlib.h>
#include <string.h>

#include "options/layout_option.h"

const char cm_job_rectilinear_readers[] =
    "zarr-python 3.2 and later with array.rectilinear_chunks set, zarrs 0.23.8, Chunkmill; not "
    "tensorstore, not GDAL, not netCDF-C";

bool cm_job_is_cut(const cm_job_var *v)
{
    const cm_array *a = v->source->array;
    return v->source->is_cut || (a != NULL && a->chunked && cm_array_is_cut(a));
}

bool cm_job_chunks_are_whole(cm_array *a, unsigned j)
{
    uint64_t coord[CM_MAX_RANK] = {0}, origin[CM_MAX_RANK], shape[CM_MAX_RANK];
    const cm_cuts *cuts = a->grid.cuts[j];
    for (uint64_t k = 0; k < cuts->n; k++) {
        coord[j] = k;
        cm_array_chunk_place(a, coord, origin, shape);
        if (origin[j] != cm_cuts_first(cuts, k) || shape[j] != cm_cuts_length(cuts, k))
            return false;
    }
    return true;
}

const char *cm_job_rectilinear_obstacle(const cm_job *job, const cm_job_var *v)
{
    cm_array *a = v->source->array;
    if (v->view.as_strings)
        return "text is stored anew";
    if (a == NULL || !a->chunked || a->chain == NULL)
        return "its chunks cannot be read one by one";
    for (unsigned j = 0; j < v->view.rank; j++)
        if (v->view.start[j] != 0 || v->view.step[j] != 1 || v->view.shape[j] != a->shape[j])
            return "only a part of it is converted";
    for (unsigned j = 0; a->ops->place != NULL && j < a->rank; j++)
        if (a->grid.cuts[j] != NULL && !cm_job_chunks_are_whole(a, j))
            return "chunks of its files reach past what is joined";
    return job->zarr_format == 3 ? NULL : "Zarr format 2 has no rectilinear grid";
}

int cm_job_choose_rectilinear(cm_job *job, const cm_job_var *v, const char *chunks, bool names,
                              cm_layout *out, cm_error *err)
{
    const cm_layout_kind kind = cm_layout_kind_of(chunks);
    const bool others = kind == CM_LAYOUT_SHAPE || kind == CM_LAYOUT_AUTO;
    if (others && names)
        return CM_OK;
    if (others)
        return cm_fail(
            err, CM_EINVAL,
            "`chunks` %s: `grid` rectilinear keeps the chunks of %s %s; leave out one of "
            "the two, or name the array with `chunks`",
            chunks, cm_job_noun(job), cm_job_name(v));
    const char *why = cm_job_rectilinear_obstacle(job, v);
    if (why != NULL)
        return cm_job_note(job, err, "%s %s gets a regular grid: %s", cm_job_noun(job),
                           cm_job_name(v), why);
    out->rectilinear = true;
    memcpy(out->chunk, v->source->array->grid.chunk, sizeof(out->chunk));
    return CM_OK;
}

int cm_job_check_unsharded(const cm_job *job, const cm_job_var *v, const char *shards,
                           cm_error *err)
{
    const cm_layout_kind kind = cm_layout_kind_of(shards);
    if (kind != CM_LAYOUT_SHAPE && kind != CM_LAYOUT_AUTO)
        return CM_OK;
    return cm_fail(err, CM_EINVAL,
                   "`shards` %s: chunks of %s %s stay of several lengths, and are not put into "
                   "shards",
                   shards, cm_job_noun(job), cm_job_name(v));
}

int cm_job_note_regular(cm_job *job, cm_error *err)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (cm_job_is_cut(&job->var[i]))
            return CM_OK;
    return cm_job_note(job, err, "every grid is regular: no chunks of the source differ in length");
}

int cm_job_set_cuts(const cm_job_var *v, cm_zarr_meta *meta, cm_error *err)
{
    const cm_grid *grid = &v->source->array->grid;
    int rc = CM_OK;
    cm_zarr_meta_drop_cuts(meta);
    memcpy(meta->chunk, grid->chunk, sizeof(meta->chunk));
    for (unsigned j = 0; rc == CM_OK && j < grid->rank; j++) {
        if (grid->cuts[j] == NULL)
            continue;
        meta->cuts[j] = cm_calloc(1, sizeof(*meta->cuts[j]), err);
        rc = meta->cuts[j] != NULL ? cm_cuts_copy(grid->cuts[j], meta->cuts[j], err) : CM_ENOMEM;
    }
    return rc;
}
