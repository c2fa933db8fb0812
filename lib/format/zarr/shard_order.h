/*
 * The places of the inner chunks in one shard: in the order of the grid, in whichever order they
 * arrive, so that the bytes of a shard follow from its elements.
 *
 * A chunk is written when all before it have their places.  One that arrives earlier waits
 * (early.h); if it cannot, it takes the next place, and the shard has another order.
 */
#ifndef CM_FORMAT_ZARR_SHARD_ORDER_H
#define CM_FORMAT_ZARR_SHARD_ORDER_H

#include "codec/shard.h"
#include "format/zarr/early.h"
#include "format/zarr/shard_old.h"

enum {
    CM_SHARD_MOST = 128 /* chunks per call */
};

typedef struct cm_shard_order cm_shard_order;

/* For a shard of which only the inner chunks below INSIDE lie in the array. */
int cm_shard_order_create(const cm_shard_layout *layout, const uint64_t *inside, cm_early *early,
                          cm_shard_order **out, cm_error *err);
void cm_shard_order_free(cm_shard_order *order); /* NULL accepted */
size_t cm_shard_order_memory(const cm_shard_layout *layout);

/*
 * Sets the object to write, and the old object of that name (or NULL).  Call it before any chunk
 * with bytes.
 */
void cm_shard_order_begin(cm_shard_order *order, cm_object_writer *object, cm_shard_old *old);

typedef struct cm_shard_chunk {
    uint64_t local;   /* number within the shard */
    const void *data; /* encoded; NULL: left out */
    size_t nbytes;
} cm_shard_chunk;

/*
 * Puts N <= CM_SHARD_MOST chunks, each once; DATA may be freed when it returns.  *done counts the
 * chunks, of this call or waiting ones, that were finished.  Any thread; when all chunks of the
 * shard are done, ORDER may be freed although a call that gave 0 in *done has not yet returned.
 */
int cm_shard_order_put(cm_shard_order *order, const cm_shard_chunk *chunk, size_t n, uint64_t *done,
                       cm_error *err);

/* Valid when all chunks are done. */
const cm_shard_entry *cm_shard_order_entries(const cm_shard_order *order);
uint64_t cm_shard_order_end(const cm_shard_order *order);

#endif
