/* From a decoded chunk to the box that wants a part of it. */
#include <string.h>

#include "load/reader/reader_impl.h"
#include "model/copy.h"

enum {
    MAX_VALUE_NBYTES = 16 /* of an element that a feed converts */
};

/* Intersection PART of a chunk's box, COVERED, with the call's, at *DST; false: it is empty. */
static bool share_of(const cm_read_call *c, const cm_box *covered, cm_box *part, uint8_t **dst,
                     int64_t *dst_stride)
{
    if (!cm_box_intersect(covered, &c->box, part))
        return false;
    cm_strides_c(c->array->rank, c->box.shape, c->out_itemsize, dst_stride);
    int64_t to = 0;
    for (unsigned j = 0; j < c->array->rank; j++)
        to += (int64_t)(part->start[j] - c->box.start[j]) * dst_stride[j];
    *dst = (uint8_t *)c->dst + to;
    return true;
}

void cm_read_scatter(cm_read_call *c, uint64_t number, const uint8_t *data)
{
    const unsigned rank = c->array->rank;
    cm_box covered, part;
    uint64_t coord[CM_MAX_RANK], origin[CM_MAX_RANK], shape[CM_MAX_RANK];
    int64_t dst_stride[CM_MAX_RANK], stride[CM_MAX_RANK];
    uint8_t *dst;
    cm_grid_coord(&c->array->grid, number, coord);
    cm_grid_box(&c->array->grid, coord, &covered);
    if (share_of(c, &covered, &part, &dst, dst_stride)) {
        cm_array_chunk_place(c->array, coord, origin, shape);
        cm_strides_c(rank, shape, c->itemsize, stride);
        for (unsigned j = 0; j < rank; j++)
            data += (int64_t)(part.start[j] - origin[j]) * stride[j];
        if (c->feed == NULL)
            cm_copy_nd(rank, part.shape, c->out_itemsize, dst, dst_stride, data, stride);
        else
            cm_feed_copy_box(c->feed, &c->reader->scratch, &part, dst, dst_stride, data, stride);
    }
    cm_read_stage(c, c->feed == NULL ? CM_LOAD_ASSEMBLE : CM_LOAD_CONVERT);
}

void cm_read_fill(cm_read_call *c, uint64_t number)
{
    static const uint8_t zeros[MAX_VALUE_NBYTES] = {0};
    const uint8_t *value = c->array->fill; /* NULL: zeros */
    cm_box covered, part;
    int64_t dst_stride[CM_MAX_RANK];
    uint8_t *dst;
    cm_grid_chunk_box(&c->array->grid, number, &covered);
    if (share_of(c, &covered, &part, &dst, dst_stride)) {
        if (c->feed != NULL)
            cm_feed_fill_box(c->feed, &part, dst, dst_stride, value != NULL ? value : zeros);
        else
            cm_fill_nd(c->array->rank, part.shape, c->out_itemsize, dst, dst_stride, value);
        c->counts->missing_nbytes += cm_box_nelem(&part) * c->itemsize;
    }
    c->counts->missing_chunks++;
    cm_read_stage(c, CM_LOAD_ASSEMBLE);
}

void *cm_read_place(const cm_read_call *c, uint64_t number)
{
    cm_box covered, part;
    uint64_t coord[CM_MAX_RANK], origin[CM_MAX_RANK], shape[CM_MAX_RANK];
    int64_t dst_stride[CM_MAX_RANK];
    uint8_t *dst;
    if (!c->in_place)
        return NULL;
    cm_grid_coord(&c->array->grid, number, coord);
    cm_grid_box(&c->array->grid, coord, &covered);
    if (!share_of(c, &covered, &part, &dst, dst_stride))
        return NULL;
    cm_array_chunk_place(c->array, coord, origin, shape);
    return memcmp(part.shape, shape, part.rank * sizeof(part.shape[0])) == 0 ? dst : NULL;
}
