/*
 * The shards of one array while they are put together.
 *
 * Inner chunks come in any order from any thread, and lie in the order of the grid
 * (shard_order.h).  A shard exists in memory from its first chunk to its last; the last one
 * writes the index and gives the object its name.  A shard in which every chunk was left out
 * makes no object.
 */
#ifndef CM_FORMAT_ZARR_SHARD_WRITER_H
#define CM_FORMAT_ZARR_SHARD_WRITER_H

#include "format/zarr/early.h"
#include "format/zarr/writer.h"

typedef struct cm_shard_set cm_shard_set;

/* What became of a delivery that was a shard's last. */
typedef struct cm_shard_done {
    bool made;       /* an object */
    uint64_t nbytes; /* of its index */
} cm_shard_done;

/*
 * Shards of META's outer grid OUTER at PREFIX ("a/b/"), for chunks of the array's GRID, which take
 * CHUNK_MOST bytes when they are encoded.  Shard COORD is named as COORD + ORIGIN.  All borrowed.
 */
int cm_shard_set_create(cm_store *store, const char *prefix, const cm_zarr_meta *meta,
                        const cm_shard_spec *spec, const cm_grid *grid, const cm_grid *outer,
                        const uint64_t *origin, size_t chunk_most, cm_shard_set **out,
                        cm_error *err);
/* Aborts what is not whole.  NULL accepted. */
void cm_shard_set_free(cm_shard_set *set);
/*
 * Shards that are there are being read: each that is made keeps what the one before it names at its
 * offset (shard_old.h).  Before any chunk.
 */
void cm_shard_set_replace(cm_shard_set *set);
/* Where chunks wait for those in front of them.  Before any chunk. */
void cm_shard_set_early(cm_shard_set *set, cm_early *early);
/* Of one shard; *sent of it is the store's. */
size_t cm_shard_set_memory(const cm_shard_set *set, size_t *sent);

/*
 * The first of the N >= 1 chunks PUT, numbers of the array's grid, and those after
 * it that are of its shard: *taken of them.  DATA NULL: the chunk is left out.
 */
int cm_shard_set_deliver(cm_shard_set *set, const cm_put *put, size_t n, size_t *taken,
                         cm_shard_done *done, cm_error *err);

#endif
