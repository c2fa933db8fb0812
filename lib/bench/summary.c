/* Computes every number of a session from its records; uses no clock. */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "bench/cause.h"
#include "bench/readbench.h"
#include "bench/rules.h"
#include "bench/summary.h"

#define NO_STEP 1e-5 /* seconds */
#define FED     0.9  /* an accelerator counts as fed if it steps this share of the time */
/* Two measurements are unlike if the share of the store in the page cache differs by more. */
#define ALIKE 0.25

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* Waiting counts from when the batch was wanted; one that came earlier costs nothing. */
static double wait_of(const cm_readbench_batch *r)
{
    return seconds(r->want_ns, r->ready_ns);
}

static double step_of(const cm_readbench_batch *r)
{
    return seconds(r->ready_ns > r->want_ns ? r->ready_ns : r->want_ns, r->done_ns);
}

/* Whether a batch counts in the statistics of steps: failed ones were not stepped on. */
static bool is_step(const cm_readbench_batch *r)
{
    return !r->first && !r->failed;
}

/* ---- records of all ranks, one after the other ---------------------------------------------- */

static int collect(cm_bench *b, cm_error *err)
{
    cm_readbench_session *s = b->session;
    size_t n = 0, nlogged = 0;
    for (unsigned i = 0; i < b->load.setting.ranks; i++) {
        n += b->rank[i].nrecords;
        nlogged += b->rank[i].nlogged;
    }
    s->record = cm_calloc(n + 1, sizeof *s->record, err);
    s->logged = cm_calloc(nlogged + 1, sizeof *s->logged, err);
    if (s->record == NULL || s->logged == NULL)
        return CM_ENOMEM;
    for (unsigned i = 0; i < b->load.setting.ranks; i++) {
        const cm_bench_rank *r = &b->rank[i];
        if (r->nrecords > 0)
            memcpy(s->record + s->nrecords, r->record, r->nrecords * sizeof *r->record);
        if (r->nlogged > 0)
            memcpy(s->logged + s->nlogged, r->logged, r->nlogged * sizeof *r->logged);
        s->nrecords += r->nrecords;
        s->nlogged += r->nlogged;
    }
    return CM_OK;
}

/* Other findings of the ranks: differences, the first failure, properties of the order. */
static int collect_findings(cm_bench *b, cm_error *err)
{
    cm_readbench_session *s = b->session;
    uint64_t ns = 0;
    for (unsigned i = 0; i < b->load.setting.ranks; i++) {
        const cm_bench_rank *r = &b->rank[i];
        s->device.validated_batches += r->nvalidated_batches;
        s->device.validated_nbytes += r->nvalidated;
        s->device.mismatches += r->nmismatches;
        ns = r->validated_ns > ns ? r->validated_ns : ns;
        if (s->first_failure == NULL && r->first_failure != NULL &&
            (s->first_failure = cm_strdup(r->first_failure, err)) == NULL)
            return CM_ENOMEM;
    }
    s->device.validated_rate = ratio((double)s->device.validated_nbytes, (double)ns / 1e9);
    if (!b->load.setting.planned || b->nepochs == 0)
        return CM_OK;
    const cm_blocks_count chunks = cm_blocks_decodes(&b->load.blocks);
    s->displacement = cm_load_displacement(&b->load);
    s->decodes_per_chunk = chunks.decoded / chunks.distinct;
    s->blocks_mixed = cm_block_order_mixed(&b->load.blocks, b->load.shape.window, b->load.batch);
    return CM_OK;
}

uint64_t cm_bench_read_nbytes(const cm_readbench_counts *c)
{
    return c->logical_nbytes > c->missing_nbytes ? c->logical_nbytes - c->missing_nbytes : 0;
}

static void count(cm_readbench_session *s)
{
    cm_readbench_counts *c = &s->counts;
    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *r = &s->record[i];
        c->batches++;
        c->failed_batches += r->failed;
        c->samples += r->failed ? 0 : r->nsamples;
        c->chunks += r->chunks;
        c->decoded += r->decoded;
        c->requests += r->requests;
        c->stored_nbytes += r->stored_nbytes;
        c->decoded_nbytes += r->decoded_nbytes;
        c->logical_nbytes += r->failed ? 0 : r->logical_nbytes;
        c->cache_hits += r->cache_hits;
        c->cache_misses += r->cache_misses;
        c->cache_evictions += r->cache_evictions;
        c->disk_hits += r->disk_hits;
        c->disk_misses += r->disk_misses;
        c->disk_evictions += r->disk_evictions;
        c->disk_nbytes += r->disk_nbytes;
        c->missing_chunks += r->missing_chunks;
        c->missing_nbytes += r->failed ? 0 : r->missing_nbytes;
        c->failed_chunks += r->failed_chunks;
        c->deaths += r->deaths;
    }
}

/* ---- distributions ------------------------------------------------------------------------- */

static double wait_value(const cm_readbench_batch *r, int stage)
{
    (void)stage;
    return wait_of(r);
}
static double step_value(const cm_readbench_batch *r, int stage)
{
    (void)stage;
    return step_of(r);
}
static double batch_value(const cm_readbench_batch *r, int stage)
{
    (void)stage;
    return seconds(r->want_ns, r->done_ns);
}
static double stage_value(const cm_readbench_batch *r, int stage)
{
    return (double)r->stage_ns[stage] / 1e9;
}

static int distributions(cm_readbench_session *s, cm_error *err)
{
    double *v = cm_calloc(s->nrecords + 1, sizeof *v, err);
    if (v == NULL)
        return CM_ENOMEM;
    const struct {
        double (*value)(const cm_readbench_batch *r, int stage);
        cm_readbench_times *to;
        int stage;
    } rows[] = {{wait_value, &s->wait, -1},        {step_value, &s->step, -1},
                {batch_value, &s->batch_time, -1}, {stage_value, &s->stage[0], 0},
                {stage_value, &s->stage[1], 1},    {stage_value, &s->stage[2], 2},
                {stage_value, &s->stage[3], 3}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        size_t n = 0;
        for (size_t i = 0; i < s->nrecords; i++)
            if (rows[k].stage >= 0 || is_step(&s->record[i]))
                v[n++] = rows[k].value(&s->record[i], rows[k].stage);
        *rows[k].to = cm_bench_times(v, n);
    }
    free(v);
    return CM_OK;
}

/* ---- times and rates ----------------------------------------------------------------------- */

static void times(const cm_bench *b, cm_readbench_session *s)
{
    double later = 0;
    s->setup_seconds = seconds(b->setup_start_ns, b->setup_end_ns);
    for (uint64_t e = 0; e < b->nepochs; e++) {
        const double t = seconds(b->epoch_start_ns[e], b->epoch_end_ns[e]);
        s->wall_seconds += t;
        if (e == 0)
            s->epoch_seconds[0] = t;
        else
            later += t;
    }
    if (b->nepochs > 1)
        s->epoch_seconds[1] = later / (double)(b->nepochs - 1);
    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *r = &s->record[i];
        if (!r->first)
            continue;
        /* Of several ranks the slowest: the others wait for it in a training. */
        const double first = seconds(b->epoch_start_ns[0], r->ready_ns);
        const double step = seconds(r->want_ns, r->done_ns);
        s->first_batch_seconds = first > s->first_batch_seconds ? first : s->first_batch_seconds;
        s->first_step_seconds = step > s->first_step_seconds ? step : s->first_step_seconds;
    }
    const double busy = s->wait.total + s->step.total;
    s->wait_share = ratio(s->wait.total, busy);
    s->utilisation = busy > 0 ? 1 - s->wait_share : 0;
}

void cm_readbench_compare_storage(cm_readbench_session *s)
{
    cm_readbench_rates *r = &s->rates;
    const bool cold = cm_readbench_is_cold(s);
    r->efficiency = 0;
    r->uncompared = NULL;
    r->from_memory = !cold && s->resident_after > CM_RULE_RESIDENT;
    if (!(r->storage > 0) || !(r->asked > 0))
        return;
    if (!cold && s->resident_before >= 0 && s->resident_after - s->resident_before > ALIKE)
        r->uncompared = "the epochs filled the page cache that the probe then read";
    else if (r->asked > r->storage)
        r->uncompared = "the probe was slower than the loader, so it is no bound";
    else
        r->efficiency = r->asked / r->storage;
}

void cm_readbench_feed(cm_readbench_session *s, double each)
{
    cm_readbench_accelerators *a = &s->accelerators;
    a->n = s->ranks;
    a->needed = each * s->ranks;
    a->got = s->rates.logical;
    a->fed = 0;
    if (!(each > 0))
        return;
    if (s->wait.n > 0) /* the same steps as those that say whether the loader keeps up */
        a->got = a->needed * s->utilisation;
    const double fed = a->got / (FED * each) + 1e-9;
    a->fed = fed >= s->ranks ? s->ranks : (unsigned)fed;
}

/*
 * Over all epochs, first steps included: the planned loader reads much before its first batch, and
 * leaving that out would flatter it.
 */
static void rates(const cm_bench *b, cm_readbench_session *s)
{
    cm_readbench_rates *r = &s->rates;
    const cm_readbench_counts *c = &s->counts;
    double at_work = 0, asking = 0;
    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *x = &s->record[i];
        asking += (double)x->stage_ns[CM_LOAD_STORAGE] / 1e9;
        for (int k = 0; k < CM_READBENCH_STAGES; k++)
            at_work += (double)x->stage_ns[k] / 1e9;
    }
    const double threads = (double)s->pool_workers * s->worker_threads;
    const double present = (double)cm_bench_read_nbytes(c);
    r->samples = ratio((double)c->samples, s->wall_seconds);
    r->logical = ratio(present, s->wall_seconds);
    r->decoded = ratio((double)c->decoded_nbytes, s->wall_seconds);
    r->physical = ratio((double)c->stored_nbytes, s->wall_seconds);
    r->capacity = ratio(present, at_work) * threads;
    /* Of that time, a part passed with the cache on disk. */
    r->asked = ratio((double)(c->stored_nbytes + c->disk_nbytes), asking) * threads;
    cm_readbench_compare_storage(s);
    const double batches = (double)(c->batches - c->failed_batches);
    const double per_batch = ratio((double)c->samples, batches);
    const double wanted = b->setting.step_ns + b->setting.step_per_sample_ns * per_batch;
    /* A step without a duration needs an infinite rate: no answer then. */
    const double each = wanted / 1e9 > NO_STEP ? ratio(ratio(present, batches), wanted / 1e9) : 0;
    cm_readbench_feed(s, each);
}

static void amplification(cm_readbench_session *s)
{
    const cm_readbench_counts *c = &s->counts;
    s->amplification[0] = ratio((double)c->decoded_nbytes, (double)c->logical_nbytes);
    s->amplification[1] = ratio((double)c->chunks, (double)c->samples * s->predicted.fewest_chunks);
    s->amplification[2] = ratio((double)c->requests, (double)c->chunks);
}

/* ---- events -------------------------------------------------------------------------------- */

static int batch_events(cm_bench *b, const cm_readbench_batch *r, cm_error *err)
{
    cm_readbench_event e = {.kind = CM_EVENT_GET_BATCH,
                            .epoch = r->epoch,
                            .rank = r->rank,
                            .batch = r->number,
                            .worker = -1,
                            .start_ns = r->want_ns,
                            .end_ns = r->ready_ns > r->want_ns ? r->ready_ns : r->want_ns};
    int rc = cm_bench_event(b, &e, err);
    e.kind = CM_EVENT_TRAINING;
    e.start_ns = e.end_ns;
    e.end_ns = r->done_ns;
    if (rc == CM_OK)
        rc = cm_bench_event(b, &e, err);
    e.kind = CM_EVENT_MAKE_BATCH;
    e.worker = r->worker;
    e.start_ns = r->begin_ns;
    e.end_ns = r->end_ns;
    return rc == CM_OK ? cm_bench_event(b, &e, err) : rc;
}

static int events(cm_bench *b, cm_error *err)
{
    const cm_readbench_session *s = b->session;
    cm_readbench_event e = {.kind = CM_EVENT_RUN,
                            .epoch = UINT32_MAX,
                            .rank = UINT32_MAX,
                            .batch = UINT32_MAX,
                            .worker = -1,
                            .start_ns = b->setup_start_ns,
                            .end_ns =
                                b->nepochs > 0 ? b->epoch_end_ns[b->nepochs - 1] : b->setup_end_ns};
    int rc = cm_bench_event(b, &e, err);
    e.kind = CM_EVENT_SETUP;
    e.end_ns = b->setup_end_ns;
    if (rc == CM_OK)
        rc = cm_bench_event(b, &e, err);
    e.kind = CM_EVENT_EPOCH;
    for (uint64_t i = 0; i < b->nepochs && rc == CM_OK; i++) {
        e.epoch = (uint32_t)i;
        e.start_ns = b->epoch_start_ns[i];
        e.end_ns = b->epoch_end_ns[i];
        rc = cm_bench_event(b, &e, err);
    }
    for (size_t i = 0; i < s->nrecords && rc == CM_OK; i++)
        rc = batch_events(b, &s->record[i], err);
    return rc;
}

/*
 * A few batches of the planned loader decode most of what they draw from for the first time.  In
 * a whole epoch each decoded chunk serves all samples of its block.  The time that a sample took to
 * be put together here, and a chunk to be read and decoded, says how fast that is.
 */
static void foresee_epoch(const cm_bench *b, cm_readbench_session *s)
{
    const unsigned cpus = cm_cpu_count();
    unsigned threads = s->pool_workers > 0 ? s->pool_workers * s->worker_threads : 1;
    double chunk_ns = 0, sample_ns = 0;
    if (!b->load.setting.planned || s->counts.decoded == 0 || s->counts.samples == 0)
        return;
    for (size_t i = 0; i < s->nrecords; i++) {
        const uint64_t *ns = s->record[i].stage_ns;
        chunk_ns += (double)(ns[CM_LOAD_STORAGE] + ns[CM_LOAD_DECODE] + ns[CM_LOAD_CONVERT]);
        sample_ns += (double)ns[CM_LOAD_ASSEMBLE];
    }
    threads = threads < cpus ? threads : cpus;
    const double decodes =
        cm_blocks_decodes(&b->load.blocks).decoded / (double)b->load.shared.space.space.nsamples;
    const double each =
        sample_ns / (double)s->counts.samples + decodes * chunk_ns / (double)s->counts.decoded;
    s->epoch_rate = each > 0 ? threads * 1e9 / each : 0;
}

int cm_bench_summarise(cm_bench *b, cm_error *err)
{
    cm_readbench_session *s = b->session;
    int rc = collect(b, err);
    if (rc != CM_OK)
        return rc;
    count(s);
    rc = collect_findings(b, err);
    if (rc == CM_OK)
        rc = distributions(s, err);
    if (rc != CM_OK)
        return rc;
    times(b, s);
    rates(b, s);
    s->round[s->nrounds++] = s->rates.samples;
    amplification(s);
    foresee_epoch(b, s);
    return events(b, err);
}
