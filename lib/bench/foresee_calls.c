#include "bench/foresee_calls.h"

#include <stdlib.h>
#include <string.h>

#include "load/batches/load_source.h"
#include "load/reader/reader.h"
#include "model/copy.h"
#include "plan/meetings.h"

typedef struct call_box {
    uint64_t first; /* call */
    uint64_t sample;
    uint32_t part, place;
} call_box;

static void cover(const cm_batch_calls *c, uint64_t *first, uint64_t *count, uint64_t *all)
{
    cm_grid_cover(&c->array->grid, &c->now, first, count);
    *all = 1;
    for (unsigned j = 0; j < c->array->rank; j++)
        *all *= count[j];
}

static void box_of(const cm_batch_calls *c, const call_box *b, cm_box *out)
{
    cm_box sample;
    cm_sample_at(&c->space->space, 0, b->sample, &sample);
    cm_sample_part_box(&c->space->part[b->part], &sample, out);
}

/* Boxes of the batch that begins with sample FIRST of the share. */
static void add_batch(cm_batch_calls *c, cm_load_rank *rank, unsigned which, uint64_t batch)
{
    const cm_epoch_share *share = &rank->share;
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], all;
    for (uint64_t k = 0; k < cm_epoch_share_batch(share, batch); k++)
        for (size_t p = 0; p < c->space->nparts; p++) {
            call_box *b = &c->box[c->nboxes];
            if (c->space->part[p].array != which)
                continue;
            *b = (call_box){.first = c->ncalls,
                            .sample = cm_load_number(rank, 0, batch * share->batch + k),
                            .part = (uint32_t)p,
                            .place = (uint32_t)k};
            box_of(c, b, &c->now);
            if (cm_box_nelem(&c->now) == 0)
                continue;
            cover(c, first, count, &all);
            c->ncalls += (all + c->group - 1) / c->group;
            c->nboxes++;
        }
}

static size_t parts_of(const cm_load_space *s, unsigned which)
{
    size_t n = 0;
    for (size_t p = 0; p < s->nparts; p++)
        n += s->part[p].array == which;
    return n;
}

int cm_batch_calls_make(const cm_bench *b, unsigned which, uint64_t nbatches, size_t group_nbytes,
                        uint8_t *arena, cm_batch_calls *out, cm_error *err)
{
    const cm_load_space *s = &b->load.shared.space;
    const size_t parts = parts_of(s, which);
    cm_array *a = b->load.shared.data.array[which];
    int rc = CM_OK;
    *out = (cm_batch_calls){
        .array = a, .space = s, .arena = arena, .group = cm_reader_group(a, group_nbytes)};
    out->box = cm_calloc(nbatches * b->load.batch * parts + 1, sizeof *out->box, err);
    if (out->box == NULL)
        return CM_ENOMEM;
    for (uint64_t i = 0; i < nbatches && parts > 0; i++)
        add_batch(out, b->rank[0].load, which, i);
    for (size_t p = 0; p < s->nparts && rc == CM_OK; p++)
        if (s->part[p].array == which && !cm_feed_is_identity(&s->feed[p]))
            rc = cm_feed_scratch_reserve(&out->scratch, &s->feed[p], a->grid.chunk_nelem, err);
    return rc;
}

void cm_batch_calls_release(cm_batch_calls *c)
{
    free(c->box);
    cm_feed_scratch_release(&c->scratch);
    *c = (cm_batch_calls){0};
}

uint64_t cm_batch_calls_nbytes(const cm_bench *b, uint64_t nbatches)
{
    const cm_load_data *d = &b->load.shared.data;
    const cm_load_space *s = &b->load.shared.space;
    uint64_t total = cm_mul_sat(cm_mul_sat(nbatches, b->load.batch), sizeof(call_box));
    total = cm_mul_sat(total, s->nparts);
    for (size_t p = 0; p < s->nparts; p++)
        if (!cm_feed_is_identity(&s->feed[p]))
            total = cm_add_sat(total, cm_reader_memory(d->array[s->part[p].array], &s->feed[p]));
    return total;
}

/* ---- what a probe asks ---- */

static const call_box *find(const cm_batch_calls *c, uint64_t call)
{
    size_t low = 0, high = c->nboxes;
    while (high - low > 1) {
        const size_t mid = low + (high - low) / 2;
        if (c->box[mid].first <= call)
            low = mid;
        else
            high = mid;
    }
    return &c->box[low];
}

static size_t begin(void *context, uint64_t call, uint64_t *number)
{
    cm_batch_calls *c = context;
    const cm_grid *grid = &c->array->grid;
    const call_box *b = find(c, call);
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], coord[CM_MAX_RANK], all;
    box_of(c, b, &c->now);
    cover(c, first, count, &all);
    c->feed = cm_feed_is_identity(&c->space->feed[b->part]) ? NULL : &c->space->feed[b->part];
    c->in_place = c->feed == NULL && cm_grid_chunks_are_runs(grid, c->now.shape);
    /* As in a batch whose samples are side by side; its last one may have fewer. */
    c->dst = c->arena + b->place * c->space->part_nbytes[b->part];
    const uint64_t from = (call - b->first) * c->group;
    const uint64_t to = all - from > c->group ? from + c->group : all;
    for (uint64_t i = from; i < to; i++) {
        uint64_t left = i;
        for (unsigned j = grid->rank; j-- > 0; left /= count[j])
            coord[j] = first[j] + left % count[j];
        number[i - from] = cm_grid_number(grid, coord);
    }
    return (size_t)(to - from);
}

/* The part of chunk NUMBER in the box: where it goes, and its strides there. */
static uint8_t *share_of(const cm_batch_calls *c, uint64_t number, cm_box *covered, cm_box *part,
                         int64_t *stride)
{
    const cm_grid *grid = &c->array->grid;
    const size_t itemsize = c->feed != NULL ? cm_feed_nbytes(c->feed) : c->array->dtype.nbytes;
    uint64_t coord[CM_MAX_RANK];
    int64_t to = 0;
    cm_grid_coord(grid, number, coord);
    cm_grid_box(grid, coord, covered);
    if (!cm_box_intersect(covered, &c->now, part))
        return NULL;
    cm_strides_c(grid->rank, c->now.shape, itemsize, stride);
    for (unsigned j = 0; j < grid->rank; j++)
        to += (int64_t)(part->start[j] - c->now.start[j]) * stride[j];
    return c->dst + to;
}

static uint8_t *place(void *context, uint64_t number)
{
    const cm_batch_calls *c = context;
    const cm_grid *grid = &c->array->grid;
    cm_box covered, part;
    uint64_t coord[CM_MAX_RANK], shape[CM_MAX_RANK];
    int64_t stride[CM_MAX_RANK];
    if (!c->in_place)
        return NULL;
    uint8_t *dst = share_of(c, number, &covered, &part, stride);
    cm_grid_coord(grid, number, coord);
    cm_grid_chunk_shape(grid, coord, shape);
    return dst != NULL && memcmp(part.shape, shape, grid->rank * sizeof *shape) == 0 ? dst : NULL;
}

static void deliver(void *context, uint64_t number, const uint8_t *data)
{
    cm_batch_calls *c = context;
    const cm_array *a = c->array;
    cm_box covered, part;
    uint64_t coord[CM_MAX_RANK], shape[CM_MAX_RANK];
    int64_t stride[CM_MAX_RANK], src[CM_MAX_RANK], from = 0;
    uint8_t *dst = share_of(c, number, &covered, &part, stride);
    if (dst == NULL)
        return;
    cm_grid_coord(&a->grid, number, coord);
    cm_grid_chunk_shape(&a->grid, coord, shape);
    cm_strides_c(a->rank, shape, a->dtype.nbytes, src);
    for (unsigned j = 0; j < a->rank; j++)
        from += (int64_t)(part.start[j] - covered.start[j]) * src[j];
    if (data == NULL)
        cm_fill_nd(a->rank, part.shape, c->feed != NULL ? cm_feed_nbytes(c->feed) : a->dtype.nbytes,
                   dst, stride, NULL);
    else if (c->feed != NULL)
        cm_feed_copy_box(c->feed, &c->scratch, &part, dst, stride, data + from, src);
    else
        cm_copy_nd(a->rank, part.shape, a->dtype.nbytes, dst, stride, data + from, src);
}

cm_cost_calls cm_batch_calls_costs(cm_batch_calls *c)
{
    return (cm_cost_calls){.context = c,
                           .ncalls = c->ncalls,
                           .most = c->group,
                           .begin = begin,
                           .place = place,
                           .deliver = deliver};
}
