/*
 * Reports of runs that never were, for tests of readbench's outputs: lengths, shapes and
 * failures that a real run on a test machine does not have.
 *
 *     readbench_report CASE [--json] [OUT]
 *
 * prints the closing summary or the document, and writes the files into OUT.  A small
 * simulation of workers and steps fills the records, so that the numbers hold together.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../tools/readbench/readbench.h"

typedef struct plan {
    const char *name;
    unsigned sessions, ranks, workers, epochs;
    size_t batches; /* an epoch and rank */
    double make_ms, step_ms;
    unsigned ncpus;
    bool device, planned, emulated, fails, hostile, tune, shared, log;
} plan;

static const plan PLANS[] = {
    {.name = "usual",
     .sessions = 1,
     .ranks = 1,
     .workers = 4,
     .epochs = 2,
     .batches = 50,
     .make_ms = 300,
     .step_ms = 80,
     .ncpus = 8,
     .log = true},
    {.name = "none", .sessions = 1, .ranks = 1, .workers = 4, .epochs = 2, .batches = 0},
    {.name = "one",
     .sessions = 1,
     .ranks = 1,
     .workers = 1,
     .epochs = 1,
     .batches = 1,
     .make_ms = 20,
     .step_ms = 10,
     .ncpus = 1},
    {.name = "many",
     .sessions = 1,
     .ranks = 1,
     .workers = 8,
     .epochs = 2,
     .batches = 50000,
     .make_ms = 7,
     .step_ms = 1,
     .ncpus = 96},
    {.name = "zero",
     .sessions = 1,
     .ranks = 1,
     .workers = 4,
     .epochs = 2,
     .batches = 40,
     .make_ms = 1,
     .step_ms = 100,
     .ncpus = 4},
    {.name = "failed",
     .sessions = 1,
     .ranks = 1,
     .workers = 2,
     .epochs = 2,
     .batches = 20,
     .make_ms = 50,
     .step_ms = 20,
     .ncpus = 4,
     .fails = true},
    {.name = "ranks",
     .sessions = 1,
     .ranks = 12,
     .workers = 4,
     .epochs = 2,
     .batches = 30,
     .make_ms = 400,
     .step_ms = 80,
     .ncpus = 64},
    {.name = "shared",
     .sessions = 1,
     .ranks = 4,
     .workers = 6,
     .epochs = 2,
     .batches = 100,
     .make_ms = 200,
     .step_ms = 80,
     .ncpus = 16,
     .shared = true},
    {.name = "device",
     .sessions = 1,
     .ranks = 1,
     .workers = 4,
     .epochs = 2,
     .batches = 50,
     .make_ms = 250,
     .step_ms = 60,
     .ncpus = 8,
     .device = true},
    {.name = "planned",
     .sessions = 1,
     .ranks = 1,
     .workers = 4,
     .epochs = 2,
     .batches = 50,
     .make_ms = 100,
     .step_ms = 50,
     .ncpus = 8,
     .planned = true},
    {.name = "two",
     .sessions = 2,
     .ranks = 1,
     .workers = 4,
     .epochs = 2,
     .batches = 50,
     .make_ms = 900,
     .step_ms = 80,
     .ncpus = 8},
    {.name = "three",
     .sessions = 3,
     .ranks = 1,
     .workers = 4,
     .epochs = 2,
     .batches = 20,
     .make_ms = 900,
     .step_ms = 80,
     .ncpus = 8},
    {.name = "sweep",
     .sessions = 6,
     .ranks = 1,
     .workers = 1,
     .epochs = 2,
     .batches = 50,
     .make_ms = 300,
     .step_ms = 80,
     .ncpus = 8,
     .emulated = true},
    {.name = "tune",
     .sessions = 5,
     .ranks = 1,
     .workers = 1,
     .epochs = 2,
     .batches = 50,
     .make_ms = 300,
     .step_ms = 80,
     .ncpus = 8,
     .tune = true},
    {.name = "hostile",
     .sessions = 1,
     .ranks = 1,
     .workers = 2,
     .epochs = 1,
     .batches = 10,
     .make_ms = 30,
     .step_ms = 20,
     .ncpus = 2,
     .hostile = true,
     .emulated = true},
};

static void *grab(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (p == NULL)
        abort();
    return p;
}

static char *text(const char *t)
{
    char *copy = strdup(t);
    if (copy == NULL)
        abort();
    return copy;
}

/* 0 to 1, the same on every machine. */
static double chance(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static cm_readbench_times times_of(double *v, size_t n)
{
    cm_readbench_times t = {.n = n};
    if (n == 0)
        return t;
    qsort(v, n, sizeof(*v), ascending);
    for (size_t i = 0; i < n; i++)
        t.total += v[i];
    t.mean = t.total / (double)n;
    const double at[] = {0.5, 0.95, 0.99, 0.999};
    double *out[] = {&t.p50, &t.p95, &t.p99, &t.p999};
    for (size_t k = 0; k < 4; k++)
        *out[k] = v[(size_t)ceil(at[k] * (double)n) - 1];
    t.max = v[n - 1];
    return t;
}

/*
 * ---- one batch after the other
 * ----------------------------------------------------------------
 */

static void fill_batch(const plan *p, cm_readbench_session *s, cm_readbench_batch *b, double ms,
                       uint64_t *seed)
{
    static const double SHARE[] = {0.35, 0.4, 0.2, 0.05};
    for (size_t k = 0; k < CM_READBENCH_STAGES; k++)
        b->stage_ns[k] = (uint64_t)(ms * 1e6 * SHARE[k] * (0.9 + 0.1 * chance(seed)));
    b->nsamples = (uint32_t)s->batch;
    b->chunks = 4 * s->batch;
    b->decoded = b->chunks;
    b->requests = b->chunks;
    b->stored_nbytes = s->batch_nbytes / 2;
    b->decoded_nbytes = 3 * s->batch_nbytes;
    b->logical_nbytes = s->batch_nbytes;
    b->rss_nbytes = 200 << 20;
    b->missing_chunks = p->fails ? 1 : 0;
    b->failed = p->fails && b->number == 7;
    b->failed_chunks = b->failed;
    b->deaths = p->fails && b->number == 9;
}

static void add_event(cm_readbench_session *s, cm_readbench_event_kind kind,
                      const cm_readbench_batch *b, uint64_t start, uint64_t end)
{
    cm_readbench_event e = {kind, UINT32_MAX, UINT32_MAX, UINT32_MAX, -1, 0, start, end};
    if (b) {
        e.epoch = b->epoch;
        e.rank = b->rank;
        e.batch = b->number;
        e.worker = kind == CM_EVENT_MAKE_BATCH && b->worker >= 0 ? b->worker : -1;
    }
    if (kind == CM_EVENT_MAKE_BATCH && e.worker < 0)
        e.worker = b ? b->number % s->workers : 0;
    s->event[s->nevents++] = e;
}

/* Else several are one store under several settings. */
static bool has_stores(const plan *p)
{
    return p->sessions == 2 || p->sessions == 3;
}

/* Steps of one rank: worker w makes batches w, w + W, ... one after the other. */
static void run_rank(const plan *p, cm_readbench_session *s, unsigned rank, uint64_t *seed)
{
    uint64_t now = 500000000, *idle = grab(s->workers, sizeof(*idle));
    for (unsigned w = 0; w < s->workers; w++)
        idle[w] = 200000000;
    for (unsigned e = 0; e < p->epochs; e++) {
        now += has_stores(p) && e > 0 ? 4000000000 : 0; /* the other store's turn */
        uint64_t start = now;
        for (size_t i = 0; i < p->batches; i++) {
            cm_readbench_batch *b = &s->record[s->nrecords++];
            double ms = p->make_ms * (0.7 + 0.6 * chance(seed)) * (i % 37 == 36 ? 3 : 1);
            unsigned w = (unsigned)(i % s->workers);
            *b = (cm_readbench_batch){.epoch = e, .rank = rank, .number = (uint32_t)i, .worker = w};
            fill_batch(p, s, b, ms, seed);
            uint64_t ahead = (uint64_t)(2 * s->workers * p->step_ms * 1e6);
            b->queued_ns = idle[w];
            b->begin_ns = idle[w] + ahead > now ? idle[w] : now - ahead;
            b->end_ns = b->begin_ns + (uint64_t)(ms * 1e6);
            idle[w] = b->end_ns;
            b->want_ns = now;
            b->got_ns = b->end_ns > now ? b->end_ns : now;
            b->copy_ns = p->device ? 4000000 : 0;
            b->ready_ns = b->got_ns + (p->device && i % 5 == 0 ? 3000000 : 0);
            b->copy_start_ns = b->ready_ns - b->copy_ns;
            b->done_ns = b->ready_ns + (uint64_t)(p->step_ms * 1e6);
            now = b->done_ns;
            add_event(s, CM_EVENT_GET_BATCH, b, b->want_ns, b->got_ns);
            add_event(s, CM_EVENT_TRAINING, b, b->ready_ns, b->done_ns);
            add_event(s, CM_EVENT_MAKE_BATCH, b, b->begin_ns, b->end_ns);
            if (p->planned)
                b->worker = -1;
        }
        cm_readbench_batch of = {.epoch = e, .rank = rank, .number = UINT32_MAX, .worker = -1};
        if (p->batches > 0)
            add_event(s, CM_EVENT_EPOCH, &of, start, now);
        s->epoch_seconds[e > 0] = (double)(now - start) / 1e9;
    }
    s->wall_seconds = (double)(now - 500000000) / 1e9;
    free(idle);
}

static void fill_looks(const plan *p, cm_readbench_session *s, uint64_t *seed)
{
    double seconds = p->ncpus ? s->wall_seconds + 0.5 : 0;
    s->nlooks = (size_t)(seconds * 10);
    s->look = grab(s->nlooks, sizeof(*s->look));
    s->ncpus = p->ncpus;
    for (size_t i = 0; i < s->nlooks; i++) {
        cm_readbench_look *l = &s->look[i];
        l->at_ns = i * 100000000;
        l->rss_nbytes = (uint64_t)(300e6 + 200e6 * (1 - exp(-(double)i / 20)));
        l->gpu = p->device ? 0.8f : -1;
        l->gpu_memory = p->device ? 0.3f : -1;
        l->cpu = grab(p->ncpus, sizeof(float));
        for (unsigned c = 0; c < p->ncpus; c++) {
            l->cpu[c] = (float)(c < s->workers ? 0.6 + 0.4 * chance(seed) : 0.1 * chance(seed));
            l->process_cpu += c < s->workers ? l->cpu[c] : 0;
        }
    }
}

/*
 * ---- numbers
 * ----------------------------------------------------------------------------------
 */

static void fill_times(cm_readbench_session *s)
{
    double *v[3 + CM_READBENCH_STAGES];
    size_t n = 0;
    for (size_t k = 0; k < 3 + CM_READBENCH_STAGES; k++)
        v[k] = grab(s->nrecords, sizeof(double));
    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *b = &s->record[i];
        readbench_times t;
        for (size_t k = 0; k < CM_READBENCH_STAGES; k++)
            v[3 + k][i] = (double)b->stage_ns[k] / 1e9;
        s->counts.batches++;
        s->counts.samples += b->nsamples;
        s->counts.chunks += b->chunks;
        s->counts.decoded += b->decoded;
        s->counts.requests += b->requests;
        s->counts.stored_nbytes += b->stored_nbytes;
        s->counts.decoded_nbytes += b->decoded_nbytes;
        s->counts.logical_nbytes += b->logical_nbytes;
        s->counts.missing_chunks += b->missing_chunks;
        s->counts.failed_batches += b->failed;
        s->counts.failed_chunks += b->failed_chunks;
        s->counts.deaths += b->deaths;
        readbench_batch_times(b, &t);
        if (b->epoch == 0 && b->number == 0) {
            s->first_batch_seconds = t.loader;
            s->first_step_seconds = t.total;
        }
        if (!readbench_is_step(b))
            continue;
        v[0][n] = t.loader + t.memcpy;
        v[1][n] = t.step;
        v[2][n++] = t.total;
    }
    s->wait = times_of(v[0], n);
    s->step = times_of(v[1], n);
    s->batch_time = times_of(v[2], n);
    for (size_t k = 0; k < CM_READBENCH_STAGES; k++)
        s->stage[k] = times_of(v[3 + k], s->nrecords);
    for (size_t k = 0; k < 3 + CM_READBENCH_STAGES; k++)
        free(v[k]);
    s->wait_share = s->batch_time.total > 0 ? s->wait.total / s->batch_time.total : 0;
    s->utilisation = 1 - s->wait_share;
}

static void fill_rates(const plan *p, cm_readbench_session *s)
{
    double wall = s->wall_seconds > 0 ? s->wall_seconds : 1;
    s->rates.logical = (double)s->counts.logical_nbytes / wall;
    s->rates.decoded = (double)s->counts.decoded_nbytes / wall;
    s->rates.physical = (double)s->counts.stored_nbytes / wall;
    s->rates.storage = 1.9e9;
    s->rates.memory = 9.6e9;
    s->rates.efficiency = s->rates.physical / s->rates.storage;
    s->rates.samples = (double)s->counts.samples / wall;
    s->round[s->nrounds++] = s->rates.samples;
    if (p->sessions > 3 && s->workers >= 8) { /* close: the first of three rounds was luck */
        s->round[s->nrounds++] = 0.9 * s->rates.samples;
        s->round[s->nrounds++] = 0.8 * s->rates.samples;
    }
    s->rates.capacity = 1.3 * s->rates.logical;
    s->accelerators.n = p->ranks;
    s->accelerators.needed =
        p->step_ms > 0 ? p->ranks * (double)s->batch_nbytes / (p->step_ms / 1e3) : 0;
    s->accelerators.got = s->rates.logical;
    s->accelerators.fed =
        s->accelerators.needed > 0
            ? (unsigned)fmin(p->ranks, p->ranks * s->rates.logical / 0.9 / s->accelerators.needed)
            : 0;
    s->amplification[0] = 3;
    s->amplification[1] = s->amplification[2] = 1;
    s->predicted = (cm_readbench_predicted){.known = true,
                                            .chunks = 4.2,
                                            .decoded_nbytes = 1.2e6,
                                            .requests = 4.2,
                                            .planned_chunks = s->counts.chunks,
                                            .planned_decoded_nbytes = s->counts.decoded_nbytes,
                                            .batch_seconds = 0.031,
                                            .batch_cpu_seconds = 0.029,
                                            .batch_requests = 67.2};
    s->measured = (cm_readbench_measured){
        .batch_seconds = 0.0325, .batch_cpu_seconds = 0.0285, .batches = 4, .rounds = 3};
    s->cpu_seconds = 0.7 * wall * s->workers;
    s->cpu_seconds_per_gb = 2.5;
    s->peak_nbytes = 500u << 20;
    s->memory_limit = (uint64_t)1 << 30;
    s->memory_planned = 600u << 20;
    s->resident_before = 0;
    s->resident_after = p->hostile ? 1e-5 : 0.83; /* YAML 1.1 wants a point in it */
    s->cpus = p->ncpus;
    s->batches_in_flight = 2 * s->workers;
    s->in_flight_nbytes = s->batches_in_flight * s->batch_nbytes;
}

static void fill_words(const plan *p, cm_readbench_session *s, const char *label)
{
    const char *evil = "</script><b>\"x\" & 'y'\n\x1b[31m: - #\xc2\x85 \xe2\x80\xa8";
    s->label = text(label);
    s->store = text(p->hostile ? evil : "/data/era5.zarr");
    s->format = text("Zarr version 3");
    s->engine = text("native");
    s->io = text("mmap");
    s->order = text("random");
    s->loader = text(p->planned ? "planned" : "map");
    s->mode = text("threads");
    s->pool = text(p->shared ? "shared" : "rank");
    s->temperature = text("cold");
    s->emulated = p->emulated;
    s->emulation = p->emulated ? text("s3: 30 ms a request, 90 MB/s a stream, 64 at a time") : NULL;
    s->sentence =
        text(p->hostile ? evil
                        : "steps waited 43 % of the time: decoding is the bottleneck; predicted "
                          "1.6 times the samples/s with 8 workers");
    s->cause = CM_CAUSE_FEW_WORKERS;
    s->proposal = (cm_readbench_proposal){
        .simulated = true, .change = CM_CHANGE_WORKERS, .gain = 1.6, .value = 8};
    s->nfindings = 2;
    s->finding = grab(2, sizeof(*s->finding));
    s->finding[0] = (cm_readbench_finding){
        text("loader-waits"), text(p->hostile ? evil : "steps waited 43 % of the time for data")};
    s->finding[1] = (cm_readbench_finding){
        text("io-bound"), text("Storage takes 48 % of the workers' time (above 40 %)")};
    s->first_failure =
        p->fails ? text("/data/era5.zarr: t: chunk 3/0/1: the checksum differs") : NULL;
    s->nsettings = 3;
    s->setting = grab(3, sizeof(*s->setting));
    s->setting[0] = (cm_readbench_setting){text("batch"), text("32")};
    s->setting[1] = (cm_readbench_setting){text("order"), text(p->hostile ? "yes" : "random")};
    s->setting[2] = (cm_readbench_setting){text("step-time"), text(p->hostile ? evil : "80ms")};
    s->nparts = 1;
    s->part = grab(1, sizeof(*s->part));
    s->part[0] = (cm_readbench_part){.variable = text(p->hostile ? evil : "t"),
                                     .type = text("float32"),
                                     .stored_type = text("int16"),
                                     .rank = 3,
                                     .dim_name = {text("time"), text("lat"), NULL},
                                     .shape = {8760, 721, 1440},
                                     .sample = {1, 128, 128},
                                     .chunk = {24, 64, 64},
                                     .chunked = true,
                                     .nbytes = 65536};
    if (p->log) {
        s->nlogged = 1;
        s->logged = grab(1, sizeof(*s->logged));
        s->logged[0] = (cm_readbench_sample){
            .number = 3, .start = {5, 6, 7}, .shape = {1, 128, 128}, .crc32c = 0xabc};
    }
}

static void fill_session(const plan *p, cm_readbench_session *s, unsigned i)
{
    static const char *const STORES[] = {"era5.nc", "era5.zarr", "for-the-training.zarr"};
    uint64_t seed = 7 + i;
    char label[64];
    plan own = *p;

    if (has_stores(p))
        own.make_ms = i ? p->make_ms / 5 : p->make_ms;
    s->workers = p->sessions > 3 ? p->workers << i : p->workers;
    s->pool_workers = p->shared ? s->workers : s->workers * p->ranks;
    s->worker_threads = 1;
    s->prefetch = 2;
    s->ranks = p->ranks;
    s->batch = 32;
    s->batch_nbytes = 32 * 65536;
    snprintf(label, sizeof(label), "workers=%u", s->workers);
    fill_words(p, s, has_stores(p) ? STORES[i] : p->sessions > 3 ? label : "era5.zarr");
    size_t n = p->batches * p->epochs * p->ranks;
    s->record = grab(n, sizeof(*s->record));
    s->event = grab(3 * n + p->epochs * p->ranks + 3, sizeof(*s->event));
    s->setup_seconds = 0.2;
    add_event(s, CM_EVENT_SETUP, NULL, 0, 500000000);
    for (unsigned r = 0; r < p->ranks; r++)
        run_rank(&own, s, r, &seed);
    fill_looks(p, s, &seed);
    fill_times(s);
    fill_rates(&own, s);
    if (p->planned) {
        s->counts.decoded = s->counts.chunks / 8;
        s->displacement = 0.31;
        s->decodes_per_chunk = 1.12;
        s->blocks_mixed = 27;
        s->epoch_rate = 41000;
        s->window = 64;
    }
    if (p->device) {
        s->device = (cm_readbench_device){.used = true,
                                          .kind = text("host"),
                                          .name = text("a second memory of this machine"),
                                          .driver = text("550.54.15, CUDA 12.4"),
                                          .lock_seconds = 0.0125,
                                          .locked_nbytes = 64 << 20,
                                          .link_pinned = 11e9,
                                          .link_pageable = 6e9,
                                          .copied = 9e9,
                                          .overlap = 0.9,
                                          .validated_batches = 100,
                                          .validated_nbytes = 100 * s->batch_nbytes,
                                          .validated_rate = 8e9};
    }
}

static void fill_report(const plan *p, cm_readbench_report *r)
{
    r->nsessions = p->sessions;
    r->session = grab(p->sessions, sizeof(*r->session));
    r->ratio = grab(p->sessions, sizeof(*r->ratio));
    r->best = r->baseline = SIZE_MAX;
    for (unsigned i = 0; i < p->sessions; i++) {
        fill_session(p, &r->session[i], i);
        r->ratio[i] = r->session[i].rates.samples / r->session[0].rates.samples;
    }
    if (has_stores(p))
        r->reason = text("era5.zarr: 4.5 times the samples a second of era5.nc");
    if (p->sessions > 3) {
        r->best = p->sessions - 2;
        r->reason = text("more workers gain less than 5 %");
    }
    if (p->tune) {
        r->baseline = 0;
        r->data_loader =
            text("DataLoader(dataset, batch_size=32, num_workers=8, prefetch_factor=2)");
    }
    r->warning = grab(1, sizeof(*r->warning));
    r->warning[r->nwarnings++] =
        text("the data fit in memory: a second epoch reads from the page cache");
}

int main(int argc, char **argv)
{
    const cm_common_options common = {0};
    cm_readbench_report report = {0};
    cm_error err = {0};
    const plan *p = PLANS;
    const char *name = argc > 1 ? argv[1] : "";
    bool json = argc > 2 && strcmp(argv[2], "--json") == 0;

    while (p < PLANS + sizeof(PLANS) / sizeof(PLANS[0]) && strcmp(p->name, name) != 0)
        p++;
    if (p == PLANS + sizeof(PLANS) / sizeof(PLANS[0])) {
        fprintf(stderr, "readbench_report: no case '%s'\n", name);
        return 2;
    }
    fill_report(p, &report);
    const readbench_typed typed = {4,
                                   (char *[]){(char *)"readbench", (char *)"--sample",
                                              (char *)"1x128x128", (char *)"era5.zarr"},
                                   false};
    readbench_run run = {.report = &report,
                         .command = "readbench --sample 1x128x128 --out report era5.zarr",
                         .typed = &typed,
                         .started = "2026-03-01T12:00:00Z",
                         .host_share = 0.1};
    int rc = CM_OK;
    char *out = NULL;
    if (argc > 2 + json) {
        rc = readbench_out_create(argv[2 + json], false, &out, &(bool){false}, &err);
        run.out = out;
        if (rc == CM_OK)
            rc = readbench_write_files(&run, &err);
    }
    if (rc == CM_OK)
        rc = json ? readbench_print_json(&run, &err) : readbench_print(&run, &common, stdout, &err);
    if (rc != CM_OK)
        fprintf(stderr, "readbench_report: %s\n", err.text);
    free(out);
    cm_readbench_report_release(&report);
    return cm_tool_finish(&READBENCH, cm_tool_exit_status(rc));
}
