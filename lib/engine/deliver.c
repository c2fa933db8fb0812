#include "engine/deliver.h"

#include <string.h>

#include "base/clock.h"
#include "engine/plan.h"
#include "model/copy.h"

/* Sets what lies outside VALID (from the chunk's origin) to FILL; NULL: to zeros. */
static void pad(const cm_grid *grid, const cm_box *valid, uint8_t *data, size_t itemsize,
                const uint8_t *fill)
{
    int64_t stride[CM_MAX_RANK];
    uint64_t shape[CM_MAX_RANK];
    cm_strides_c(grid->rank, grid->chunk, itemsize, stride);
    /*
     * Dimension by dimension: past the end along j, inside the valid part before j, all of the
     * chunk after.
     */
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

static bool is_anywhere(const uint8_t *data, uint64_t nelem, size_t itemsize,
                        const uint8_t *element)
{
    bool found = itemsize == 1 && memchr(data, element[0], nelem) != NULL;
    for (uint64_t i = 0; itemsize > 1 && i < nelem && !found; i++)
        found = memcmp(data + i * itemsize, element, itemsize) == 0;
    return found;
}

/* Whether an element inside VALID is the target's fill value; the others are overwritten. */
static bool holds_fill(const cm_transfer *t, const cm_grid *grid, const cm_box *valid,
                       uint8_t *data)
{
    const size_t itemsize = t->target_type.nbytes;
    const uint8_t *fill = t->target_fill;
    uint8_t other[16] = {0};
    if (itemsize > sizeof(other))
        return false;
    for (size_t i = 0; i < itemsize; i++)
        other[i] = (uint8_t)~fill[i];
    pad(grid, valid, data, itemsize, other);
    cm_element_twin(&t->target_type, fill, other);
    return is_anywhere(data, grid->chunk_nelem, itemsize, fill) ||
           (memcmp(other, fill, itemsize) != 0 &&
            is_anywhere(data, grid->chunk_nelem, itemsize, other));
}

/* Notes or refuses an element that readers take for "nothing here", where it was asked for. */
static int watch_for_fill(const cm_transfer *t, const cm_grid *grid, const cm_box *valid,
                          uint8_t *data, cm_error *err)
{
    char number[48];
    if (t->refuses_fill && holds_fill(t, grid, valid, data)) {
        cm_element_text(&t->target_type, t->target_fill, number, sizeof(number));
        return cm_fail(err, CM_EINVAL,
                       "an element is %s, the `fill_value` asked for, which readers take for "
                       "missing; choose another",
                       number);
    }
    if (t->found_fill != NULL && !atomic_load_explicit(t->found_fill, memory_order_relaxed) &&
        holds_fill(t, grid, valid, data))
        atomic_store(t->found_fill, true);
    return CM_OK;
}

/* The whole chunk as the target's type has it, padded; *data is ELEMENTS or one of W's buffers. */
static int finish_elements(cm_worker *w, const cm_transfer *t, const cm_grid *grid, bool edge,
                           const cm_box *valid, uint8_t *elements, uint8_t **data, cm_error *err)
{
    *data = elements;
    if (t->conversion == NULL) {
        const int rc = watch_for_fill(t, grid, valid, elements, err);
        if (rc == CM_OK && edge)
            pad(grid, valid, elements, t->target_type.nbytes, t->target_fill);
        return rc;
    }
    uint64_t bad = 0;
    /* With the first element, which fits if any does. */
    if (edge)
        pad(grid, valid, elements, t->source->dtype.nbytes, elements);
    *data = w->converted.data;
    int rc = cm_conversion_run(t->conversion, *data, elements, grid->chunk_nelem, &bad, err);
    if (rc == CM_OK)
        rc = watch_for_fill(t, grid, valid, *data, err);
    if (rc == CM_OK && edge)
        pad(grid, valid, *data, t->target_type.nbytes, t->target_fill);
    return rc;
}

void cm_worker_post(cm_worker *w, uint64_t number, const void *data, size_t nbytes)
{
    w->put[w->nputs++] = (cm_put){number, data, nbytes};
}

/* By address, so that neighbours in memory become neighbours in a shard; they mostly are. */
static void sort_puts(cm_put *put, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        cm_put moving = put[i];
        size_t k = i;
        for (; k > 0 && (uintptr_t)put[k - 1].data > (uintptr_t)moving.data; k--)
            put[k] = put[k - 1];
        put[k] = moving;
    }
}

/* Chunks that W fetched together, sorted, none of which shares bytes with another. */
static bool can_move(const cm_worker *w, size_t n)
{
    uintptr_t at = (uintptr_t)w->many.buf.data, end = at + w->many.buf.nbytes;
    for (size_t i = 0; i < n; i++) {
        uintptr_t data = (uintptr_t)w->put[i].data;
        if (data < at || data > end || w->put[i].nbytes > end - data)
            return false;
        at = data + w->put[i].nbytes;
    }
    return n > 0;
}

/*
 * Closes the gaps between chunks read by one request, such as a node of HDF5's index, so that they
 * are written by one: 500,000 chunks of 200 bytes in 4,600 requests instead of 13,000.
 */
static void close_gaps(cm_worker *w, size_t n)
{
    if (!can_move(w, n))
        return;
    const uint8_t *data = w->put[0].data;
    uint8_t *end = w->many.buf.data + (data - w->many.buf.data);
    for (size_t i = 0; i < n; i++) {
        if (w->put[i].data != end)
            memmove(end, w->put[i].data, w->put[i].nbytes);
        w->put[i].data = end;
        end += w->put[i].nbytes;
    }
}

/* Whether chunks of T are handed over: W has an outbox, and the target sends. */
static bool sends(const cm_worker *w, const cm_transfer *t)
{
    return w->outbox.room > 0 && t->target->sends;
}

/* The buffer of W that DATA begins; NULL: none. */
static cm_buf *buffer_of(cm_worker *w, const void *data)
{
    cm_buf *own[] = {&w->encoded, &w->stored, &w->converted, &w->decoded};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (own[i]->data != NULL && own[i]->data == data)
            return own[i];
    return NULL;
}

/* Puts what is encoded, or hands it over.  *slot: where the elements lie, or NULL. */
static int put_or_send(cm_worker *w, const cm_transfer *t, const cm_put *put, size_t n,
                       cm_slot **slot, cm_error *err)
{
    uint64_t start = cm_now_ns(), first = put->number;
    int rc = CM_OK;
    if (!sends(w, t))
        rc = cm_target_put(t->target, put, n, err);
    for (size_t i = 0; rc == CM_OK && i < n && sends(w, t); i++)
        rc = cm_outbox_add(&w->outbox, t, &put[i], buffer_of(w, put[i].data), slot, err);
    cm_worker_stage(w, CM_STAGE_WRITE, t, first, start);
    return rc;
}

int cm_worker_skip(cm_worker *w, const cm_transfer *t, uint64_t number, cm_error *err)
{
    if (!sends(w, t))
        return cm_transfer_skip(t, number, err);
    int rc = t->see != NULL ? t->see(t->see_context, number, NULL, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_outbox_add(&w->outbox, t, &(cm_put){.number = number}, NULL, NULL, err);
    return rc;
}

int cm_worker_flush(cm_worker *w, const cm_transfer *t, cm_error *err)
{
    size_t n = w->nputs;
    w->nputs = 0;
    w->packed.nbytes = 0;
    if (n == 0)
        return CM_OK;
    sort_puts(w->put, n);
    if (cm_transfer_packs(t))
        close_gaps(w, n);
    return put_or_send(w, t, w->put, n, NULL, err);
}

int cm_worker_put(cm_worker *w, const cm_transfer *t, uint64_t number, const uint8_t *data,
                  size_t nbytes, cm_error *err)
{
    int rc = CM_OK;
    if (!cm_transfer_packs(t)) {
        const cm_put put = {number, nbytes > 0 ? (const void *)data : "", nbytes};
        return put_or_send(w, t, &put, 1, &w->delivered, err);
    }
    /* Posted chunks point into the buffer, so it must not move. */
    if (nbytes > w->packed.capacity - w->packed.nbytes)
        rc = cm_worker_flush(w, t, err);
    uint8_t *at = w->packed.data + w->packed.nbytes;
    if (rc == CM_OK)
        rc = cm_buf_append(&w->packed, data, nbytes, err);
    if (rc == CM_OK)
        cm_worker_post(w, number, at, nbytes);
    return rc;
}

/* Whether the encoded bytes in W give back the elements DATA, of which those in VALID count. */
static int check_return(cm_worker *w, const cm_transfer *t, const cm_chain *chain,
                        const cm_grid *grid, const cm_box *valid, const uint8_t *data,
                        size_t nbytes, cm_error *err)
{
    uint8_t *back = w->converted.data;
    int rc = cm_chain_decode(chain, w->ctx, w->encoded.data, nbytes, 0, back, err);
    if (rc != CM_OK)
        return rc;
    pad(grid, valid, back, t->target_type.nbytes, t->target_fill);
    if (memcmp(back, data, grid->chunk_nelem * t->target_type.nbytes) == 0)
        return CM_OK;
    return cm_fail(err, CM_EUNSUPPORTED,
                   "its codecs round or clip, and change values such as the fill value of missing "
                   "chunks; choose another codec");
}

/* *data, elements, becomes what is stored: the same or W's encoded bytes. */
static int encode(cm_worker *w, const cm_transfer *t, const cm_grid *grid, uint64_t number,
                  const cm_box *valid, uint8_t **data, size_t *nbytes, cm_error *err)
{
    const cm_chain *chain;
    *nbytes = grid->chunk_nelem * t->target_type.nbytes;
    int rc = cm_target_chain(t->target, number, &chain, err);
    if (rc != CM_OK || cm_chain_is_raw(chain))
        return rc;
    uint64_t start = cm_now_ns();
    rc = cm_chain_encode(chain, w->ctx, *data, w->encoded.data, nbytes, err);
    if (rc == CM_OK && t->must_return)
        rc = check_return(w, t, chain, grid, valid, *data, *nbytes, err);
    cm_worker_stage(w, CM_STAGE_ENCODE, t, number, start);
    *data = w->encoded.data;
    return rc;
}

int cm_worker_deliver(cm_worker *w, const cm_transfer *t, uint64_t number, const uint64_t *coord,
                      const cm_box *valid, uint8_t *elements, cm_error *err)
{
    cm_grid own;
    const cm_grid *grid = cm_grid_around(&t->target->grid, coord, &own);
    uint8_t *data;
    size_t nbytes;
    int rc = finish_elements(w, t, grid, cm_grid_is_edge(grid, coord), valid, elements, &data, err);
    if (rc == CM_OK && t->skip_empty &&
        cm_all_equal(data, grid->chunk_nelem, t->target_type.nbytes, t->target_fill))
        return cm_worker_skip(w, t, number, err);
    if (rc == CM_OK && t->see != NULL)
        rc = t->see(t->see_context, number, data, err);
    if (rc == CM_OK)
        rc = encode(w, t, grid, number, valid, &data, &nbytes, err);
    if (rc != CM_OK) {
        char text[CM_MAX_RANK * 21];
        cm_error_prefix(err, "variable %s: chunk %s of the output", cm_transfer_name(t),
                        cm_target_chunk_text(t->target, coord, text, sizeof(text)));
        return rc;
    }
    /* The writer's errors say where. */
    return cm_worker_put(w, t, number, data, nbytes, err);
}

/* ---- chunks in slots ---- */

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

int cm_worker_targets(cm_worker *w, cm_error *err)
{
    const cm_transfer *t = w->target[0]->transfer;
    const cm_grid *grid = &t->target->grid;
    uint64_t nelem = 0;
    int rc = CM_OK;
    cm_monitor_at(w->monitor, t->source->name, w->target[0]->number, "writing");
    for (size_t i = 0; i < w->ntargets && rc == CM_OK; i++) {
        cm_slot *slot = w->target[i];
        uint64_t coord[CM_MAX_RANK];
        cm_box valid;
        cm_grid_coord(grid, slot->number, coord);
        cm_grid_box(grid, coord, &valid);
        uint8_t *elements = place_in_chunk(w, slot, grid, &valid);
        w->delivered = slot;
        rc = cm_worker_deliver(w, t, slot->number, coord, &valid, elements, err);
        w->target[i] = w->delivered;
        w->delivered = NULL;
        nelem += cm_box_nelem(&valid);
    }
    if (rc == CM_OK)
        rc = cm_worker_flush(w, t, err);
    if (rc != CM_OK)
        return rc;
    cm_monitor_add(w->monitor, nelem * t->source->dtype.nbytes);
    cm_transfer_count_delivered(t, w->ntargets, nelem);
    return CM_OK;
}
