/* The workers that are measured, and what is seen of them. */
#include <stdlib.h>
#include <string.h>

#include "bench/readbench.h"

static int watch(cm_bench *b, cm_error *err)
{
    const unsigned ms = b->options->sample_ms != 0 ? b->options->sample_ms : 100;
    const cm_resources_options options = {.interval_ns = ms * UINT64_C(1000000),
                                          .gpus = b->load.setting.uses_device &&
                                                  strcmp(b->options->device, "host") != 0};
    return b->resources != NULL ? CM_OK : cm_resources_start(&options, &b->resources, err);
}

int cm_bench_start_workers(cm_bench *b, cm_error *err)
{
    int rc = cm_load_start_workers(&b->load, err);
    /* After the workers: a process that is forked should find one thread only. */
    return rc == CM_OK ? watch(b, err) : rc;
}

/* ---- what is seen of them ------------------------------------------------------------------ */

int cm_bench_note_lives(cm_bench *b, cm_error *err)
{
    cm_readbench_event e = {
        .kind = CM_EVENT_WORKER, .epoch = UINT32_MAX, .rank = UINT32_MAX, .batch = UINT32_MAX};
    int rc = CM_OK;
    for (unsigned i = 0; b->load.pool != NULL && i < b->load.npools; i++)
        for (unsigned w = 0; w < b->load.setting.workers && rc == CM_OK && b->load.pool[i] != NULL;
             w++) {
            cm_pool_worker_info info;
            cm_pool_worker(b->load.pool[i], w, &info);
            e.rank = b->load.setting.shared_pool ? UINT32_MAX : i;
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
        b->rank[0].load->device != NULL
            ? cm_resources_find_gpu(b->resources, cm_device_get_info(b->rank[0].load->device)->pci)
            : cm_resources_ngpus(b->resources);
    for (size_t i = 0; i < cm_resources_count(b->resources) && rc == CM_OK; i++)
        rc = take_look(b, i, gpu, err);
    return rc;
}
