/*
 * Arrays with chunks of several shapes: a chain of codecs for each shape, or where shards are of
 * several shapes a layout.
 *
 * Each is made when it is first asked for, and stays until the end.  All calls but create and free
 * may come from many threads at once.
 */
#ifndef CM_FORMAT_ZARR_SHAPES_H
#define CM_FORMAT_ZARR_SHAPES_H

#include "codec/shard.h"
#include "format/zarr/meta.h"

typedef struct cm_zarr_shapes cm_zarr_shapes;

/* For chunks of META, which may be released before.  *OUT is NULL for a grid of one shape. */
int cm_zarr_shapes_create(const cm_zarr_meta *meta, cm_zarr_shapes **out, cm_error *err);
void cm_zarr_shapes_free(cm_zarr_shapes *shapes); /* NULL accepted */

/* The chain that decodes a chunk of SHAPE; not for shards. */
int cm_zarr_shapes_chain(cm_zarr_shapes *shapes, const uint64_t *shape, const cm_chain **out,
                         cm_error *err);

/*
 * Shard COORD of OUTER: the coordinates FIRST, in the grid INNER, of its first chunk, and its
 * layout (ALL where SHAPES is NULL).
 */
int cm_zarr_shard_at(cm_zarr_shapes *shapes, const cm_shard_layout *all, const cm_grid *outer,
                     const cm_grid *inner, const uint64_t *coord, uint64_t *first,
                     const cm_shard_layout **out, cm_error *err);

#endif
