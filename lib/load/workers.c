/* Pools of workers, and a batcher for each rank. */
#include <stdlib.h>

#include "load/run.h"
#include "load/workers/load_exec.h"
#include "watch/monitor.h"

static int start_pool(cm_load_run *l, unsigned i, cm_error *err)
{
    const cm_load_setting *t = &l->setting;
    const cm_pool_options options = {.mode = t->mode,
                                     .nworkers = t->workers,
                                     .nclients = t->shared_pool ? t->ranks : 1,
                                     .max_pieces = l->batch,
                                     .worker_memory = l->options->worker_memory,
                                     .stop = {cm_monitor_cancels, l->monitor},
                                     .grace_ns =
                                         l->source.sees_its_end ? CM_LOAD_EXEC_GRACE_NS : 0};
    return cm_pool_create(&options, &l->source, &l->arena, &l->pool[i], err);
}

static int start_batcher(cm_load_run *l, unsigned i, cm_error *err)
{
    const cm_load_setting *t = &l->setting;
    const cm_batcher_options options = {.client = t->shared_pool ? i : 0,
                                        .first_worker = 0,
                                        .nworkers = t->workers,
                                        .prefetch = t->prefetch,
                                        .unordered = l->options->unordered,
                                        .arena_offset = i * l->rank_nbytes,
                                        .nslots = l->nslots,
                                        .slot_nbytes = l->slot_nbytes,
                                        .nparts = l->shared.space.nparts,
                                        .part_nbytes = l->shared.space.part_nbytes,
                                        .part = l->shared.space.part,
                                        .blocks = t->planned ? &l->blocks : NULL,
                                        .window = l->shape.window,
                                        .nframes = t->planned ? l->nframes : 0};
    return cm_batcher_create(l->pool[t->shared_pool ? 0 : i], &l->arena, &options,
                             &l->rank[i].batcher, err);
}

/* The source that workers read with; made once. */
static int make_source(cm_load_run *l, const char *store, cm_error *err)
{
    int rc = CM_OK;
    l->origin = (cm_load_origin){.options = l->options,
                                 .setting = &l->setting,
                                 .store = store,
                                 .monitor = l->monitor,
                                 .nahead = l->nahead,
                                 .blocks = l->setting.planned ? &l->blocks : NULL};
    if (l->setting.emulated)
        rc = cm_delay_create(&l->setting.delay, &l->origin.delay, err);
    return rc == CM_OK ? cm_load_origin_source(&l->origin, &l->source, err) : rc;
}

int cm_load_start_workers(cm_load_run *l, cm_error *err)
{
    int rc = l->source.open == NULL ? make_source(l, l->store, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    atomic_store(&l->origin.stopping, false);
    l->pool = cm_calloc(l->npools, sizeof(cm_pool *), err);
    if (l->pool == NULL)
        return CM_ENOMEM;
    for (unsigned i = 0; i < l->npools && rc == CM_OK; i++)
        rc = start_pool(l, i, err);
    for (unsigned i = 0; i < l->setting.ranks && rc == CM_OK; i++)
        rc = start_batcher(l, i, err);
    return rc;
}

void cm_load_stop_workers(cm_load_run *l)
{
    atomic_store(&l->origin.stopping, true);
    for (unsigned i = 0; l->rank != NULL && i < l->setting.ranks; i++) {
        cm_batcher_free(l->rank[i].batcher);
        l->rank[i].batcher = NULL;
    }
    for (unsigned i = 0; l->pool != NULL && i < l->npools; i++)
        cm_pool_free(l->pool[i]);
    free(l->pool);
    l->pool = NULL;
}

void cm_load_free_source(cm_load_run *l)
{
    cm_load_origin_release(&l->origin, &l->source);
    cm_delay_free(l->origin.delay);
}
