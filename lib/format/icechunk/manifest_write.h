/*
 * Writes the manifests of an array: one for each range of its chunks along the first dimensions, so
 * that a reader fetches few references it does not want, and the writer holds one range at a time.
 */
#ifndef CM_FORMAT_ICECHUNK_MANIFEST_WRITE_H
#define CM_FORMAT_ICECHUNK_MANIFEST_WRITE_H

#include "format/icechunk/places.h"
#include "format/icechunk/records.h"
#include "store/store.h"

enum {
    CM_ICE_MANIFEST_REFS = 1 << 16 /* of one manifest, at most */
};

typedef struct cm_ice_manifest {
    uint8_t id[CM_ICE_ID];
    uint64_t nbytes; /* of the file */
    uint32_t nrefs;
    uint32_t first[CM_MAX_RANK], end[CM_MAX_RANK]; /* of chunks; END is not in it */
} cm_ice_manifest;

/* Those of one array. */
typedef struct cm_ice_manifests {
    cm_ice_manifest *item;
    size_t n, capacity;
    uint64_t *present; /* a bit for each chunk of the grid: it has a reference */
    uint64_t nrefs;
    uint64_t ninline; /* of them */
} cm_ice_manifests;

/* Writes them into the repository ROOT; each has an id of its own, which RECORDS note before. */
int cm_ice_manifests_write(cm_store *root, cm_ice_records *records, const cm_ice_places *places,
                           const uint8_t node[CM_ICE_NODE_ID], cm_ice_manifests *out,
                           cm_error *err);
void cm_ice_manifests_release(cm_ice_manifests *m); /* zeroed memory accepted */

#endif
