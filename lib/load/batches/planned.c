/* The planned loader: batches, the runs that they are cut in, and results. */
#include <stdlib.h>

#include "base/clock.h"
#include "load/batches/planned_impl.h"

/* ---- beginning and ending ---- */

static int allocate(cm_batcher *l, cm_planned *p, cm_error *err)
{
    const cm_batcher_options *o = &l->options;
    size_t nchunks;
    int rc = cm_block_order_make(o->blocks, o->window, &p->order, err);
    if (rc != CM_OK)
        return rc;
    if (!cm_mul_size(o->nframes, o->blocks->frame_nchunks, &nchunks))
        return cm_fail(err, CM_EBUDGET, "frames of too many chunks");
    p->stride = cm_epoch_share_batch(l->share, 0);
    p->frame = cm_calloc(o->nframes, sizeof(p->frame[0]), err);
    p->chunks = p->frame == NULL ? NULL : cm_calloc(nchunks + 1, sizeof(p->chunks[0]), err);
    p->left = p->chunks == NULL ? NULL : cm_calloc(o->nslots, sizeof(p->left[0]), err);
    p->frame_of =
        p->left == NULL ? NULL : cm_calloc(o->nslots * p->stride, sizeof(p->frame_of[0]), err);
    if (p->frame_of == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < o->nframes; i++)
        p->frame[i].chunk = p->chunks + i * o->blocks->frame_nchunks;
    return CM_OK;
}

int cm_planned_begin(cm_batcher *l, cm_error *err)
{
    cm_planned *p = cm_calloc(1, sizeof(*p), err);
    if (p == NULL)
        return CM_ENOMEM;
    l->planned = p;
    *p =
        (cm_planned){.blocks = l->options.blocks, .slot = CM_BATCHER_NONE, .open = CM_BATCHER_NONE};
    int rc = allocate(l, p, err);
    if (rc == CM_OK)
        cm_block_order_begin(&p->order, p->blocks->space->seed, l->epoch);
    return rc;
}

void cm_planned_end(cm_batcher *l)
{
    cm_planned *p = l->planned;
    if (p == NULL)
        return;
    for (cm_planned_failure *f = p->failures, *next; f != NULL; f = next) {
        next = f->next;
        free(f);
    }
    cm_block_order_release(&p->order);
    free(p->frame);
    free(p->chunks);
    free(p->left);
    free(p->frame_of);
    free(p);
    l->planned = NULL;
}

/* ---- runs ---- */

static int submit_run(cm_batcher *l, uint32_t number, cm_error *err)
{
    const cm_planned *p = l->planned;
    const cm_planned_run *r = &p->run[number];
    const cm_batcher_slot *s = &l->slot[r->slot];
    cm_load_task *t = l->task;
    *t = (cm_load_task){.id = number,
                        .epoch = l->epoch,
                        .number = s->batch.number,
                        .offset = cm_batcher_slot_offset(l, r->slot),
                        .kind = CM_LOAD_CUT,
                        .nbatch = (uint32_t)s->batch.nsamples,
                        .npieces = r->n};
    for (uint32_t i = 0; i < r->n; i++) {
        const uint32_t place = r->first + i;
        t->piece[i] = (cm_load_piece){
            .sample = s->sample[place],
            .offset = cm_planned_frame_offset(l, p->frame_of[r->slot * p->stride + place]),
            .place = place};
    }
    return cm_planned_submit(l, err);
}

static void begin_run(cm_planned *p)
{
    uint32_t i = 0;
    while (p->run[i].used)
        i++;
    p->run[i] = (cm_planned_run){.used = true, .slot = p->slot, .first = p->prepared};
    p->nruns++;
    p->open = i;
}

/* Cuts runs that take no more samples and whose chunks have all come. */
static int submit_runs(cm_batcher *l, cm_error *err)
{
    cm_planned *p = l->planned;
    int rc = CM_OK;
    for (uint32_t i = 0; i < CM_PLANNED_RUNS && rc == CM_OK; i++) {
        cm_planned_run *r = &p->run[i];
        if (!r->used || r->submitted || i == p->open || r->nwaiting > 0)
            continue;
        rc = submit_run(l, i, err);
        r->submitted = rc == CM_OK;
    }
    return rc;
}

/* Run NUMBER is cut: its frames have one run less, each. */
static void leave_frames(cm_batcher *l, const cm_planned_run *r)
{
    cm_planned *p = l->planned;
    const uint32_t *of = &p->frame_of[r->slot * p->stride + r->first];
    for (uint32_t i = 0; i < r->n; i++)
        p->frame[of[i]].nruns--;
}

/* ---- preparing ---- */

/* The place in the share of the first sample that is not prepared. */
static uint64_t next_place(const cm_batcher *l)
{
    const cm_planned *p = l->planned;
    return l->next * l->share->batch + (p->slot == CM_BATCHER_NONE ? 0 : p->prepared);
}

/* Prepares the next sample of the batch; *BLOCKED: it has no frame now. */
static int prepare_sample(cm_batcher *l, bool *blocked, cm_error *err)
{
    cm_planned *p = l->planned;
    cm_batcher_slot *s = &l->slot[p->slot];
    cm_box sample;
    const cm_planned_sample *at = cm_planned_find(l, next_place(l));
    cm_planned_frame *f = cm_planned_frame_get(l, at->block);
    *blocked = f == NULL;
    if (*blocked)
        return CM_OK;
    if (p->open == CM_BATCHER_NONE)
        begin_run(p);
    cm_sample_at(p->blocks->space, l->epoch, at->number, &sample);
    int rc = cm_planned_need(l, f, &sample, err);
    if (rc != CM_OK) /* chunks handed out so far stay; the sample is tried again */
        return rc;
    s->sample[p->prepared] = at->number;
    p->frame_of[p->slot * p->stride + p->prepared] = (uint32_t)(f - p->frame);
    f->nruns++;
    p->run[p->open].n++;
    p->prepared++;
    return CM_OK;
}

static int open_batch(cm_batcher *l, cm_error *err)
{
    cm_planned *p = l->planned;
    const uint64_t n = cm_epoch_share_batch(l->share, l->next);
    int rc = cm_batcher_slot_get(l, l->next, n, &p->slot, err);
    if (rc != CM_OK || p->slot == CM_BATCHER_NONE)
        return rc;
    l->slot[p->slot].batch.queued_ns = cm_now_ns();
    l->slot[p->slot].batch.begin_ns = UINT64_MAX;
    p->left[p->slot] = (uint32_t)n;
    p->prepared = 0;
    return CM_OK;
}

/* As much of the batch as has frames; *BLOCKED: not all of it. */
static int prepare_batch(cm_batcher *l, bool *blocked, cm_error *err)
{
    cm_planned *p = l->planned;
    const uint64_t n = l->slot[p->slot].batch.nsamples;
    int rc = CM_OK;
    *blocked = false;
    while (p->prepared < n && !*blocked && rc == CM_OK)
        rc = prepare_sample(l, blocked, err);
    if (rc != CM_OK)
        return rc;
    p->open = CM_BATCHER_NONE;
    if (!*blocked) {
        p->slot = CM_BATCHER_NONE;
        l->next++;
    }
    return submit_runs(l, err);
}

static int dispatch_batches(cm_batcher *l, cm_error *err)
{
    cm_planned *p = l->planned;
    const uint64_t most = l->sync ? 1 : (uint64_t)l->options.prefetch * l->options.nworkers;
    bool blocked = false;
    int rc = submit_runs(l, err);
    while (rc == CM_OK && !blocked && l->next < l->nbatches && l->next - l->taken < most &&
           p->nruns < CM_PLANNED_RUNS) {
        if (p->slot == CM_BATCHER_NONE)
            rc = open_batch(l, err);
        if (rc != CM_OK || p->slot == CM_BATCHER_NONE)
            return rc;
        rc = prepare_batch(l, &blocked, err);
    }
    return rc;
}

int cm_planned_dispatch(cm_batcher *l, cm_error *err)
{
    int rc = dispatch_batches(l, err);
    return rc == CM_OK && !l->sync ? cm_planned_look_ahead(l, next_place(l), err) : rc;
}

/* ---- taking in ---- */

static void finish_batch(cm_batcher *l, uint32_t slot)
{
    cm_planned *p = l->planned;
    cm_batcher_slot *s = &l->slot[slot];
    s->state = CM_SLOT_READY;
    s->batch.nbytes = s->batch.nsamples * l->part_total;
    cm_load_counts_add(&s->batch.counts, &p->counts);
    s->batch.deaths = p->deaths;
    s->batch.rss_nbytes = p->rss_nbytes;
    p->counts = (cm_load_counts){0};
    p->deaths = 0;
    p->rss_nbytes = 0;
}

static void take_run(cm_batcher *l, const cm_load_result *r)
{
    cm_planned *p = l->planned;
    cm_planned_run *cut = &p->run[r->id];
    cm_load_batch *b = &l->slot[cut->slot].batch;
    b->begin_ns = r->begin_ns < b->begin_ns ? r->begin_ns : b->begin_ns;
    if (b->begin_ns < b->queued_ns) /* by a chunk that an earlier batch asked for */
        b->begin_ns = b->queued_ns;
    b->end_ns = r->end_ns > b->end_ns ? r->end_ns : b->end_ns;
    b->missing |= r->counts.missing_chunks > 0;
    cm_load_counts_add(&b->counts, &r->counts);
    if (r->status != CM_OK)
        cm_load_batch_fail(b, r->status, r->error);
    leave_frames(l, cut);
    p->left[cut->slot] -= cut->n;
    if (p->left[cut->slot] == 0)
        finish_batch(l, cut->slot);
    cut->used = false;
    p->nruns--;
}

void cm_planned_result(cm_batcher *l, const cm_load_result *r)
{
    cm_planned *p = l->planned;
    l->given[r->worker - l->options.first_worker]--;
    p->deaths += r->deaths;
    p->rss_nbytes = r->rss_nbytes > p->rss_nbytes ? r->rss_nbytes : p->rss_nbytes;
    if (r->id < CM_PLANNED_RUNS) {
        take_run(l, r);
        return;
    }
    cm_load_counts_add(&p->counts, &r->counts);
    cm_planned_take_chunk(l, r);
}

unsigned cm_planned_wanted(const cm_batcher *l)
{
    const cm_planned *p = l->planned;
    uint64_t n = l->outstanding / 2; /* workers are not to run out of tasks */
    for (uint32_t i = 0; i < CM_PLANNED_RUNS; i++) {
        const cm_planned_run *r = &p->run[i];
        if (r->used && !r->submitted && r->nwaiting < n)
            n = r->nwaiting;
    }
    return n > 0 ? (unsigned)n : 1;
}
