/*
 * Addresses of a dataset's chunks: 16 bytes for each chunk of the grid or, if most are not stored,
 * 24 for each stored chunk.
 */
#ifndef CM_FORMAT_NC_CHUNK_INDEX_H
#define CM_FORMAT_NC_CHUNK_INDEX_H

#include "model/box.h"

typedef struct cm_chunk_entry {
    uint64_t number;
    uint64_t address; /* from the start of the file */
    uint32_t nbytes;  /* stored */
    uint32_t mask;    /* filters that were skipped */
} cm_chunk_entry;

typedef struct cm_chunk_place {
    uint64_t address;
    uint32_t nbytes; /* 0: not stored */
    uint32_t mask;
} cm_chunk_place;

/* Zero-initialise.  Immutable once finished; then many threads may read it. */
typedef struct cm_chunk_index {
    size_t nentries;
    uint64_t stored_nbytes;
    uint32_t max_nbytes;
    size_t capacity;
    cm_chunk_entry *entry; /* sorted by number; NULL when dense */
    cm_chunk_place *place; /* one for each chunk; NULL when sparse */
    uint64_t nchunks;
} cm_chunk_index;

/* Adds the chunk whose first element is OFFSET; ignores one outside GRID, as HDF5 does. */
int cm_chunk_index_add(cm_chunk_index *index, const cm_grid *grid, const uint64_t *offset,
                       uint64_t address, uint64_t nbytes, uint32_t mask, cm_error *err);
/* Sorts and packs.  CM_EFORMAT when a chunk appears twice. */
int cm_chunk_index_finish(cm_chunk_index *index, const cm_grid *grid, cm_error *err);
/* False when chunk NUMBER is not stored. */
bool cm_chunk_index_find(const cm_chunk_index *index, uint64_t number, cm_chunk_place *out);
void cm_chunk_index_release(cm_chunk_index *index);

#endif
