/* A hierarchy while it is read, by tree.c for conflicts.c. */
#ifndef CM_FORMAT_ZARR_TREE_H
#define CM_FORMAT_ZARR_TREE_H

#include "format/zarr/open.h"

/* PATH/NAME as JSON; CM_ENOTFOUND when absent, errors of content name the key. */
int cm_zarr_get_json(cm_store *store, const char *path, const char *name, cm_json **out,
                     cm_error *err);

/* Moves *NODE, which is empty then also when it fails, behind the nodes of TREE. */
int cm_zarr_tree_take(cm_zarr_tree *tree, cm_zarr_node *node, cm_error *err);
/* Sorts the nodes, and adds the groups that are missing above them. */
int cm_zarr_tree_complete(cm_zarr_tree *tree, cm_error *err);

/*
 * The document of the node at PATH cannot be read, as WHY says; *IS_GROUP: what lies below is
 * walked.
 */
typedef int cm_zarr_broken(void *context, const char *path, const char *why, bool *is_group,
                           cm_error *err);
/*
 * Fills TREE, which has its store and format, from the folders.  With BROKEN
 * documents that cannot be read are passed to it, and the root needs none.
 */
int cm_zarr_tree_walk(cm_zarr_tree *tree, cm_zarr_broken *broken, void *context, cm_error *err);

/*
 * The member "metadata" of a group's consolidated metadata, when there is something in it; or
 * NULL.
 */
const cm_json *cm_zarr_consolidated_v3(const cm_json *root);
/* Fills TREE from NODES, the consolidated metadata in ROOT. */
int cm_zarr_tree_load_v3(cm_zarr_tree *tree, const cm_json *root, const cm_json *nodes,
                         cm_error *err);

#endif
