/*
 * The chunks of a dataset that keeps them in a version 1 B-tree.
 *
 * Source: "HDF5 File Format Specification" version 3.0, III.A.1 (node type 1).
 */
#ifndef CM_FORMAT_NC_H5_BTREE_H
#define CM_FORMAT_NC_H5_BTREE_H

#include "format/nc/h5_super.h"

/* One stored chunk. */
typedef struct cm_h5_chunk {
    const uint64_t *offset; /* of its first element in the dataset, RANK numbers */
    uint64_t address;       /* from the start of the file */
    uint32_t nbytes;        /* stored */
    uint32_t mask;          /* filters that were skipped */
} cm_h5_chunk;

/* A value other than zero stops the walk and is passed on. */
typedef int cm_h5_visit(void *context, const cm_h5_chunk *chunk, cm_error *err);

/*
 * Visits all chunks below the node at ROOT (from the file's base) in the tree's
 * order.  Whatever the file holds, the walk ends: levels must fall by one, and
 * the nodes visited are together no longer than the file.
 */
int cm_h5_btree_visit(const cm_source *source, const cm_h5_super *super, uint64_t root,
                      unsigned rank, cm_h5_visit *visit, void *context, cm_error *err);

#endif
