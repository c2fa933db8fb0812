/* Pools of workers, a loader for each rank, and what is seen of them. */
#include <stdlib.h>
#include <string.h>

#include "exec/watch/monitor.h"
#include "job/readbench/readbench.h"

static int start_pool(cm_bench *b, unsigned i, cm_error *err)
{
    const cm_bench_setting *t = &b->setting;
    const bool anew = t->mode == CM_POOL_PROCESSES && t->start != CM_START_FORK;
    const cm_pool_options options = {.mode = t->mode,
                                     .start = t->start,
                                     .nworkers = t->workers,
                                     .nclients = t->shared_pool ? t->ranks : 1,
                                     .max_pieces = b->max_pieces,
                                     .worker_memory = b->options->worker_memory,
                                     .stop = {cm_monitor_cancels, b->monitor},
                                     .argv = b->options->self,
                                     .setup = b->setup.data,
                                     .setup_nbytes = b->setup.nbytes};
    if (anew && b->options->self == NULL)
        return cm_fail(err, CM_EINVAL,
                       "--context %s: the program does not say how it is begun anew",
                       cm_bench_start_name(t->start));
    return cm_pool_create(&options, anew ? NULL : &b->source, &b->arena, &b->pool[i], err);
}

static int start_loader(cm_bench *b, unsigned i, cm_error *err)
{
    const cm_bench_setting *t = &b->setting;
    const cm_batcher_options options = {.client = t->shared_pool ? i : 0,
                                        .first_worker = 0,
                                        .nworkers = t->workers,
                                        .prefetch = t->prefetch,
                                        .unordered = b->options->unordered,
                                        .arena_offset = i * b->rank_nbytes,
                                        .nslots = b->nslots,
                                        .slot_nbytes = b->slot_nbytes,
                                        .sample_nbytes = b->shared.space.sample_nbytes,
                                        .nstash = b->nstash,
                                        .nparts = b->shared.space.nparts,
                                        .part_nbytes = b->shared.space.part_nbytes};
    return cm_batcher_create(b->pool[t->shared_pool ? 0 : i], &b->arena, &options,
                             &b->rank[i].loader, err);
}

static int watch(cm_bench *b, cm_error *err)
{
    const unsigned ms = b->options->sample_ms != 0 ? b->options->sample_ms : 100;
    const cm_resources_options options = {.interval_ns = ms * UINT64_C(1000000),
                                          .gpus = b->setting.uses_device &&
                                                  strcmp(b->options->device, "host") != 0};
    return b->resources != NULL ? CM_OK : cm_resources_start(&options, &b->resources, err);
}

/* What workers read with; made once. */
static int make_source(cm_bench *b, const char *store, cm_error *err)
{
    int rc = CM_OK;
    b->origin = (cm_bench_origin){.options = b->options,
                                  .setting = &b->setting,
                                  .store = store,
                                  .monitor = b->monitor,
                                  .proof = b->proof,
                                  .slot_nbytes = b->slot_nbytes};
    if (b->setting.emulated)
        rc = cm_delay_create(&b->setting.delay, &b->origin.delay, err);
    if (rc == CM_OK)
        rc = cm_bench_setup_write(b->options, store, &b->setup, err);
    return rc == CM_OK ? cm_bench_source_make(&b->origin, &b->source, err) : rc;
}

int cm_bench_start_workers(cm_bench *b, cm_error *err)
{
    int rc = b->source.open == NULL ? make_source(b, b->session->store, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    b->pool = cm_calloc(b->npools, sizeof(cm_pool *), err);
    if (b->pool == NULL)
        return CM_ENOMEM;
    for (unsigned i = 0; i < b->npools && rc == CM_OK; i++)
        rc = start_pool(b, i, err);
    for (unsigned i = 0; i < b->setting.ranks && rc == CM_OK; i++)
        rc = start_loader(b, i, err);
    /* After the workers: a process that is forked should find one thread only. */
    return rc == CM_OK ? watch(b, err) : rc;
}

void cm_bench_stop_workers(cm_bench *b)
{
    for (unsigned i = 0; b->rank != NULL && i < b->setting.ranks; i++) {
        cm_batcher_free(b->rank[i].loader);
        b->rank[i].loader = NULL;
    }
    for (unsigned i = 0; b->pool != NULL && i < b->npools; i++)
        cm_pool_free(b->pool[i]);
    free(b->pool);
    b->pool = NULL;
}

void cm_bench_free_source(cm_bench *b)
{
    cm_bench_source_release(&b->origin, &b->source);
    cm_delay_free(b->origin.delay);
    cm_buf_release(&b->setup);
    cm_resources_free(b->resources);
}

/* ---- what is seen of them ------------------------------------------------------------------ */

int cm_bench_note_lives(cm_bench *b, cm_error *err)
{
    cm_readbench_event e = {
        .kind = CM_EVENT_WORKER, .epoch = UINT32_MAX, .rank = UINT32_MAX, .batch = UINT32_MAX};
    int rc = CM_OK;
    for (unsigned i = 0; b->pool != NULL && i < b->npools; i++)
        for (unsigned w = 0; w < b->setting.workers && rc == CM_OK && b->pool[i] != NULL; w++) {
            cm_pool_worker_info info;
            cm_pool_worker(b->pool[i], w, &info);
            e.rank = b->setting.shared_pool ? UINT32_MAX : i;
            e.worker = w;
            e.pid = info.pid;
            e.start_ns = cm_bench_since(b, info.start_ns);
            e.end_ns = b->nepochs > 0 ? b->epoch_end_ns[b->nepochs - 1] : b->setup_end_ns;
            rc = cm_bench_event(b, &e, err);
        }
    return rc;
}

static int take_look(cm_bench *b, size_t i, unsigned gpu, cm_error *err)
{
    cm_readbench_session *s = b->session;
    cm_readbench_look *look = &s->look[i];
    cm_resource_sample at;
    cm_resources_at(b->resources, i, &at);
    look->at_ns = cm_bench_since(b, at.end_ns);
    look->rss_nbytes = at.rss_nbytes;
    look->process_cpu = at.cpus;
    look->gpu = look->gpu_memory = -1;
    if (gpu < cm_resources_ngpus(b->resources)) {
        const uint64_t nbytes = cm_resources_gpu_memory(b->resources, gpu);
        look->gpu = at.gpu[gpu].busy;
        if (nbytes > 0)
            look->gpu_memory = (float)((double)at.gpu[gpu].memory_nbytes / (double)nbytes);
    }
    look->cpu = cm_calloc(s->ncpus + 1, sizeof *look->cpu, err);
    s->nlooks++;
    if (look->cpu == NULL)
        return CM_ENOMEM;
    memcpy(look->cpu, at.core, s->ncpus * sizeof *look->cpu);
    s->peak_nbytes = at.rss_nbytes > s->peak_nbytes ? at.rss_nbytes : s->peak_nbytes;
    return CM_OK;
}

int cm_bench_note_workers(cm_bench *b, cm_error *err)
{
    cm_readbench_session *s = b->session;
    int rc = cm_bench_note_lives(b, err);
    if (rc != CM_OK || b->resources == NULL)
        return rc;
    cm_resources_stop(b->resources);
    s->ncpus = cm_resources_ncores(b->resources);
    s->look = cm_calloc(cm_resources_count(b->resources) + 1, sizeof *s->look, err);
    if (s->look == NULL)
        return CM_ENOMEM;
    /* All ranks use the same one. */
    const unsigned gpu =
        b->rank[0].device != NULL
            ? cm_resources_find_gpu(b->resources, cm_device_get_info(b->rank[0].device)->pci)
            : cm_resources_ngpus(b->resources);
    for (size_t i = 0; i < cm_resources_count(b->resources) && rc == CM_OK; i++)
        rc = take_look(b, i, gpu, err);
    return rc;
}
