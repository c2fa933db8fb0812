/*
 * The data layout message of a dataset, read from its object header.
 *
 * HDF5's own interface does not show the address of a chunk index, and asking it for one chunk
 * after the other is quadratic before H5Dchunk_iter (1.10.10, 1.12.3, 1.14.0).  Source: "HDF5 File
 * Format Specification" version 3.0, IV.A (object headers, versions 1 and 2, continuations) and
 * IV.A.2.i (data layout message, versions 1 to 4).
 */
#ifndef CM_FORMAT_NC_H5_OBJECT_H
#define CM_FORMAT_NC_H5_OBJECT_H

#include "format/nc/h5_super.h"

typedef enum cm_h5_index {
    CM_H5_INDEX_NONE, /* not chunked */
    CM_H5_INDEX_BTREE1,
    CM_H5_INDEX_SINGLE,
    CM_H5_INDEX_IMPLICIT,
    CM_H5_INDEX_FIXED_ARRAY,
    CM_H5_INDEX_EXTENSIBLE_ARRAY,
    CM_H5_INDEX_BTREE2
} cm_h5_index;

typedef struct cm_h5_layout_message {
    cm_h5_index index;
    unsigned rank;    /* of chunked data, without the dimension of the element's bytes */
    uint64_t address; /* of the index or of the data, from the file's base; CM_H5_UNDEFINED: none */
    uint64_t single_nbytes; /* CM_H5_INDEX_SINGLE of filtered data: stored bytes */
    uint32_t single_mask;   /* CM_H5_INDEX_SINGLE of filtered data: filter mask */
    bool single_filtered;
} cm_h5_layout_message;

/* HEADER is the object header's address from the file's base. */
int cm_h5_layout_read(const cm_source *source, const cm_h5_super *super, uint64_t header,
                      cm_h5_layout_message *out, cm_error *err);

#endif
