/*
 * Opening Zarr hierarchies for reading.
 */
#ifndef CM_FORMAT_ZARR_OPEN_H
#define CM_FORMAT_ZARR_OPEN_H

#include "format/array.h"
#include "format/zarr/meta.h"
#include "store/store.h"

typedef struct cm_zarr_node {
    char *path; /* "" for the root, "a/b" below it */
    cm_zarr_meta meta;
    char *unsupported; /* why this node can be listed and carried over but not read; NULL: it can */
} cm_zarr_node;

/* All groups and arrays of a store, parents before children, else sorted by path.  Borrows the store. */
typedef struct cm_zarr_tree {
    cm_store *store;
    int zarr_format;
    bool consolidated; /* read from consolidated metadata */
    bool implied;      /* the root has no metadata of its own */
    cm_zarr_node *node;
    size_t nnodes;
} cm_zarr_tree;

/*
 * Reads consolidated metadata where it is there and valid, and walks the
 * folders otherwise.  The root may be an array.  A root without metadata above
 * nodes that have some is taken for a group (`implied`); groups missing between
 * consolidated nodes are added.  CM_EFORMAT "no Zarr store" when neither
 * zarr.json, .zgroup, .zarray nor .zmetadata is there or directly below.  Errors
 * name the key, not the store.
 */
int cm_zarr_open(cm_store *store, cm_zarr_tree *out, cm_error *err);
/* The same by walking the folders, whatever consolidated metadata say. */
int cm_zarr_open_folders(cm_store *store, int zarr_format, cm_zarr_tree *out, cm_error *err);
void cm_zarr_tree_release(cm_zarr_tree *tree);
const cm_zarr_node *cm_zarr_find(const cm_zarr_tree *tree, const char *path);

/*
 * The array at NODE for reading.  Sharded arrays (sharding_indexed alone in the
 * chain) appear with their inner chunks as grid; shard indices and open shards
 * are cached inside, up to INDEX_CACHE_NBYTES (the latest in any case).  Other nestings are decoded
 * through the chain.  Keeps what it needs: TREE may be released before the
 * array, the store not.
 */
int cm_zarr_array_open(const cm_zarr_tree *tree, const cm_zarr_node *node,
                       size_t index_cache_nbytes, cm_array **out, cm_error *err);

#endif
