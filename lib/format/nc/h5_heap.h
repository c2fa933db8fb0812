/*
 * Objects of a fractal heap, which holds links and attributes that have outgrown their object
 * header, and of a global heap, which holds strings of variable length.
 *
 * Source: "HDF5 File Format Specification" version 3.0, III.G and III.E.
 */
#ifndef CM_FORMAT_NC_H5_HEAP_H
#define CM_FORMAT_NC_H5_HEAP_H

#include "format/nc/h5_bytes.h"

typedef struct cm_h5_heap {
    cm_h5_bytes *bytes;
    uint64_t address;      /* of its header */
    unsigned id_nbytes;    /* of an object's ID */
    unsigned place_nbytes; /* of an offset in the heap */
    unsigned size_nbytes;  /* of an object's length */
    unsigned width;        /* blocks in a row */
    uint64_t first;        /* bytes of a block of the first row */
    uint64_t most_direct;  /* bytes of the longest direct block */
    uint64_t most_managed; /* of an object in a block */
    bool checked;          /* direct blocks have checksums */
    uint64_t huge;         /* B-tree of huge objects */
    uint64_t root;
    unsigned root_nrows; /* 0: the root is a direct block */
    uint64_t known;      /* address of the block last checked */
} cm_h5_heap;

int cm_h5_heap_open(cm_h5_bytes *b, uint64_t address, cm_h5_heap *out);
/* The object with this ID of id_nbytes. */
int cm_h5_heap_find(cm_h5_heap *h, const uint8_t *id, const uint8_t **out, size_t *nbytes);

/* The object INDEX of the global heap at ADDRESS. */
int cm_h5_global_find(cm_h5_bytes *b, uint64_t address, uint64_t index, const uint8_t **out,
                      uint64_t *nbytes);

#endif
