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
    const cm_grid *grid = c->blocks->strip[c->strip].grid;
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], coord[CM_MAX_RANK], left = 1;
    uint64_t of_block[CM_MAX_RANK], ignored[CM_MAX_RANK];
    int64_t dst_stride[CM_MAX_RANK];
    cm_block_chunks(c->blocks, c->strip, sample, of_block, ignored);
    cm_grid_cover(grid, box, first, count);
    cm_strides_c(box->rank, box->shape, c->itemsize, dst_stride);
    for (unsigned d = 0; d < grid->rank; d++) {
        coord[d] = first[d];
        left *= count[d];
    }
    for (; left > 0; left--) {
        cut_chunk(c, coord, cm_block_chunk(c->blocks, c->strip, of_block, coord), box, dst_stride,
                  dst, counts);
        for (unsigned d = grid->rank; d-- > 0 && ++coord[d] == first[d] + count[d];)
            coord[d] = first[d];
    }
    counts->logical_nbytes += cm_box_nelem(box) * c->stored_itemsize;
}
