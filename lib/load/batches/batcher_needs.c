/*
 * What a plan needs, found by going through it as if each chunk came before the next is handed
 * out.
 */
#include <stdlib.h>

#include "base/number.h"
#include "load/batches/batcher.h"

enum {
    UNTOUCHED,
    WAITING, /* in the stash */
    COMPLETE
};

typedef struct walk {
    const cm_epoch_plan *plan;
    uint64_t batch; /* samples */
    uint64_t nbatches;
    uint32_t *unsent; /* by place: uses in chunks to come */
    uint8_t *state;   /* by place */
    uint64_t *left;   /* by batch: samples that are not complete */
    bool *begun;      /* by batch */
    uint64_t nheld;   /* batches begun and not to be delivered yet */
    uint64_t nstash;
    uint64_t ndelivered;
} walk;

static int allocate(walk *w, cm_error *err)
{
    const uint64_t n = w->plan->nplaces, nbatches = w->nbatches;
    w->unsent = cm_calloc(n, sizeof(w->unsent[0]), err);
    w->state = w->unsent == NULL ? NULL : cm_calloc(n, sizeof(w->state[0]), err);
    w->left = w->state == NULL ? NULL : cm_calloc(nbatches, sizeof(w->left[0]), err);
    w->begun = w->left == NULL ? NULL : cm_calloc(nbatches, sizeof(w->begun[0]), err);
    if (w->begun == NULL)
        return CM_ENOMEM;
    for (uint64_t place = w->plan->first_place; place < n; place++) {
        w->unsent[place] = w->plan->missing[place];
        w->left[place / w->batch]++;
    }
    w->ndelivered = cm_div_ceil(w->plan->first_place, w->batch);
    return CM_OK;
}

static void deallocate(walk *w)
{
    free(w->unsent);
    free(w->state);
    free(w->left);
    free(w->begun);
}

/* False: the uses of C are not those that the plan counts. */
static bool send(walk *w, const cm_epoch_chunk *c)
{
    const cm_epoch_plan *plan = w->plan;
    if (c->first_use > plan->nuses || c->nuses > plan->nuses - c->first_use)
        return false;
    for (uint32_t i = 0; i < c->nuses; i++) {
        const uint32_t place = plan->use[c->first_use + i].place;
        if (place >= plan->nplaces || w->unsent[place] == 0)
            return false;
        w->unsent[place]--;
    }
    return true;
}

/* Slots and places in the stash that C needs. */
static void hold(walk *w, const cm_epoch_chunk *c)
{
    for (uint32_t i = 0; i < c->nuses; i++) {
        const uint32_t place = w->plan->use[c->first_use + i].place;
        const bool stashed = w->plan->stashed[place];
        const uint64_t b = place / w->batch;
        if (stashed && w->state[place] == UNTOUCHED) {
            w->state[place] = WAITING;
            w->nstash++;
        }
        if ((!stashed || w->unsent[place] == 0) && !w->begun[b]) {
            w->begun[b] = true;
            w->nheld++;
        }
    }
}

/* C has come: its complete samples leave the stash, complete batches are delivered. */
static void arrive(walk *w, const cm_epoch_chunk *c)
{
    for (uint32_t i = 0; i < c->nuses; i++) {
        const uint32_t place = w->plan->use[c->first_use + i].place;
        if (w->unsent[place] > 0 || w->state[place] == COMPLETE)
            continue;
        w->state[place] = COMPLETE;
        w->nstash -= w->plan->stashed[place];
        w->left[place / w->batch]--;
    }
    while (w->ndelivered < w->nbatches && w->left[w->ndelivered] == 0) {
        w->ndelivered++;
        w->nheld--;
    }
}

int cm_batcher_plan_needs(const cm_epoch_plan *plan, const cm_epoch_share *share,
                          cm_batcher_needs *out, cm_error *err)
{
    walk w = {.plan = plan, .batch = share->batch, .nbatches = share->nbatches};
    *out = (cm_batcher_needs){0};
    if (share->batch == 0 || plan->nplaces != share->per_rank || plan->nplaces > UINT32_MAX ||
        share->nbatches != cm_div_ceil(plan->nplaces, share->batch))
        return cm_fail(err, CM_EINVAL, "the plan of an epoch and its share are of different sizes");
    int rc = allocate(&w, err);
    for (uint64_t x = 0; rc == CM_OK && x < plan->nchunks; x++) {
        const cm_epoch_chunk *c = &plan->chunk[x];
        if (!send(&w, c)) {
            rc = cm_fail(err, CM_EINVAL, "chunk %llu of the plan has more uses than samples",
                         (unsigned long long)x);
            break;
        }
        hold(&w, c);
        out->nslots = w.nheld > out->nslots ? w.nheld : out->nslots;
        out->nstash = w.nstash > out->nstash ? w.nstash : out->nstash;
        out->max_pieces = c->nuses > out->max_pieces ? c->nuses : out->max_pieces;
        arrive(&w, c);
    }
    if (rc == CM_OK && w.ndelivered != w.nbatches)
        rc = cm_fail(err, CM_EINVAL, "the plan of an epoch does not complete batch %llu",
                     (unsigned long long)w.ndelivered);
    deallocate(&w);
    return rc;
}
