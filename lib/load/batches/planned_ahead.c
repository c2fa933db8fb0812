/* The order of the planned loader's samples, and chunks that are decoded before a batch asks. */
#include "load/batches/planned_impl.h"

enum {
    /*
     * Tasks a worker has where chunks are handed out ahead.  Chunks of 0.4 ms, small epochs, two
     * workers: 0.83 -> 0.90 of the rate of a loader that decodes for the whole epoch, where the
     * chunk that a batch needs is the only one underway; with 20 ms a chunk 0.92 -> 1.00.
     */
    TASKS_AHEAD = 16
};

/* Place K of the rank's share: its sample, and its block with those of earlier turns counted. */
static void compute_sample(cm_batcher *l, uint64_t k, cm_planned_sample *out)
{
    cm_planned *p = l->planned;
    const uint64_t place = cm_epoch_share_place(l->share, k);
    cm_block_sample at;
    p->turn += place < p->last_place;
    p->last_place = place;
    cm_block_order_at(&p->order, place, &at);
    const uint64_t before = p->turn * p->blocks->nblocks;
    *out = (cm_planned_sample){at.number, at.block + before, p->order.step + before};
}

const cm_planned_sample *cm_planned_find(cm_batcher *l, uint64_t k)
{
    cm_planned *p = l->planned;
    cm_planned_sample *s = &p->sample[k % CM_PLANNED_AHEAD];
    if (k >= p->found) {
        compute_sample(l, k, s);
        p->found = k + 1;
    }
    return s;
}

/* The frame of BLOCK, if no block that samples from STEP on may be in has it. */
static cm_planned_frame *frame_ahead(cm_batcher *l, uint64_t block, uint64_t step)
{
    const cm_planned_frame *f = &l->planned->frame[block % l->options.nframes];
    return f->used && f->block != block && f->block >= step ? NULL : cm_planned_frame_get(l, block);
}

int cm_planned_look_ahead(cm_batcher *l, uint64_t next, cm_error *err)
{
    cm_planned *p = l->planned;
    const uint64_t all = l->nbatches * l->share->batch;
    uint64_t end = all < l->share->per_rank ? all : l->share->per_rank;
    if (next >= end)
        return CM_OK;
    end = end - next < CM_PLANNED_AHEAD ? end : next + CM_PLANNED_AHEAD;
    p->looked = p->looked > next ? p->looked : next;
    const uint64_t step = cm_planned_find(l, next)->step;
    while (p->looked < end && l->outstanding < TASKS_AHEAD * l->options.nworkers) {
        const cm_planned_sample *at = cm_planned_find(l, p->looked);
        cm_planned_frame *f = frame_ahead(l, at->block, step);
        cm_box sample;
        if (f == NULL)
            return CM_OK;
        cm_sample_at(p->blocks->space, l->epoch, at->number, &sample);
        int rc = cm_planned_need(l, f, &sample, err);
        if (rc != CM_OK)
            return rc;
        p->looked++;
    }
    return CM_OK;
}
