/*
 * Arrays whose elements lie in a file in C order, at computed offsets: contiguous HDF5 datasets and
 * the variables of NetCDF classic files, where the first dimension may have a stride of its own
 * (records).
 */
#ifndef CM_FORMAT_NC_SLAB_H
#define CM_FORMAT_NC_SLAB_H

#include "format/nc/source.h"
#include "model/box.h"

typedef struct cm_slab {
    cm_source source;
    uint64_t begin;      /* of the first element */
    uint64_t row_stride; /* bytes from one index of the first dimension to the next */
    uint32_t itemsize;
    uint32_t swap; /* unit whose bytes are reversed in the file; 1: none */
} cm_slab;

/* BOX of an array of SHAPE into DST, little-endian.  Any thread, without a lock. */
int cm_slab_read(const cm_slab *slab, const uint64_t *shape, const cm_box *box, void *dst,
                 cm_error *err);

#endif
