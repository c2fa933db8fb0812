#include "engine/transfer.h"

#include <string.h>

int cm_transfer_skip(const cm_transfer *t, uint64_t chunk, cm_error *err)
{
    int rc = t->see != NULL ? t->see(t->see_context, chunk, NULL, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_target_skip(t->target, chunk, err);
    if (rc == CM_OK && t->on_skip != NULL)
        rc = t->on_skip(t->on_skip_context, chunk, err);
    return rc;
}

const char *cm_transfer_name(const cm_transfer *t)
{
    return t->source->name[0] != '\0' ? t->source->name : "/";
}

bool cm_transfer_is_absent(const cm_transfer *t, uint64_t number)
{
    if (t->present != NULL)
        return (t->present[number / 64] >> number % 64 & 1) == 0;
    return t->source->chunked && t->source->ops->is_absent != NULL &&
           t->source->ops->is_absent(t->source, number);
}

void cm_transfer_count_delivered(const cm_transfer *t, uint64_t nchunks, uint64_t nelem)
{
    if (t->counts == NULL)
        return;
    atomic_fetch_add(&t->counts->delivered, nchunks);
    atomic_fetch_add(&t->counts->nelem_written, nelem);
}

bool cm_transfer_is_direct(const cm_transfer *t)
{
    const cm_grid *from = &t->source->grid, *to = &t->target->grid;
    if (!t->source->chunked || t->spill != NULL || t->end_block != 0 || from->rank != to->rank)
        return false;
    for (unsigned j = 0; j < to->rank; j++)
        if (t->start[j] != 0 || t->step[j] != 1 || from->shape[j] != to->shape[j])
            return false;
    return cm_grid_same_chunks(from, to);
}

bool cm_transfer_has_shards(const cm_transfer *t)
{
    const cm_grid *grid = &t->target->grid;
    const cm_grid *outer = &t->target->outer;
    return memcmp(grid->chunk, outer->chunk, grid->rank * sizeof(grid->chunk[0])) != 0;
}
