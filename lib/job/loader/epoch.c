/* The epochs of one rank. */
#include <string.h>

#include "job/loader/run.h"

int cm_load_begin(cm_load_rank *r, uint64_t epoch, uint64_t first)
{
    const bool planned = r->run->setting.planned;
    int rc = CM_OK;
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

int cm_load_next(cm_load_rank *r, bool (*stop)(void *context), void *context, cm_load_batch *batch,
                 bool *more)
{
    return cm_batcher_next(r->batcher, stop, context, batch, more, &r->err);
}

void cm_load_release(cm_load_rank *r, const cm_load_batch *batch)
{
    cm_batcher_release(r->batcher, batch);
}
