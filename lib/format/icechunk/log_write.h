/*
 * Writes the transaction log of a commit: ids of nodes, and the index of each chunk that has a new
 * reference.  It has 12 bytes and more for each chunk, so it is written as it is made.
 */
#ifndef CM_FORMAT_ICECHUNK_LOG_WRITE_H
#define CM_FORMAT_ICECHUNK_LOG_WRITE_H

#include "format/icechunk/places.h"
#include "store/store.h"

/* The new references of an array. */
typedef struct cm_ice_log_array {
    uint8_t node[CM_ICE_NODE_ID];
    unsigned rank;
    const uint64_t *shape;   /* of the grid, in chunks */
    const uint64_t *present; /* a bit for each: it has one */
    uint64_t nrefs;
} cm_ice_log_array;

/* N ids of 8 bytes, sorted. */
typedef struct cm_ice_ids {
    const uint8_t *id;
    size_t n;
} cm_ice_ids;

typedef struct cm_ice_log_content {
    uint8_t id[CM_ICE_ID]; /* of the snapshot */
    cm_ice_ids new_groups, new_arrays, deleted_groups, deleted_arrays, updated_groups,
        updated_arrays;
    const cm_ice_log_array *array; /* sorted by id */
    size_t narrays;
} cm_ice_log_content;

/* "transactions/ID" in the repository ROOT. */
int cm_ice_log_write(cm_store *root, const cm_ice_log_content *log, cm_error *err);

#endif
