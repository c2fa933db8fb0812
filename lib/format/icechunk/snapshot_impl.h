/* Shared by snapshot_write.c (nodes) and snapshot_files.c (the list of manifests). */
#ifndef CM_FORMAT_ICECHUNK_SNAPSHOT_IMPL_H
#define CM_FORMAT_ICECHUNK_SNAPSHOT_IMPL_H

#include "format/icechunk/snapshot_write.h"

static inline bool cm_ice_node_is_array(const cm_fb_table *node)
{
    return cm_fb_u64(node, CM_ICE_NODE_TYPE) == CM_ICE_IS_ARRAY;
}

/* Of TREE, whose nodes are those of the new snapshot. */
int cm_ice_snapshot_list_manifests(cm_fb_tree *tree, const cm_ice_change *change, cm_error *err);

#endif
