#include "load/reader/chunk_walk.h"

void cm_chunk_walk_begin(cm_chunk_walk *w, const cm_array *a, const cm_box *box, size_t group)
{
    *w = (cm_chunk_walk){.grid = &a->grid, .group = group, .left = 1};
    cm_grid_cover(w->grid, box, w->first, w->count);
    for (unsigned j = 0; j < w->grid->rank; j++) {
        w->coord[j] = w->first[j];
        w->left *= w->count[j];
    }
}

size_t cm_chunk_walk_next(cm_chunk_walk *w, uint64_t *number)
{
    size_t n = 0;
    for (; w->left > 0 && n < w->group; w->left--) {
        number[n++] = cm_grid_number(w->grid, w->coord);
        for (unsigned j = w->grid->rank; j-- > 0 && ++w->coord[j] == w->first[j] + w->count[j];)
            w->coord[j] = w->first[j];
    }
    return n;
}
