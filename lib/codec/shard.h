/*
 * The index of a shard (codec sharding_indexed): where its inner chunks lie.
 * Zarr v3, docs/v3/codecs/sharding-indexed.
 */
#ifndef CM_CODEC_SHARD_H
#define CM_CODEC_SHARD_H

#include "codec/codec.h"

#define CM_SHARD_MISSING                                                                           \
    UINT64_MAX /* both numbers of an entry: the inner chunk is all fill value */

typedef struct cm_shard_entry {
    uint64_t offset; /* from the start of the shard */
    uint64_t nbytes;
} cm_shard_entry;

typedef struct cm_shard_layout cm_shard_layout;

/*
 * For shards of SHARD elements cut as SPEC says.  CM_EFORMAT when SHARD is no multiple, or the
 * index codecs have no fixed size.
 */
int cm_shard_layout_create(const cm_shard_spec *spec, unsigned rank, const uint64_t *shard,
                           cm_shard_layout **out, cm_error *err);
void cm_shard_layout_free(cm_shard_layout *layout);

uint64_t cm_shard_nchunks(const cm_shard_layout *layout);    /* inner chunks of one shard */
size_t cm_shard_index_nbytes(const cm_shard_layout *layout); /* encoded: 16 n, + 4 with crc32c */
bool cm_shard_index_at_start(const cm_shard_layout *layout);
const cm_grid *cm_shard_grid(const cm_shard_layout *layout); /* inner chunks within a shard */

/*
 * NBYTES is the encoded index; ENTRY has room for nchunks.  Entries that leave SHARD_NBYTES
 * are CM_EFORMAT.
 */
int cm_shard_index_decode(const cm_shard_layout *layout, const void *src, size_t src_nbytes,
                          uint64_t shard_nbytes, cm_shard_entry *entry, cm_error *err);
int cm_shard_index_encode(const cm_shard_layout *layout, const cm_shard_entry *entry, void *dst,
                          cm_error *err);

#endif
