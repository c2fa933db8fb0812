/*
 * Assembles the shards of one array.
 *
 * Inner chunks arrive in any order from any thread, and are stored in the order of the grid
 * (shard_order.h).  A shard exists in memory from its first chunk to its last; the last one writes
 * the index and gives the object its name.  A shard with all chunks left out makes no object.
 */
#ifndef CM_FORMAT_ZARR_SHARD_WRITER_H
#define CM_FORMAT_ZARR_SHARD_WRITER_H

#include "format/zarr/early.h"
#include "format/zarr/writer.h"

typedef struct cm_shard_set cm_shard_set;

/* The result of a delivery that finished a shard. */
typedef struct cm_shard_done {
    bool made;       /* an object was made */
    uint64_t nbytes; /* of its index */
} cm_shard_done;

/*
 * Shards of META's outer grid OUTER at PREFIX ("a/b/"), for chunks of the array's GRID, which take
 * at most CHUNK_MOST bytes encoded.  The key of shard COORD is that of COORD + ORIGIN.  All
 * borrowed.
 */
int cm_shard_set_create(cm_store *store, const char *prefix, const cm_zarr_meta *meta,
                        const cm_shard_spec *spec, const cm_grid *grid, const cm_grid *outer,
                        const uint64_t *origin, size_t chunk_most, cm_shard_set **out,
                        cm_error *err);
/* Aborts unfinished shards.  NULL accepted. */
void cm_shard_set_free(cm_shard_set *set);
/*
 * Existing shards are being read: each new one keeps the ranges of the one it replaces
 * (shard_old.h).  Call it before any chunk.
 */
void cm_shard_set_replace(cm_shard_set *set);
/* Where chunks wait for those before them.  Call it before any chunk. */
void cm_shard_set_early(cm_shard_set *set, cm_early *early);
/* Memory of one shard; *sent is the store's share of it. */
size_t cm_shard_set_memory(const cm_shard_set *set, size_t *sent);

/*
 * Delivers the first of the N >= 1 chunks PUT, numbered in the array's grid, and following ones of
 * the same shard: *taken in all.  DATA NULL: leaves the chunk out.
 */
int cm_shard_set_deliver(cm_shard_set *set, const cm_put *put, size_t n, size_t *taken,
                         cm_shard_done *done, cm_error *err);

#endif
