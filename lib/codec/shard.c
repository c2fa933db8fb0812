/*
 * The index of a shard.
 *
 * A C-order array of (offset, nbytes) for every inner chunk, encoded by the
 * index codecs, at the start or the end of the shard.  It is an array like any
 * other, so a chain of uint64 of shape (chunks..., 2) reads and writes it.
 */
#include "codec/shard.h"

#include "codec/impl.h"

_Static_assert(sizeof(cm_shard_entry) == 16, "an entry is what is stored");

uint64_t cm_shard_nchunks(const cm_shard_layout *layout)
{
    return layout->grid.nchunks;
}

size_t cm_shard_index_nbytes(const cm_shard_layout *layout)
{
    return layout->index->encoded_bound;
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
