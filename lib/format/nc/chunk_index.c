#include "format/nc/chunk_index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int grow(cm_chunk_index *index, cm_error *err)
{
    cm_chunk_entry *entry =
        cm_make_room(index->entry, index->nentries, &index->capacity, sizeof *entry, 256);
    if (entry == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for the index of %zu chunks", index->nentries);
    index->entry = entry;
    return CM_OK;
}

int cm_chunk_index_add(cm_chunk_index *index, const cm_grid *grid, const uint64_t *offset,
                       uint64_t address, uint64_t nbytes, uint32_t mask, cm_error *err)
{
    uint64_t coord[CM_MAX_RANK];
    for (unsigned j = 0; j < grid->rank; j++) {
        coord[j] = offset[j] / grid->chunk[j];
        if (offset[j] % grid->chunk[j] != 0)
            return cm_fail(err, CM_EFORMAT,
                           "the chunk index is corrupt: element %" PRIu64
                           " of dimension %u begins no chunk of %" PRIu64,
                           offset[j], j, grid->chunk[j]);
        if (coord[j] >= grid->count[j])
            return CM_OK;
    }
    if (nbytes == 0 || nbytes > UINT32_MAX)
        return cm_fail(err, CM_EFORMAT,
                       "the chunk index is corrupt: a chunk of %" PRIu64 " bytes at %" PRIu64,
                       nbytes, address);
    if (index->nentries >= grid->nchunks)
        return cm_fail(err, CM_EFORMAT,
                       "the chunk index is corrupt: it lists more than the %" PRIu64
                       " chunks that there can be",
                       grid->nchunks);
    if (index->nentries == index->capacity) {
        int rc = grow(index, err);
        if (rc != CM_OK)
            return rc;
    }
    index->entry[index->nentries++] =
        (cm_chunk_entry){cm_grid_number(grid, coord), address, (uint32_t)nbytes, mask};
    index->stored_nbytes += nbytes;
    if (nbytes > index->max_nbytes)
        index->max_nbytes = (uint32_t)nbytes;
    return CM_OK;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = ((const cm_chunk_entry *)a)->number, y = ((const cm_chunk_entry *)b)->number;
    return (x > y) - (x < y);
}

/* Trees are walked in order, so that sorting is rarely needed. */
static bool is_sorted(const cm_chunk_index *index)
{
    for (size_t i = 1; i < index->nentries; i++)
        if (index->entry[i - 1].number > index->entry[i].number)
            return false;
    return true;
}

static int make_dense(cm_chunk_index *index, cm_error *err)
{
    index->place = cm_calloc((size_t)index->nchunks, sizeof *index->place, err);
    if (index->place == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < index->nentries; i++) {
        const cm_chunk_entry *e = &index->entry[i];
        index->place[e->number] = (cm_chunk_place){e->address, e->nbytes, e->mask};
    }
    free(index->entry);
    index->entry = NULL;
    return CM_OK;
}

int cm_chunk_index_finish(cm_chunk_index *index, const cm_grid *grid, cm_error *err)
{
    enum {
        MAX_SPREAD = 4 /* grid chunks per stored chunk; dense up to here */
    };
    index->nchunks = grid->nchunks;
    if (!is_sorted(index))
        qsort(index->entry, index->nentries, sizeof *index->entry, by_number);
    for (size_t i = 1; i < index->nentries; i++)
        if (index->entry[i - 1].number == index->entry[i].number)
            return cm_fail(err, CM_EFORMAT,
                           "the chunk index is corrupt: chunk number %" PRIu64 " is there twice",
                           index->entry[i].number);
    if (index->nentries && index->nchunks / MAX_SPREAD <= index->nentries)
        return make_dense(index, err);
    return CM_OK;
}

bool cm_chunk_index_find(const cm_chunk_index *index, uint64_t number, cm_chunk_place *out)
{
    if (index->place != NULL) {
        if (number >= index->nchunks || index->place[number].nbytes == 0)
            return false;
        *out = index->place[number];
        return true;
    }
    const cm_chunk_entry key = {.number = number};
    const cm_chunk_entry *e = index->nentries ? bsearch(&key, index->entry, index->nentries,
                                                        sizeof *index->entry, by_number)
                                              : NULL;
    if (e == NULL)
        return false;
    *out = (cm_chunk_place){e->address, e->nbytes, e->mask};
    return true;
}

void cm_chunk_index_release(cm_chunk_index *index)
{
    if (index == NULL)
        return;
    free(index->entry);
    free(index->place);
    memset(index, 0, sizeof *index);
}
