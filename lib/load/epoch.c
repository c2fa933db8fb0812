/* The epochs of one rank. */
#include <stdio.h>
#include <string.h>

#include "load/run.h"

int cm_load_begin(cm_load_rank *r, uint64_t epoch, uint64_t first)
{
    const bool planned = r->run->setting.planned;
    int rc = CM_OK;
    cm_batcher_end(r->batcher); /* which has the plan that goes */
    if (planned) {
        cm_epoch_plan_release(&r->plan);
        rc = cm_load_plan_epoch(r->run, r, epoch, &r->plan, &r->err);
    }
    if (rc != CM_OK)
        return rc;
    if (planned && first > 0)
        cm_epoch_plan_skip(&r->plan, first * r->share.batch);
    return cm_batcher_begin(r->batcher, &r->share, epoch, first, planned ? &r->plan : NULL,
                            &r->err);
}

/* As late as can be: a store that was being removed while it was read is seen to be gone. */
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
