#include "engine/pieces.h"

#include <string.h>

#include "base/clock.h"
#include "engine/plan.h"
#include "engine/spill.h"
#include "model/copy.h"

/* How the slot of target chunk COORD is laid out. */
static void slot_shape(const cm_transfer *t, const uint64_t *coord, uint64_t *shape)
{
    for (unsigned j = 0; j < t->sweep.rank; j++) {
        cm_range span = cm_axis_target_span(&t->sweep.axis[j], coord[j]);
        shape[j] = t->clips ? span.hi - span.lo : t->sweep.axis[j].target;
    }
}

/*
 * True when PIECE, laid out as SHAPE, is exactly the slot of the one target chunk that it goes
 * to.
 */
static bool fits_slot(const cm_source_piece *p, const uint64_t *shape)
{
    const cm_sweep *s = &p->transfer->sweep;
    if (p->nslots != 1 || p->slot[0] == NULL)
        return false;
    uint64_t coord[CM_MAX_RANK], slot[CM_MAX_RANK];
    for (unsigned j = 0; j < s->rank; j++)
        coord[j] = p->targets[j].lo;
    slot_shape(p->transfer, coord, slot);
    for (unsigned j = 0; j < s->rank; j++) {
        cm_range target = cm_axis_target_span(&s->axis[j], coord[j]);
        if (s->axis[j].step != 1 || shape[j] != slot[j] || p->span[j].lo != target.lo ||
            p->span[j].hi != target.hi)
            return false;
    }
    return true;
}

static void source_box(const cm_source_piece *p, cm_box *box)
{
    const cm_sweep *s = &p->transfer->sweep;
    box->rank = s->rank;
    for (unsigned j = 0; j < s->rank; j++) {
        const cm_axis *axis = &s->axis[j];
        box->start[j] = axis->start + p->span[j].lo * axis->step;
        box->shape[j] = (p->span[j].hi - 1 - p->span[j].lo) * axis->step + 1;
    }
}

static void count_read(const cm_transfer *t, const uint64_t *coord)
{
    cm_box box;
    if (t->counts == NULL)
        return;
    cm_grid_box(&t->source->grid, coord, &box);
    atomic_fetch_add(&t->counts->nelem_read, cm_box_nelem(&box));
    atomic_fetch_add(&t->counts->decoded, 1);
}

/* A piece that the source gives as a box: a slice, or a chunk that it takes apart itself. */
static int load_box(cm_worker *w, const cm_source_piece *p, cm_loaded *out, cm_error *err)
{
    cm_array *source = p->transfer->source;
    cm_box box;
    source_box(p, &box);
    memcpy(out->origin, box.start, sizeof(out->origin));
    memcpy(out->shape, box.shape, sizeof(out->shape));
    out->in_place = fits_slot(p, out->shape);
    uint8_t *dst = out->in_place ? p->slot[0]->data : w->decoded.data;
    out->data = dst;
    uint64_t start = cm_now_ns();
    int rc = source->ops->read_box(source, &box, dst, err);
    cm_worker_stage(w, CM_STAGE_READ, p->transfer, p->number, start);
    w->stats.read_nbytes += cm_box_nelem(&box) * source->dtype.nbytes;
    if (rc != CM_OK)
        cm_error_place(err, source->place);
    if (p->transfer->counts == NULL || p->transfer->from_scratch)
        return rc;
    if (cm_transfer_is_sliceable(p->transfer)) {
        atomic_fetch_add(&p->transfer->counts->nelem_read, cm_box_nelem(&box));
    } else {
        atomic_fetch_add(&p->transfer->counts->fetched, 1);
        count_read(p->transfer, p->coord);
    }
    return rc;
}

/* The elements of piece P from its stored bytes ITEM. */
static int load_chunk(cm_worker *w, const cm_source_piece *p, const cm_fetch_item *item,
                      cm_loaded *out, cm_error *err)
{
    cm_array *source = p->transfer->source;
    if (!item->present)
        return CM_OK;
    cm_array_chunk_place(source, p->coord, out->origin, out->shape);
    /*
     * Equal spans and shapes, and the same origin: an edge chunk of the source may begin
     * before the target's.
     */
    out->in_place = fits_slot(p, out->shape);
    for (unsigned j = 0; j < source->rank; j++)
        out->in_place =
            out->in_place && out->origin[j] == p->transfer->sweep.axis[j].start + p->span[j].lo;
    uint8_t *dst = out->in_place ? p->slot[0]->data : w->decoded.data;
    out->data = dst;
    count_read(p->transfer, p->coord);
    return cm_worker_decode(w, p->transfer, item, dst, err);
}

/* Copies what PIECE and the target chunk COORD share. */
static void scatter_to(const cm_source_piece *p, const cm_loaded *from, const int64_t *from_stride,
                       const uint64_t *coord, uint8_t *slot)
{
    const cm_transfer *t = p->transfer;
    const cm_sweep *s = &t->sweep;
    size_t itemsize = t->source->dtype.nbytes;
    uint64_t shape[CM_MAX_RANK], target[CM_MAX_RANK];
    int64_t src_stride[CM_MAX_RANK], dst_stride[CM_MAX_RANK];
    const uint8_t *src = from->data;
    slot_shape(t, coord, target);
    cm_strides_c(s->rank, target, itemsize, dst_stride);
    for (unsigned j = 0; j < s->rank; j++) {
        const cm_axis *axis = &s->axis[j];
        cm_range span = cm_axis_target_span(axis, coord[j]);
        uint64_t lo = span.lo > p->span[j].lo ? span.lo : p->span[j].lo;
        uint64_t hi = span.hi < p->span[j].hi ? span.hi : p->span[j].hi;
        shape[j] = hi - lo;
        slot += (int64_t)(lo - span.lo) * dst_stride[j];
        if (src != NULL)
            src += (int64_t)(axis->start + lo * axis->step - from->origin[j]) * from_stride[j];
        src_stride[j] = shape[j] > 1 ? from_stride[j] * (int64_t)axis->step : 0;
    }
    if (src != NULL)
        cm_copy_nd(s->rank, shape, itemsize, slot, dst_stride, src, src_stride);
    else
        cm_fill_nd(s->rank, shape, itemsize, slot, dst_stride, t->source->fill);
}

static void scatter(const cm_source_piece *p, const cm_loaded *from)
{
    unsigned rank = p->transfer->sweep.rank;
    int64_t stride[CM_MAX_RANK];
    uint64_t coord[CM_MAX_RANK];
    cm_strides_c(rank, from->shape, p->transfer->source->dtype.nbytes, stride);
    for (unsigned j = 0; j < rank; j++)
        coord[j] = p->targets[j].lo;
    for (uint64_t i = 0; i < p->nslots; i++) {
        if (p->slot[i] != NULL)
            scatter_to(p, from, stride, coord, p->slot[i]->data);
        for (unsigned j = rank; j-- > 0;) {
            if (++coord[j] < p->targets[j].hi)
                break;
            coord[j] = p->targets[j].lo;
        }
    }
}

/* ITEM: the stored bytes of a chunked source's piece. */
static int move_piece(cm_worker *w, const cm_source_piece *p, const cm_fetch_item *item,
                      cm_error *err)
{
    const cm_transfer *t = p->transfer;
    cm_loaded from = {0};
    int rc = CM_OK;
    w->stats.pieces++;
    if (!p->absent)
        rc = t->source->chunked ? load_chunk(w, p, item, &from, err) : load_box(w, p, &from, err);
    if (rc == CM_OK && !from.in_place) {
        uint64_t start = cm_now_ns();
        scatter(p, &from);
        cm_worker_stage(w, CM_STAGE_SCATTER, t, p->number, start);
    }
    if (rc == CM_OK && t->spill != NULL && !p->absent)
        rc = cm_spill_piece(w, p, &from, err);
    return rc;
}

int cm_worker_pieces(cm_worker *w, cm_error *err)
{
    const cm_transfer *t = w->piece[0].transfer;
    size_t n = 0;
    cm_monitor_at(w->monitor, t->source->name, w->piece[0].number, "reading");
    for (size_t i = 0; i < w->npieces && t->source->chunked; i++)
        if (!w->piece[i].absent)
            w->item[n++].number = w->piece[i].number;
    int rc = cm_worker_fetch(w, t, n, err);
    const cm_fetch_item *item = w->item;
    for (size_t i = 0; i < w->npieces && rc == CM_OK; i++) {
        const cm_source_piece *p = &w->piece[i];
        rc = move_piece(w, p, item, err);
        item += !p->absent;
    }
    return rc;
}
