/*
 * Batches on their way to a device: each rank has a device of its own and a
 * stage.  The slots of the rank in the arena are page-locked where staging is pinned, so that
 * workers write batches straight into what the device fetches; decoded chunks behind them are not.
 */
#include <stdlib.h>
#include <string.h>

#include "load/run.h"

static uint64_t tag_of(const cm_load_rank *r, uint64_t epoch, uint64_t number)
{
    return epoch * r->share.nbatches + number;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int open_rank(cm_load_run *l, cm_load_rank *r, const cm_stage_options *steps, cm_error *err)
{
    cm_stage_options options = *steps;
    options.staging = l->setting.pinned ? CM_STAGING_PINNED : CM_STAGING_PAGEABLE;
    options.batch_nbytes = l->slot_nbytes;
    int rc = cm_device_open(l->options->device, l->options->device_hooks, &r->device, err);
    options.device = r->device;
    if (rc == CM_OK)
        rc = cm_stage_open(&options, &r->stage, err);
    if (rc == CM_OK)
        rc = cm_stage_lock(r->stage, l->arena.data + r->index * l->rank_nbytes,
                           l->nslots * l->slot_nbytes, err);
    if (rc == CM_OK)
        rc = cm_stage_begin(r->stage, CM_VALIDATE_NONE, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "`device` %s", l->options->device);
    return rc;
}

int cm_load_stage_open(cm_load_run *l, const cm_stage_options *steps, cm_error *err)
{
    int rc = CM_OK;
    for (unsigned i = 0; l->setting.uses_device && i < l->setting.ranks && rc == CM_OK; i++)
        rc = open_rank(l, &l->rank[i], steps, err);
    return rc;
}

void cm_load_stage_close(cm_load_run *l)
{
    for (unsigned i = 0; l->rank != NULL && i < l->setting.ranks; i++) {
        cm_load_rank *r = &l->rank[i];
        cm_stage_free(r->stage);
        cm_device_close(r->device);
        r->stage = NULL;
        r->device = NULL;
    }
}

/* ---- one batch ----------------------------------------------------------------------------- */

int cm_load_stage_submit(cm_load_rank *r, const cm_load_batch *batch, uint64_t epoch)
{
    return cm_stage_submit(r->stage, tag_of(r, epoch, batch->number), batch->data, batch->nbytes,
                           &r->err);
}
