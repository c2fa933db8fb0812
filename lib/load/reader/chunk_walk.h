/* The chunks that a box meets, group by group, in the order in which a reader fetches them. */
#ifndef CM_LOAD_READER_CHUNK_WALK_H
#define CM_LOAD_READER_CHUNK_WALK_H

#include "format/array.h"

enum {
    CM_READ_GROUP_CHUNKS = 256 /* fetched at once at most */
};

typedef struct cm_chunk_walk {
    const cm_grid *grid; /* NULL: at its end */
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], coord[CM_MAX_RANK];
    uint64_t left;
    size_t group;
} cm_chunk_walk;

/* GROUP chunks at a time, as cm_reader_group says. */
void cm_chunk_walk_begin(cm_chunk_walk *w, const cm_array *a, const cm_box *box, size_t group);
/* The next group into NUMBER; how many they are, 0 at the end. */
size_t cm_chunk_walk_next(cm_chunk_walk *w, uint64_t *number);

#endif
