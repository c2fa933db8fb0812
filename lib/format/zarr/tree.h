/* A hierarchy while it is read; shared by tree.c and conflicts.c. */
#ifndef CM_FORMAT_ZARR_TREE_H
#define CM_FORMAT_ZARR_TREE_H

#include "format/zarr/open.h"

/* Reads PATH/NAME as JSON; CM_ENOTFOUND when absent; errors of content name the key. */
int cm_zarr_get_json(cm_store *store, const char *path, const char *name, cm_json **out,
                     cm_error *err);

/* Moves *NODE behind the nodes of TREE; *NODE is empty afterwards, also on failure. */
int cm_zarr_tree_take(cm_zarr_tree *tree, cm_zarr_node *node, cm_error *err);
/* Sorts the nodes, and adds missing groups above them. */
int cm_zarr_tree_complete(cm_zarr_tree *tree, cm_error *err);

/*
 * Called for the node at PATH whose document cannot be read, because of WHY; *IS_GROUP: also walk
 * the folders below.
 */
typedef int cm_zarr_broken(void *context, const char *path, const char *why, bool *is_group,
                           cm_error *err);
/*
 * Fills TREE, which has its store and format, from the folders.  BROKEN gets unreadable documents;
 * with it the root needs none.
 */
int cm_zarr_tree_walk(cm_zarr_tree *tree, cm_zarr_broken *broken, void *context, cm_error *err);

/* The non-empty member "metadata" of a group's consolidated metadata; or NULL. */
const cm_json *cm_zarr_consolidated_v3(const cm_json *root);
/* Fills TREE from NODES, ROOT's consolidated metadata. */
int cm_zarr_tree_load_v3(cm_zarr_tree *tree, const cm_json *root, const cm_json *nodes,
                         cm_error *err);

#endif
