/* C order of chunks of arrays that share some of their dimensions. */
#include <stdlib.h>

#include "base/mem.h"
#include "plan/epoch_impl.h"
#include "plan/radix.h"

/*
 * A place in the sample space as one number: along each dimension the place in
 * units, the last of `order` counting fastest.
 */
typedef struct place_code {
    unsigned order[CM_MAX_RANK]; /* dimensions that every array has before the others */
    unsigned rank;
    uint64_t unit[CM_MAX_RANK];
    uint64_t count[CM_MAX_RANK]; /* units */
} place_code;

static int axis_of(const cm_epoch_request *q, size_t array, unsigned j)
{
    for (size_t p = 0; p < q->nparts; p++) {
        const cm_sample_part *part = &q->part[p];
        for (unsigned d = 0; part->array == array && d < part->rank; d++)
            if (part->axis[d] == (int)j)
                return (int)d;
    }
    return -1;
}

/* The unit along J is the shortest chunk; false where some array lacks the dimension. */
static bool find_unit(const cm_epoch_request *q, unsigned j, uint64_t *unit)
{
    bool everywhere = true;

    *unit = q->space->length[j];
    for (size_t a = 0; a < q->narrays; a++) {
        const int d = axis_of(q, a, j);
        if (d < 0)
            everywhere = false;
        else if (q->grid[a]->chunk[d] < *unit)
            *unit = q->grid[a]->chunk[d];
    }
    return everywhere;
}

static void code_init(const cm_epoch_request *q, place_code *code)
{
    bool everywhere[CM_MAX_RANK];
    uint64_t total;

    code->rank = 0;
    for (unsigned j = 0; j < q->space->rank; j++)
        everywhere[j] = find_unit(q, j, &code->unit[j]);
    for (int some = 0; some < 2; some++)
        for (unsigned j = 0; j < q->space->rank; j++)
            if (everywhere[j] == !some)
                code->order[code->rank++] = j;
    for (unsigned j = 0; j < code->rank; j++)
        code->count[j] = (q->space->length[j] - 1) / code->unit[j] + 1;
    /* Where the number exceeds 64 bits the finest dimension is looked at with less care. */
    while (!cm_product_u64(code->rank, code->count, &total)) {
        unsigned most = 0;
        for (unsigned j = 1; j < code->rank; j++)
            if (code->count[j] > code->count[most])
                most = j;
        code->unit[most] *= 2;
        code->count[most] = (q->space->length[most] - 1) / code->unit[most] + 1;
    }
}

static uint64_t code_of(const cm_epoch_request *q, const place_code *code, const int *axis,
                        const cm_epoch_distinct *chunk)
{
    const cm_grid *grid = q->grid[chunk->array];
    uint64_t coord[CM_MAX_RANK], number = 0;

    cm_grid_coord(grid, chunk->number, coord);
    for (unsigned i = 0; i < code->rank; i++) {
        const unsigned j = code->order[i];
        const int d = axis[j];
        uint64_t at = d < 0 ? 0 : coord[d] * grid->chunk[d] / code->unit[j];
        if (at >= code->count[j]) /* reached by lags only */
            at = code->count[j] - 1;
        number = number * code->count[j] + at;
    }
    return number;
}

static int sort_by_place(const cm_epoch_request *q, const cm_epoch_meetings *m, cm_keyed *item,
                         cm_error *err)
{
    place_code code;
    int(*axis)[CM_MAX_RANK] = cm_calloc(q->narrays, sizeof(*axis), err);

    if (axis == NULL)
        return CM_ENOMEM;
    for (size_t a = 0; a < q->narrays; a++)
        for (unsigned j = 0; j < q->space->rank; j++)
            axis[a][j] = axis_of(q, a, j);
    code_init(q, &code);
    /* Chunks of the same place come in C order of their array, and array after array. */
    for (uint32_t c = 0; c < m->nchunks; c++)
        item[c] = (cm_keyed){m->chunk[c].number, c};
    int rc = cm_radix_sort(item, m->nchunks, err);
    for (uint32_t c = 0; c < m->nchunks; c++)
        item[c].key = m->chunk[item[c].value].array;
    if (rc == CM_OK)
        rc = cm_radix_sort(item, m->nchunks, err);
    for (uint32_t c = 0; c < m->nchunks; c++) {
        const cm_epoch_distinct *chunk = &m->chunk[item[c].value];
        item[c].key = code_of(q, &code, axis[chunk->array], chunk);
    }
    if (rc == CM_OK)
        rc = cm_radix_sort(item, m->nchunks, err);
    free(axis);
    return rc;
}

int cm_epoch_meetings_sort(const cm_epoch_request *request, cm_epoch_meetings *meetings,
                           cm_error *err)
{
    cm_epoch_meetings *m = meetings;
    cm_epoch_distinct *sorted = NULL;
    uint32_t *rank = NULL;
    int rc = CM_ENOMEM;

    if (m->nchunks == 0)
        return CM_OK;
    cm_keyed *item = cm_calloc(m->nchunks, sizeof(*item), err);
    if (item == NULL)
        return CM_ENOMEM;
    rc = sort_by_place(request, m, item, err);
    if (rc != CM_OK)
        goto out;
    rc = CM_ENOMEM;
    sorted = cm_calloc(m->nchunks, sizeof(*sorted), err);
    rank = sorted == NULL ? NULL : cm_calloc(m->nchunks, sizeof(*rank), err);
    if (rank == NULL)
        goto out;
    for (uint32_t c = 0; c < m->nchunks; c++) {
        sorted[c] = m->chunk[item[c].value];
        rank[item[c].value] = c;
    }
    for (uint32_t i = 0; i < m->nmeetings; i++)
        m->meeting[i].chunk = rank[m->meeting[i].chunk];
    free(m->chunk);
    m->chunk = sorted;
    sorted = NULL;
    rc = CM_OK;
out:
    free(rank);
    free(sorted);
    free(item);
    return rc;
}
