#include "bench/propose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/cause.h"
#include "bench/pipeline.h"
#include "bench/rules.h"

enum {
    MOST_MORE = 8,      /* times as many workers, or batches ahead */
    MOST_PREFETCH = 16, /* of a worker */
    THREADS_PER_CPU = 4 /* those that wait for storage leave the CPU to others */
};
/* Memory is copied in short runs: of the rate of long ones, so much. */
#define SHORT_RUNS 0.25
/* Factor on the model's time where no present chunks exist to calibrate it. */
#define UNCHECKED 1.6
#define MUCH_MORE 1.5
#define CACHED    0.1 /* share of chunks from caches above which costs of reading say little */

typedef struct ground { /* the session as it ran, for all simulations */
    const cm_readbench_session *s;
    const cm_readbench_facts *f;
    double *service; /* of the first rank's batches, epoch after epoch */
    size_t *epoch;   /* where each begins */
    size_t n, nepochs;
    double step;
    double cpu;  /* seconds of a batch, as they were counted, */
    double work; /* and that threads worked on it, whether or not they had a CPU all the time */
    double cpus; /* that others leave */
    double now;  /* seconds simulated */
} ground;

/* ---- as it ran ----------------------------------------------------------------------------- */

static double stages_of(const cm_readbench_batch *b)
{
    double ns = 0;
    for (int k = 0; k < CM_READBENCH_STAGES; k++)
        ns += (double)b->stage_ns[k];
    return ns / 1e9;
}

/* Batches of the planned loader belong to no worker; their work is that of their stages. */
static double service_of(const cm_readbench_session *s, const cm_readbench_batch *b)
{
    if (cm_readbench_is_planned(s))
        return stages_of(b) / (s->worker_threads > 0 ? s->worker_threads : 1);
    return b->end_ns > b->begin_ns ? (double)(b->end_ns - b->begin_ns) / 1e9 : 0;
}

static int by_number(const void *a, const void *b)
{
    const cm_readbench_batch *x = *(cm_readbench_batch *const *)a,
                             *y = *(cm_readbench_batch *const *)b;
    if (x->epoch != y->epoch)
        return x->epoch < y->epoch ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int collect(ground *g, cm_error *err)
{
    const cm_readbench_session *s = g->s;
    const cm_readbench_batch **b = cm_calloc(s->nrecords + 1, sizeof *b, err);
    g->service = cm_calloc(s->nrecords + 1, sizeof *g->service, err);
    g->epoch = cm_calloc(s->nrecords + 1, sizeof *g->epoch, err);
    if (b == NULL || g->service == NULL || g->epoch == NULL) {
        free(b);
        return CM_ENOMEM;
    }
    for (size_t i = 0; i < s->nrecords; i++)
        if (s->record[i].rank == s->record[0].rank && !s->record[i].failed)
            b[g->n++] = &s->record[i];
    qsort(b, g->n, sizeof(*b), by_number);
    for (size_t i = 0; i < g->n; i++) {
        g->service[i] = service_of(s, b[i]);
        if (i == 0 || b[i]->epoch != b[i - 1]->epoch)
            g->epoch[g->nepochs++] = i;
    }
    free(b);
    return CM_OK;
}

/* The workers of the first rank, where each pool has WORKERS: a share, if ranks share a pool. */
static double share_of(const cm_readbench_session *s, unsigned workers)
{
    const unsigned pools = s->workers > 0 ? s->pool_workers / s->workers : 0;
    return pools > 0 && pools < s->ranks ? (double)workers * pools / s->ranks : workers;
}

/* Seconds of all epochs under a change of workers, batches ahead, or of what a batch takes. */
static double simulate(const ground *g, unsigned workers, unsigned ahead, double slower)
{
    const double share = share_of(g->s, workers);
    const unsigned own = share > 1 ? (unsigned)share : workers > 0;
    double total = 0;
    for (size_t e = 0; e < g->nepochs; e++) {
        const size_t from = g->epoch[e], to = e + 1 < g->nepochs ? g->epoch[e + 1] : g->n;
        const cm_pipeline p = {.service = g->service + from,
                               .n = to - from,
                               .slower = own > 0 ? slower * own / share : slower,
                               .step = g->step,
                               .workers = own,
                               .ahead = ahead};
        total += cm_pipeline_seconds(&p);
    }
    return total;
}

static unsigned workers_of(const cm_readbench_session *s)
{
    return cm_readbench_is_sync(s) ? 0 : s->workers;
}

static unsigned ahead_of(const cm_readbench_session *s)
{
    const unsigned all = s->workers * s->prefetch;
    const unsigned slots = s->ranks > 0 ? s->batches_in_flight / s->ranks : 0;
    return slots > 1 && slots - 1 < all ? slots - 1 : all;
}

/* Seconds of threads in a mean batch. */
static double staged(const cm_readbench_session *s)
{
    double seconds = 0;
    for (int k = 0; k < CM_READBENCH_STAGES; k++)
        seconds += s->stage[k].total;
    return s->counts.batches > 0 ? seconds / (double)s->counts.batches : 0;
}

/* The same without waiting for storage; reading the page cache is work. */
static double working(const cm_readbench_session *s)
{
    const bool waits = s->emulated || !(s->resident_after > CM_RULE_RESIDENT);
    const double batches = (double)s->counts.batches;
    return staged(s) - (waits && batches > 0 ? s->stage[0].total / batches : 0);
}

/* The baseline: batches as they were made, and the CPU time of each. */
static int prepare(ground *g, cm_error *err)
{
    const cm_readbench_session *s = g->s;
    const double batches = (double)(s->counts.batches - s->counts.failed_batches);
    int rc = collect(g, err);
    if (rc != CM_OK || g->n == 0)
        return rc;
    g->step = s->step.mean;
    if (g->f->own_cpus > 0 && batches > 0)
        g->cpu = g->f->own_cpus * s->wall_seconds / batches;
    g->cpu = fmax(g->cpu, s->measured.rounds > 0 ? s->measured.batch_cpu_seconds : 0);
    g->work = working(s);
    g->cpus = fmax(0.5, (double)s->cpus - fmax(0, g->f->other_cpus));
    g->now = simulate(g, workers_of(s), ahead_of(s), 1);
    return CM_OK;
}

/*
 * The gain in samples a second if the epochs take SECONDS and batches SLOWER times the present
 * work.  The CPUs bound it: time that other programs took is not available.
 */
static double gain(const ground *g, double seconds, double slower)
{
    const double ranks = g->s->ranks > 0 ? g->s->ranks : 1;
    const double each = fmax(g->cpu / g->cpus, g->s->cpus > 0 ? g->work / g->s->cpus : 0);
    /* Stages of threads that had to wait for a CPU add up to more than the session took. */
    const double least = fmin((double)g->n * ranks * each, g->now);
    return g->now / fmax(seconds, least * slower);
}

static void offer(cm_readbench_proposal *best, cm_readbench_change change, unsigned value,
                  double gained, double least)
{
    const bool rewrites = best->change == CM_CHANGE_CHUNKS || best->change == CM_CHANGE_CODEC;
    const bool rewritten = change == CM_CHANGE_CHUNKS || change == CM_CHANGE_CODEC;
    /* A cheaper change wins over a slightly better one. */
    const double clear =
        best->change == CM_CHANGE_NONE || (rewrites && !rewritten) ? 1 : 1 + CM_RULE_CLEARER;
    if (gained >= least && gained > best->gain * clear)
        *best = (cm_readbench_proposal){
            .simulated = true, .change = change, .gain = gained, .value = value};
}

/* ---- chunks and codecs --------------------------------------------------------------------- */

/* Seconds of a batch besides what the cost model knows: elements go into samples, and are cast. */
static double assembling(const cm_readbench_session *s, double whole)
{
    const double batches = (double)s->counts.batches;
    double seconds = batches > 0 ? (s->stage[2].total + s->stage[3].total) / batches : 0;
    if (!s->predicted.known && s->rates.memory > 0)
        seconds += (double)s->batch_nbytes / (s->rates.memory * SHORT_RUNS);
    return fmin(seconds, 0.9 * whole);
}

/*
 * Seconds that one thread alone takes for a mean batch of the session: scaled from the measured
 * batches by the number of chunks, or else the sum of the stages.
 */
static double alone(const cm_readbench_session *s)
{
    const double batches = (double)s->counts.batches, chunks = (double)s->counts.chunks;
    if (s->measured.rounds > 0 && s->predicted.batch_chunks > 0)
        return s->measured.batch_seconds * chunks / batches / s->predicted.batch_chunks;
    return staged(s);
}

/* Whether the page cache served most of a session that began cold, a batch of which takes WHOLE. */
static bool is_warmed(const cm_readbench_session *s, double whole)
{
    return cm_readbench_is_cold(s) && whole > MUCH_MORE * staged(s);
}

/* Share of a batch's present time that it would take if a sample were read in MODEL seconds. */
static double slower_by(const ground *g, double model)
{
    const cm_readbench_session *s = g->s;
    const double batch = (double)s->batch, batches = (double)s->counts.batches;
    const double whole = batches > 0 ? alone(s) : 0;
    if (!(whole > 0) || is_warmed(s, whole))
        return 0;
    const double rest = assembling(s, whole);
    /* The model, of samples that meet as many chunks as those of the session did. */
    const double each = s->predicted.known ? s->predicted.read_seconds / s->predicted.chunks : 0;
    const double told = each * (double)s->counts.chunks / batches;
    const double off = told > 0 ? fmax(1, (whole - rest) / told) : UNCHECKED;
    return (off * model * batch + rest) / whole;
}

/* Chunks are decoded for each sample, by this library, and not kept. */
static bool pays_for_chunks(const cm_readbench_session *s)
{
    const cm_readbench_counts *c = &s->counts;
    const double hits = (double)(c->cache_hits + c->disk_hits);
    return !cm_readbench_is_planned(s) && !cm_readbench_by_user(s) && !cm_readbench_by_library(s) &&
           hits <= CACHED * (double)c->chunks;
}

static void offer_layout(const ground *g, cm_readbench_change change, double model,
                         cm_readbench_proposal *best)
{
    const cm_readbench_session *s = g->s;
    const double slower = model > 0 ? slower_by(g, model) : 0;
    if (slower > 0)
        offer(best, change, 0, gain(g, simulate(g, workers_of(s), ahead_of(s), slower), slower),
              1 + CM_RULE_REWRITTEN);
}

static void offer_layouts(const ground *g, cm_readbench_proposal *best)
{
    const cm_readbench_predicted *p = &g->s->predicted;
    if (!pays_for_chunks(g->s))
        return;
    offer_layout(g, CM_CHANGE_CHUNKS, p->best_read_seconds, best);
    offer_layout(g, CM_CHANGE_CODEC, p->light_read_seconds, best);
}

/*
 * The planned loader is measured over a whole epoch or not at all, so it is told beside what is
 * proposed: each chunk is decoded for all samples of its block, what they are made of stays.
 */
static double planned_gain(const ground *g)
{
    const cm_readbench_session *s = g->s;
    const double samples = (double)s->counts.samples, batches = (double)s->counts.batches;
    const double each = samples > 0 ? (double)s->counts.chunks / samples : 0;
    const double whole = batches > 0 ? alone(s) : 0;
    if (!pays_for_chunks(s) || !(s->predicted.planned_per_sample > 0) || !(each > 0) ||
        !(whole > 0) || is_warmed(s, whole))
        return 0;
    const double rest = assembling(s, whole);
    const double slower = ((whole - rest) * s->predicted.planned_per_sample / each + rest) / whole;
    return gain(g, simulate(g, workers_of(s), ahead_of(s), slower), slower);
}

/* ---- workers and prefetch ------------------------------------------------------------------ */

/* The factor on the time of a request when MORE times as many threads ask. */
static double crowding(const cm_readbench_session *s, double more)
{
    const double threads = (double)s->pool_workers * s->worker_threads;
    const cm_readbench_rates *r = &s->rates;
    if (s->emulated)
        return s->streams > 0 ? fmax(1, threads * more / s->streams) : 1;
    if (!(r->storage > 0) || !(r->storage_more > 0) || !(threads > 0))
        return 1;
    /* Interpolates between the two numbers of threads that were probed. */
    const double probed = r->more_threads / threads;
    const double share = probed > 1 ? fmin(1, log(more) / log(probed)) : 1;
    const double scaled = fmin(pow(fmax(1, r->storage_more / r->storage), share), more);
    return more / scaled;
}

/*
 * Whether the memory holds MORE times the batches in flight; with processes, all that a worker
 * holds.
 */
static bool fits(const cm_readbench_session *s, double more)
{
    const bool apart = s->mode != NULL && strcmp(s->mode, "processes") == 0;
    const uint64_t each = apart ? s->memory_planned : s->in_flight_nbytes;
    const double nbytes = (double)s->memory_planned + (more - 1) * (double)each;
    return s->memory_limit == 0 || nbytes <= (double)s->memory_limit;
}

static void offer_workers(const ground *g, cm_readbench_proposal *best)
{
    const cm_readbench_session *s = g->s;
    const unsigned own = cm_readbench_is_sync(s) ? 1 : s->workers;
    const unsigned threads = s->worker_threads > 0 ? s->worker_threads : 1;
    const unsigned ranks = s->ranks > 0 ? s->ranks : 1;
    const unsigned from = cm_readbench_is_sync(s) ? 1 : 2;
    for (unsigned more = from; more <= MOST_MORE; more *= 2) {
        const unsigned workers = own * more;
        if ((uint64_t)workers * threads * ranks > (uint64_t)s->cpus * THREADS_PER_CPU ||
            !fits(s, more))
            break;
        const double slower = 1 - g->f->stage_share[0] + g->f->stage_share[0] * crowding(s, more);
        const double seconds = simulate(g, workers, workers * s->prefetch, slower);
        offer(best, CM_CHANGE_WORKERS, workers, gain(g, seconds, 1), 1 + CM_RULE_PROPOSED);
    }
}

static void offer_prefetch(const ground *g, cm_readbench_proposal *best)
{
    const cm_readbench_session *s = g->s;
    if (cm_readbench_is_sync(s))
        return;
    for (unsigned more = 2; more <= MOST_MORE && s->prefetch * more <= MOST_PREFETCH; more *= 2)
        if (fits(s, more))
            offer(best, CM_CHANGE_PREFETCH, s->prefetch * more,
                  gain(g, simulate(g, s->workers, ahead_of(s) * more, 1), 1), 1 + CM_RULE_PROPOSED);
}

/* ---- the device ---------------------------------------------------------------------------- */

/* Scales waits for copies by the speed-up of page-locked memory in this run. */
static void offer_staging(const ground *g, cm_readbench_proposal *best)
{
    const cm_readbench_session *s = g->s;
    const cm_readbench_device *d = &s->device;
    const double all = s->wait.total + s->step.total;
    if (!d->used || strcmp(cm_readbench_setting_of(s, "staging"), "pageable") != 0 ||
        !(d->copied > 0) || d->link_pinned <= d->copied || !(all > 0))
        return;
    const double saved = d->wait.total * (1 - d->copied / d->link_pinned);
    offer(best, CM_CHANGE_STAGING, 0, all / fmax(all - saved, s->step.total), 1 + CM_RULE_PROPOSED);
}

/* ---- the best ------------------------------------------------------------------------------ */

/* Simulates nothing where no step waits, or where another fault has to be mended first. */
static bool is_asked(const cm_readbench_session *s)
{
    switch (s->cause) {
    case CM_CAUSE_UNKNOWN:
    case CM_CAUSE_FAILURES:
    case CM_CAUSE_NOTHING:
    case CM_CAUSE_CONTENTION:
    case CM_CAUSE_STEP:
    case CM_CAUSE_USER_LOADER:
    case CM_CAUSE_LIBRARY:
        return false;
    default:
        return s->nrecords > 0;
    }
}

int cm_readbench_propose(const cm_readbench_session *s, const cm_readbench_facts *f,
                         cm_readbench_proposal *out, cm_error *err)
{
    ground g = {.s = s, .f = f};
    *out = (cm_readbench_proposal){.change = CM_CHANGE_NONE};
    if (!is_asked(s))
        return CM_OK;
    int rc = prepare(&g, err);
    if (rc == CM_OK && g.n > 0) {
        out->simulated = true;
        offer_prefetch(&g, out);
        offer_workers(&g, out);
        offer_staging(&g, out);
        offer_layouts(&g, out);
        out->layouts = pays_for_chunks(s) && s->predicted.best_read_seconds > 0;
        out->planned_gain = planned_gain(&g);
    }
    free(g.service);
    free(g.epoch);
    return rc;
}

const char *cm_readbench_change_name(cm_readbench_change change)
{
    static const char *const names[] = {
        [CM_CHANGE_NONE] = NULL,           [CM_CHANGE_CHUNKS] = "chunks",
        [CM_CHANGE_CODEC] = "codec",       [CM_CHANGE_WORKERS] = "workers",
        [CM_CHANGE_PREFETCH] = "prefetch", [CM_CHANGE_STAGING] = "staging",
    };
    return names[change];
}
