/* Names of objects below an array, judged by its metadata: chunk keys read back into numbers. */
#ifndef CM_FORMAT_ZARR_CHUNK_NAME_H
#define CM_FORMAT_ZARR_CHUNK_NAME_H

#include "format/zarr/meta.h"

/* The possible names of an array's chunks. */
typedef struct cm_chunk_names {
    const cm_zarr_meta *meta; /* borrowed */
    bool has_grid;            /* false: unknown kind of grid; any number fits */
    cm_grid grid;             /* of objects: shards if there are shards */
} cm_chunk_names;

void cm_chunk_names_init(const cm_zarr_meta *meta, cm_chunk_names *out);

typedef enum cm_chunk_name {
    CM_CHUNK_NAME_OTHER,   /* none of a chunk */
    CM_CHUNK_NAME_ABOVE,   /* a folder on the way to chunks */
    CM_CHUNK_NAME_OUTSIDE, /* of a chunk that the grid does not have */
    CM_CHUNK_NAME_CHUNK
} cm_chunk_name;

/*
 * The kind of BELOW, a path relative to the array.  COORD, which may be NULL, gets the numbers of a
 * chunk, as the object's key has them.
 */
cm_chunk_name cm_chunk_name_parse(const cm_chunk_names *names, const char *below, uint64_t *coord);

/* True for the names of documents that a node may have: "zarr.json", ".zarray", ... */
bool cm_zarr_is_document(const char *name);

#endif
