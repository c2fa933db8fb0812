/*
 * The codec `sharding_indexed` on whole shards: every inner chunk decoded and
 * put in its place, or cut out and encoded.
 *
 * Readers and writers of sharded arrays address inner chunks themselves, by
 * shard.h; this is for shards within other codecs, or within shards.
 */
#include <stdlib.h>
#include <string.h>

#include "codec/impl.h"
#include "codec/shard.h"
#include "model/copy.h"

/* ---- where inner chunks lie ---- */

/* An index of fixed size has no codec whose result depends on the values. */
static int prepare_index(const cm_shard_spec *spec, cm_shard_layout *layout, cm_error *err)
{
    uint64_t shape[CM_MAX_RANK];
    if (spec->rank + 1 > CM_MAX_RANK)
        return cm_fail(err, CM_EUNSUPPORTED, "a shard of %u dimensions", spec->rank);
    memcpy(shape, layout->grid.count, spec->rank * sizeof *shape);
    shape[spec->rank] = 2;
    cm_dtype u64 = cm_dtype_make(CM_KIND_UINT, 8);
    int rc = cm_chain_create(spec->index_codecs, spec->nindex_codecs, &u64, spec->rank + 1, shape,
                             &layout->index, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "index of a shard");
        return rc;
    }
    for (size_t i = 0; i < layout->index->nsteps; i++) {
        if (layout->index->step[i].varying) {
            return cm_fail(err, CM_EFORMAT,
                           "index of a shard: codec %s makes its size depend on its values",
                           layout->index->step[i].ops->name);
        }
    }
    return CM_OK;
}

int cm_shard_layout_create(const cm_shard_spec *spec, unsigned rank, const uint64_t *shard,
                           cm_shard_layout **out, cm_error *err)
{
    *out = NULL;
    if (spec->rank != rank) {
        return cm_fail(err, CM_EFORMAT, "inner chunks of %u dimensions in shards of %u", spec->rank,
                       rank);
    }
    for (unsigned j = 0; j < rank; j++) {
        if (spec->chunk[j] == 0 || shard[j] == 0 || shard[j] % spec->chunk[j] != 0) {
            return cm_fail(
                err, CM_EFORMAT,
                "dimension %u of a shard, %llu, is not a multiple of the inner chunk's, %llu", j,
                (unsigned long long)shard[j], (unsigned long long)spec->chunk[j]);
        }
    }
    cm_shard_layout *layout = cm_calloc(1, sizeof *layout, err);
    if (layout == NULL)
        return CM_ENOMEM;
    layout->index_at_start = spec->index_at_start;
    int rc = cm_grid_init(&layout->grid, rank, shard, spec->chunk, err);
    if (rc == CM_OK)
        rc = prepare_index(spec, layout, err);
    if (rc != CM_OK) {
        cm_shard_layout_free(layout);
        return rc;
    }
    *out = layout;
    return CM_OK;
}

void cm_shard_layout_free(cm_shard_layout *layout)
{
    if (layout != NULL) {
        cm_chain_free(layout->index);
        free(layout);
    }
}

/* ---- whole shards ---- */

typedef struct sharding {
    cm_shard_layout *layout;
    cm_chain *inner;
    uint8_t *fill; /* what missing inner chunks hold: step->fill, or zeros */
} sharding;

static void release(cm_codec_step *step)
{
    sharding *s = step->state;
    if (s != NULL) {
        cm_shard_layout_free(s->layout);
        cm_chain_free(s->inner);
        free(s->fill);
        free(s);
        step->state = NULL;
    }
}

static int prepare(cm_codec_step *step, cm_error *err)
{
    const cm_shard_spec *spec = step->spec->shard;
    if (spec == NULL)
        return cm_fail(err, CM_EINVAL, "without a configuration");
    if (cm_dtype_is_vlen(&step->in.type)) {
        return cm_fail(err, CM_EUNSUPPORTED,
                       "whole shards of elements of variable length are not handled");
    }
    sharding *s = cm_calloc(1, sizeof *s, err);
    if (s == NULL)
        return CM_ENOMEM;
    step->state = s;
    step->varying = true;
    int rc = cm_shard_layout_create(spec, step->in.rank, step->in.shape, &s->layout, err);
    if (rc == CM_OK) {
        rc = cm_chain_create_filled(spec->codecs, spec->ncodecs, &step->in.type, spec->rank,
                                    spec->chunk, step->fill, &s->inner, err);
    }
    if (rc != CM_OK)
        return rc;
    s->fill = cm_calloc(1, step->in.type.nbytes, err);
    if (s->fill == NULL)
        return CM_ENOMEM;
    if (step->fill != NULL)
        memcpy(s->fill, step->fill, step->in.type.nbytes);
    size_t entries, chunks;
    if (!cm_mul_size(cm_shard_nchunks(s->layout), sizeof(cm_shard_entry), &entries) ||
        !cm_mul_size(cm_shard_nchunks(s->layout), cm_chain_encoded_bound(s->inner), &chunks) ||
        !cm_add_size(chunks, cm_shard_index_nbytes(s->layout), &step->out_bound))
        return cm_fail(err, CM_EBUDGET, "encoded shards may be too large to address");
    size_t own = entries + cm_chain_decoded_nbytes(s->inner);
    step->decode_memory = own + cm_chain_decode_memory(s->inner);
    step->encode_memory = own + cm_chain_encode_memory(s->inner);
    return CM_OK;
}

/* Where inner chunk NUMBER begins within the shard at DATA, by the shard's strides. */
static uint8_t *place_of(const cm_grid *grid, uint64_t number, const int64_t *stride,
                         const void *data)
{
    uint64_t coord[CM_MAX_RANK];
    const uint8_t *at = data;
    cm_grid_coord(grid, number, coord);
    for (unsigned j = 0; j < grid->rank; j++)
        at += (int64_t)(coord[j] * grid->chunk[j]) * stride[j];
    return (uint8_t *)(uintptr_t)at;
}

static int read_index(const sharding *s, cm_codec_ctx *ctx, cm_span src, cm_error *err)
{
    size_t index_nbytes = cm_shard_index_nbytes(s->layout);
    if (src.nbytes < index_nbytes) {
        return cm_fail(err, CM_EFORMAT, "a shard of %zu bytes, and its index alone has %zu",
                       src.nbytes, index_nbytes);
    }
    const uint8_t *index =
        cm_shard_index_at_start(s->layout) ? src.data : src.data + src.nbytes - index_nbytes;
    int rc = cm_buf_resize(&ctx->index, cm_shard_nchunks(s->layout) * sizeof(cm_shard_entry), err);
    if (rc != CM_OK)
        return rc;
    return cm_shard_index_decode(s->layout, index, index_nbytes, src.nbytes,
                                 (cm_shard_entry *)(void *)ctx->index.data, err);
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    const sharding *s = step->state;
    const cm_grid *grid = cm_shard_grid(s->layout);
    size_t itemsize = step->in.type.nbytes;
    int64_t whole[CM_MAX_RANK], part[CM_MAX_RANK];
    cm_strides_c(grid->rank, grid->shape, itemsize, whole);
    cm_strides_c(grid->rank, grid->chunk, itemsize, part);
    cm_codec_ctx *inner = cm_ctx_inner(ctx, err);
    if (inner == NULL)
        return CM_ENOMEM;
    int rc = read_index(s, ctx, src, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&ctx->work, cm_chain_decoded_nbytes(s->inner), err);
    const cm_shard_entry *entry = (const cm_shard_entry *)(const void *)ctx->index.data;
    for (uint64_t i = 0; i < grid->nchunks && rc == CM_OK; i++) {
        uint8_t *place = place_of(grid, i, whole, dst->data);
        if (entry[i].offset == CM_SHARD_MISSING) {
            cm_fill_nd(grid->rank, grid->chunk, itemsize, place, whole, s->fill);
            continue;
        }
        rc = cm_chain_decode(s->inner, inner, src.data + entry[i].offset, entry[i].nbytes, 0,
                             ctx->work.data, err);
        if (rc != CM_OK) {
            cm_error_prefix(err, "inner chunk %llu", (unsigned long long)i);
            break;
        }
        cm_copy_nd(grid->rank, grid->chunk, itemsize, place, whole, ctx->work.data, part);
    }
    dst->nbytes = step->in.nbytes;
    return rc;
}

static int can_encode(const cm_codec_step *step, cm_error *err)
{
    return cm_chain_can_encode(((const sharding *)step->state)->inner, err);
}

/* Encodes inner chunk I at the end of DST, or leaves it out where it is all fill value. */
static int encode_chunk(const cm_codec_step *step, cm_codec_ctx *ctx, const uint8_t *place,
                        const int64_t *whole, cm_room *dst, cm_shard_entry *entry, cm_error *err)
{
    const sharding *s = step->state;
    const cm_grid *grid = cm_shard_grid(s->layout);
    size_t itemsize = step->in.type.nbytes;
    int64_t part[CM_MAX_RANK];
    cm_strides_c(grid->rank, grid->chunk, itemsize, part);
    cm_copy_nd(grid->rank, grid->chunk, itemsize, ctx->work.data, part, place, whole);
    *entry = (cm_shard_entry){CM_SHARD_MISSING, CM_SHARD_MISSING};
    /* Without a fill value given, zeros would be a guess that a reader need not share. */
    if (step->fill != NULL && cm_all_equal(ctx->work.data, grid->chunk_nelem, itemsize, step->fill))
        return CM_OK;
    size_t nbytes;
    int rc = cm_chain_encode(s->inner, ctx->inner, ctx->work.data, dst->data + dst->nbytes, &nbytes,
                             err);
    if (rc == CM_OK) {
        *entry = (cm_shard_entry){dst->nbytes, nbytes};
        dst->nbytes += nbytes;
    }
    return rc;
}

static int encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    const sharding *s = step->state;
    const cm_grid *grid = cm_shard_grid(s->layout);
    size_t index_nbytes = cm_shard_index_nbytes(s->layout);
    bool at_start = cm_shard_index_at_start(s->layout);
    int64_t whole[CM_MAX_RANK];
    cm_strides_c(grid->rank, grid->shape, step->in.type.nbytes, whole);
    if (cm_ctx_inner(ctx, err) == NULL)
        return CM_ENOMEM;
    int rc = cm_buf_resize(&ctx->index, grid->nchunks * sizeof(cm_shard_entry), err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&ctx->work, cm_chain_decoded_nbytes(s->inner), err);
    cm_shard_entry *entry = (cm_shard_entry *)(void *)ctx->index.data;
    dst->nbytes = at_start ? index_nbytes : 0;
    for (uint64_t i = 0; i < grid->nchunks && rc == CM_OK; i++) {
        rc =
            encode_chunk(step, ctx, place_of(grid, i, whole, src.data), whole, dst, &entry[i], err);
    }
    if (rc == CM_OK)
        rc = cm_shard_index_encode(s->layout, entry, dst->data + (at_start ? 0 : dst->nbytes), err);
    dst->nbytes += at_start ? 0 : index_nbytes;
    return rc;
}

const cm_codec_ops cm_sharding_ops = {.name = "sharding_indexed",
                                      .kind = CM_CODEC_ARRAY_BYTES,
                                      .prepare = prepare,
                                      .release = release,
                                      .decode = decode,
                                      .encode = encode,
                                      .can_encode = can_encode};
