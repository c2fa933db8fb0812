/* A run opened and closed. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "load/run.h"
#include "store/open.h"

int cm_load_note(cm_load_run *l, cm_error *err, const char *format, ...)
{
    char text[sizeof err->text];
    va_list args;
    if (l->note == NULL)
        return CM_OK;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return l->note(l->owner, text, err);
}

static int make_ranks(cm_load_run *l, cm_error *err)
{
    const cm_load_options *o = l->options;
    int rc = CM_OK;
    l->rank = cm_calloc(l->setting.ranks, sizeof *l->rank, err);
    if (l->rank == NULL)
        return CM_ENOMEM;
    for (unsigned i = 0; i < l->setting.ranks && rc == CM_OK; i++) {
        cm_load_rank *r = &l->rank[i];
        r->run = l;
        r->index = i;
        r->share = (cm_epoch_share){.nsamples = l->shared.space.nsamples,
                                    .world = o->world_size > 1 ? o->world_size : l->setting.ranks,
                                    .rank = o->world_size > 1 ? o->rank : i,
                                    .batch = o->batch,
                                    .drop_last = o->drop_last,
                                    .leaves_after = o->leaves_after};
        rc = cm_epoch_share_init(&r->share, err);
        if (rc == CM_OK && r->share.nbatches == 0)
            rc = cm_fail(err, CM_EINVAL, "%" PRIu64 " %s no batch of %" PRIu64 " with `drop_last`",
                         r->share.per_rank,
                         cm_of_count(r->share.per_rank, "sample makes", "samples make"), o->batch);
    }
    return rc;
}

/* Repositories and references may lie behind a network, or point there, and need not. */
static bool is_remote(const cm_load_data *d)
{
    return d->slow != NULL ? cm_store_is_remote(d->slow) : cm_store_url_is_remote(d->path);
}

int cm_load_open(cm_load_run *l, cm_error *err)
{
    int rc = cm_load_setting_parse(l->options, &l->setting, err);
    l->npools = l->setting.shared_pool ? 1 : l->setting.ranks;
    if (rc == CM_OK)
        rc = cm_load_shared_open(l->options, &l->setting,
                                 &(cm_load_opening){.store = l->store, .monitor = l->monitor},
                                 &l->shared, err);
    if (rc == CM_OK && l->options->net != NULL && !is_remote(&l->shared.data))
        rc = cm_load_choose_workers(l->options, false, &l->setting, err);
    return rc == CM_OK ? make_ranks(l, err) : rc;
}

void cm_load_close(cm_load_run *l)
{
    cm_load_stop_workers(l);
    cm_load_stage_close(l);
    cm_load_free_source(l);
    for (unsigned i = 0; l->rank != NULL && i < l->setting.ranks; i++)
        cm_block_order_release(&l->rank[i].order);
    free(l->rank);
    l->rank = NULL;
    cm_arena_release(&l->arena);
    cm_blocks_release(&l->blocks);
    cm_load_shared_release(&l->shared);
    cm_census_release(&l->census);
}
