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
    bool implied;      /* a group without metadata of its own: a folder above other nodes */
} cm_zarr_node;

/*
 * All groups and arrays of a store, parents before children, else sorted by path.  Borrows the
 * store.
 */
typedef struct cm_zarr_tree {
    cm_store *store;
    int zarr_format;
    bool consolidated; /* read from consolidated metadata */
    char *ignored;     /* why there are consolidated metadata that were not read; NULL: none are */
    cm_zarr_node *node;
    size_t nnodes;
    /* Where the folders were walked: files that belong to no node, and links to folders that are
     * no nodes, which are not followed. */
    uint64_t nforeign;
    char *foreign; /* the first of them */
} cm_zarr_tree;

/*
 * Reads consolidated metadata where they are there and valid, and walks the
 * folders otherwise, through those without metadata too, which are groups
 * (`implied`) where nodes lie below.  The root may be an array, or a folder above
 * nodes.  CM_EFORMAT "no Zarr store" when there are neither zarr.json, .zgroup,
 * .zarray nor .zmetadata.  Errors name the key, not the store.
 */
int cm_zarr_open(cm_store *store, cm_zarr_tree *out, cm_error *err);
void cm_zarr_tree_release(cm_zarr_tree *tree);
const cm_zarr_node *cm_zarr_find(const cm_zarr_tree *tree, const char *path);

/*
 * What one reader sees and another does not: some (xarray, zarr-python) go by
 * consolidated metadata, others (tensorstore) by the documents of the nodes.
 */
typedef enum cm_zarr_conflict_kind {
    CM_ZARR_IGNORED,   /* consolidated metadata, of the group PATH, cannot be read: WHAT says why */
    CM_ZARR_UNLISTED,  /* the node has a document that they do not list */
    CM_ZARR_LOST,      /* they list it, and it has no document */
    CM_ZARR_BROKEN,    /* they list it, and its document cannot be read: WHAT says why */
    CM_ZARR_DIFFERENT, /* both are there, and the members in WHAT differ: "fill_value, codecs" */
    CM_ZARR_REORDERED  /* both are there, with attributes in another order */
} cm_zarr_conflict_kind;

typedef struct cm_zarr_conflict {
    cm_zarr_conflict_kind kind;
    char *path;  /* of the node */
    char *group; /* whose consolidated metadata it is about: "" is the root */
    char *what;  /* or NULL */
} cm_zarr_conflict;

typedef struct cm_zarr_conflicts {
    cm_zarr_conflict *item;
    size_t n;
} cm_zarr_conflicts;

/*
 * As cm_zarr_open, and the folders are walked in any case, but behind a network: nodes
 * that consolidated metadata do not list are added to the tree, and where the two say different
 * things, the tree has what they say, and *conflicts names it.
 */
int cm_zarr_open_whole(cm_store *store, cm_zarr_tree *out, cm_zarr_conflicts *conflicts,
                       cm_error *err);
void cm_zarr_conflicts_release(cm_zarr_conflicts *conflicts);

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
