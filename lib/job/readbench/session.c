/* One store under one setting: opened, its epochs run, closed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/threads.h"
#include "exec/watch/monitor.h"
#include "job/readbench/readbench.h"
#include "job/readbench/rules.h"

uint64_t cm_bench_since(const cm_bench *b, uint64_t at_ns)
{
    return at_ns > b->origin_ns ? at_ns - b->origin_ns : 0;
}

uint64_t cm_bench_now(const cm_bench *b)
{
    return cm_bench_since(b, cm_now_ns());
}

/* CPU seconds of this process and of the workers that have ended. */
static double cpu_used(void)
{
    static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    double total = 0;
    for (unsigned i = 0; i < 2; i++) {
        struct rusage u;
        if (getrusage(whose[i], &u) == 0)
            total += (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
                     ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec) / 1e6;
    }
    return total;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int make_ranks(cm_bench *b, cm_error *err)
{
    const cm_readbench_options *o = b->options;
    int rc = CM_OK;
    b->rank = cm_calloc(b->setting.ranks, sizeof *b->rank, err);
    if (b->rank == NULL)
        return CM_ENOMEM;
    for (unsigned i = 0; i < b->setting.ranks && rc == CM_OK; i++) {
        cm_bench_rank *r = &b->rank[i];
        r->bench = b;
        r->index = i;
        r->share = (cm_epoch_share){.nsamples = b->shared.space.nsamples,
                                    .world = o->world_size > 1 ? o->world_size : b->setting.ranks,
                                    .rank = o->world_size > 1 ? o->rank : i,
                                    .batch = o->batch,
                                    .drop_last = o->drop_last};
        rc = cm_epoch_share_init(&r->share, err);
        if (rc == CM_OK && r->share.nbatches == 0)
            rc = cm_fail(err, CM_EINVAL,
                         "%" PRIu64 " samples make no batch of %" PRIu64 " with --drop-last",
                         r->share.per_rank, o->batch);
    }
    return rc;
}

static int open_shared(cm_bench *b, const char *store, cm_error *err)
{
    int rc = cm_bench_data_try(store, b->monitor, err);
    if (rc == CM_OK)
        rc = cm_bench_shared_open(b->options, &b->setting, store, NULL, &b->shared, err);
    if (rc == CM_OK)
        rc = make_ranks(b, err);
    return rc;
}

static int start(cm_bench *b, const char *store, cm_error *err)
{
    b->setup_start_ns = cm_bench_now(b);
    cm_readbench_advice_release(&b->report->advice); /* of the session before */
    int rc = cm_bench_setting_parse(b->options, &b->setting, &b->report->advice, err);
    b->npools = b->setting.shared_pool ? 1 : b->setting.ranks;
    if (rc == CM_OK)
        rc = open_shared(b, store, err);
    const uint64_t opened_ns = cm_bench_now(b);
    if (rc == CM_OK)
        rc = cm_bench_prove(b, err);
    if (rc == CM_OK)
        rc = cm_bench_temperature(b, err);
    b->setup_start_ns +=
        cm_bench_now(b) -
        opened_ns; /* neither proving chunks nor looking at the page cache is setting up */
    if (rc == CM_OK)
        rc = cm_bench_memory(b, err);
    if (rc == CM_OK)
        rc = cm_bench_describe(b, store, err);
    if (rc == CM_OK)
        rc = cm_bench_predict(b, err);
    if (rc == CM_OK)
        rc = cm_bench_start_workers(b, err);
    /* After the workers: a process that forks opens its devices afterwards. */
    if (rc == CM_OK && b->setting.uses_device)
        rc = cm_bench_stage_open(b, err);
    b->setup_end_ns = cm_bench_now(b);
    return rc;
}

int cm_bench_open(const cm_readbench_options *options, const char *store, unsigned nsharing,
                  cm_monitor *monitor, uint64_t origin_ns, cm_readbench_report *report,
                  cm_readbench_session *session, cm_bench **out, cm_error *err)
{
    const double cpu = cpu_used();
    cm_bench *b = cm_calloc(1, sizeof *b, err);
    *out = b;
    if (b == NULL)
        return CM_ENOMEM;
    b->options = options;
    b->monitor = monitor;
    b->origin_ns = origin_ns;
    b->peak_before = cm_peak_rss();
    b->report = report;
    b->session = session;
    b->nsharing = nsharing;
    b->arena.fd = -1;
    b->epoch_start_ns = cm_calloc(options->epochs, sizeof *b->epoch_start_ns, err);
    b->epoch_end_ns = cm_calloc(options->epochs, sizeof *b->epoch_end_ns, err);
    int rc =
        b->epoch_start_ns != NULL && b->epoch_end_ns != NULL ? start(b, store, err) : CM_ENOMEM;
    b->cpu_seconds += cpu_used() - cpu;
    return rc;
}

uint64_t cm_bench_epoch_nbytes(const cm_bench *b)
{
    uint64_t nbytes = 0;
    for (unsigned i = 0; i < b->setting.ranks; i++)
        nbytes += b->rank[i].share.per_rank * b->shared.space.sample_nbytes;
    return nbytes;
}

/* ---- epochs -------------------------------------------------------------------------------- */

typedef struct epoch_run {
    cm_bench *bench;
    uint64_t epoch;
} epoch_run;

static void run_rank(void *context, unsigned i)
{
    epoch_run *run = context;
    cm_bench_rank_epoch(&run->bench->rank[i], run->epoch);
}

/* The first failure of a rank, others having stopped for their own reasons. */
static int first_status(const cm_bench *b, cm_error *err)
{
    for (unsigned i = 0; i < b->setting.ranks; i++)
        if (b->rank[i].status != CM_OK) {
            if (err != NULL)
                *err = b->rank[i].err;
            return b->rank[i].status;
        }
    return CM_OK;
}

int cm_bench_epoch(cm_bench *b, uint64_t epoch, cm_error *err)
{
    const double cpu = cpu_used();
    epoch_run run = {b, epoch};
    int rc = CM_OK;
    b->epoch_start_ns[epoch] = cm_bench_now(b);
    if (b->options->no_persistent && epoch > 0) {
        rc = cm_bench_note_lives(b, err);
        cm_bench_stop_workers(b);
        if (rc == CM_OK)
            rc = cm_bench_start_workers(b, err);
    }
    if (rc == CM_OK) {
        cm_threads_run(b->setting.ranks, run_rank, &run);
        rc = first_status(b, err);
    }
    b->epoch_end_ns[epoch] = cm_bench_now(b);
    b->nepochs = epoch + 1;
    b->cpu_seconds += cpu_used() - cpu;
    return rc;
}

/* ---- closing ------------------------------------------------------------------------------- */

static int finish(cm_bench *b, cm_error *err)
{
    cm_readbench_session *s = b->session;
    uint64_t nbytes;
    int rc = cm_bench_residency(b, &nbytes, &s->resident_after, err);
    /* A run that was stopped has its results all the same; this is not one of them. */
    if (rc == CM_ECANCELED) {
        s->resident_after = -1;
        rc = CM_OK;
    }
    if (rc == CM_OK)
        rc = cm_bench_probe(b, err);
    if (rc == CM_OK)
        rc = cm_bench_summarise(b, err);
    if (rc == CM_OK && b->setting.uses_device)
        rc = cm_bench_stage_summarise(b, err);
    if (rc == CM_OK && b->setting.device_decode)
        cm_bench_decode_summarise(b);
    s->cpu_seconds = b->cpu_seconds;
    const double gb = (double)cm_bench_read_nbytes(&s->counts) / 1e9;
    s->cpu_seconds_per_gb = gb > 0 ? s->cpu_seconds / gb : 0;
    if (rc == CM_OK)
        rc = cm_readbench_explain(s, err);
    return rc;
}

static void release_ranks(cm_bench *b)
{
    for (unsigned i = 0; b->rank != NULL && i < b->setting.ranks; i++) {
        cm_bench_rank *r = &b->rank[i];
        cm_epoch_plan_release(&r->plan);
        free(r->record);
        free(r->logged);
        free(r->first_failure);
    }
    free(b->rank);
}

/*
 * What rose and fell between two looks; where the peak is from before, it says nothing of this
 * session.
 */
static void keep_peak(cm_bench *b)
{
    const uint64_t peak = cm_peak_rss();
    if (peak > b->peak_before && peak > b->session->peak_nbytes)
        b->session->peak_nbytes = peak;
}

int cm_bench_stop(cm_bench *b, cm_error *err)
{
    const double cpu = cpu_used();
    int rc = cm_bench_note_workers(b, err);
    keep_peak(b);
    cm_bench_stop_workers(b);
    cm_bench_stage_close(b); /* before the memory that it has page-locked, and may yet copy */
    cm_arena_release(&b->arena);
    b->cpu_seconds += cpu_used() - cpu;
    return rc;
}

int cm_bench_close(cm_bench *b, bool measured, cm_error *err)
{
    if (b == NULL)
        return CM_OK;
    cm_bench_stop_workers(b); /* where it did not come to that */
    int rc = measured ? finish(b, err) : CM_OK;
    cm_bench_stage_close(b);
    cm_bench_free_source(b);
    cm_proof_free(b->proof);
    release_ranks(b);
    cm_arena_release(&b->arena);
    cm_bench_shared_release(&b->shared);
    free(b->epoch_start_ns);
    free(b->epoch_end_ns);
    free(b);
    return rc;
}
