/* The map loader: a task is a whole batch. */
#include "base/clock.h"
#include "load/batches/batcher_impl.h"

/* Hands batch l->next, which lies in SLOT, to WORKER. */
static int submit(cm_batcher *l, uint32_t slot, unsigned worker, cm_error *err)
{
    cm_batcher_slot *s = &l->slot[slot];
    const uint64_t n = s->batch.nsamples;
    const size_t offset = cm_batcher_slot_offset(l, slot);
    const size_t step = l->options.nparts > 0 ? l->part_nbytes[0] : 0;
    cm_load_task *t = l->task;
    *t = (cm_load_task){.id = slot,
                        .epoch = l->epoch,
                        .number = s->batch.number,
                        .offset = offset,
                        .kind = CM_LOAD_BATCH,
                        .nbatch = (uint32_t)n,
                        .npieces = (uint32_t)n};
    for (uint64_t k = 0; k < n; k++) {
        s->sample[k] = cm_epoch_share_sample(l->share, s->batch.number * l->share->batch + k);
        t->piece[k] = (cm_load_piece){
            .sample = s->sample[k], .offset = offset + k * step, .place = (uint32_t)k};
    }
    s->batch.queued_ns = cm_now_ns();
    return cm_pool_submit(l->pool, l->options.client, l->options.first_worker + worker, t, err);
}

int cm_batcher_map_dispatch(cm_batcher *l, cm_error *err)
{
    const uint64_t most = (uint64_t)l->options.prefetch * l->options.nworkers;
    while (l->next < l->nbatches && l->next - l->taken < most) {
        uint32_t slot;
        unsigned worker =
            l->options.unordered ? cm_batcher_idlest(l) : (unsigned)(l->next % l->options.nworkers);
        int rc =
            cm_batcher_slot_get(l, l->next, cm_epoch_share_batch(l->share, l->next), &slot, err);
        if (rc != CM_OK || slot == CM_BATCHER_NONE)
            return rc;
        rc = submit(l, slot, worker, err);
        if (rc != CM_OK) {
            cm_batcher_slot_put(l, slot);
            return rc;
        }
        l->given[worker]++;
        l->outstanding++;
        l->next++;
    }
    return CM_OK;
}

void cm_batcher_map_result(cm_batcher *l, const cm_load_result *r)
{
    cm_batcher_slot *s = &l->slot[r->id];
    cm_load_batch *b = &s->batch;
    s->state = CM_SLOT_READY;
    s->came = l->came++;
    b->nbytes = r->nbytes;
    b->worker = r->worker;
    b->deaths = r->deaths;
    b->has_crc32c = r->has_crc32c;
    b->crc32c = r->crc32c;
    b->begin_ns = r->begin_ns;
    b->end_ns = r->end_ns;
    b->rss_nbytes = r->rss_nbytes;
    b->counts = r->counts;
    b->missing = r->counts.missing_chunks > 0;
    if (r->status != CM_OK)
        cm_load_batch_fail(b, r->status, r->error);
    else if (r->nbytes > l->options.slot_nbytes)
        cm_load_batch_fail(b, CM_EINTERNAL, "the source delivered more than a slot holds");
}
