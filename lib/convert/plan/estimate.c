/*
 * Estimated size of a conversion's output: of each variable, the chunk in the middle is read and
 * encoded, and its ratio stands for all.
 */
#include <string.h>

#include "convert/job.h"

static int encode_middle(cm_job_var *v, cm_codec_ctx *ctx, double *ratio, cm_error *err)
{
    const cm_grid *grid = cm_zarr_writer_grid(v->move.writer);
    const cm_chain *chain = cm_zarr_writer_chain(v->move.writer);
    cm_array *a = v->source->array;
    uint64_t coord[CM_MAX_RANK], bad;
    cm_buf raw = {0}, converted = {0}, encoded = {0};
    cm_box box;
    size_t nbytes = 0;
    for (unsigned j = 0; j < grid->rank; j++)
        coord[j] = (grid->count[j] - 1) / 2;
    cm_grid_box(grid, coord, &box);
    /* Elements side by side stand for those asked for: gaps of a subset do not change a ratio. */
    for (unsigned j = 0; j < grid->rank; j++)
        box.start[j] = v->view.start[j] + box.start[j] * v->view.step[j];
    uint64_t nelem = cm_box_nelem(&box);
    int rc = cm_buf_resize(&raw, grid->chunk_nelem * a->dtype.nbytes, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&converted, grid->chunk_nelem * v->view.type.nbytes, err);
    if (rc == CM_OK)
        rc = cm_buf_reserve(&encoded, cm_chain_encoded_bound(chain), err);
    if (rc == CM_OK)
        rc = cm_array_read(a, ctx, &box, raw.data, err);
    if (rc == CM_OK && v->view.converts)
        rc = cm_conversion_run(&v->view.conversion, converted.data, raw.data, nelem, &bad, err);
    if (rc == CM_OK) {
        uint8_t *data = v->view.converts ? converted.data : raw.data;
        memset(data + nelem * v->view.type.nbytes, 0,
               (grid->chunk_nelem - nelem) * v->view.type.nbytes);
        rc = cm_chain_encode(chain, ctx, data, encoded.data, &nbytes, err);
        *ratio = (double)nbytes / (double)(nelem * v->view.type.nbytes);
    }
    cm_buf_release(&raw);
    cm_buf_release(&converted);
    cm_buf_release(&encoded);
    return rc;
}

int cm_job_estimate(cm_job *job, cm_error *err)
{
    cm_codec_ctx *ctx = cm_codec_ctx_create(err);
    int rc = ctx == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        cm_transform_variable *r = &job->report->variable[i];
        double ratio = 0;
        if (job->var[i].view.as_strings || job->var[i].move.absent || r->decoded_nbytes == 0)
            continue;
        rc = encode_middle(&job->var[i], ctx, &ratio, err);
        if (rc != CM_OK && err != NULL && !err->placed) /* sources name it with their file */
            cm_error_prefix(err, "variable %s", job->var[i].source->name);
        r->stored_nbytes = (uint64_t)(ratio * (double)r->decoded_nbytes);
        job->report->stored_nbytes += r->stored_nbytes;
    }
    cm_codec_ctx_free(ctx);
    return rc;
}
