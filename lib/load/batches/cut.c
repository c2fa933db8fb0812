#include "load/batches/cut.h"

#include "model/copy.h"

/* Copies the part of BOX that the chunk at COORD, number CHUNK of the frame, covers. */
static void cut_chunk(const cm_cut *c, const uint64_t *coord, uint64_t chunk, const cm_box *box,
                      const int64_t *dst_stride, uint8_t *dst, cm_load_counts *counts)
{
    const uint8_t *from = c->frame + cm_block_chunk_offset(c->blocks, c->strip, chunk);
    cm_box covered, shared;
    int64_t stride[CM_MAX_RANK];
    cm_grid_box(c->blocks->strip[c->strip].grid, coord, &covered);
    if (!cm_box_intersect(&covered, box, &shared))
        return;
    cm_strides_c(covered.rank, covered.shape, c->itemsize, stride);
    for (unsigned d = 0; d < covered.rank; d++) {
        from += (int64_t)(shared.start[d] - covered.start[d]) * stride[d];
        dst += (int64_t)(shared.start[d] - box->start[d]) * dst_stride[d];
    }
    cm_copy_nd(covered.rank, shared.shape, c->itemsize, dst, dst_stride, from, stride);
    if (c->frame[cm_block_flag_offset(c->blocks, chunk)] != 0)
        counts->missing_nbytes += cm_box_nelem(&shared) * c->stored_itemsize;
}

void cm_cut_box(const cm_cut *c, const cm_box *sample, const cm_box *box, uint8_t *dst,
                cm_load_counts *counts)
{
    cm_block_walk walk;
    int64_t dst_stride[CM_MAX_RANK];
    uint64_t chunk;
    cm_strides_c(box->rank, box->shape, c->itemsize, dst_stride);
    cm_block_walk_begin(&walk, c->blocks, c->strip, sample, box);
    while (cm_block_walk_next(&walk, &chunk))
        cut_chunk(c, walk.coord, chunk, box, dst_stride, dst, counts);
    counts->logical_nbytes += cm_box_nelem(box) * c->stored_itemsize;
}
