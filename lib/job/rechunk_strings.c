/*
 * Arrays of variable-length elements, chunk by chunk.  The text of a chunk is
 * bounded by a share of the memory: longer ones are refused.
 */
#include <string.h>

#include "job/rechunk.h"

typedef struct mover {
    cm_codec_ctx *ctx;
    cm_strings read, padded;
    cm_buf bytes;
} mover;

/* True when every element is the fill value, so that the chunk need not be there. */
static bool is_empty(const cm_re_array *a, const cm_strings *text)
{
    const char *fill = a->meta.fill_text != NULL ? a->meta.fill_text : "";
    size_t length = strlen(fill);
    for (size_t i = 0; a->meta.has_fill && i < text->nelem; i++) {
        size_t nbytes;
        const char *p = cm_strings_get(text, i, &nbytes);
        if (nbytes != length || (length > 0 && memcmp(p, fill, length) != 0))
            return false;
    }
    return a->meta.has_fill;
}

static int skip(cm_re_array *a, uint64_t number, cm_error *err)
{
    int rc = cm_zarr_writer_skip(a->writer, number, err);
    return rc == CM_OK ? cm_journal_skip(a->journal, a->index, number, err) : rc;
}

static int pass_chunk(cm_re_array *a, uint64_t number, mover *m, cm_error *err)
{
    cm_fetch fetch = {0};
    int rc = a->source->ops->fetch(a->source, number, &m->bytes, &fetch, err);
    if (rc == CM_OK && !fetch.present)
        return skip(a, number, err);
    if (rc == CM_OK)
        rc = cm_zarr_writer_put(a->writer, number, m->bytes.data, m->bytes.nbytes, err);
    return rc;
}

static int recode_chunk(cm_re_array *a, uint64_t number, const uint64_t *coord, const cm_box *box,
                        mover *m, cm_error *err)
{
    const cm_grid *grid = cm_zarr_writer_grid(a->writer);
    int rc = cm_array_read_strings(a->source, box, &m->read, err);
    if (rc == CM_OK && is_empty(a, &m->read))
        return skip(a, number, err);
    if (rc == CM_OK && cm_grid_is_edge(grid, coord))
        rc = cm_strings_pad(grid, box, &m->read, &m->padded, err);
    const cm_strings *whole = cm_grid_is_edge(grid, coord) ? &m->padded : &m->read;
    if (rc == CM_OK)
        rc =
            cm_chain_encode_strings(cm_zarr_writer_chain(a->writer), m->ctx, whole, &m->bytes, err);
    if (rc == CM_OK)
        rc = cm_zarr_writer_put(a->writer, number, m->bytes.data, m->bytes.nbytes, err);
    return rc;
}

static int move_chunk(cm_re_job *job, cm_re_array *a, uint64_t number, mover *m, cm_error *err)
{
    const cm_grid *grid = cm_zarr_writer_grid(a->writer);
    uint64_t coord[CM_MAX_RANK];
    cm_box box;
    cm_grid_coord(grid, number, coord);
    cm_grid_box(grid, coord, &box);
    cm_monitor_at(job->options->monitor, a->node->path, number, "writing");
    int rc =
        a->passes ? pass_chunk(a, number, m, err) : recode_chunk(a, number, coord, &box, m, err);
    if (rc == CM_OK)
        atomic_fetch_add(&a->counts.delivered, 1);
    return rc;
}

int cm_re_move_strings(cm_re_job *job, cm_re_array *a, cm_error *err)
{
    mover m = {0};
    size_t share = job->memory_limit / 8;
    cm_strings_init(&m.read, share);
    cm_strings_init(&m.padded, share);
    cm_buf_init(&m.bytes, 0);
    int rc = (m.ctx = cm_codec_ctx_create(err)) == NULL ? CM_ENOMEM : CM_OK;
    for (uint64_t n = 0; rc == CM_OK && n < cm_zarr_writer_grid(a->writer)->nchunks; n++) {
        if (cm_monitor_canceled(job->options->monitor))
            rc = cm_fail(err, CM_ECANCELED, "stopped by request");
        else if (!cm_zarr_writer_is_delivered(a->writer, n))
            rc = move_chunk(job, a, n, &m, err);
    }
    cm_codec_ctx_free(m.ctx);
    cm_strings_release(&m.read);
    cm_strings_release(&m.padded);
    cm_buf_release(&m.bytes);
    return rc;
}
