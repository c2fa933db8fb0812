#include "exec/worker.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "codec/rewrap.h"
#include "exec/spill.h"
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

int cm_worker_init(cm_worker *w, unsigned index, const cm_transfer *transfer, size_t n,
                   const cm_engine_options *options, cm_error *err)
{
    size_t stored = 0, decoded = 0, converted = 0, encoded = 0, touched = 1;
    size_t spilled = 0;
    memset(w, 0, sizeof(*w));
    w->index = index;
    w->monitor = options->monitor;
    w->trace = options->trace;
    for (size_t i = 0; i < n; i++) {
        const cm_transfer *t = &transfer[i];
        const cm_chain *chain = cm_zarr_writer_chain(t->target);
        const cm_grid *grid = cm_zarr_writer_grid(t->target);
        size_t piece = t->source->chunked ? cm_chain_decoded_nbytes(t->source->chain)
                                          : t->sweep.piece_nelem * t->source->dtype.nbytes;
        size_t padded = t->clips ? grid->chunk_nelem * t->source->dtype.nbytes : 0;
        decoded = piece > decoded ? piece : decoded;
        decoded = padded > decoded ? padded : decoded;
        stored = t->source->max_stored_nbytes > stored ? t->source->max_stored_nbytes : stored;
        size_t bound = cm_chain_is_raw(chain) ? 0 : cm_chain_encoded_bound(chain);
        if (t->pass == CM_PASS_GZIP && bound < stored + CM_GZIP_OVERHEAD)
            bound = stored + CM_GZIP_OVERHEAD;
        encoded = bound > encoded ? bound : encoded;
        size_t target = t->conversion == NULL ? 0 : grid->chunk_nelem * t->target_type.nbytes;
        converted = target > converted ? target : converted;
        if (t->spill != NULL && piece > spilled)
            spilled = piece;
        touched = t->sweep.touched > touched ? t->sweep.touched : touched;
    }
    if ((w->ctx = cm_codec_ctx_create(err)) == NULL ||
        (w->piece.slot = cm_calloc(touched, sizeof(w->piece.slot[0]), err)) == NULL)
        return CM_ENOMEM;
    int rc = cm_buf_reserve(&w->stored, stored, err);
    if (rc == CM_OK)
        rc = cm_buf_reserve(&w->decoded, decoded, err);
    if (rc == CM_OK)
        rc = cm_buf_reserve(&w->converted, converted, err);
    if (rc == CM_OK)
        rc = cm_buf_reserve(&w->encoded, encoded, err);
    if (rc == CM_OK)
        rc = cm_buf_reserve(&w->spilled, spilled, err);
    return rc;
}

void cm_worker_release(cm_worker *w)
{
    cm_codec_ctx_free(w->ctx);
    cm_buf_release(&w->stored);
    cm_buf_release(&w->decoded);
    cm_buf_release(&w->converted);
    cm_buf_release(&w->encoded);
    cm_buf_release(&w->spilled);
    free(w->piece.slot);
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

static int load_box(cm_worker *w, cm_loaded *out, cm_error *err)
{
    const cm_piece *p = &w->piece;
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

static int decode_chunk(cm_worker *w, uint32_t skip, cm_loaded *out, cm_error *err)
{
    const cm_piece *p = &w->piece;
    cm_array *source = p->transfer->source;
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
    uint64_t start = cm_now_ns();
    int rc =
        cm_chain_decode(source->chain, w->ctx, w->stored.data, w->stored.nbytes, skip, dst, err);
    cm_worker_stage(w, CM_STAGE_DECODE, p->transfer, p->number, start);
    if (rc != CM_OK) {
        char coord[CM_MAX_RANK * 21];
        cm_error_prefix(err, "variable %s: chunk %s", source->name,
                        cm_coord_text(source->rank, p->coord, coord, sizeof(coord)));
    }
    return rc;
}

/* The stored bytes go to the output as they are, or as the gzip stream around the same deflate data. */
static int pass_on(cm_worker *w, cm_error *err)
{
    const cm_piece *p = &w->piece;
    const cm_transfer *t = p->transfer;
    const cm_buf *bytes = &w->stored;
    int rc = CM_OK;
    if (t->pass == CM_PASS_GZIP) {
        cm_loaded ignored;
        rc = decode_chunk(w, 0, &ignored, err);
        if (rc == CM_OK)
            rc = cm_zlib_to_gzip(&w->stored, ignored.data,
                                 cm_chain_decoded_nbytes(t->source->chain), &w->encoded, err);
        bytes = &w->encoded;
    }
    uint64_t start = cm_now_ns();
    if (rc == CM_OK)
        rc = cm_zarr_writer_put(t->target, p->slot[0]->number, bytes->data, bytes->nbytes, err);
    cm_worker_stage(w, CM_STAGE_WRITE, t, p->number, start);
    p->slot[0]->delivered = true;
    w->stats.passed++;
    return rc;
}

static void count_read(const cm_transfer *t, const uint64_t *coord, bool decoded)
{
    cm_box box;
    cm_grid_box(&t->source->grid, coord, &box);
    atomic_fetch_add(&t->counts->nelem_read, cm_box_nelem(&box));
    atomic_fetch_add(&t->counts->decoded, decoded);
}

static int load_chunk(cm_worker *w, cm_loaded *out, cm_error *err)
{
    const cm_piece *p = &w->piece;
    cm_array *source = p->transfer->source;
    cm_fetch fetch = {0};
    uint64_t start = cm_now_ns();
    int rc = source->ops->fetch(source, p->number, &w->stored, &fetch, err);
    if (p->transfer->counts != NULL)
        atomic_fetch_add(&p->transfer->counts->fetched, 1);
    if (rc != CM_OK || !fetch.present)
        return rc;
    bool pass = p->transfer->pass != CM_PASS_NOTHING && fetch.skip == 0;
    if (p->transfer->counts != NULL)
        count_read(p->transfer, p->coord, !pass);
    cm_worker_stage(w, CM_STAGE_READ, p->transfer, p->number, start);
    w->stats.read_nbytes += w->stored.nbytes;
    /* A chunk that skipped a filter is not what the output's metadata says: it is recoded. */
    if (pass)
        return pass_on(w, err);
    return decode_chunk(w, fetch.skip, out, err);
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

int cm_worker_piece(cm_worker *w, cm_error *err)
{
    const cm_transfer *t = w->piece.transfer;
    cm_loaded from = {0};
    int rc = CM_OK;
    cm_monitor_at(w->monitor, t->source->name, w->piece.number, "reading");
    w->stats.pieces++;
    if (!w->piece.absent)
        rc = t->source->chunked ? load_chunk(w, &from, err) : load_box(w, &from, err);
    bool delivered =
        t->pass != CM_PASS_NOTHING && w->piece.slot[0] != NULL && w->piece.slot[0]->delivered;
    if (rc == CM_OK && !from.in_place && !delivered) {
        uint64_t start = cm_now_ns();
        scatter(&w->piece, &from);
        cm_worker_stage(w, CM_STAGE_SCATTER, t, w->piece.number, start);
    }
    if (rc == CM_OK && t->spill != NULL && !w->piece.absent)
        rc = cm_spill_piece(w, &from, err);
    return rc;
}

/* Sets what lies outside VALID (from the chunk's origin) to FILL; NULL: to zeros. */
static void pad(const cm_grid *grid, const cm_box *valid, uint8_t *data, size_t itemsize,
                const uint8_t *fill)
{
    int64_t stride[CM_MAX_RANK];
    uint64_t shape[CM_MAX_RANK];
    cm_strides_c(grid->rank, grid->chunk, itemsize, stride);
    /* Dimension by dimension: past the end along j, inside the valid part before j, all of the chunk after. */
    memcpy(shape, grid->chunk, sizeof(shape));
    for (unsigned j = 0; j < grid->rank; j++) {
        uint64_t rest = grid->chunk[j] - valid->shape[j];
        if (rest > 0) {
            shape[j] = rest;
            cm_fill_nd(grid->rank, shape, itemsize, data + (int64_t)valid->shape[j] * stride[j],
                       stride, fill);
        }
        shape[j] = valid->shape[j];
    }
}

/* Notes that a stored element is the value that readers take for "nothing here".  What lies outside VALID is overwritten. */
static void watch_for_fill(const cm_transfer *t, const cm_grid *grid, const cm_box *valid,
                           uint8_t *data)
{
    size_t itemsize = t->target_type.nbytes;
    const uint8_t *fill = t->target_fill;
    uint8_t other[16];
    if (t->found_fill == NULL || itemsize > sizeof(other) ||
        atomic_load_explicit(t->found_fill, memory_order_relaxed))
        return;
    for (size_t i = 0; i < itemsize; i++)
        other[i] = (uint8_t)~fill[i];
    pad(grid, valid, data, itemsize, other);
    bool found = false;
    if (itemsize == 1)
        found = memchr(data, fill[0], grid->chunk_nelem) != NULL;
    for (uint64_t i = 0; itemsize > 1 && i < grid->chunk_nelem && !found; i++)
        found = memcmp(data + i * itemsize, fill, itemsize) == 0;
    if (found)
        atomic_store(t->found_fill, true);
}

/* The elements VALID of SLOT where a whole chunk has them: in the slot, or in W's own buffer. */
static uint8_t *place_in_chunk(cm_worker *w, const cm_slot *slot, const cm_grid *grid,
                               const cm_box *valid)
{
    int64_t from[CM_MAX_RANK], to[CM_MAX_RANK];
    size_t itemsize = slot->transfer->source->dtype.nbytes;
    if (!slot->transfer->clips || cm_box_nelem(valid) == grid->chunk_nelem)
        return slot->data;
    cm_strides_c(grid->rank, valid->shape, itemsize, from);
    cm_strides_c(grid->rank, grid->chunk, itemsize, to);
    cm_copy_nd(grid->rank, valid->shape, itemsize, w->decoded.data, to, slot->data, from);
    return w->decoded.data;
}

/* The target chunk as the target's type has it, padded; *data is the slot's or one of W's. */
static int finish_elements(cm_worker *w, cm_slot *slot, const cm_grid *grid, const uint64_t *coord,
                           const cm_box *valid, uint8_t **data, cm_error *err)
{
    const cm_transfer *t = slot->transfer;
    bool edge = cm_grid_is_edge(grid, coord);
    uint8_t *elements = place_in_chunk(w, slot, grid, valid);
    *data = elements;
    if (t->conversion == NULL) {
        watch_for_fill(t, grid, valid, elements);
        if (edge)
            pad(grid, valid, elements, t->target_type.nbytes, t->target_fill);
        return CM_OK;
    }
    uint64_t bad = 0;
    if (edge)
        pad(grid, valid, elements, t->source->dtype.nbytes, NULL);
    *data = w->converted.data;
    int rc = cm_conversion_run(t->conversion, *data, elements, grid->chunk_nelem, &bad, err);
    if (rc == CM_OK && edge)
        pad(grid, valid, *data, t->target_type.nbytes, t->target_fill);
    return rc;
}

static int put(cm_worker *w, cm_slot *slot, const cm_grid *grid, uint8_t *data, cm_error *err)
{
    const cm_transfer *t = slot->transfer;
    const cm_chain *chain = cm_zarr_writer_chain(t->target);
    uint64_t start = cm_now_ns();
    if (t->skip_empty &&
        cm_all_equal(data, grid->chunk_nelem, t->target_type.nbytes, t->target_fill))
        return cm_transfer_skip(t, slot->number, err);
    size_t nbytes = grid->chunk_nelem * t->target_type.nbytes;
    if (!cm_chain_is_raw(chain)) {
        int rc = cm_chain_encode(chain, w->ctx, data, w->encoded.data, &nbytes, err);
        start = cm_worker_stage(w, CM_STAGE_ENCODE, t, slot->number, start);
        if (rc != CM_OK)
            return rc;
        data = w->encoded.data;
    }
    int rc = cm_zarr_writer_put(t->target, slot->number, data, nbytes, err);
    cm_worker_stage(w, CM_STAGE_WRITE, t, slot->number, start);
    return rc;
}

void cm_transfer_count_delivered(const cm_transfer *t, const cm_box *valid)
{
    if (t->counts == NULL)
        return;
    atomic_fetch_add(&t->counts->delivered, 1);
    atomic_fetch_add(&t->counts->nelem_written, cm_box_nelem(valid));
}

int cm_worker_target(cm_worker *w, cm_slot *slot, cm_error *err)
{
    const cm_grid *grid = cm_zarr_writer_grid(slot->transfer->target);
    uint64_t coord[CM_MAX_RANK];
    cm_box valid;
    uint8_t *data;
    cm_grid_coord(grid, slot->number, coord);
    cm_grid_box(grid, coord, &valid);
    cm_monitor_at(w->monitor, slot->transfer->source->name, slot->number, "writing");
    int rc = CM_OK;
    if (!slot->delivered &&
        (rc = finish_elements(w, slot, grid, coord, &valid, &data, err)) != CM_OK) {
        char text[CM_MAX_RANK * 21];
        cm_error_prefix(err, "variable %s: chunk %s of the output", slot->transfer->source->name,
                        cm_coord_text(grid->rank, coord, text, sizeof(text)));
        return rc;
    }
    /* The writer's errors say where. */
    if (!slot->delivered && (rc = put(w, slot, grid, data, err)) != CM_OK)
        return rc;
    cm_monitor_add(w->monitor, cm_box_nelem(&valid) * slot->transfer->source->dtype.nbytes);
    cm_transfer_count_delivered(slot->transfer, &valid);
    return CM_OK;
}
