/*
 * Variables of variable-length text, chunk by chunk: NC_STRING, and characters
 * joined along their last dimension.
 *
 * They come through netCDF-C under its lock, so one thread does it.  The text of
 * a chunk is bounded by a share of the memory: a file whose strings are longer is
 * refused.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "job/job.h"

/* The characters of BOX joined along the last dimension of the source; NULs at the end are padding. */
static int read_joined(cm_job *job, cm_job_var *v, const cm_box *box, cm_strings *out,
                       cm_error *err)
{
    cm_array *a = &v->source->array;
    cm_box chars = *box;
    uint64_t width = a->shape[v->rank], n = cm_box_nelem(box);
    cm_buf text = {0};
    size_t nbytes;
    chars.rank = v->rank + 1;
    chars.start[v->rank] = 0;
    chars.shape[v->rank] = width;
    if (!cm_mul_size(n, width, &nbytes))
        return cm_fail(err, CM_EFORMAT, "too many characters");
    cm_buf_init(&text, job->memory_limit / 4);
    int rc = cm_buf_resize(&text, nbytes > 0 ? nbytes : 1, err);
    if (rc == CM_OK && nbytes > 0)
        rc = cm_nc_read_library(job->file, v->source, &chars, text.data, err);
    if (rc == CM_OK)
        rc = cm_strings_reset(out, n, err);
    for (uint64_t i = 0; rc == CM_OK && i < n; i++) {
        const uint8_t *from = text.data + i * width;
        size_t length = width;
        while (length > 0 && from[length - 1] == '\0')
            length--;
        rc = cm_strings_set(out, i, from, length, err);
    }
    cm_buf_release(&text);
    return rc;
}

/* Keeps every step-th string of what was read without gaps. */
static int thin_out(const cm_job_var *v, const cm_box *box, const cm_box *dense,
                    const cm_strings *from, cm_strings *out, cm_error *err)
{
    uint64_t n = cm_box_nelem(box);
    int rc = cm_strings_reset(out, n, err);
    for (uint64_t i = 0; rc == CM_OK && i < n; i++) {
        uint64_t rest = i, index = 0, stride = 1;
        for (unsigned j = v->rank; j-- > 0;) {
            index += rest % box->shape[j] * v->step[j] * stride;
            rest /= box->shape[j];
            stride *= dense->shape[j];
        }
        size_t nbytes;
        const char *text = cm_strings_get(from, index, &nbytes);
        rc = cm_strings_set(out, i, text, nbytes, err);
    }
    return rc;
}

/* Zarr's strings are UTF-8: what is none becomes U+FFFD, and a warning says so. */
static int repair(cm_job_var *v, cm_strings *text, cm_error *err)
{
    cm_strings good;
    cm_buf one = {0};
    bool valid = true;
    for (uint64_t i = 0; i < text->nelem && valid; i++) {
        size_t nbytes;
        const char *p = cm_strings_get(text, i, &nbytes);
        valid = cm_utf8_is_valid(p, nbytes);
    }
    if (valid)
        return CM_OK;
    v->repaired = true;
    cm_strings_init(&good, text->arena.max_nbytes);
    int rc = cm_strings_reset(&good, text->nelem, err);
    for (uint64_t i = 0; rc == CM_OK && i < text->nelem; i++) {
        size_t nbytes;
        const char *p = cm_strings_get(text, i, &nbytes);
        one.nbytes = 0;
        rc = cm_utf8_repair(p, nbytes, &one, err);
        if (rc == CM_OK)
            rc = cm_strings_set(&good, i, one.data, one.nbytes, err);
    }
    cm_buf_release(&one);
    if (rc == CM_OK) {
        cm_strings_release(text);
        *text = good;
    } else {
        cm_strings_release(&good);
    }
    return rc;
}

int cm_job_read_strings(cm_job *job, cm_job_var *v, const cm_box *box, bool library,
                        cm_strings *out, cm_error *err)
{
    cm_box dense = {.rank = v->rank};
    bool gaps = false;
    for (unsigned j = 0; j < v->rank; j++) {
        dense.start[j] = v->start[j] + box->start[j] * v->step[j];
        dense.shape[j] = (box->shape[j] - 1) * v->step[j] + 1;
        gaps |= v->step[j] > 1 && box->shape[j] > 1;
    }
    cm_strings all;
    cm_strings_init(&all, out->arena.max_nbytes);
    cm_strings *into = gaps ? &all : out;
    cm_array *a = &v->source->array;
    int rc;
    if (v->join)
        rc = read_joined(job, v, &dense, into, err);
    else if (library)
        rc = cm_nc_read_library_strings(job->file, v->source, &dense, into, err);
    else
        rc = a->ops->read_strings(a, &dense, into, err);
    if (rc == CM_OK && gaps)
        rc = thin_out(v, box, &dense, &all, out, err);
    cm_strings_release(&all);
    return rc == CM_OK ? repair(v, out, err) : rc;
}

/* Full chunks are stored: past the array's edge strings are empty. */
static int pad_chunk(const cm_grid *grid, const cm_box *box, const cm_strings *from,
                     cm_strings *out, cm_error *err)
{
    int rc = cm_strings_reset(out, grid->chunk_nelem, err);
    uint64_t n = cm_box_nelem(box);
    for (uint64_t i = 0; rc == CM_OK && i < n; i++) {
        uint64_t rest = i, index = 0, stride = 1;
        for (unsigned j = grid->rank; j-- > 0;) {
            index += rest % box->shape[j] * stride;
            rest /= box->shape[j];
            stride *= grid->chunk[j];
        }
        size_t nbytes;
        const char *text = cm_strings_get(from, i, &nbytes);
        rc = cm_strings_set(out, index, text, nbytes, err);
    }
    return rc;
}

typedef struct mover {
    cm_codec_ctx *ctx;
    cm_strings read, padded;
    cm_buf encoded;
} mover;

static int move_chunk(cm_job *job, cm_job_var *v, uint64_t number, mover *m, cm_error *err)
{
    const cm_grid *grid = cm_zarr_writer_grid(v->writer);
    uint64_t coord[CM_MAX_RANK];
    cm_box box;
    cm_grid_coord(grid, number, coord);
    cm_grid_box(grid, coord, &box);
    cm_monitor_at(job->options->monitor, v->name, number, "reading");
    int rc = cm_job_read_strings(job, v, &box, false, &m->read, err);
    if (rc == CM_OK && cm_grid_is_edge(grid, coord))
        rc = pad_chunk(grid, &box, &m->read, &m->padded, err);
    const cm_strings *whole = cm_grid_is_edge(grid, coord) ? &m->padded : &m->read;
    if (rc != CM_OK)
        return rc;
    rc = cm_chain_encode_strings(cm_zarr_writer_chain(v->writer), m->ctx, whole, &m->encoded, err);
    if (rc == CM_OK)
        return cm_zarr_writer_put(v->writer, number, m->encoded.data, m->encoded.nbytes, err);
    /* Readers and writers say where; an encoder cannot. */
    char text[CM_MAX_RANK * 21];
    cm_error_prefix(err, "variable %s: chunk %s", v->source->array.name,
                    cm_coord_text(grid->rank, coord, text, sizeof(text)));
    return rc;
}

int cm_job_move_strings(cm_job *job, cm_error *err)
{
    mover m = {0};
    int rc = CM_OK;
    size_t share = job->memory_limit / 8;
    cm_strings_init(&m.read, share);
    cm_strings_init(&m.padded, share);
    cm_buf_init(&m.encoded, 0);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        if (!v->as_strings)
            continue;
        if (m.ctx == NULL && (m.ctx = cm_codec_ctx_create(err)) == NULL)
            rc = CM_ENOMEM;
        for (uint64_t n = 0; rc == CM_OK && n < cm_zarr_writer_grid(v->writer)->nchunks; n++) {
            if (cm_monitor_canceled(job->options->monitor))
                rc = cm_fail(err, CM_ECANCELED, "stopped by request");
            else if (!cm_zarr_writer_is_delivered(v->writer, n))
                rc = move_chunk(job, v, n, &m, err);
        }
    }
    cm_codec_ctx_free(m.ctx);
    cm_strings_release(&m.read);
    cm_strings_release(&m.padded);
    cm_buf_release(&m.encoded);
    return rc;
}
