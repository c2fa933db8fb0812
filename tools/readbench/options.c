/* From what was typed to what the library is asked for. */
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "readbench.h"

static cm_texts texts(const cm_list *list)
{
    return (cm_texts){list->text, list->n};
}

/* The word of a choice that was given, or NULL. */
static const char *word(const char *const *words, int i)
{
    return i == READBENCH_NOT_GIVEN ? NULL : words[i];
}

/* "forward=30ms,backward=50ms,other=5ms", any of them, or one time for the whole step. */
static int parse_step_time(const char *text, cm_readbench_options *o, cm_error *err)
{
    static const char *const NAMES[] = {"forward", "backward", "other"};
    double *const part[] = {&o->step_forward, &o->step_backward, &o->step_other};
    char item[64];
    bool seen[3] = {false};

    *part[0] = *part[1] = *part[2] = 0;
    if (strchr(text, '=') == NULL)
        return cm_parse_time(text, part[0], err);
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",");
        const char *equals = memchr(p, '=', n);
        size_t nname = equals ? (size_t)(equals - p) : n, k = 0;
        while (k < 3 && (strlen(NAMES[k]) != nname || memcmp(p, NAMES[k], nname) != 0))
            k++;
        if (k == 3 || equals == NULL || n - nname >= sizeof(item))
            return cm_fail(err, CM_EINVAL, "'%.*s' is not forward=T, backward=T or other=T", (int)n,
                           p);
        if (seen[k])
            return cm_fail(err, CM_EINVAL, "%s is given twice", NAMES[k]);
        memcpy(item, equals + 1, n - nname - 1);
        item[n - nname - 1] = '\0';
        if (cm_parse_time(item, part[k], err) != CM_OK)
            return CM_EINVAL;
        seen[k] = true;
        p += n;
        if (*p == '\0')
            return CM_OK;
    }
}

static int check_values(const readbench_values *v, const cm_list *paths, cm_error *err)
{
    if (paths->n == 0)
        return cm_fail(err, CM_EINVAL, "no store");
    if (v->cold && v->warm)
        return cm_fail(err, CM_EINVAL, "--cold and --warm are at odds");
    if (v->out && v->no_out)
        return cm_fail(err, CM_EINVAL, "--out and --no-out are at odds");
    if (v->out && *v->out == '\0')
        return cm_fail(err, CM_EINVAL, "--out takes a folder");
    if (v->tune && v->sweep.n > 0)
        return cm_fail(err, CM_EINVAL, "--tune and --sweep are at odds");
    if (v->cpus > 0)
        return cm_fail(err, CM_EINVAL, "--cpus belongs to --advise");
    if (v->cache_dir_nbytes > 0 && v->cache_dir == NULL)
        return cm_fail(err, CM_EINVAL, "--cache-dir-size needs --cache-dir");
    if (v->cache_policy != READBENCH_NOT_GIVEN && v->cache_nbytes == 0)
        return cm_fail(err, CM_EINVAL, "--cache-policy needs --cache");
    if (v->rank > 0 && v->rank >= (v->world_size ? v->world_size : 1))
        return cm_fail(err, CM_EINVAL, "--rank must be below --world-size");
    if (v->step_per_sample < 0)
        return cm_fail(err, CM_EINVAL, "--step-time-per-sample cannot be negative");
    return CM_OK;
}

static void fill_loader(cm_readbench_options *o, const readbench_values *v)
{
    static const char *const LOADER[] = {"map", "planned"};
    static const char *const MODE[] = {"sync", "threads", "processes"};
    static const char *const CONTEXT[] = {"fork", "spawn", "forkserver"};
    static const char *const POOL[] = {"rank", "shared"};

    o->loader = word(LOADER, v->loader);
    o->window = v->window;
    o->mode = word(MODE, v->mode);
    o->workers = v->workers;
    if (v->worker_threads)
        o->worker_threads = v->worker_threads;
    if (v->prefetch)
        o->prefetch = v->prefetch;
    o->unordered = v->unordered;
    o->no_persistent = v->no_persistent;
    o->context = word(CONTEXT, v->context);
    o->worker_memory = v->worker_memory;
    o->pool = word(POOL, v->pool);
    if (v->world_size)
        o->world_size = v->world_size;
    o->rank = v->rank;
    if (v->accelerators)
        o->accelerators = v->accelerators;
    o->reserve = v->reserve;
    o->step_per_sample = v->step_per_sample;
}

static void fill_reading(cm_readbench_options *o, const readbench_values *v)
{
    static const char *const IO[] = {"auto", "pread", "mmap", "uring", "direct"};
    static const char *const POLICY[] = {"lru", "fifo"};
    static const char *const STAGING[] = {"pinned", "pageable"};
    static const char *const CAST[] = {"float32", "float16", "bfloat16"};
    static const cm_readbench_validate VALIDATE[] = {
        CM_READBENCH_VALIDATE_NONE, CM_READBENCH_VALIDATE_CHECKSUM, CM_READBENCH_VALIDATE_FULL};

    o->engine = v->engine;
    o->io = word(IO, v->io);
    o->cold = v->cold;
    o->warm = v->warm;
    o->cache_nbytes = v->cache_nbytes;
    o->cache_policy = word(POLICY, v->cache_policy);
    o->cache_dir = v->cache_dir;
    o->cache_dir_nbytes = v->cache_dir_nbytes;
    o->emulate = v->emulate;
    o->device = v->device;
    o->staging = word(STAGING, v->staging);
    o->no_overlap = v->no_overlap;
    o->device_step = v->device_step;
    o->slots = v->slots;
    o->slot_nbytes = v->slot_nbytes;
    o->cast = word(CAST, v->cast);
    o->unpack = v->unpack;
    o->fill_to_nan = v->fill_to_nan;
    if (v->validate != READBENCH_NOT_GIVEN)
        o->validate = VALIDATE[v->validate];
}

int readbench_fill_options(cm_readbench_options *o, const readbench_values *v,
                           const cm_common_options *common, const cm_list *paths, cm_error *err)
{
    int rc = check_values(v, paths, err);

    cm_readbench_options_init(o);
    if (rc == CM_OK && v->step_time) {
        rc = parse_step_time(v->step_time, o, err);
        if (rc != CM_OK)
            cm_error_prefix(err, "--step-time");
    }
    if (rc != CM_OK)
        return CM_EINVAL;
    o->store = texts(paths);
    o->variables = texts(&v->variables);
    o->lags = v->lags;
    o->sample = v->sample;
    if (v->batch)
        o->batch = v->batch;
    o->batches = v->batches;
    if (v->epochs)
        o->epochs = v->epochs;
    o->seed = v->seed;
    o->drop_last = v->drop_last;
    o->order = v->order;
    fill_loader(o, v);
    fill_reading(o, v);
    o->log_samples = v->log_samples;
    o->sweep = texts(&v->sweep);
    o->tune = v->tune;
    o->memory = common->memory;
    o->nthreads = common->nthreads;
    o->sample_ms = v->sample_ms;
    return CM_OK;
}
