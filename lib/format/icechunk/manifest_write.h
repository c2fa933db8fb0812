/*
 * Writes the manifests of arrays: of a large one one for each range of its chunks along the first
 * dimensions, so that a reader fetches few references it does not want, and the writer holds one
 * range at a time; small arrays share one, so that coordinates cost one request.
 */
#ifndef CM_FORMAT_ICECHUNK_MANIFEST_WRITE_H
#define CM_FORMAT_ICECHUNK_MANIFEST_WRITE_H

#include "format/icechunk/kept.h"
#include "format/icechunk/records.h"
#include "store/store.h"

enum {
    CM_ICE_SMALL_ARRAY = 1 << 10 /* chunks of an array that shares one */
};

typedef struct cm_ice_manifest {
    uint8_t id[CM_ICE_ID];
    uint64_t nbytes; /* of the file */
    uint32_t nrefs;
    bool listed; /* as another array's, or by the snapshot before, already */
    cm_ice_extent extent;
} cm_ice_manifest;

/* Manifests of one array; one that is shared has the references of all in its count. */
typedef struct cm_ice_manifests {
    cm_ice_manifest *item;
    size_t n, capacity;
    /*
     * A bit for each chunk of the grid: it has a reference, or, where an array is changed, another
     * one than before.
     */
    uint64_t *present;
    uint64_t nrefs;    /* such bits */
    uint64_t noutside; /* of them: in files outside the repository */
} cm_ice_manifests;

/* An array, and what becomes of it. */
typedef struct cm_ice_manifest_job {
    const cm_ice_places *places;
    /*
     * The array in a snapshot, which the commit changes: its manifests stay where no chunk has
     * another place.  NULL: the array is new, and no chunk is CM_ICE_KEPT.
     */
    const cm_fb_table *was;
    uint8_t node[CM_ICE_NODE_ID];
    cm_ice_manifests *out;
} cm_ice_manifest_job;

/*
 * Writes those of the N arrays JOB, which are sorted by node, into the repository ROOT; each
 * manifest has an id of its own, which RECORDS note before.
 */
int cm_ice_manifests_write(cm_store *root, cm_ice_records *records, cm_ice_manifest_job *job,
                           size_t n, cm_error *err);
void cm_ice_manifests_release(cm_ice_manifests *m); /* zeroed memory accepted */

#endif
