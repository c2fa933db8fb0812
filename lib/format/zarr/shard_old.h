/*
 * A shard that is replaced while others read it.
 *
 * A reader keeps a shard's index, and may open the shard by its name again for each inner chunk.
 * So the new shard keeps all bytes that the old index refers to, at the same offsets; new bytes go
 * to ranges that the old index does not use.
 */
#ifndef CM_FORMAT_ZARR_SHARD_OLD_H
#define CM_FORMAT_ZARR_SHARD_OLD_H

#include "codec/shard.h"
#include "store/store.h"

typedef struct cm_shard_old cm_shard_old;

/* Opens the shard at KEY, with its index; *out is NULL if it does not exist.  Borrows LAYOUT. */
int cm_shard_old_open(cm_store *store, const char *key, const cm_shard_layout *layout,
                      cm_shard_old **out, cm_error *err);
void cm_shard_old_free(cm_shard_old *old); /* NULL accepted */
size_t cm_shard_old_memory(const cm_shard_layout *layout);

/* Copies all ranges in the index to the same offsets. */
int cm_shard_old_copy(cm_shard_old *old, cm_object_writer *to, cm_error *err);
/* Whether inner chunk LOCAL equals DATA; *entry is then its place.  Any thread. */
int cm_shard_old_is(cm_shard_old *old, uint64_t local, const void *data, size_t nbytes, bool *same,
                    cm_shard_entry *entry, cm_error *err);
/* Allocates NBYTES outside the index's ranges.  One thread at a time. */
uint64_t cm_shard_old_take(cm_shard_old *old, uint64_t nbytes);
/* End of the last range that is in the index or was allocated. */
uint64_t cm_shard_old_end(const cm_shard_old *old);

#endif
