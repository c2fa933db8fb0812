/*
 * The places of the inner chunks in one shard: in the order of the grid, whatever order they come
 * in, so that the bytes of a shard follow from its elements.
 *
 * A chunk is written when all in front of it have their places.  One that comes before waits
 * (early.h); where it cannot, it takes the next place, and the shard has another order.
 */
#ifndef CM_FORMAT_ZARR_SHARD_ORDER_H
#define CM_FORMAT_ZARR_SHARD_ORDER_H

#include "codec/shard.h"
#include "format/zarr/early.h"
#include "format/zarr/shard_old.h"

enum {
    CM_SHARD_MOST = 128 /* chunks that are put together */
};

typedef struct cm_shard_order cm_shard_order;

/* Of a shard of which only the inner chunks below INSIDE lie in the array. */
int cm_shard_order_create(const cm_shard_layout *layout, const uint64_t *inside, cm_early *early,
                          cm_shard_order **out, cm_error *err);
void cm_shard_order_free(cm_shard_order *order); /* NULL accepted */
size_t cm_shard_order_memory(const cm_shard_layout *layout);

/* Where they are written, and what has that name now (or NULL): before any chunk that has bytes. */
void cm_shard_order_begin(cm_shard_order *order, cm_object_writer *object, cm_shard_old *old);

typedef struct cm_shard_chunk {
    uint64_t local;   /* number within the shard */
    const void *data; /* encoded; NULL: left out */
    size_t nbytes;
} cm_shard_chunk;

/*
 * N <= CM_SHARD_MOST chunks, each once; DATA is not needed any more when it returns.  *done of
 * these and of those that waited have come to rest.  Any thread; whoever frees the shard when all
 * its chunks are done may do so while a call that returns 0 in *done is on its way back.
 */
int cm_shard_order_put(cm_shard_order *order, const cm_shard_chunk *chunk, size_t n, uint64_t *done,
                       cm_error *err);

/* Once all are done. */
const cm_shard_entry *cm_shard_order_entries(const cm_shard_order *order);
uint64_t cm_shard_order_end(const cm_shard_order *order);

#endif
