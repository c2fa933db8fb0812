#include "engine/worker.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "engine/plan.h"

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

/* How many pieces, slots of pieces, ready chunks and chunks to put there are at most. */
typedef struct most {
    size_t pieces, slots, targets, puts;
} most;

static int make_lists(cm_worker *w, const cm_transfer *transfer, size_t n, cm_error *err)
{
    most m = {1, 1, 1, 1};
    for (size_t i = 0; i < n; i++) {
        size_t pieces = cm_transfer_source_batch(&transfer[i]);
        m.pieces = cm_max_u64(m.pieces, pieces);
        m.slots = cm_max_u64(m.slots, cm_max_u64(pieces, transfer[i].sweep.touched));
        m.targets = cm_max_u64(m.targets, cm_transfer_target_batch(&transfer[i]));
    }
    w->nslots = m.slots;
    m.puts = cm_max_u64(m.pieces, m.targets);
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
                   unsigned ahead, cm_monitor *monitor, cm_trace *trace, cm_error *err)
{
    cm_worker_need need = {0};
    memset(w, 0, sizeof(*w));
    w->index = index;
    w->monitor = monitor;
    w->trace = trace;
    for (size_t i = 0; i < n; i++) {
        const cm_transfer *t = &transfer[i];
        size_t piece = t->sweep.piece_nelem * t->source->dtype.nbytes;
        cm_transfer_worker_need(t, piece, &need);
        if (t->spill != NULL)
            need.spilled = cm_max_u64(need.spilled, cm_chain_decoded_nbytes(t->source->chain));
    }
    if ((w->ctx = cm_codec_ctx_create(err)) == NULL)
        return CM_ENOMEM;
    int rc = make_lists(w, transfer, n, err);
    if (rc == CM_OK)
        rc = cm_outbox_init(&w->outbox, ahead, err);
    return rc == CM_OK ? make_buffers(w, &need, err) : rc;
}

void cm_worker_release(cm_worker *w)
{
    cm_codec_ctx_free(w->ctx);
    cm_outbox_release(&w->outbox);
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
        item->chain = one.chain;
        item->data = w->stored.data;
        item->nbytes = w->stored.nbytes;
    } else if (n > 1) {
        w->many.item = item;
        w->many.n = n;
        rc = cm_array_fetch_many(source, &w->many, err);
    }
    if (t->counts != NULL)
        atomic_fetch_add(&t->counts->fetched, n);
    if (rc != CM_OK)
        cm_error_place(err, source->place);
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
    const cm_chain *chain = cm_array_chain(source, item->chain);
    int rc = cm_chain_decode(chain, w->ctx, item->data, item->nbytes, item->skip, dst, err);
    cm_worker_stage(w, CM_STAGE_DECODE, t, item->number, start);
    if (rc != CM_OK) {
        cm_grid_explain(&source->grid, item->number, "variable", source->name, err);
        cm_error_place(err, cm_array_place(t->source, item->number));
    }
    return rc;
}
