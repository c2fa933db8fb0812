/*
 * The planned loader: samples in the order of blocks (plan/block_order.h), cut out of chunks
 * that were decoded once for all samples of their block.
 *
 * The decoded chunks of a block lie in a frame of the arena, from its first sample to its last.
 * Block k has frame k mod F, for which it waits until the block before it there is through; as
 * F is more than the window, that one has no sample any more that is yet to be asked for.
 *
 * Batches are prepared in order: sample after sample, the chunks that it needs and its frame does
 * not have are handed out, each to the worker that has the fewest tasks.  A *run* is samples of
 * one batch that are cut together, once all their chunks have come: a whole batch, or less where
 * a frame has to be waited for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "load/batches/batcher_impl.h"
#include "plan/block_order.h"

enum {
    MAX_RUNS = 64, /* one bit each */
    NO_RUN = UINT32_MAX
};

typedef enum chunk_state {
    ABSENT,
    UNDERWAY,
    DECODED
} chunk_state;

typedef struct failure { /* of a chunk: all batches that need it fail with it */
    int status;
    struct failure *next;
    char text[CM_LOAD_ERROR_SIZE];
} failure;

typedef struct chunk {
    chunk_state state;
    bool missing;
    const failure *failure;
    uint64_t waiting; /* runs */
} chunk;

typedef struct frame {
    bool used;
    uint64_t block;
    unsigned nruns; /* that are not cut yet */
    chunk *chunk;   /* blocks->frame_nchunks of them */
} frame;

typedef struct run {
    bool used, submitted;
    uint32_t slot;
    uint64_t nwaiting; /* chunks */
    uint32_t first, n; /* samples of the batch */
} run;

struct cm_planned {
    const cm_blocks *blocks;
    cm_block_order order;
    uint64_t turn; /* restarts of the order: a rank's last samples may be the epoch's first */
    uint64_t last_place;
    frame *frame;
    chunk *chunks;
    run run[MAX_RUNS];
    unsigned nruns;
    uint32_t slot; /* of the batch that is being prepared; CM_BATCHER_NONE */
    uint32_t prepared;
    uint32_t open;      /* the run that takes its samples; NO_RUN */
    uint32_t *frame_of; /* by slot and place in its batch */
    uint64_t stride;    /* places of a slot there */
    uint32_t *left;     /* by slot: samples that are not cut */
    failure *failures;
    cm_load_counts counts; /* of chunks that came since the batch before was ready */
    uint32_t deaths;
    uint64_t rss_nbytes;
};

_Static_assert(sizeof(chunk) <= CM_BATCHER_CHUNK_NBYTES, "what is kept of a chunk");

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
    *p = (cm_planned){.blocks = l->options.blocks, .slot = CM_BATCHER_NONE, .open = NO_RUN};
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
    for (failure *f = p->failures, *next; f != NULL; f = next) {
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

/* ---- tasks ---- */

static size_t frame_offset(const cm_batcher *l, size_t number)
{
    return cm_batcher_slot_offset(l, l->options.nslots) + number * l->planned->blocks->frame_nbytes;
}

static int submit(cm_batcher *l, cm_error *err)
{
    const unsigned worker = cm_batcher_idlest(l);
    int rc =
        cm_pool_submit(l->pool, l->options.client, l->options.first_worker + worker, l->task, err);
    if (rc == CM_OK) {
        l->given[worker]++;
        l->outstanding++;
    }
    return rc;
}

/* Chunk C of FRAME, number NUMBER of its array, is to be decoded for PART. */
static int submit_chunk(cm_batcher *l, frame *f, uint64_t c, uint64_t number, uint32_t part,
                        cm_error *err)
{
    const cm_planned *p = l->planned;
    const uint32_t strip = p->blocks->strip_of[part];
    const size_t at = frame_offset(l, (size_t)(f - p->frame));
    cm_load_task *t = l->task;
    *t = (cm_load_task){.id = MAX_RUNS + (uint64_t)(&f->chunk[c] - p->chunks),
                        .epoch = l->epoch,
                        .number = number,
                        .offset = at + cm_block_chunk_offset(p->blocks, strip, c),
                        .kind = CM_LOAD_CHUNK,
                        .array = p->blocks->strip[strip].array,
                        .npieces = 1};
    t->piece[0] = (cm_load_piece){.offset = at + cm_block_flag_offset(p->blocks, c), .part = part};
    return submit(l, err);
}

static int submit_run(cm_batcher *l, uint32_t number, cm_error *err)
{
    const cm_planned *p = l->planned;
    const run *r = &p->run[number];
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
        t->piece[i] =
            (cm_load_piece){.sample = s->sample[place],
                            .offset = frame_offset(l, p->frame_of[r->slot * p->stride + place]),
                            .place = place};
    }
    return submit(l, err);
}

/* ---- runs ---- */

static void begin_run(cm_planned *p)
{
    uint32_t i = 0;
    while (p->run[i].used)
        i++;
    p->run[i] = (run){.used = true, .slot = p->slot, .first = p->prepared};
    p->nruns++;
    p->open = i;
}

/* Cuts runs that take no more samples and whose chunks have all come. */
static int submit_runs(cm_batcher *l, cm_error *err)
{
    cm_planned *p = l->planned;
    int rc = CM_OK;
    for (uint32_t i = 0; i < MAX_RUNS && rc == CM_OK; i++) {
        run *r = &p->run[i];
        if (!r->used || r->submitted || i == p->open || r->nwaiting > 0)
            continue;
        rc = submit_run(l, i, err);
        r->submitted = rc == CM_OK;
    }
    return rc;
}

/* Run NUMBER is cut: its frames have one run less, each. */
static void leave_frames(cm_batcher *l, const run *r)
{
    cm_planned *p = l->planned;
    const uint32_t *of = &p->frame_of[r->slot * p->stride + r->first];
    for (uint32_t i = 0; i < r->n; i++)
        p->frame[of[i]].nruns--;
}

/* ---- preparing ---- */

/* The frame of BLOCK; NULL: another block's samples are still to be cut out of it. */
static frame *get_frame(cm_batcher *l, uint64_t block)
{
    cm_planned *p = l->planned;
    frame *f = &p->frame[block % l->options.nframes];
    if (f->used && f->block == block)
        return f;
    if (f->used && f->nruns > 0)
        return NULL;
    f->used = true;
    f->block = block;
    memset(f->chunk, 0, p->blocks->frame_nchunks * sizeof(f->chunk[0]));
    return f;
}

/* The run that is open needs chunk C of FRAME. */
static int need_chunk(cm_batcher *l, frame *f, uint64_t c, uint64_t number, uint32_t part,
                      cm_error *err)
{
    cm_planned *p = l->planned;
    chunk *x = &f->chunk[c];
    run *r = &p->run[p->open];
    cm_load_batch *b = &l->slot[r->slot].batch;
    if (x->state == ABSENT) {
        int rc = submit_chunk(l, f, c, number, part, err);
        if (rc != CM_OK)
            return rc;
        x->state = UNDERWAY;
    }
    if (x->state == UNDERWAY) {
        r->nwaiting += (x->waiting >> p->open & 1) == 0;
        x->waiting |= UINT64_C(1) << p->open;
        return CM_OK;
    }
    b->missing |= x->missing;
    if (x->failure != NULL)
        cm_load_batch_fail(b, x->failure->status, x->failure->text);
    return CM_OK;
}

static int need_part(cm_batcher *l, frame *f, const cm_box *sample, uint32_t part, cm_error *err)
{
    const cm_blocks *blocks = l->planned->blocks;
    const uint32_t strip = blocks->strip_of[part];
    cm_block_walk walk;
    uint64_t c;
    cm_box box;
    int rc = CM_OK;
    if (strip == CM_BLOCK_NO_STRIP)
        return CM_OK;
    cm_sample_part_box(&l->options.part[part], sample, &box);
    cm_block_walk_begin(&walk, blocks, strip, sample, &box);
    while (rc == CM_OK && cm_block_walk_next(&walk, &c))
        rc = need_chunk(l, f, c, cm_grid_number(blocks->strip[strip].grid, walk.coord), part, err);
    return rc;
}

/* Place K of the rank's share: its sample, and its block with those of earlier turns counted. */
static void find_sample(cm_batcher *l, uint64_t k, cm_block_sample *out)
{
    cm_planned *p = l->planned;
    const uint64_t place = cm_epoch_share_place(l->share, k);
    p->turn += place < p->last_place;
    p->last_place = place;
    cm_block_order_at(&p->order, place, out);
    out->block += p->turn * p->blocks->nblocks;
}

/* Prepares the next sample of the batch; *BLOCKED: it has no frame now. */
static int prepare_sample(cm_batcher *l, bool *blocked, cm_error *err)
{
    cm_planned *p = l->planned;
    cm_batcher_slot *s = &l->slot[p->slot];
    cm_block_sample at;
    cm_box sample;
    int rc = CM_OK;
    find_sample(l, s->batch.number * l->share->batch + p->prepared, &at);
    frame *f = get_frame(l, at.block);
    *blocked = f == NULL;
    if (*blocked)
        return CM_OK;
    if (p->open == NO_RUN)
        begin_run(p);
    cm_sample_at(p->blocks->space, l->epoch, at.number, &sample);
    for (uint32_t part = 0; part < l->options.nparts && rc == CM_OK; part++)
        rc = need_part(l, f, &sample, part, err);
    if (rc != CM_OK) /* chunks handed out so far stay; the sample is tried again */
        return rc;
    s->sample[p->prepared] = at.number;
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
    p->open = NO_RUN;
    if (!*blocked) {
        p->slot = CM_BATCHER_NONE;
        l->next++;
    }
    return submit_runs(l, err);
}

int cm_planned_dispatch(cm_batcher *l, cm_error *err)
{
    cm_planned *p = l->planned;
    const uint64_t most = l->sync ? 1 : (uint64_t)l->options.prefetch * l->options.nworkers;
    bool blocked = false;
    int rc = submit_runs(l, err);
    while (rc == CM_OK && !blocked && l->next < l->nbatches && l->next - l->taken < most &&
           p->nruns < MAX_RUNS) {
        if (p->slot == CM_BATCHER_NONE)
            rc = open_batch(l, err);
        if (rc != CM_OK || p->slot == CM_BATCHER_NONE)
            return rc;
        rc = prepare_batch(l, &blocked, err);
    }
    return rc;
}

/* ---- taking in ---- */

static const failure *keep_failure(cm_planned *p, const cm_load_result *r)
{
    static const failure unknown = {.status = CM_ENOMEM,
                                    .text = "a chunk failed, and no memory was left to say why"};
    failure *f = malloc(sizeof(*f));
    if (f == NULL)
        return &unknown;
    f->status = r->status;
    memcpy(f->text, r->error, sizeof(f->text));
    f->next = p->failures;
    p->failures = f;
    return f;
}

static void take_chunk(cm_batcher *l, const cm_load_result *r)
{
    cm_planned *p = l->planned;
    chunk *x = &p->chunks[r->id - MAX_RUNS];
    const uint64_t waiting = x->waiting;
    x->state = DECODED;
    x->waiting = 0;
    x->missing = r->counts.missing_chunks > 0;
    x->failure = r->status == CM_OK ? NULL : keep_failure(p, r);
    for (uint32_t i = 0; i < MAX_RUNS; i++) {
        if ((waiting >> i & 1) == 0)
            continue;
        cm_load_batch *b = &l->slot[p->run[i].slot].batch;
        b->begin_ns = r->begin_ns < b->begin_ns ? r->begin_ns : b->begin_ns;
        b->missing |= x->missing;
        if (x->failure != NULL)
            cm_load_batch_fail(b, x->failure->status, x->failure->text);
        p->run[i].nwaiting--;
    }
}

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
    run *cut = &p->run[r->id];
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
    if (r->id < MAX_RUNS) {
        take_run(l, r);
        return;
    }
    cm_load_counts_add(&p->counts, &r->counts);
    take_chunk(l, r);
}
