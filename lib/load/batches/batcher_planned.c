/*
 * The planned loader: a task is a chunk that goes to all samples which need it.
 *
 * A chunk is handed out when its batches have slots (those that it completes samples of, or
 * writes to directly) and samples that wait for later windows have places in the stash.  This
 * cannot deadlock: cm_batcher_plan_needs counts what each chunk needs after all chunks before it
 * came and all complete batches were delivered, and cm_planned_begin checks that there is as
 * much.  What a chunk reserved while it waits for the rest stays reserved; the count includes it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "load/batches/batcher_impl.h"

/* Why a chunk failed; samples in the stash point to it. */
typedef struct failure {
    struct failure *next;
    int status;
    char text[CM_LOAD_ERROR_SIZE];
} failure;

typedef struct waiting { /* a sample in the stash */
    uint64_t queued_ns, begin_ns, end_ns;
    const failure *failure; /* NULL: none */
    bool missing;           /* as in cm_load_batch */
} waiting;

struct cm_planned {
    const cm_epoch_plan *plan;
    uint64_t batch;
    uint32_t *unsent;   /* by place: uses in chunks that were not handed out */
    uint32_t *left;     /* by place: uses that have not come */
    uint32_t *stash_of; /* by place */
    uint32_t *slot_of;  /* by batch */
    uint32_t *nleft;    /* by batch: samples that are not complete */
    waiting *waiting;   /* the stash */
    uint32_t *free_stash;
    size_t nfree;
    uint64_t cursor; /* the chunk to hand out next */
    bool entered;    /* its uses are taken off `unsent` */
    uint32_t use;    /* of it, the first for which nothing is reserved */
    failure *failures;
    /* Of the chunks since the batch before was ready. */
    cm_load_counts counts;
    uint32_t deaths;
    uint64_t rss_nbytes;
};

/* ---- beginning and end ---- */

static int check_needs(const cm_batcher *l, const cm_epoch_plan *plan, cm_error *err)
{
    const cm_batcher_options *o = &l->options;
    const size_t max_pieces = cm_pool_get_options(l->pool)->max_pieces;
    cm_batcher_needs needs;
    int rc = cm_batcher_plan_needs(plan, l->share, &needs, err);
    if (rc != CM_OK)
        return rc;
    if (needs.nslots > o->nslots)
        return cm_fail(err, CM_EBUDGET, "the plan of an epoch needs %llu batches at once, %u fit",
                       (unsigned long long)needs.nslots, o->nslots);
    if (needs.nstash > o->nstash)
        return cm_fail(err, CM_EBUDGET,
                       "the plan of an epoch lets %llu samples wait at once, %zu fit",
                       (unsigned long long)needs.nstash, o->nstash);
    if (needs.max_pieces > max_pieces)
        return cm_fail(err, CM_EBUDGET,
                       "a chunk goes to %llu places, a task of the pool to at most %zu",
                       (unsigned long long)needs.max_pieces, max_pieces);
    for (uint64_t i = 0; i < plan->nuses; i++)
        if (plan->use[i].part >= o->nparts)
            return cm_fail(err, CM_EINVAL, "the plan names part %u of %zu", plan->use[i].part,
                           o->nparts);
    return CM_OK;
}

static uint32_t *filled(uint64_t n, cm_error *err)
{
    uint32_t *list = cm_calloc(n, sizeof(list[0]), err);
    for (uint64_t i = 0; i < n && list != NULL; i++)
        list[i] = CM_BATCHER_NONE;
    return list;
}

static int allocate(cm_planned *p, uint64_t nbatches, size_t nstash, cm_error *err)
{
    const uint64_t n = p->plan->nplaces;
    if ((p->unsent = cm_calloc(n, sizeof(p->unsent[0]), err)) == NULL ||
        (p->left = cm_calloc(n, sizeof(p->left[0]), err)) == NULL ||
        (p->stash_of = filled(n, err)) == NULL || (p->slot_of = filled(nbatches, err)) == NULL ||
        (p->nleft = cm_calloc(nbatches, sizeof(p->nleft[0]), err)) == NULL ||
        (p->waiting = cm_calloc(nstash, sizeof(p->waiting[0]), err)) == NULL ||
        (p->free_stash = cm_calloc(nstash, sizeof(p->free_stash[0]), err)) == NULL)
        return CM_ENOMEM;
    memcpy(p->unsent, p->plan->missing, n * sizeof(p->unsent[0]));
    memcpy(p->left, p->plan->missing, n * sizeof(p->left[0]));
    for (uint64_t place = p->plan->first_place; place < n; place++)
        p->nleft[place / p->batch]++;
    while (p->nfree < nstash) {
        p->free_stash[p->nfree] = (uint32_t)(nstash - 1 - p->nfree);
        p->nfree++;
    }
    return CM_OK;
}

int cm_planned_begin(cm_batcher *l, const cm_epoch_plan *plan, cm_error *err)
{
    int rc = check_needs(l, plan, err);
    if (rc != CM_OK)
        return rc;
    /* No more than samples there are can wait. */
    size_t nstash = l->options.nstash < plan->nplaces ? l->options.nstash : plan->nplaces;
    if ((l->planned = cm_calloc(1, sizeof(*l->planned), err)) == NULL)
        return CM_ENOMEM;
    *l->planned = (cm_planned){.plan = plan, .batch = l->share->batch};
    return allocate(l->planned, l->nbatches, nstash, err);
}

void cm_planned_end(cm_batcher *l)
{
    cm_planned *p = l->planned;
    if (p == NULL)
        return;
    for (failure *f; (f = p->failures) != NULL;) {
        p->failures = f->next;
        free(f);
    }
    free(p->unsent);
    free(p->left);
    free(p->stash_of);
    free(p->slot_of);
    free(p->nleft);
    free(p->waiting);
    free(p->free_stash);
    free(p);
    l->planned = NULL;
}

/* ---- handing out ---- */

static size_t stash_offset(const cm_batcher *l, uint32_t stash)
{
    return cm_batcher_slot_offset(l, l->options.nslots) + stash * l->options.sample_nbytes;
}

static void stash_sample(cm_planned *p, uint32_t place)
{
    uint32_t stash = p->free_stash[--p->nfree];
    p->stash_of[place] = stash;
    p->waiting[stash] = (waiting){.queued_ns = UINT64_MAX, .begin_ns = UINT64_MAX};
}

static int open_batch(cm_batcher *l, uint64_t b, cm_error *err)
{
    cm_planned *p = l->planned;
    int rc = cm_batcher_slot_get(l, b, cm_epoch_share_batch(l->share, b), &p->slot_of[b], err);
    if (rc != CM_OK || p->slot_of[b] == CM_BATCHER_NONE)
        return rc;
    cm_batcher_slot *s = &l->slot[p->slot_of[b]];
    s->batch.queued_ns = s->batch.begin_ns = UINT64_MAX;
    memcpy(s->sample, p->plan->sample + b * p->batch, s->batch.nsamples * sizeof(s->sample[0]));
    return CM_OK;
}

/*
 * Reserves what chunk p->cursor needs and does not have; *ALL is false when something cannot
 * be had now.
 */
static int reserve(cm_batcher *l, bool *all, cm_error *err)
{
    cm_planned *p = l->planned;
    const cm_epoch_chunk *c = &p->plan->chunk[p->cursor];
    const cm_epoch_use *use = &p->plan->use[c->first_use];
    if (!p->entered)
        for (uint32_t i = 0; i < c->nuses; i++)
            p->unsent[use[i].place]--;
    p->entered = true;
    *all = false;
    for (; p->use < c->nuses; p->use++) {
        const uint32_t place = use[p->use].place;
        const uint64_t b = place / p->batch;
        const bool stashed = p->plan->stashed[place];
        if (stashed && p->stash_of[place] == CM_BATCHER_NONE) {
            if (p->nfree == 0)
                return CM_OK;
            stash_sample(p, place);
        }
        if ((!stashed || p->unsent[place] == 0) && p->slot_of[b] == CM_BATCHER_NONE) {
            int rc = open_batch(l, b, err);
            if (rc != CM_OK || p->slot_of[b] == CM_BATCHER_NONE)
                return rc;
        }
    }
    *all = true;
    return CM_OK;
}

/* Where USE goes, and since when something of it is under way. */
static size_t aim(cm_batcher *l, const cm_epoch_use *use, uint64_t now_ns)
{
    cm_planned *p = l->planned;
    if (p->plan->stashed[use->place]) {
        const uint32_t stash = p->stash_of[use->place];
        if (now_ns < p->waiting[stash].queued_ns)
            p->waiting[stash].queued_ns = now_ns;
        return stash_offset(l, stash) + cm_batcher_part_offset(l, 1, 0, use->part);
    }
    const uint32_t slot = p->slot_of[use->place / p->batch];
    cm_load_batch *b = &l->slot[slot].batch;
    if (now_ns < b->queued_ns)
        b->queued_ns = now_ns;
    return cm_batcher_slot_offset(l, slot) +
           cm_batcher_part_offset(l, b->nsamples, use->place % p->batch, use->part);
}

static int submit(cm_batcher *l, unsigned worker, cm_error *err)
{
    const cm_planned *p = l->planned;
    const cm_epoch_chunk *c = &p->plan->chunk[p->cursor];
    const uint64_t now_ns = cm_now_ns();
    cm_load_task *t = l->task;
    *t = (cm_load_task){.id = p->cursor,
                        .epoch = l->epoch,
                        .number = c->number,
                        .kind = CM_LOAD_CHUNK,
                        .array = c->array,
                        .npieces = c->nuses};
    for (uint32_t i = 0; i < c->nuses; i++) {
        const cm_epoch_use *use = &p->plan->use[c->first_use + i];
        t->piece[i] = (cm_load_piece){.sample = p->plan->sample[use->place],
                                      .offset = aim(l, use, now_ns),
                                      .part = use->part,
                                      .place = (uint32_t)(use->place % p->batch)};
    }
    return cm_pool_submit(l->pool, l->options.client, l->options.first_worker + worker, t, err);
}

int cm_planned_dispatch(cm_batcher *l, cm_error *err)
{
    cm_planned *p = l->planned;
    const uint64_t most = (uint64_t)l->options.prefetch * l->options.nworkers;
    while (p->cursor < p->plan->nchunks && l->outstanding < most) {
        bool all;
        int rc = reserve(l, &all, err);
        if (rc != CM_OK || !all)
            return rc;
        unsigned worker = cm_batcher_idlest(l);
        rc = submit(l, worker, err);
        if (rc != CM_OK)
            return rc;
        l->given[worker]++;
        l->outstanding++;
        p->cursor++;
        p->entered = false;
        p->use = 0;
    }
    return CM_OK;
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

static void note(cm_batcher *l, uint32_t place, const cm_load_result *r, const failure *failed)
{
    cm_planned *p = l->planned;
    uint64_t *begin_ns, *end_ns;
    if (p->plan->stashed[place]) {
        waiting *w = &p->waiting[p->stash_of[place]];
        begin_ns = &w->begin_ns;
        end_ns = &w->end_ns;
        if (w->failure == NULL)
            w->failure = failed;
        w->missing |= r->counts.missing_chunks > 0;
    } else {
        cm_load_batch *b = &l->slot[p->slot_of[place / p->batch]].batch;
        begin_ns = &b->begin_ns;
        end_ns = &b->end_ns;
        if (failed != NULL)
            cm_load_batch_fail(b, failed->status, failed->text);
        b->missing |= r->counts.missing_chunks > 0;
    }
    *begin_ns = r->begin_ns < *begin_ns ? r->begin_ns : *begin_ns;
    *end_ns = r->end_ns > *end_ns ? r->end_ns : *end_ns;
}

/* A sample that waited goes to its batch. */
static void unstash(cm_batcher *l, uint32_t place)
{
    cm_planned *p = l->planned;
    const uint32_t stash = p->stash_of[place];
    const uint32_t slot = p->slot_of[place / p->batch];
    const waiting *w = &p->waiting[stash];
    cm_load_batch *b = &l->slot[slot].batch;
    const uint8_t *from = l->arena->data + stash_offset(l, stash);
    uint8_t *to = l->arena->data + cm_batcher_slot_offset(l, slot);
    for (uint32_t part = 0; part < l->options.nparts; part++) {
        memcpy(to + cm_batcher_part_offset(l, b->nsamples, place % p->batch, part), from,
               l->part_nbytes[part]);
        from += l->part_nbytes[part];
    }
    b->queued_ns = w->queued_ns < b->queued_ns ? w->queued_ns : b->queued_ns;
    b->begin_ns = w->begin_ns < b->begin_ns ? w->begin_ns : b->begin_ns;
    b->end_ns = w->end_ns > b->end_ns ? w->end_ns : b->end_ns;
    b->missing |= w->missing;
    if (w->failure != NULL)
        cm_load_batch_fail(b, w->failure->status, w->failure->text);
    p->stash_of[place] = CM_BATCHER_NONE;
    p->free_stash[p->nfree++] = stash;
}

static void finish_batch(cm_batcher *l, uint64_t number)
{
    cm_planned *p = l->planned;
    cm_batcher_slot *s = &l->slot[p->slot_of[number]];
    s->state = CM_SLOT_READY;
    s->batch.nbytes = s->batch.nsamples * l->part_total;
    s->batch.counts = p->counts;
    s->batch.deaths = p->deaths;
    s->batch.rss_nbytes = p->rss_nbytes;
    p->counts = (cm_load_counts){0};
    p->deaths = 0;
    p->rss_nbytes = 0;
}

void cm_planned_result(cm_batcher *l, const cm_load_result *r)
{
    cm_planned *p = l->planned;
    const cm_epoch_chunk *c = &p->plan->chunk[r->id];
    const failure *failed = r->status == CM_OK ? NULL : keep_failure(p, r);
    l->given[r->worker - l->options.first_worker]--;
    cm_load_counts_add(&p->counts, &r->counts);
    p->deaths += r->deaths;
    p->rss_nbytes = r->rss_nbytes > p->rss_nbytes ? r->rss_nbytes : p->rss_nbytes;
    for (uint32_t i = 0; i < c->nuses; i++) {
        const uint32_t place = p->plan->use[c->first_use + i].place;
        note(l, place, r, failed);
        if (--p->left[place] > 0)
            continue;
        if (p->plan->stashed[place])
            unstash(l, place);
        if (--p->nleft[place / p->batch] == 0)
            finish_batch(l, place / p->batch);
    }
}

uint32_t cm_planned_ready(const cm_batcher *l)
{
    const uint32_t slot = l->planned->slot_of[l->taken];
    return slot != CM_BATCHER_NONE && l->slot[slot].state == CM_SLOT_READY ? slot : CM_BATCHER_NONE;
}
