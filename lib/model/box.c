#include "model/box.h"

#include <stdio.h>

uint64_t cm_box_nelem(const cm_box *box)
{
    uint64_t nelem = 1;
    for (unsigned j = 0; j < box->rank; j++)
        nelem *= box->shape[j];
    return nelem;
}

bool cm_box_intersect(const cm_box *a, const cm_box *b, cm_box *out)
{
    out->rank = a->rank;
    for (unsigned j = 0; j < a->rank; j++) {
        const uint64_t start = a->start[j] > b->start[j] ? a->start[j] : b->start[j];
        /* Compare lengths from START on: ends are not computed, so nothing overflows. */
        const uint64_t skip_a = start - a->start[j], skip_b = start - b->start[j];
        if (skip_a >= a->shape[j] || skip_b >= b->shape[j])
            return false;
        const uint64_t left_a = a->shape[j] - skip_a, left_b = b->shape[j] - skip_b;
        out->start[j] = start;
        out->shape[j] = left_a < left_b ? left_a : left_b;
    }
    return true;
}

bool cm_box_equal(const cm_box *a, const cm_box *b)
{
    if (a->rank != b->rank)
        return false;
    for (unsigned j = 0; j < a->rank; j++) {
        if (a->start[j] != b->start[j] || a->shape[j] != b->shape[j])
            return false;
    }
    return true;
}

int cm_grid_init(cm_grid *grid, unsigned rank, const uint64_t *shape, const uint64_t *chunk,
                 cm_error *err)
{
    if (rank > CM_MAX_RANK)
        return cm_fail(err, CM_EFORMAT, "%u dimensions, at most %d are handled", rank, CM_MAX_RANK);
    *grid = (cm_grid){.rank = rank};
    for (unsigned j = 0; j < rank; j++) {
        if (chunk[j] == 0)
            return cm_fail(err, CM_EFORMAT, "the chunk length of dimension %u is zero", j);
        grid->shape[j] = shape[j];
        grid->chunk[j] = chunk[j];
        grid->count[j] = shape[j] / chunk[j] + (shape[j] % chunk[j] != 0);
    }
    uint64_t nelem;
    if (!cm_product_u64(rank, shape, &nelem))
        return cm_fail(err, CM_EFORMAT, "the array has more than 2^64 elements");
    if (!cm_product_u64(rank, chunk, &grid->chunk_nelem))
        return cm_fail(err, CM_EFORMAT, "a chunk has more than 2^64 elements");
    if (!cm_product_u64(rank, grid->count, &grid->nchunks))
        return cm_fail(err, CM_EFORMAT, "the array has more than 2^64 chunks");
    return CM_OK;
}

int cm_grid_init_cut(cm_grid *grid, unsigned rank, const uint64_t *shape, const uint64_t *chunk,
                     const cm_cuts *const *cuts, cm_error *err)
{
    uint64_t longest[CM_MAX_RANK] = {0};
    for (unsigned j = 0; j < rank && j < CM_MAX_RANK; j++)
        longest[j] = cuts[j] != NULL ? cuts[j]->longest : chunk[j];
    int rc = cm_grid_init(grid, rank, shape, longest, err);
    if (rc != CM_OK)
        return rc;
    for (unsigned j = 0; j < rank; j++) {
        grid->cuts[j] = cuts[j];
        if (cuts[j] != NULL)
            grid->count[j] = cuts[j]->n;
    }
    if (!cm_product_u64(rank, grid->count, &grid->nchunks))
        return cm_fail(err, CM_EFORMAT, "the array has more than 2^64 chunks");
    return CM_OK;
}

bool cm_grid_is_cut(const cm_grid *grid)
{
    return cm_cuts_any(grid->cuts, grid->rank);
}

bool cm_grid_same_chunks(const cm_grid *a, const cm_grid *b)
{
    for (unsigned j = 0; j < a->rank; j++) {
        if (a->chunk[j] != b->chunk[j] || (a->cuts[j] == NULL) != (b->cuts[j] == NULL))
            return false;
        if (a->cuts[j] != NULL && !cm_cuts_equal(a->cuts[j], b->cuts[j]))
            return false;
    }
    return true;
}

void cm_grid_coord(const cm_grid *grid, uint64_t number, uint64_t *coord)
{
    for (unsigned j = grid->rank; j-- > 0;) {
        coord[j] = number % grid->count[j];
        number /= grid->count[j];
    }
}

uint64_t cm_grid_number(const cm_grid *grid, const uint64_t *coord)
{
    uint64_t number = 0;
    for (unsigned j = 0; j < grid->rank; j++)
        number = number * grid->count[j] + coord[j];
    return number;
}

uint64_t cm_grid_find(const cm_grid *grid, unsigned j, uint64_t position)
{
    return grid->cuts[j] != NULL ? cm_cuts_find(grid->cuts[j], position)
                                 : position / grid->chunk[j];
}

uint64_t cm_grid_first(const cm_grid *grid, unsigned j, uint64_t k)
{
    return grid->cuts[j] != NULL ? cm_cuts_first(grid->cuts[j], k) : k * grid->chunk[j];
}

void cm_grid_chunk_shape(const cm_grid *grid, const uint64_t *coord, uint64_t *shape)
{
    for (unsigned j = 0; j < grid->rank; j++)
        shape[j] = grid->cuts[j] != NULL ? cm_cuts_length(grid->cuts[j], coord[j]) : grid->chunk[j];
}

const cm_grid *cm_grid_around(const cm_grid *grid, const uint64_t *coord, cm_grid *own)
{
    if (!cm_grid_is_cut(grid))
        return grid;
    *own = *grid;
    cm_grid_chunk_shape(grid, coord, own->chunk);
    own->chunk_nelem = cm_grid_chunk_nelem(grid, coord);
    return own;
}

uint64_t cm_grid_chunk_nelem(const cm_grid *grid, const uint64_t *coord)
{
    uint64_t shape[CM_MAX_RANK], nelem = 1;
    cm_grid_chunk_shape(grid, coord, shape);
    for (unsigned j = 0; j < grid->rank; j++)
        nelem *= shape[j];
    return nelem;
}

void cm_grid_box(const cm_grid *grid, const uint64_t *coord, cm_box *out)
{
    out->rank = grid->rank;
    for (unsigned j = 0; j < grid->rank; j++) {
        const cm_cuts *cuts = grid->cuts[j];
        const uint64_t start = cm_grid_first(grid, j, coord[j]);
        const uint64_t left = (cuts != NULL ? cm_cuts_end(cuts, coord[j]) : grid->shape[j]) - start;
        out->start[j] = start;
        out->shape[j] = left < grid->chunk[j] ? left : grid->chunk[j];
    }
}

void cm_grid_chunk_box(const cm_grid *grid, uint64_t number, cm_box *out)
{
    uint64_t coord[CM_MAX_RANK];
    cm_grid_coord(grid, number, coord);
    cm_grid_box(grid, coord, out);
}

bool cm_grid_is_edge(const cm_grid *grid, const uint64_t *coord)
{
    uint64_t shape[CM_MAX_RANK];
    cm_grid_chunk_shape(grid, coord, shape);
    for (unsigned j = 0; j < grid->rank; j++)
        if (grid->shape[j] - cm_grid_first(grid, j, coord[j]) < shape[j])
            return true;
    return false;
}

void cm_grid_cover(const cm_grid *grid, const cm_box *box, uint64_t *first, uint64_t *count)
{
    for (unsigned j = 0; j < grid->rank; j++) {
        first[j] = cm_grid_find(grid, j, box->start[j]);
        count[j] = cm_grid_find(grid, j, box->start[j] + box->shape[j] - 1) - first[j] + 1;
    }
}

uint64_t cm_grid_stored_nelem(const cm_grid *grid, const uint64_t *first, const uint64_t *count)
{
    uint64_t nelem = 1;
    for (unsigned j = 0; j < grid->rank; j++) {
        const cm_cuts *cuts = grid->cuts[j];
        nelem *= cuts != NULL ? cm_cuts_sum(cuts, first[j], first[j] + count[j])
                              : count[j] * grid->chunk[j];
    }
    return nelem;
}

bool cm_grid_chunks_are_runs(const cm_grid *grid, const uint64_t *shape)
{
    unsigned j = grid->rank;
    while (j > 0 && grid->cuts[j - 1] == NULL && grid->chunk[j - 1] == shape[j - 1])
        j--;
    for (unsigned k = 0; k + 1 < j; k++)
        if (grid->chunk[k] != 1)
            return false;
    return true;
}

static char *join(unsigned rank, const uint64_t *value, char separator, const char *none, char *buf,
                  size_t size)
{
    if (rank == 0)
        snprintf(buf, size, "%s", none);
    size_t used = 0;
    for (unsigned j = 0; j < rank; j++) {
        const char between[2] = {j ? separator : 0, 0};
        int n = snprintf(buf + used, size - used, "%s%llu", between, (unsigned long long)value[j]);
        if (n < 0 || (size_t)n >= size - used)
            break;
        used += (size_t)n;
    }
    return buf;
}

char *cm_coord_text(unsigned rank, const uint64_t *coord, char *buf, size_t size)
{
    return join(rank, coord, '/', "0", buf, size);
}

void cm_grid_explain(const cm_grid *grid, uint64_t number, const char *what, const char *name,
                     cm_error *err)
{
    uint64_t coord[CM_MAX_RANK];
    char text[CM_MAX_RANK * 21];
    cm_grid_coord(grid, number, coord);
    cm_error_prefix(err, "%s %s: chunk %s", what, name[0] != '\0' ? name : "/",
                    cm_coord_text(grid->rank, coord, text, sizeof text));
}

char *cm_shape_text(unsigned rank, const uint64_t *shape, char *buf, size_t size)
{
    return join(rank, shape, 'x', "scalar", buf, size);
}
