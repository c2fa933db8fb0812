/* Parses the texts of the options into a setting. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/number.h"
#include "load/run.h"
#include "options/varopt.h"
#include "plan/cost.h"
#include "store/net.h"

void cm_load_options_init(cm_load_options *o)
{
    *o = (cm_load_options){.batch = 32, .world_size = 1, .ranks = 1, .prefetch = 2, .reserve = 2};
}

static const char *const orders[] = {
    [CM_ORDER_RANDOM] = "random",   [CM_ORDER_SEQUENTIAL] = "sequential",
    [CM_ORDER_STRIDED] = "strided", [CM_ORDER_BLOCK_SHUFFLE] = "block-shuffle",
    [CM_ORDER_CHUNKS] = "chunks",   [CM_ORDER_MAP] = "map",
    [CM_ORDER_SERIES] = "series",   [CM_ORDER_ALL] = "all",
    [CM_ORDER_LIST] = "recorded"};
static const char *const modes[] = {
    [CM_POOL_SYNC] = "sync", [CM_POOL_THREADS] = "threads", [CM_POOL_PROCESSES] = "processes"};
static const char *const ios[] = {[CM_IO_PREAD] = "pread",
                                  [CM_IO_MMAP] = "mmap",
                                  [CM_IO_URING] = "uring",
                                  [CM_IO_DIRECT] = "direct"};
static const char *const policies[] = {[CM_CACHE_LRU] = "lru", [CM_CACHE_FIFO] = "fifo"};
static const char *const loaders[] = {"map", "planned"};
static const char *const pools[] = {"rank", "shared"};
static const char *const stagings[] = {"pinned", "pageable"};

enum {
    MIN_INDEX = 64 << 10, /* of shards, for each array and process */
    MAX_INDEX = 64 << 20,
    REMOTE_THREADS = 16, /* of a pool, at least, behind a network */
    REMOTE_WORKERS = 8   /* of a pool there, at most, but for those of the CPUs */
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

const char *cm_load_order_name(cm_order order)
{
    return orders[order];
}
const char *cm_load_io_name(cm_io io)
{
    return ios[io];
}
const char *cm_load_mode_name(cm_pool_mode mode)
{
    return modes[mode];
}

/* The position of TEXT (NULL: FALLBACK) in LIST. */
static int choose(const char *option, const char *text, const char *const *list, unsigned n,
                  unsigned fallback, unsigned *out, cm_error *err)
{
    *out = fallback;
    if (text == NULL)
        return CM_OK;
    for (unsigned i = 0; i < n; i++)
        if (strcmp(text, list[i]) == 0) {
            *out = i;
            return CM_OK;
        }
    char known[128] = "";
    for (unsigned i = 0, at = 0; i < n && at < sizeof known; i++)
        at += (unsigned)snprintf(known + at, sizeof known - at, "%s%s", i > 0 ? ", " : "", list[i]);
    return cm_fail(err, CM_EINVAL, "%s %s: give one of %s", option, text, known);
}

/* "strided:4" and "block-shuffle:8" have a number; the others have none. */
static int parse_order(const char *text, cm_load_setting *s, cm_error *err)
{
    s->order = CM_ORDER_RANDOM;
    s->parameter = 1;
    if (text == NULL)
        return CM_OK;
    const char *colon = strchr(text, ':');
    const size_t n = colon != NULL ? (size_t)(colon - text) : strlen(text);
    for (unsigned i = 0; i < CM_ORDER_LIST; i++) { /* which has no name that is typed */
        if (strlen(orders[i]) != n || strncmp(text, orders[i], n) != 0)
            continue;
        s->order = (cm_order)i;
        const bool takes = i == CM_ORDER_STRIDED || i == CM_ORDER_BLOCK_SHUFFLE;
        if (takes != (colon != NULL))
            return cm_fail(err, CM_EINVAL, "`order` %s: %s", text,
                           takes ? "a number is missing, as in strided:4" : "takes no number");
        if (takes && (cm_parse_u64(colon + 1, &s->parameter, NULL) != CM_OK || s->parameter == 0))
            return cm_fail(err, CM_EINVAL, "`order` %s: '%s' is not a number above 0", text,
                           colon + 1);
        return CM_OK;
    }
    return cm_fail(err, CM_EINVAL,
                   "`order` %s: give random, sequential, strided:N, block-shuffle:K, chunks, map, "
                   "series or all",
                   text);
}

static int parse_engine(const char *text, cm_load_setting *s, cm_error *err)
{
    s->engine = CM_LOAD_NATIVE;
    if (text == NULL || strcmp(text, "native") == 0)
        return CM_OK;
    if (strcmp(text, "netcdf") == 0) {
        s->engine = CM_LOAD_NETCDF;
        return CM_OK;
    }
    if (strncmp(text, "exec:", 5) == 0 && text[5] != '\0') {
        s->engine = CM_LOAD_COMMAND;
        s->command = text + 5;
        return CM_OK;
    }
    return cm_fail(err, CM_EINVAL, "`engine` %s: give native, netcdf or exec:CMD", text);
}

/* ---- --emulate ----------------------------------------------------------------------------- */

static int parse_delay_part(void *context, char *part, cm_error *err)
{
    cm_delay_model *m = context;
    uint64_t n;
    char *value = strchr(part, '=');
    if (value != NULL)
        *value++ = '\0';
    if (value != NULL && strcmp(part, "latency") == 0)
        return cm_parse_time(value, &m->latency, err);
    if (value != NULL && strcmp(part, "bandwidth") == 0)
        return cm_parse_rate(value, &m->bandwidth, err);
    if (value != NULL && strcmp(part, "concurrency") == 0) {
        int rc = cm_parse_u64(value, &n, err);
        if (rc == CM_OK && (n == 0 || n > 65536))
            rc = cm_fail(err, CM_EINVAL, "concurrency is from 1 to 65536");
        m->concurrency = (unsigned)n;
        return rc;
    }
    return cm_fail(err, CM_EINVAL,
                   "'%s': give local, nfs, s3 or latency=T,bandwidth=R,concurrency=N", part);
}

/*
 * chunkcalc's presets, whose bandwidth is what one client gets of a disk or an NFS
 * server, and what one request gets of S3: so it is shared by the streams of the
 * first two and not by those of the third.
 */
static const struct {
    const char *name;
    unsigned streams;
    bool shared;
} storages[] = {{"local", 4, true}, {"nfs", 8, true}, {"s3", 64, false}};

static bool take_preset(const char *name, cm_delay_model *out)
{
    for (unsigned i = 0; i < COUNT(storages); i++) {
        const cm_cost_preset *p = cm_cost_preset_find(storages[i].name);
        if (p == NULL || strcmp(name, storages[i].name) != 0)
            continue;
        out->latency = p->model.latency;
        out->concurrency = storages[i].streams;
        out->bandwidth = p->model.bandwidth / (storages[i].shared ? storages[i].streams : 1);
        return true;
    }
    return false;
}

static int parse_emulate(const char *text, cm_load_setting *s, cm_error *err)
{
    if (text == NULL)
        return CM_OK;
    s->emulated = true;
    if (take_preset(text, &s->delay))
        return CM_OK;
    take_preset("local", &s->delay); /* what is not named */
    int rc = cm_split(text, ',', parse_delay_part, &s->delay, err);
    if (rc == CM_OK && !(s->delay.latency >= 0 && s->delay.bandwidth > 0))
        rc = cm_fail(err, CM_EINVAL, "a latency is at least 0 and a bandwidth above 0");
    if (rc != CM_OK)
        cm_error_prefix(err, "`emulate` %s", text);
    return rc;
}

/* ---- --lags -------------------------------------------------------------------------------- */

static int parse_lag(void *context, char *part, cm_error *err)
{
    cm_load_setting *s = context;
    if (s->nlags == CM_LOAD_MAX_PARTS)
        return cm_fail(err, CM_EINVAL, "more than %d of them", CM_LOAD_MAX_PARTS);
    int rc = cm_parse_i64(part, &s->lag[s->nlags], err);
    if (rc == CM_OK && s->lag[s->nlags] == INT64_MIN)
        rc = cm_fail(err, CM_EINVAL, "%s is out of range", part);
    for (unsigned i = 0; i < s->nlags && rc == CM_OK; i++)
        if (s->lag[i] == s->lag[s->nlags])
            rc = cm_fail(err, CM_EINVAL, "%s is there twice", part);
    const int64_t lag = s->lag[s->nlags++];
    if (rc == CM_OK && lag < 0 && (uint64_t)-lag > s->behind)
        s->behind = (uint64_t)-lag;
    return rc;
}

static int parse_lags(const char *text, cm_load_setting *s, cm_error *err)
{
    int rc = CM_OK;
    if (text != NULL)
        rc = cm_split(text, ',', parse_lag, s, err);
    else
        s->nlags = 1; /* 0 */
    if (rc != CM_OK)
        cm_error_prefix(err, "`lags` %s", text);
    return rc;
}

/* ---- workers ------------------------------------------------------------------------------- */

/* Whether a thread has to wait for a chunk before it asks for the next one (lookahead.c). */
static bool waits_for_chunks(const cm_load_options *o)
{
    return o->cache_nbytes > 0;
}

/*
 * Threads that a pool needs for a store behind a network.  Chunks of batches are requested ahead
 * (lookahead.c), except the indices of shards, for which a thread waits when it first meets them.
 * Without lookahead a thread mostly waits, for one chunk at a time, and threads that decode request
 * nothing.  Fewer threads suffice if everything is requested ahead (cm_load_lookahead_threads).
 */
static unsigned remote_threads(const cm_load_options *o)
{
    const unsigned n = cm_net_concurrency(o->net);
    return waits_for_chunks(o) && n > REMOTE_THREADS ? n + cm_cpu_count() : REMOTE_THREADS;
}

/*
 * Batches of a pool of threads whose chunks are asked for ahead: so many that, when one is nearly
 * there, others have chunks to ask for, and that a CPU finds something to decode while a thread
 * waits for the next chunk of its batch.
 */
static unsigned remote_workers(const cm_load_options *o, const cm_load_setting *s, unsigned advised)
{
    const unsigned set = cm_net_concurrency(o->net);
    const uint64_t n = 2 * (uint64_t)(set > 0 ? set : 2 * REMOTE_THREADS);
    uint64_t batches = (o->batch > 0 ? n / o->batch : 0) + 2;
    if (batches < 2 * (uint64_t)advised)
        batches = 2 * (uint64_t)advised;
    if (s->mode != CM_POOL_THREADS || waits_for_chunks(o))
        return advised;
    const unsigned most = batches < REMOTE_WORKERS ? (unsigned)batches : REMOTE_WORKERS;
    return most > advised ? most : advised;
}

/* Of a worker where nothing was said. */
static unsigned advised_threads(const cm_load_options *o, const cm_load_setting *s, bool remote,
                                const cm_load_advice *advice)
{
    const unsigned npools = s->shared_pool ? 1 : s->ranks, workers = npools * s->workers;
    unsigned n = remote ? remote_threads(o) / workers : 0;
    if (n > CM_LOAD_MAX_THREADS)
        n = CM_LOAD_MAX_THREADS;
    if (o->nthreads > 0 && o->nthreads / workers < n)
        n = o->nthreads / workers;
    return n > advice->threads ? n : advice->threads;
}

int cm_load_choose_workers(const cm_load_options *o, bool remote, cm_load_setting *s, cm_error *err)
{
    const cm_load_advice advice = cm_load_advise(0, s->ranks, o->reserve);
    s->workers = o->workers;
    s->worker_threads = o->worker_threads;
    if (s->mode == CM_POOL_SYNC) {
        if (o->workers > 1)
            return cm_fail(err, CM_EINVAL,
                           "`workers` %u: with `mode` sync the step's own thread reads",
                           o->workers);
        s->workers = 1;
    }
    if (s->workers == 0) {
        s->workers = remote ? remote_workers(o, s, advice.workers) : advice.workers;
        s->workers *= s->shared_pool ? s->ranks : 1;
        if (s->worker_threads == 0)
            s->worker_threads = advised_threads(o, s, remote, &advice);
    }
    if (s->worker_threads == 0)
        s->worker_threads = 1;
    if (s->planned && o->worker_threads > 1)
        return cm_fail(err, CM_EINVAL,
                       "`worker_threads` %u: the planned loader hands out chunks, each to one "
                       "thread; give more `workers`",
                       o->worker_threads);
    /* Threads that were advised are workers then. */
    if (s->planned && o->worker_threads <= 1 && s->mode != CM_POOL_SYNC) {
        s->workers *= s->worker_threads;
        s->worker_threads = 1;
    }
    const unsigned npools = s->shared_pool ? 1 : s->ranks;
    if (o->nthreads > 0 && (uint64_t)npools * s->workers * s->worker_threads > o->nthreads) {
        const unsigned fit = o->nthreads / (npools * s->worker_threads);
        if (o->workers != 0 || fit == 0)
            return cm_fail(
                err, CM_EINVAL,
                "`nthreads` %u: %u pool%s of %u worker%s with %u thread%s each %s %u", o->nthreads,
                npools, cm_of_count(npools, "", "s"), s->workers, cm_of_count(s->workers, "", "s"),
                s->worker_threads, cm_of_count(s->worker_threads, "", "s"),
                cm_of_count(npools, "takes", "take"), npools * s->workers * s->worker_threads);
        s->workers = fit;
    }
    return CM_OK;
}

/* A loader meets any shard; where memory is short, an eighth of it is for their indices. */
static void set_indices(const cm_load_options *o, cm_load_setting *s)
{
    const uint64_t readers = s->mode == CM_POOL_PROCESSES ? s->workers : 1;
    const uint64_t npools = s->shared_pool ? 1 : s->ranks;
    const uint64_t share = o->memory / 8 / (npools * readers + 1);
    s->index_nbytes = MAX_INDEX;
    if (o->memory != 0 && share < MAX_INDEX)
        s->index_nbytes = (size_t)(share > MIN_INDEX ? share : MIN_INDEX);
}

static int parse_cast(const char *text, cm_load_setting *s, cm_error *err)
{
    s->as_xarray = text != NULL && strcmp(text, "xarray") == 0;
    const int rc = text != NULL && !s->as_xarray ? cm_feed_parse(text, &s->to, err) : CM_OK;
    if (rc != CM_OK)
        cm_error_prefix(err, "`cast`");
    return rc;
}

static int set_device(const cm_load_options *o, cm_load_setting *s, cm_error *err)
{
    unsigned i;
    s->uses_device = o->device != NULL && strcmp(o->device, "none") != 0;
    if (!s->uses_device && (o->staging != NULL || o->slots != 0 || o->slot_nbytes != 0))
        return cm_fail(err, CM_EINVAL, "`staging`, `slots` and `slot_nbytes` need `device`");
    int rc = choose("`staging`", o->staging, stagings, COUNT(stagings), 0, &i, err);
    s->pinned = i == 0;
    return rc;
}

/* Options that exclude each other are refused, never weakened. */
static int check(const cm_load_options *o, const cm_load_setting *s, cm_error *err)
{
    if (o->batch == 0 || o->prefetch == 0)
        return cm_fail(err, CM_EINVAL, "`batch` and `prefetch` are at least 1");
    if (o->world_size == 0 || o->rank >= o->world_size)
        return cm_fail(err, CM_EINVAL,
                       "`rank` %" PRIu64 ": ranks of a world of %" PRIu64 " are 0 to %" PRIu64,
                       o->rank, o->world_size, o->world_size - 1);
    if (s->planned && s->engine == CM_LOAD_COMMAND)
        return cm_fail(err, CM_EINVAL, "`loader` planned: `engine` exec reads whole batches");
    if (s->planned && s->engine == CM_LOAD_NETCDF)
        return cm_fail(err, CM_EINVAL,
                       "`loader` planned: libnetcdf reads boxes, not chunks; use `engine` native");
    if (s->planned && o->unordered)
        return cm_fail(err, CM_EINVAL,
                       "`unordered`: the planned loader's order is its plan's, not chance's");
    if (o->boxes != NULL &&
        (o->sample != NULL || o->order != NULL || o->lags != NULL || o->nranges > 0))
        return cm_fail(err, CM_EINVAL,
                       "recorded reads say which elements are read and when: `sample`, "
                       "`order` and `lags` cannot");
    if (o->boxes != NULL && s->planned)
        return cm_fail(err, CM_EINVAL,
                       "`loader` planned: its order is its own, not that of recorded reads");
    if (o->window != 0 && !s->planned)
        return cm_fail(err, CM_EINVAL, "`window` needs `loader` planned");
    if (s->engine != CM_LOAD_NATIVE &&
        (o->cache_nbytes != 0 || o->cache_dir != NULL || s->emulated || o->io != NULL))
        return cm_fail(err, CM_EINVAL,
                       "`cache_nbytes`, `cache_dir`, `emulate` and `io` are the native engine's");
    if (s->engine == CM_LOAD_COMMAND &&
        (s->to != CM_FEED_SAME || s->as_xarray || o->unpack || o->fill_to_nan || s->uses_device))
        return cm_fail(err, CM_EINVAL,
                       "`engine` exec: the data stay in its process, so nothing can be cast or "
                       "staged here");
    if (o->worker_memory != 0 && s->mode != CM_POOL_PROCESSES)
        return cm_fail(err, CM_EINVAL,
                       "`worker_memory` needs `mode` processes; `memory` limits threads");
    return CM_OK;
}

int cm_load_setting_parse(const cm_load_options *o, cm_load_setting *s, cm_error *err)
{
    unsigned mode, io, policy, loader, pool;
    memset(s, 0, sizeof *s);
    s->ranks = o->ranks;
    s->prefetch = o->prefetch;
    s->io_auto = o->io == NULL || strcmp(o->io, "auto") == 0;
    int rc = parse_order(o->order, s, err);
    if (rc == CM_OK)
        rc = choose("`loader`", o->loader, loaders, COUNT(loaders), 0, &loader, err);
    if (rc == CM_OK)
        rc = choose("`mode`", o->mode, modes, COUNT(modes), CM_POOL_THREADS, &mode, err);
    if (rc == CM_OK)
        rc = choose("`pool`", o->pool, pools, COUNT(pools), 0, &pool, err);
    if (rc == CM_OK)
        rc = choose("`io`", s->io_auto ? NULL : o->io, ios, COUNT(ios), CM_IO_PREAD, &io, err);
    if (rc == CM_OK)
        rc = choose("`cache_policy`", o->cache_policy, policies, COUNT(policies), CM_CACHE_LRU,
                    &policy, err);
    if (rc == CM_OK)
        rc = parse_engine(o->engine, s, err);
    if (rc == CM_OK)
        rc = parse_emulate(o->emulate, s, err);
    if (rc == CM_OK)
        rc = parse_lags(o->lags, s, err);
    if (rc == CM_OK)
        rc = parse_cast(o->cast, s, err);
    if (rc != CM_OK)
        return rc;
    if (o->boxes != NULL)
        s->order = CM_ORDER_LIST;
    s->planned = loader == 1;
    s->mode = (cm_pool_mode)mode;
    s->shared_pool = pool == 1 && s->ranks > 1;
    s->io = (cm_io)io;
    s->policy = (cm_cache_policy)policy;
    rc = set_device(o, s, err);
    if (rc == CM_OK)
        rc = cm_load_choose_workers(o, o->net != NULL, s, err);
    set_indices(o, s);
    return rc == CM_OK ? check(o, s, err) : rc;
}
