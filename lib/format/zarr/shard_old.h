/*
 * A shard that is replaced while others read it.
 *
 * A reader takes a shard's index, and may open the shard by its name again for each inner chunk.
 * So what the index of the replaced shard names stays in the new one: the same bytes at the same
 * offsets.  New bytes go where that index names nothing.
 */
#ifndef CM_FORMAT_ZARR_SHARD_OLD_H
#define CM_FORMAT_ZARR_SHARD_OLD_H

#include "codec/shard.h"
#include "store/store.h"

typedef struct cm_shard_old cm_shard_old;

/* The shard at KEY, with its index; *out is NULL where there is none.  Borrows LAYOUT. */
int cm_shard_old_open(cm_store *store, const char *key, const cm_shard_layout *layout,
                      cm_shard_old **out, cm_error *err);
void cm_shard_old_free(cm_shard_old *old); /* NULL accepted */
size_t cm_shard_old_memory(const cm_shard_layout *layout);

/* Copies all that the index names to where it lies. */
int cm_shard_old_copy(cm_shard_old *old, cm_object_writer *to, cm_error *err);
/* Whether inner chunk LOCAL is DATA; *entry is then where it lies.  Any thread. */
int cm_shard_old_is(cm_shard_old *old, uint64_t local, const void *data, size_t nbytes, bool *same,
                    cm_shard_entry *entry, cm_error *err);
/* Room for NBYTES that the index does not name.  Not by two threads at once. */
uint64_t cm_shard_old_take(cm_shard_old *old, uint64_t nbytes);
/* Behind the last byte that is named or was taken. */
uint64_t cm_shard_old_end(const cm_shard_old *old);

#endif
