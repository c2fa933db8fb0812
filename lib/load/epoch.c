/* The epochs of one rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/run.h"
#include "plan/displacement.h"

uint64_t cm_load_place(const cm_load_rank *r, const cm_load_batch *batch, uint64_t k)
{
    const uint64_t at = batch->number * r->share.batch + k;
    return r->run->setting.planned ? cm_epoch_share_place(&r->share, at)
                                   : cm_epoch_share_sample(&r->share, at);
}

uint64_t cm_load_number(cm_load_rank *r, uint64_t epoch, uint64_t k)
{
    cm_block_sample at;
    if (!r->run->setting.planned)
        return cm_epoch_share_sample(&r->share, k);
    if (r->order_of != epoch)
        cm_block_order_begin(&r->order, r->run->shared.space.space.seed, epoch);
    r->order_of = epoch;
    cm_block_order_at(&r->order, cm_epoch_share_place(&r->share, k), &at);
    return at.number;
}

double cm_load_displacement(cm_load_run *l)
{
    enum {
        LOOKS = 1 << 16
    };
    cm_load_rank *r = &l->rank[0];
    const uint64_t n = r->share.per_rank, looks = n < LOOKS ? n : LOOKS;
    uint64_t *number = cm_calloc(looks + 1, sizeof *number, NULL);
    double out = -1;
    for (uint64_t i = 0; number != NULL && i < looks; i++)
        number[i] = cm_load_number(r, 0, (uint64_t)((unsigned __int128)i * n / looks));
    if (number == NULL ||
        cm_displacement_of(&l->shared.space.space, 0, number, looks, &out, NULL) != CM_OK)
        out = -1;
    free(number);
    return out;
}

int cm_load_begin(cm_load_rank *r, uint64_t epoch, uint64_t first)
{
    return cm_batcher_begin(r->batcher, &r->share, epoch, first, &r->err);
}

/* Checks the store at the end of the batch, to notice one that was removed while it was read. */
static void check_store(cm_load_run *l, cm_load_batch *batch)
{
    cm_error err = {0};
    if (batch->status != CM_OK || !batch->missing ||
        cm_load_data_check(&l->shared.data, &err) == CM_OK)
        return;
    batch->status = CM_EIO;
    snprintf(batch->error, sizeof batch->error, "%.*s", (int)sizeof batch->error - 1, err.text);
}

int cm_load_next(cm_load_rank *r, bool (*stop)(void *context), void *context, cm_load_batch *batch,
                 bool *more)
{
    int rc = cm_batcher_next(r->batcher, stop, context, batch, more, &r->err);
    if (rc == CM_OK && *more)
        check_store(r->run, batch);
    return rc;
}

void cm_load_release(cm_load_rank *r, const cm_load_batch *batch)
{
    cm_batcher_release(r->batcher, batch);
}
