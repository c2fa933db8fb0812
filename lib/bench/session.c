/* One store under one setting: opened, its epochs run, closed. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/threads.h"
#include "bench/readbench.h"
#include "bench/rules.h"
#include "plan/meetings.h"

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

static uint64_t other_nbytes(void *bench)
{
    return cm_bench_other_nbytes(bench);
}

static int note(void *bench, const char *sentence, cm_error *err)
{
    return cm_bench_note(bench, err, "%s", sentence);
}

/* Warns of holes once, however many sessions read the same store. */
static int tell_holes(cm_bench *b, cm_error *err)
{
    cm_census *c = &b->session->census;
    const cm_readbench_report *r = b->report;
    char *line = NULL;
    int rc = cm_load_count_holes(&b->load, err);
    *c = b->load.census;
    b->load.census = (cm_census){0};
    if (rc == CM_OK)
        rc = cm_census_line(c, &line, err);
    char *sentence = line != NULL ? cm_asprintf(err, "%s: %s", b->load.store, line) : NULL;
    if (rc == CM_OK && line != NULL && sentence == NULL)
        rc = CM_ENOMEM;
    bool said = sentence == NULL;
    for (size_t i = 0; i < r->nwarnings && !said; i++)
        said = strcmp(r->warning[i], sentence) == 0;
    if (rc == CM_OK && !said)
        rc = cm_bench_warn(b, err, "%s", sentence);
    free(sentence);
    free(line);
    return rc;
}

static int open_load(cm_bench *b, const char *store, const cm_bench_sharing *sharing, cm_error *err)
{
    const cm_readbench_options *o = b->options;
    b->load = (cm_load_run){.options = &b->load_options,
                            .store = store,
                            .monitor = b->monitor,
                            .nsharing = sharing->n,
                            .sharing_nbytes = sharing->nbytes,
                            .owner = b,
                            .other_nbytes = other_nbytes,
                            .note = note};
    int rc = cm_bench_setting_make(o, &b->load_options, &b->setting, err);
    if (rc == CM_OK)
        rc = cm_load_open(&b->load, err);
    if (rc == CM_OK)
        rc = tell_holes(b, err);
    if (rc == CM_OK)
        rc = cm_readbench_advise(0, b->load.setting.ranks, o->reserve, &b->report->advice, err);
    if (rc != CM_OK)
        return rc;
    /* The one that is stepped on, and the next where it is copied meanwhile. */
    b->load.held = b->load.setting.uses_device && !o->no_overlap ? 2 : 1;
    b->load.kept = b->load.held - 1;
    b->rank = cm_calloc(b->load.setting.ranks, sizeof *b->rank, err);
    for (unsigned i = 0; b->rank != NULL && i < b->load.setting.ranks; i++)
        b->rank[i] = (cm_bench_rank){.bench = b, .load = &b->load.rank[i]};
    return b->rank != NULL ? CM_OK : CM_ENOMEM;
}

static int fit_memory(cm_bench *b, cm_error *err)
{
    cm_load_run *l = &b->load;
    cm_readbench_session *s = b->session;
    const uint64_t here = cm_load_here_nbytes(l);
    int rc = cm_load_memory(l, err);
    s->batch_nbytes = l->batch_nbytes;
    s->memory_limit = l->memory_limit;
    s->memory_free = l->memory_free;
    s->memory_planned = l->memory_planned;
    const uint64_t after = cm_add_sat(here, cm_bench_after_nbytes(b));
    if (after > l->memory_planned && after <= l->memory_limit) /* else it is not probed */
        s->memory_planned = after;
    s->batches_in_flight = l->nslots * l->setting.ranks;
    s->in_flight_nbytes = (uint64_t)l->nslots * l->slot_nbytes * l->setting.ranks;
    s->window = l->setting.planned ? l->shape.window : 0;
    return rc;
}

static int start(cm_bench *b, const char *store, const cm_bench_sharing *sharing, cm_error *err)
{
    b->setup_start_ns = cm_bench_now(b);
    cm_readbench_advice_release(&b->report->advice); /* of the session before */
    int rc = open_load(b, store, sharing, err);
    const uint64_t opened_ns = cm_bench_now(b);
    if (rc == CM_OK)
        rc = cm_bench_temperature(b, err);
    b->setup_start_ns +=
        cm_bench_now(b) - opened_ns; /* looking at the page cache is not setting up */
    if (rc == CM_OK)
        rc = fit_memory(b, err);
    if (rc == CM_OK)
        rc = cm_bench_describe(b, store, err);
    if (rc == CM_OK)
        rc = cm_bench_predict(b, err);
    if (rc == CM_OK)
        rc = cm_bench_start_workers(b, err);
    /* After the workers: a process that forks opens its devices afterwards. */
    if (rc == CM_OK)
        rc = cm_bench_stage_open(b, err);
    if (rc == CM_OK && b->load.setting.uses_device)
        rc = cm_bench_stage_describe(b, err);
    b->setup_end_ns = cm_bench_now(b);
    return rc;
}

int cm_bench_open(const cm_readbench_options *options, const char *store,
                  const cm_bench_sharing *sharing, cm_monitor *monitor, uint64_t origin_ns,
                  cm_readbench_report *report, cm_readbench_session *session, cm_bench **out,
                  cm_error *err)
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
    b->epoch_start_ns = cm_calloc(options->epochs, sizeof *b->epoch_start_ns, err);
    b->epoch_end_ns = cm_calloc(options->epochs, sizeof *b->epoch_end_ns, err);
    int rc = b->epoch_start_ns != NULL && b->epoch_end_ns != NULL ? start(b, store, sharing, err)
                                                                  : CM_ENOMEM;
    b->cpu_seconds += cpu_used() - cpu;
    return rc;
}

uint64_t cm_bench_epoch_nbytes(const cm_bench *b)
{
    uint64_t nbytes = 0;
    for (unsigned i = 0; i < b->load.setting.ranks; i++)
        nbytes += b->rank[i].load->share.per_rank * b->load.shared.space.sample_nbytes;
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

/* The first rank's failure: the others stopped because of it, or for reasons of their own. */
static int first_status(const cm_bench *b, cm_error *err)
{
    for (unsigned i = 0; i < b->load.setting.ranks; i++)
        if (b->rank[i].status != CM_OK) {
            if (err != NULL)
                *err = b->rank[i].load->err;
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
        cm_load_stop_workers(&b->load);
        if (rc == CM_OK)
            rc = cm_bench_start_workers(b, err);
    }
    if (rc == CM_OK) {
        cm_threads_run(b->load.setting.ranks, run_rank, &run);
        rc = first_status(b, err);
    }
    b->epoch_end_ns[epoch] = cm_bench_now(b);
    b->nepochs = epoch + 1;
    b->cpu_seconds += cpu_used() - cpu;
    return rc;
}

/* ---- closing ------------------------------------------------------------------------------- */

/* Takes in a peak between two samples; a peak from before the session says nothing about it. */
static void keep_peak(cm_bench *b)
{
    const uint64_t peak = cm_peak_rss();
    if (peak > b->peak_before && peak > b->session->peak_nbytes)
        b->session->peak_nbytes = peak;
}

static int finish(cm_bench *b, cm_error *err)
{
    cm_readbench_session *s = b->session;
    uint64_t nbytes;
    int rc = cm_bench_residency(b, &nbytes, &s->resident_after, err);
    /* A stopped run keeps its other results; only this one is unknown. */
    if (rc == CM_ECANCELED) {
        s->resident_after = -1;
        rc = CM_OK;
    }
    if (rc == CM_OK)
        rc = cm_bench_probe(b, err);
    if (rc == CM_OK)
        rc = cm_bench_foresee(b, err);
    if (rc == CM_OK)
        rc = cm_bench_summarise(b, err);
    if (rc == CM_OK)
        rc = cm_bench_best_chunks(b, err);
    if (rc == CM_OK && b->load.setting.uses_device)
        rc = cm_bench_stage_summarise(b, err);
    keep_peak(b);
    s->cpu_seconds = b->cpu_seconds;
    const double gb = (double)cm_bench_read_nbytes(&s->counts) / 1e9;
    s->cpu_seconds_per_gb = gb > 0 ? s->cpu_seconds / gb : 0;
    if (rc == CM_OK)
        rc = cm_readbench_explain(s, err);
    return rc;
}

static void release_ranks(cm_bench *b)
{
    for (unsigned i = 0; b->rank != NULL && i < b->load.setting.ranks; i++) {
        cm_bench_rank *r = &b->rank[i];
        free(r->record);
        free(r->logged);
        free(r->first_failure);
    }
    free(b->rank);
}

int cm_bench_stop(cm_bench *b, cm_error *err)
{
    const double cpu = cpu_used();
    int rc = cm_bench_note_workers(b, err);
    keep_peak(b);
    cm_load_stop_workers(&b->load);
    cm_bench_stage_keep(b);
    cm_load_stage_close(&b->load); /* before the memory that it has page-locked, and may yet copy */
    cm_arena_release(&b->load.arena);
    b->cpu_seconds += cpu_used() - cpu;
    return rc;
}

int cm_bench_close(cm_bench *b, bool measured, cm_error *err)
{
    if (b == NULL)
        return CM_OK;
    cm_load_stop_workers(&b->load); /* where it did not come to that */
    int rc = measured ? finish(b, err) : CM_OK;
    release_ranks(b);
    cm_load_close(&b->load);
    cm_resources_free(b->resources);
    free(b->epoch_start_ns);
    free(b->epoch_end_ns);
    free(b);
    return rc;
}
