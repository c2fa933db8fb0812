/* From a decoded chunk to the boxes that want a part of it. */
#include <string.h>

#include "load/reader/reader_impl.h"
#include "model/copy.h"

enum {
    MAX_VALUE_NBYTES = 16 /* of an element that a feed converts */
};

/* ---- from a chunk to its targets ---- */

/* What chunk COORD shares with TARGET, and where that begins in the target; false: nothing. */
static bool share_of(const cm_read_call *c, const cm_chunk_target *target, const cm_box *covered,
                     cm_box *part, uint8_t **dst, int64_t *dst_stride)
{
    if (!cm_box_intersect(covered, &target->box, part))
        return false;
    cm_strides_c(c->array->rank, target->box.shape, c->out_itemsize, dst_stride);
    int64_t to = 0;
    for (unsigned j = 0; j < c->array->rank; j++)
        to += (int64_t)(part->start[j] - target->box.start[j]) * dst_stride[j];
    *dst = (uint8_t *)target->dst + to;
    return true;
}

void cm_read_covered(const cm_read_call *c, uint64_t number, cm_box *out)
{
    uint64_t coord[CM_MAX_RANK];
    cm_grid_coord(&c->array->grid, number, coord);
    cm_grid_box(&c->array->grid, coord, out);
}

void cm_read_scatter(cm_read_call *c, uint64_t number, const uint8_t *data, const int64_t *stride,
                     bool converted)
{
    const unsigned rank = c->array->rank;
    const bool plain = c->feed == NULL || converted;
    cm_box covered, part;
    int64_t dst_stride[CM_MAX_RANK];
    uint8_t *dst;
    cm_read_covered(c, number, &covered);
    for (size_t i = 0; i < c->ntargets; i++) {
        if (!share_of(c, &c->target[i], &covered, &part, &dst, dst_stride))
            continue;
        int64_t from = 0;
        for (unsigned j = 0; j < rank; j++)
            from += (int64_t)(part.start[j] - covered.start[j]) * stride[j];
        if (plain)
            cm_copy_nd(rank, part.shape, c->out_itemsize, dst, dst_stride, data + from, stride);
        else
            cm_feed_copy_nd(c->feed, &c->reader->scratch, rank, part.shape, dst, dst_stride,
                            data + from, stride);
    }
    cm_read_stage(c, plain ? CM_LOAD_ASSEMBLE : CM_LOAD_CONVERT);
}

uint64_t cm_read_nelem_shared(const cm_read_call *c, uint64_t number)
{
    cm_box covered, part;
    uint64_t n = 0;
    cm_read_covered(c, number, &covered);
    for (size_t i = 0; i < c->ntargets; i++)
        if (cm_box_intersect(&covered, &c->target[i].box, &part))
            n += cm_box_nelem(&part);
    return n;
}

void cm_read_distribute(cm_read_call *c, uint64_t number, const uint8_t *data)
{
    const cm_grid *grid = &c->array->grid;
    if (c->feed == NULL || c->ntargets < 2 ||
        cm_read_nelem_shared(c, number) <= grid->chunk_nelem) {
        cm_read_scatter(c, number, data, c->chunk_stride, false);
        return;
    }
    int64_t stride[CM_MAX_RANK];
    cm_strides_c(grid->rank, grid->chunk, c->out_itemsize, stride);
    cm_feed_run(c->feed, c->reader->scratch.converted.data, data, grid->chunk_nelem);
    cm_read_stage(c, CM_LOAD_CONVERT);
    cm_read_scatter(c, number, c->reader->scratch.converted.data, stride, true);
}

void cm_read_fill(cm_read_call *c, uint64_t number)
{
    static const uint8_t zeros[MAX_VALUE_NBYTES] = {0};
    uint8_t fed[MAX_VALUE_NBYTES];
    const uint8_t *value = c->array->fill; /* NULL: zeros */
    if (c->feed != NULL) {
        cm_feed_run(c->feed, fed, value != NULL ? value : zeros, 1);
        value = fed;
    }
    cm_box covered, part;
    int64_t dst_stride[CM_MAX_RANK];
    uint8_t *dst;
    cm_read_covered(c, number, &covered);
    for (size_t i = 0; i < c->ntargets; i++) {
        if (!share_of(c, &c->target[i], &covered, &part, &dst, dst_stride))
            continue;
        cm_fill_nd(c->array->rank, part.shape, c->out_itemsize, dst, dst_stride, value);
        c->counts->missing_nbytes += cm_box_nelem(&part) * c->itemsize;
    }
    c->counts->missing_chunks++;
    cm_read_stage(c, CM_LOAD_ASSEMBLE);
}

void *cm_read_place(const cm_read_call *c, uint64_t number)
{
    cm_box covered, part;
    int64_t dst_stride[CM_MAX_RANK];
    uint8_t *dst;
    if (!c->in_place)
        return NULL;
    cm_read_covered(c, number, &covered);
    if (!share_of(c, c->target, &covered, &part, &dst, dst_stride))
        return NULL;
    return memcmp(part.shape, c->array->grid.chunk, part.rank * sizeof(part.shape[0])) == 0 ? dst
                                                                                            : NULL;
}
