/* The setting as it is run, and the parts of a sample, for the report. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/number.h"
#include "base/sentences.h"
#include "bench/readbench.h"

CM_DEFINE_SENTENCE(cm_bench_warn, cm_bench, warning, nwarnings)
CM_DEFINE_SENTENCE(cm_bench_note, cm_bench, note, nnotes)

/* ---- settings ------------------------------------------------------------------------------ */

enum {
    MAX_SETTINGS = 48
};

/* Takes VALUE, which may be NULL for want of memory. */
static int add(cm_readbench_session *s, const char *name, char *value, cm_error *err)
{
    char *copy = value != NULL ? cm_strdup(name, err) : NULL;
    if (copy == NULL || s->nsettings == MAX_SETTINGS) {
        free(copy);
        free(value);
        return copy == NULL ? CM_ENOMEM : cm_fail(err, CM_EINTERNAL, "too many settings");
    }
    s->setting[s->nsettings++] = (cm_readbench_setting){copy, value};
    return CM_OK;
}

static int add_text(cm_readbench_session *s, const char *name, const char *text, cm_error *err)
{
    return add(s, name, cm_strdup(text, err), err);
}

static int add_u64(cm_readbench_session *s, const char *name, uint64_t n, cm_error *err)
{
    return add(s, name, cm_asprintf(err, "%" PRIu64, n), err);
}

static int add_numbers(cm_bench *b, cm_error *err)
{
    cm_readbench_session *s = b->session;
    const cm_readbench_options *o = b->options;
    const struct {
        const char *name;
        uint64_t n;
    } rows[] = {{"batch", o->batch},
                {"batches", b->rank[0].load->share.nbatches},
                {"epochs", o->epochs},
                {"seed", o->seed},
                {"workers", b->load.setting.mode == CM_POOL_SYNC ? 0 : b->load.setting.workers},
                {"worker-threads", b->load.setting.worker_threads},
                {"prefetch", b->load.setting.prefetch},
                {"accelerators", b->load.setting.ranks},
                {"world-size", o->world_size},
                {"rank", o->rank},
                {"cache", o->cache_nbytes},
                {"worker-memory", o->worker_memory},
                {"memory", b->load.memory_limit},
                {"shuffle-window", b->load.setting.planned ? b->load.shape.window : 0}};
    int rc = CM_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && rc == CM_OK; i++)
        rc = add_u64(s, rows[i].name, rows[i].n, err);
    return rc;
}

static int add_flags(cm_bench *b, cm_error *err)
{
    const cm_readbench_options *o = b->options;
    const struct {
        const char *name;
        bool on;
    } rows[] = {{"drop-last", o->drop_last},       {"unordered", o->unordered},
                {"persistent", !o->no_persistent}, {"unpack", o->unpack},
                {"fill-to-nan", o->fill_to_nan},   {"overlap", !o->no_overlap}};
    int rc = CM_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && rc == CM_OK; i++)
        rc = add_text(b->session, rows[i].name, rows[i].on ? "true" : "false", err);
    return rc;
}

/* The parts of a step that were said, or its whole time. */
static void step_text(const cm_bench *b, char *buf, size_t size)
{
    const cm_readbench_options *o = b->options;
    const struct {
        const char *name;
        double seconds;
    } part[] = {
        {"forward", o->step_forward}, {"backward", o->step_backward}, {"other", o->step_other}};
    char time[32];
    size_t n = 0;
    if (o->step_backward <= 0 && o->step_other <= 0) {
        cm_format_time(b->setting.step_ns / 1e9, buf, size);
        return;
    }
    for (size_t i = 0; i < 3; i++)
        if (part[i].seconds > 0 && n < size)
            n += (size_t)snprintf(buf + n, size - n, "%s%s=%s", n > 0 ? "," : "", part[i].name,
                                  cm_format_time(part[i].seconds, time, sizeof time));
}

static int add_texts(cm_bench *b, cm_error *err)
{
    const cm_readbench_options *o = b->options;
    cm_readbench_session *s = b->session;
    char shape[CM_MAX_RANK * 21], step[160], per_sample[32];
    const char *device = b->load.setting.uses_device ? o->device : "none";
    step_text(b, step, sizeof step);
    cm_format_time(b->setting.step_per_sample_ns / 1e9, per_sample, sizeof per_sample);
    const char *const rows[][2] = {
        {"sample", cm_shape_text(b->load.shared.space.space.rank, b->load.shared.space.space.sample,
                                 shape, sizeof shape)},
        {"order", o->boxes != NULL   ? "recorded"
                  : o->order != NULL ? o->order
                                     : "random"},
        {"loader", s->loader},
        {"mode", s->mode},
        {"pool", s->pool},
        {"engine", s->engine},
        {"io", s->io},
        {"lags", o->lags != NULL ? o->lags : "0"},
        {"step-time", step},
        {"step-time-per-sample", per_sample},
        {"cache-policy", b->load.setting.policy == CM_CACHE_LRU ? "lru" : "fifo"},
        {"cache-dir", o->cache_dir != NULL ? o->cache_dir : "none"},
        {"emulate", o->emulate != NULL ? o->emulate : "none"},
        {"device", device},
        {"staging",
         b->load.setting.uses_device ? (b->load.setting.pinned ? "pinned" : "pageable") : "none"},
        {"cast", o->cast != NULL ? o->cast : "none"},
        {"temperature", s->temperature}};
    int rc = CM_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && rc == CM_OK; i++)
        rc = add_text(s, rows[i][0], rows[i][1], err);
    if (rc == CM_OK && o->replay != NULL)
        rc = add_text(s, "replay", o->replay, err);
    return rc;
}

/* ---- parts --------------------------------------------------------------------------------- */

static int describe_part(cm_bench *b, const cm_sample_part *p, int64_t lag, const cm_feed *feed,
                         cm_error *err)
{
    const cm_variable *v = b->load.shared.data.variable[p->array];
    const cm_array *a = v->array;
    cm_readbench_part *out = &b->session->part[b->session->nparts++];
    char type[32];
    out->variable = cm_strdup(a->name, err);
    out->stored_type = cm_strdup(cm_dtype_name(&a->dtype, type, sizeof type), err);
    out->type = cm_strdup(feed != NULL ? cm_feed_type_name(feed, type, sizeof type)
                                       : cm_dtype_name(&a->dtype, type, sizeof type),
                          err);
    if (out->variable == NULL || out->stored_type == NULL || out->type == NULL)
        return CM_ENOMEM;
    out->rank = a->rank;
    out->chunked = a->chunked;
    out->sharded = v->is_sharded;
    memcpy(out->shard, v->source_shard, a->rank * sizeof out->shard[0]);
    out->lag = lag;
    out->is_static = feed == NULL;
    out->nbytes = feed != NULL ? cm_feed_nbytes(feed) : a->dtype.nbytes;
    for (unsigned d = 0; d < a->rank; d++) {
        out->shape[d] = a->shape[d];
        out->chunk[d] = a->chunked ? a->grid.chunk[d] : 0;
        out->sample[d] =
            p->axis[d] >= 0 ? b->load.shared.space.space.sample[p->axis[d]] : a->shape[d];
        out->nbytes *= out->sample[d];
        if (a->dim_name[d] != NULL && (out->dim_name[d] = cm_strdup(a->dim_name[d], err)) == NULL)
            return CM_ENOMEM;
    }
    return CM_OK;
}

static int describe_parts(cm_bench *b, cm_error *err)
{
    const cm_load_space *s = &b->load.shared.space;
    int rc = CM_OK;
    b->session->part = cm_calloc(s->nparts + s->nfixed + 1, sizeof *b->session->part, err);
    if (b->session->part == NULL)
        return CM_ENOMEM;
    for (size_t p = 0; p < s->nparts && rc == CM_OK; p++)
        rc = describe_part(b, &s->part[p], s->lag[p], &s->feed[p], err);
    for (size_t p = 0; p < s->nfixed && rc == CM_OK; p++)
        rc = describe_part(b, &s->fixed[p], 0, NULL, err);
    return rc;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int set(char **to, const char *text, cm_error *err)
{
    *to = cm_strdup(text, err);
    return *to != NULL ? CM_OK : CM_ENOMEM;
}

static int describe_engine(cm_bench *b, const char *store, cm_error *err)
{
    static const char *const engines[] = {"native", "netcdf", NULL};
    cm_readbench_session *s = b->session;
    const cm_load_setting *t = &b->load.setting;
    const cm_dataset *ds = b->load.shared.data.ds;
    const char *format = ds->zarr_format == 2   ? "Zarr v2"
                         : ds->zarr_format == 3 ? "Zarr v3"
                                                : ds->format_name;
    const char *engine = t->engine == CM_LOAD_COMMAND ? b->options->engine : engines[t->engine];
    const char *io = t->engine != CM_LOAD_NATIVE ? "its own" : cm_load_io_name(t->io);
    int rc = set(&s->store, store, err);
    if (rc == CM_OK)
        rc = set(&s->format, format, err);
    if (rc == CM_OK)
        rc = set(&s->engine, engine, err);
    if (rc == CM_OK)
        rc = set(&s->io, io, err);
    if (rc == CM_OK)
        rc = set(&s->order, cm_load_order_name(t->order), err);
    if (rc == CM_OK)
        rc = set(&s->loader, t->planned ? "planned" : "map", err);
    if (rc == CM_OK)
        rc = set(&s->mode, cm_load_mode_name(t->mode), err);
    return rc == CM_OK ? set(&s->pool, t->shared_pool ? "shared" : "rank", err) : rc;
}

static int describe_emulation(cm_bench *b, cm_error *err)
{
    const cm_load_setting *t = &b->load.setting;
    char latency[32], rate[32];
    b->session->emulated = t->emulated;
    if (!t->emulated)
        return CM_OK;
    b->session->streams = t->delay.concurrency;
    b->session->emulation =
        cm_asprintf(err, "%s: %s a request, %s a stream, %u at a time", b->options->emulate,
                    cm_format_time(t->delay.latency, latency, sizeof latency),
                    cm_format_rate(t->delay.bandwidth, rate, sizeof rate), t->delay.concurrency);
    return b->session->emulation != NULL ? CM_OK : CM_ENOMEM;
}

int cm_bench_describe(cm_bench *b, const char *store, cm_error *err)
{
    cm_readbench_session *s = b->session;
    s->workers = b->load.setting.workers;
    s->pool_workers = b->load.setting.workers * b->load.npools;
    s->worker_threads = b->load.setting.worker_threads;
    s->prefetch = b->load.setting.prefetch;
    s->ranks = b->load.setting.ranks;
    s->batch = b->load.batch;
    s->cpus = cm_cpu_count();
    s->setting = cm_calloc(MAX_SETTINGS, sizeof *s->setting, err);
    if (s->setting == NULL)
        return CM_ENOMEM;
    int rc = describe_engine(b, store, err);
    if (rc == CM_OK)
        rc = describe_emulation(b, err);
    if (rc == CM_OK)
        rc = describe_parts(b, err);
    if (rc == CM_OK)
        rc = add_texts(b, err);
    if (rc == CM_OK)
        rc = add_numbers(b, err);
    if (rc == CM_OK)
        rc = add_flags(b, err);
    if (rc == CM_OK)
        s->displacement =
            cm_sample_displacement(&b->load.shared.space.space, 0, b->load.shared.space.nsamples);
    return rc;
}
