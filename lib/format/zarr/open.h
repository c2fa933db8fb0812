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
    char *unsupported; /* why it cannot be read, only listed and carried over; NULL: readable */
    bool implied;      /* a group without metadata of its own: a folder above nodes */
} cm_zarr_node;

/*
 * All groups and arrays of a store, parents before children, otherwise sorted by path.  Borrows the
 * store.
 */
typedef struct cm_zarr_tree {
    cm_store *store;
    int zarr_format;
    bool consolidated; /* read from consolidated metadata */
    /* Why existing consolidated metadata were not read; NULL: none were ignored. */
    char *ignored;
    cm_zarr_node *node;
    size_t nnodes;
    /*
     * If the folders were walked: files that belong to no node, and links to folders that are not
     * nodes, which are not followed.
     */
    uint64_t nforeign;
    char *foreign; /* the first of them */
} cm_zarr_tree;

/*
 * Reads consolidated metadata if they exist and are valid, and walks the folders otherwise; a
 * folder above nodes without metadata is a group (`implied`).  The root may be an array, or a
 * folder above nodes.  CM_EFORMAT "no Zarr store" when there are neither zarr.json, .zgroup,
 * .zarray nor .zmetadata.  Errors name the key, not the store.
 */
int cm_zarr_open(cm_store *store, cm_zarr_tree *out, cm_error *err);
void cm_zarr_tree_release(cm_zarr_tree *tree);
const cm_zarr_node *cm_zarr_find(const cm_zarr_tree *tree, const char *path);

/*
 * Differences between readers: some (xarray, zarr-python) use consolidated metadata, others
 * (tensorstore) the documents of the nodes.
 */
typedef enum cm_zarr_conflict_kind {
    CM_ZARR_IGNORED,   /* the group PATH's consolidated metadata cannot be read: WHAT says why */
    CM_ZARR_UNLISTED,  /* the node has a document that is not listed */
    CM_ZARR_LOST,      /* the node is listed but has no document */
    CM_ZARR_BROKEN,    /* the node is listed but its document cannot be read: WHAT says why */
    CM_ZARR_DIFFERENT, /* both exist, and the members in WHAT differ: "fill_value, codecs" */
    CM_ZARR_REORDERED  /* both exist, with attributes in another order */
} cm_zarr_conflict_kind;

typedef struct cm_zarr_conflict {
    cm_zarr_conflict_kind kind;
    char *path;  /* of the node */
    char *group; /* the group with these consolidated metadata: "" is the root */
    char *what;  /* or NULL */
} cm_zarr_conflict;

typedef struct cm_zarr_conflicts {
    cm_zarr_conflict *item;
    size_t n;
} cm_zarr_conflicts;

/*
 * cm_zarr_open that also walks the folders, except behind a network: adds nodes that consolidated
 * metadata do not list; where documents differ, the tree has the consolidated form, and *conflicts
 * names the node.
 */
int cm_zarr_open_whole(cm_store *store, cm_zarr_tree *out, cm_zarr_conflicts *conflicts,
                       cm_error *err);
void cm_zarr_conflicts_release(cm_zarr_conflicts *conflicts);

/*
 * Opens the array at NODE for reading.  Sharded arrays (sharding_indexed alone in the chain) appear
 * with their inner chunks as grid; shard indices and open shards are cached inside, up to
 * INDEX_CACHE_NBYTES (the latest are always kept).  Other nestings are decoded through the chain.
 * TREE may be released before the array, the store not.
 */
int cm_zarr_array_open(const cm_zarr_tree *tree, const cm_zarr_node *node,
                       size_t index_cache_nbytes, cm_array **out, cm_error *err);

#endif
