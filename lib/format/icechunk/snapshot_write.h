/* Makes the next snapshot out of its parent and new nodes. */
#ifndef CM_FORMAT_ICECHUNK_SNAPSHOT_WRITE_H
#define CM_FORMAT_ICECHUNK_SNAPSHOT_WRITE_H

#include "base/json.h"
#include "format/icechunk/nodes.h"

typedef struct cm_ice_change {
    const char *message;
    const cm_json *metadata; /* an object, or NULL */
    cm_ice_new_node *node;   /* sorted by path */
    size_t n;
    bool replaces;      /* nodes that are there */
    char *const *drops; /* paths of groups that go, with all below them */
    size_t ndrops;
    char *const *relied; /* paths of nodes that stay, and that the new ones were made by */
    size_t nrelied;
    const char *grows; /* dimension of updated arrays that gets longer; or NULL */
    uint64_t now_us;
} cm_ice_change;

/* Orders paths as snapshots do. */
int cm_ice_node_compare(const void *a, const void *b);
/*
 * Turns SNAPSHOT, the tree of the parent, into that of the snapshot ID, and writes it and its
 * transaction log into ROOT.  BASE is the snapshot that the run began with, or NULL where that is
 * the parent: what is replaced or relied on must be the same in both, and no array of the dimension
 * that grows was added beside one that is updated.  CM_EEXIST: that does not hold, or a node is in
 * the way.
 */
int cm_ice_snapshot_write(cm_store *root, cm_fb_tree *snapshot, const cm_fb_table *base,
                          const cm_ice_change *change, const uint8_t id[CM_ICE_ID], cm_error *err);
/* The node at PATH; NULL: there is none. */
const cm_fb_table *cm_ice_snapshot_find(const cm_fb_table *snapshot, const char *path);
/* Whether CHANGE can be applied to SNAPSHOT: CM_EEXIST as above; nothing changes. */
int cm_ice_snapshot_check(const cm_fb_table *snapshot, const cm_fb_table *base,
                          const cm_ice_change *change, cm_error *err);
/* A list of MetadataItem in SLOT of T, from the object METADATA. */
int cm_ice_set_metadata(cm_fb_tree *tree, cm_fb_table *t, unsigned slot, const cm_json *metadata,
                        cm_error *err);
/* Metadata of every repository's first snapshot; to be freed, also after an error. */
int cm_ice_initial_metadata(cm_json **out, cm_error *err);
/* An empty one, as every repository has it first. */
int cm_ice_snapshot_initial(cm_fb_tree *tree, uint64_t now_us, cm_error *err);

extern const uint8_t cm_ice_initial_id[CM_ICE_ID];
#define CM_ICE_INITIAL_MESSAGE "Repository initialized"

#endif
