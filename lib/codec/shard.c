/*
 * The index of a shard.
 *
 * A C-order array of (offset, nbytes) for every inner chunk, encoded by the
 * index codecs, at the start or the end of the shard.  It is an array like any
 * other, so a chain of uint64 of shape (chunks..., 2) reads and writes it.
 */
#include "codec/shard.h"

#include <stdlib.h>
#include <string.h>

#include "codec/impl.h"

struct cm_shard_layout {
    cm_grid grid;
    cm_chain *index;
    bool index_at_start;
};

_Static_assert(sizeof(cm_shard_entry) == 16, "an entry is what is stored");

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

uint64_t cm_shard_nchunks(const cm_shard_layout *layout)
{
    return layout->grid.nchunks;
}

size_t cm_shard_index_nbytes(const cm_shard_layout *layout)
{
    return cm_chain_encoded_bound(layout->index);
}

bool cm_shard_index_at_start(const cm_shard_layout *layout)
{
    return layout->index_at_start;
}

const cm_grid *cm_shard_grid(const cm_shard_layout *layout)
{
    return &layout->grid;
}

static int check_entries(const cm_shard_layout *layout, const cm_shard_entry *entry,
                         uint64_t shard_nbytes, cm_error *err)
{
    for (uint64_t i = 0; i < layout->grid.nchunks; i++) {
        uint64_t offset = entry[i].offset, nbytes = entry[i].nbytes;
        if (offset == CM_SHARD_MISSING && nbytes == CM_SHARD_MISSING)
            continue;
        if (offset > shard_nbytes || nbytes > shard_nbytes - offset) {
            return cm_fail(err, CM_EFORMAT,
                           "index of a shard: inner chunk %llu has %llu bytes at %llu, but the "
                           "shard has %llu",
                           (unsigned long long)i, (unsigned long long)nbytes,
                           (unsigned long long)offset, (unsigned long long)shard_nbytes);
        }
    }
    return CM_OK;
}

int cm_shard_index_decode(const cm_shard_layout *layout, const void *src, size_t src_nbytes,
                          uint64_t shard_nbytes, cm_shard_entry *entry, cm_error *err)
{
    cm_codec_ctx *ctx = cm_codec_ctx_create(err);
    if (ctx == NULL)
        return CM_ENOMEM;
    int rc = cm_chain_decode(layout->index, ctx, src, src_nbytes, 0, entry, err);
    cm_codec_ctx_free(ctx);
    if (rc != CM_OK) {
        cm_error_prefix(err, "index of a shard");
        return rc;
    }
    return check_entries(layout, entry, shard_nbytes, err);
}

int cm_shard_index_encode(const cm_shard_layout *layout, const cm_shard_entry *entry, void *dst,
                          cm_error *err)
{
    cm_codec_ctx *ctx = cm_codec_ctx_create(err);
    if (ctx == NULL)
        return CM_ENOMEM;
    size_t nbytes;
    int rc = cm_chain_encode(layout->index, ctx, entry, dst, &nbytes, err);
    cm_codec_ctx_free(ctx);
    if (rc != CM_OK)
        cm_error_prefix(err, "index of a shard");
    return rc;
}
