/* readbench's options: those of the loader that is measured, and those of the measurement. */
#include <string.h>

#include "bench/readbench.h"

enum {
    USUAL_BATCHES = 50 /* that are taken of an epoch, where the options say nothing */
};

void cm_readbench_options_init(cm_readbench_options *o)
{
    *o = (cm_readbench_options){.batch = 32,
                                .epochs = 2,
                                .prefetch = 2,
                                .world_size = 1,
                                .accelerators = 1,
                                .reserve = 2,
                                .step_forward = -1,
                                .step_backward = -1,
                                .step_other = -1};
}

static void take_load_options(const cm_readbench_options *o, cm_load_options *out)
{
    const bool takes_all = o->boxes != NULL || (o->order != NULL && strcmp(o->order, "all") == 0);
    *out = (cm_load_options){
        .variables = o->variables,
        .lags = o->lags,
        .sample = o->sample,
        .batch = o->batch,
        /* The epoch is the one that a training has by the same options, and is left early. */
        .batches = o->batches,
        .leaves_after = o->batches != 0 || takes_all ? 0 : USUAL_BATCHES,
        .seed = o->seed,
        .drop_last = o->drop_last,
        .order = o->order,
        .boxes = o->boxes,
        .loader = o->loader,
        .window = o->window,
        .world_size = o->world_size,
        .rank = o->rank,
        .ranks = o->accelerators > 0 ? o->accelerators : 1,
        .mode = o->mode,
        .workers = o->workers,
        .worker_threads = o->worker_threads,
        .nthreads = o->nthreads,
        .prefetch = o->prefetch,
        .reserve = o->reserve,
        .unordered = o->unordered,
        .pool = o->pool,
        .worker_memory = o->worker_memory,
        .memory = o->memory,
        .engine = o->engine,
        .io = o->io,
        .cache_nbytes = o->cache_nbytes,
        .cache_policy = o->cache_policy,
        .cache_dir = o->cache_dir,
        .cache_dir_nbytes = o->cache_dir_nbytes,
        .emulate = o->emulate,
        .net = o->net,
        .cast = o->cast,
        .unpack = o->unpack,
        .fill_to_nan = o->fill_to_nan,
        .device = o->device,
        .staging = o->staging,
        .slots = o->slots,
        .slot_nbytes = o->slot_nbytes,
        .device_hooks = o->hook != NULL ? o->hook->device : NULL};
}

static void set_steps(const cm_readbench_options *o, cm_bench_setting *s)
{
    const double part[] = {o->step_forward, o->step_backward, o->step_other};
    bool given = false;
    for (unsigned i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i] >= 0) {
            s->step_ns += part[i] * 1e9;
            given = true;
        }
    s->step_per_sample_ns = o->step_per_sample * 1e9;
    if (!given && o->step_per_sample <= 0)
        s->step_ns = 100e6;
}

/* Options that exclude each other are refused, never weakened. */
static int check(const cm_readbench_options *o, const cm_load_setting *t, const cm_bench_setting *s,
                 cm_error *err)
{
    if (!t->uses_device && o->device_step)
        return cm_fail(err, CM_EINVAL, "`device_step`: needs a device; give `device`");
    if (!t->uses_device && o->no_overlap)
        return cm_fail(err, CM_EINVAL, "`no_overlap`: needs a device; give `device`");
    if (o->cold && o->warm)
        return cm_fail(err, CM_EINVAL, "`cold` and `warm` exclude each other");
    if (o->epochs == 0)
        return cm_fail(err, CM_EINVAL, "`epochs` is at least 1");
    if (o->world_size > 1 && o->accelerators > 1)
        return cm_fail(
            err, CM_EINVAL,
            "`world_size` and `accelerators` exclude each other: one rank of many, or many here");
    if (t->engine == CM_LOAD_COMMAND &&
        (o->log_samples || s->validate == CM_READBENCH_VALIDATE_FULL))
        return cm_fail(err, CM_EINVAL,
                       "`engine` exec: the data stay in its process, so nothing can be logged "
                       "here, and validated by `validate` checksum alone");
    return CM_OK;
}

int cm_bench_setting_make(const cm_readbench_options *o, cm_load_options *load,
                          cm_bench_setting *out, cm_error *err)
{
    cm_load_setting t;
    take_load_options(o, load);
    int rc = cm_load_setting_parse(load, &t, err);
    if (rc != CM_OK)
        return rc;
    *out = (cm_bench_setting){.validate = o->validate};
    set_steps(o, out);
    if (out->validate == CM_READBENCH_VALIDATE_DEFAULT)
        out->validate = t.uses_device ? CM_READBENCH_VALIDATE_FULL : CM_READBENCH_VALIDATE_NONE;
    return check(o, &t, out, err);
}
