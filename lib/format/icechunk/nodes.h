/* Nodes that a commit adds to a snapshot, or replaces. */
#ifndef CM_FORMAT_ICECHUNK_NODES_H
#define CM_FORMAT_ICECHUNK_NODES_H

#include "format/icechunk/manifest_write.h"

typedef struct cm_ice_new_node {
    const char *path; /* "/", "/group/array" */
    const void *document;
    size_t nbytes;
    bool is_array;
    unsigned rank; /* of an array; from its document: */
    uint64_t length[CM_MAX_RANK], nchunks[CM_MAX_RANK];
    char *dimension[CM_MAX_RANK]; /* NULL: no name; named: there are names */
    bool named;
    bool plain;   /* of a group: it has no attributes */
    bool implied; /* of a group: it is there for what lies below, and replaces none */
    bool updates; /* the node that is there, whose id it has: that one changes */
    const cm_ice_manifests *manifests;
    uint8_t id[CM_ICE_NODE_ID];
} cm_ice_new_node;

/* Reads what a snapshot says of the node from its document; CM_EFORMAT where it is no zarr.json. */
int cm_ice_node_parse(cm_ice_new_node *node, cm_error *err);
void cm_ice_node_release(cm_ice_new_node *node); /* names of dimensions */

#endif
