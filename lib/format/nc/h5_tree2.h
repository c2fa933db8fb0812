/*
 * The records of a version 2 B-tree.
 *
 * Source: "HDF5 File Format Specification" version 3.0, III.A.2.
 */
#ifndef CM_FORMAT_NC_H5_TREE2_H
#define CM_FORMAT_NC_H5_TREE2_H

#include "format/nc/h5_bytes.h"

typedef enum cm_h5_tree2_type {
    CM_H5_TREE2_HUGE = 1, /* huge objects of a heap, by number */
    CM_H5_TREE2_LINKS = 5,
    CM_H5_TREE2_LINKS_IN_ORDER = 6,
    CM_H5_TREE2_ATTRIBUTES = 8,
    CM_H5_TREE2_ATTRIBUTES_IN_ORDER = 9
} cm_h5_tree2_type;

/* A value other than zero stops the walk and is passed on. */
typedef int cm_h5_tree2_visit(void *context, const uint8_t *record);

/* Visits all records, of NBYTES each, of the tree at ADDRESS in its order. */
int cm_h5_tree2_walk(cm_h5_bytes *b, uint64_t address, cm_h5_tree2_type type, unsigned nbytes,
                     cm_h5_tree2_visit *visit, void *context);

#endif
