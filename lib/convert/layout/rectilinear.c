#include "convert/layout/rectilinear.h"

#include <stdlib.h>
#include <string.h>

const char cm_job_rectilinear_readers[] =
    "zarr-python 3.2 and later with array.rectilinear_chunks set, zarrs 0.23.8, Chunkmill; not "
    "tensorstore, not GDAL, not netCDF-C";

/* The chunks along J of a joined array begin where the one before ends, and are stored whole. */
static bool are_whole(cm_array *a, unsigned j)
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
        if (a->grid.cuts[j] != NULL && !are_whole(a, j))
            return "chunks of its files reach past what is joined";
    return job->zarr_format == 3 ? NULL : "Zarr format 2 has no rectilinear grid";
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
