/*
 * Chunks that an array has in a snapshot already, for a commit that changes some of the array's
 * others: which manifests list them, and where they lie.
 */
#ifndef CM_FORMAT_ICECHUNK_KEPT_H
#define CM_FORMAT_ICECHUNK_KEPT_H

#include "format/icechunk/manifest_read.h"

/* Indices FIRST to END, which is not among them, of chunks. */
typedef struct cm_ice_extent {
    uint32_t first[CM_MAX_RANK], end[CM_MAX_RANK];
} cm_ice_extent;

/* Manifests of a node of a snapshot.  CM_EFORMAT: manifest I is of another rank than RANK. */
size_t cm_ice_node_nmanifests(const cm_fb_table *node);
int cm_ice_node_manifest(const cm_fb_table *node, size_t i, unsigned rank, const uint8_t **id,
                         cm_ice_extent *out, cm_error *err);
/* Where the chunks of an array lie. */
typedef enum cm_ice_holds {
    CM_ICE_HOLDS_NOTHING,
    CM_ICE_HOLDS_CHUNKS, /* all of them in the repository */
    CM_ICE_HOLDS_REFERENCES
} cm_ice_holds;

/* Reads manifests of NODE up to the first reference to another file. */
int cm_ice_node_holds(cm_store *root, const cm_fb_table *node, cm_ice_holds *out, cm_error *err);
bool cm_ice_extents_meet(const cm_ice_extent *a, const cm_ice_extent *b, unsigned rank);

/* Reads manifests, one at a time; the one read last stays. */
typedef struct cm_ice_kept {
    cm_store *root;
    cm_ice_manifest_view manifest;
    uint8_t id[CM_ICE_ID]; /* of it */
    bool there;
    cm_fb_tree bytes; /* owner of all that places borrow */
    cm_ice_location *location;
    size_t nlocations, capacity;
    cm_ice_text packed; /* the compressed form of the last one, in the manifest; N 0: it has none */
} cm_ice_kept;

/*
 * Places of the chunks of EXTENT, in the order of their grid: those that are CM_ICE_KEPT become
 * what NODE has there.  What they borrow is valid until cm_ice_kept_forget.
 */
int cm_ice_kept_find(cm_ice_kept *k, const cm_fb_table *node, unsigned rank,
                     const cm_ice_extent *extent, cm_ice_place *place, cm_error *err);
/* That of a chunk outside, by its place, whose number has CM_ICE_LOCATION_KEPT. */
const cm_ice_location *cm_ice_kept_locate(const cm_ice_kept *k, uint32_t number);
void cm_ice_kept_forget(cm_ice_kept *k);
void cm_ice_kept_release(cm_ice_kept *k); /* zeroed memory accepted */

#endif
