#include "exec/engine/worker.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "exec/engine/spill.h"
#include "model/copy.h"

const char *const cm_stage_names[CM_NSTAGES] = {"read",   "decode", "scatter",
                                                "encode", "write",  "wait"};

uint64_t cm_worker_stage(cm_worker *w, int stage, const cm_transfer *t, uint64_t chunk,
                         uint64_t start_ns)
{
    uint64_t now = cm_now_ns();
    w->stats.stage_ns[stage] += now - start_ns;
    w->stats.stage_calls[stage]++;
    if (w->trace != NULL)
        cm_trace_event(w->trace, w->index, cm_stage_names[stage], t == NULL ? "" : t->source->name,
                       chunk, start_ns, now);
    return now;
}

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* How many pieces, slots of pieces, ready chunks and chunks to put there are at most. */
typedef struct most {
    size_t pieces, slots, targets, puts;
} most;

static int make_lists(cm_worker *w, const cm_transfer *transfer, size_t n, cm_error *err)
{
    most m = {1, 1, 1, 1};
    for (size_t i = 0; i < n; i++) {
        size_t pieces = cm_transfer_source_batch(&transfer[i]);
        m.pieces = max_size(m.pieces, pieces);
        m.slots = max_size(m.slots, max_size(pieces, transfer[i].sweep.touched));
        m.targets = max_size(m.targets, cm_transfer_target_batch(&transfer[i]));
    }
    w->nslots = m.slots;
    m.puts = max_size(m.pieces, m.targets);
    if ((w->piece = cm_calloc(m.pieces, sizeof(w->piece[0]), err)) == NULL ||
        (w->slot = cm_calloc(m.slots, sizeof(w->slot[0]), err)) == NULL ||
        (w->target = cm_calloc(m.targets, sizeof(w->target[0]), err)) == NULL ||
        (w->item = cm_calloc(m.pieces, sizeof(w->item[0]), err)) == NULL ||
        (w->nelem = cm_calloc(m.pieces, sizeof(w->nelem[0]), err)) == NULL ||
        (w->put = cm_calloc(m.puts, sizeof(w->put[0]), err)) == NULL)
        return CM_ENOMEM;
    return CM_OK;
}

static int make_buffers(cm_worker *w, const cm_worker_need *need, cm_error *err)
{
    const struct {
        cm_buf *buf;
        size_t nbytes;
    } buffer[] = {
        {&w->stored, need->stored},       {&w->many.buf, need->batch}, {&w->decoded, need->decoded},
        {&w->encoded, need->encoded},     {&w->packed, need->packed},  {&w->spilled, need->spilled},
        {&w->converted, need->converted},
    };
    int rc = CM_OK;
    for (size_t i = 0; i < sizeof(buffer) / sizeof(buffer[0]) && rc == CM_OK; i++)
        rc = cm_buf_reserve(buffer[i].buf, buffer[i].nbytes, err);
    return rc;
}

int cm_worker_init(cm_worker *w, unsigned index, const cm_transfer *transfer, size_t n,
                   const cm_engine_options *options, cm_error *err)
{
    cm_worker_need need = {0};
    memset(w, 0, sizeof(*w));
    w->index = index;
    w->monitor = options->monitor;
    w->trace = options->trace;
    for (size_t i = 0; i < n; i++) {
        const cm_transfer *t = &transfer[i];
        size_t piece = t->sweep.piece_nelem * t->source->dtype.nbytes;
        cm_transfer_worker_need(t, piece, &need);
        if (t->spill != NULL)
            need.spilled = max_size(need.spilled, cm_chain_decoded_nbytes(t->source->chain));
    }
    if ((w->ctx = cm_codec_ctx_create(err)) == NULL)
        return CM_ENOMEM;
    int rc = make_lists(w, transfer, n, err);
    return rc == CM_OK ? make_buffers(w, &need, err) : rc;
}

void cm_worker_release(cm_worker *w)
{
    cm_codec_ctx_free(w->ctx);
    cm_buf_release(&w->stored);
    cm_buf_release(&w->decoded);
    cm_buf_release(&w->converted);
    cm_buf_release(&w->encoded);
    cm_buf_release(&w->spilled);
    cm_buf_release(&w->packed);
    cm_fetch_many_release(&w->many);
    free(w->piece);
    free(w->slot);
    free(w->target);
    free(w->item);
    free(w->nelem);
    free(w->put);
}

/* How the slot of target chunk COORD is laid out. */
static void slot_shape(const cm_transfer *t, const uint64_t *coord, uint64_t *shape)
{
    for (unsigned j = 0; j < t->sweep.rank; j++) {
        cm_range span = cm_axis_target_span(&t->sweep.axis[j], coord[j]);
        shape[j] = t->clips ? span.hi - span.lo : t->sweep.axis[j].target;
    }
}

/* True when PIECE, laid out as SHAPE, is exactly the slot of the one target chunk that it goes to. */
static bool fits_slot(const cm_piece *p, const uint64_t *shape)
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

static void source_box(const cm_piece *p, cm_box *box)
{
    const cm_sweep *s = &p->transfer->sweep;
    box->rank = s->rank;
    for (unsigned j = 0; j < s->rank; j++) {
        const cm_axis *axis = &s->axis[j];
        box->start[j] = axis->start + p->span[j].lo * axis->step;
        box->shape[j] = (p->span[j].hi - 1 - p->span[j].lo) * axis->step + 1;
    }
}

static int load_box(cm_worker *w, const cm_piece *p, cm_loaded *out, cm_error *err)
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
    return rc;
}

int cm_worker_fetch(cm_worker *w, const cm_transfer *t, size_t n, cm_error *err)
{
    cm_array *source = t->source;
    cm_fetch_item *item = w->item;
    uint64_t start = cm_now_ns();
    int rc = CM_OK;
    if (n == 1) {
        cm_fetch one = {0};
        rc = source->ops->fetch(source, item->number, &w->stored, &one, err);
        item->present = one.present;
        item->skip = one.skip;
        item->data = w->stored.data;
        item->nbytes = w->stored.nbytes;
    } else if (n > 1) {
        w->many.item = item;
        w->many.n = n;
        rc = cm_array_fetch_many(source, &w->many, err);
    }
    if (t->counts != NULL)
        atomic_fetch_add(&t->counts->fetched, n);
    if (rc != CM_OK || n == 0)
        return rc;
    cm_worker_stage(w, CM_STAGE_READ, t, item->number, start);
    for (size_t i = 0; i < n; i++)
        w->stats.read_nbytes += item[i].present ? item[i].nbytes : 0;
    return CM_OK;
}

int cm_worker_decode(cm_worker *w, const cm_transfer *t, const cm_fetch_item *item, uint8_t *dst,
                     cm_error *err)
{
    uint64_t start = cm_now_ns();
    const cm_array *source = t->source;
    int rc = cm_chain_decode(source->chain, w->ctx, item->data, item->nbytes, item->skip, dst, err);
    cm_worker_stage(w, CM_STAGE_DECODE, t, item->number, start);
    if (rc != CM_OK) {
        uint64_t at[CM_MAX_RANK];
        char text[CM_MAX_RANK * 21];
        cm_grid_coord(&source->grid, item->number, at);
        cm_error_prefix(err, "variable %s: chunk %s", cm_transfer_name(t),
                        cm_coord_text(source->rank, at, text, sizeof(text)));
    }
    return rc;
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

/* The elements of piece P from its stored bytes ITEM. */
static int load_chunk(cm_worker *w, const cm_piece *p, const cm_fetch_item *item, cm_loaded *out,
                      cm_error *err)
{
    const cm_array *source = p->transfer->source;
    if (!item->present)
        return CM_OK;
    for (unsigned j = 0; j < source->rank; j++) {
        out->shape[j] = source->grid.chunk[j];
        out->origin[j] = p->coord[j] * source->grid.chunk[j];
    }
    /* Equal spans and shapes, and the same origin: an edge chunk of the source may begin before the target's. */
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
static void scatter_to(const cm_piece *p, const cm_loaded *from, const int64_t *from_stride,
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

static void scatter(const cm_piece *p, const cm_loaded *from)
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
static int move_piece(cm_worker *w, const cm_piece *p, const cm_fetch_item *item, cm_error *err)
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
        const cm_piece *p = &w->piece[i];
        rc = move_piece(w, p, item, err);
        item += !p->absent;
    }
    return rc;
}
