/* Slots of a loader: where batches lie in the arena. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/batches/batcher_impl.h"

size_t cm_batcher_slot_offset(const cm_batcher *l, uint32_t slot)
{
    return l->options.arena_offset + slot * l->options.slot_nbytes;
}

/* Grown in the first epoch, and not afterwards: all batches but the last are of one size. */
static int hold_samples(cm_batcher_slot *s, uint64_t nsamples, cm_error *err)
{
    if (nsamples <= s->sample_capacity)
        return CM_OK;
    uint64_t *larger = cm_calloc(nsamples, sizeof(*larger), err);
    if (larger == NULL)
        return CM_ENOMEM;
    free(s->sample);
    s->sample = larger;
    s->sample_capacity = nsamples;
    return CM_OK;
}

int cm_batcher_slot_get(cm_batcher *l, uint64_t number, uint64_t nsamples, uint32_t *out,
                        cm_error *err)
{
    *out = CM_BATCHER_NONE;
    if (l->nfree == 0)
        return CM_OK;
    uint32_t i = l->free_slot[l->nfree - 1];
    cm_batcher_slot *s = &l->slot[i];
    int rc = hold_samples(s, nsamples, err);
    if (rc != CM_OK)
        return rc;
    l->nfree--;
    s->state = CM_SLOT_FILLING;
    s->batch = (cm_load_batch){.number = number,
                               .nsamples = nsamples,
                               .sample = s->sample,
                               .data = l->arena->data + cm_batcher_slot_offset(l, i),
                               .slot = i};
    *out = i;
    return CM_OK;
}

void cm_batcher_slot_put(cm_batcher *l, uint32_t slot)
{
    l->slot[slot].state = CM_SLOT_FREE;
    l->free_slot[l->nfree++] = slot;
}

uint32_t cm_batcher_slot_ready(const cm_batcher *l)
{
    uint32_t best = CM_BATCHER_NONE;
    for (uint32_t i = 0; i < l->options.nslots; i++) {
        const cm_batcher_slot *s = &l->slot[i];
        if (s->state != CM_SLOT_READY)
            continue;
        if (!l->options.unordered && s->batch.number == l->taken)
            return i;
        if (l->options.unordered && (best == CM_BATCHER_NONE || s->came < l->slot[best].came))
            best = i;
    }
    return best;
}

unsigned cm_batcher_idlest(const cm_batcher *l)
{
    unsigned best = 0;
    for (unsigned w = 1; w < l->options.nworkers; w++)
        if (l->given[w] < l->given[best])
            best = w;
    return best;
}

void cm_load_batch_fail(cm_load_batch *batch, int status, const char *text)
{
    if (batch->status != CM_OK) /* the first reason stays */
        return;
    batch->status = status;
    snprintf(batch->error, sizeof(batch->error), "%s", text);
}
