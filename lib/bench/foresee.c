/* One batch alone: predicted and measured in turn, so that both meet the machine as it is. */
#include "bench/foresee.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/foresee_calls.h"
#include "bench/readbench.h"
#include "plan/meetings.h"
#include "store/io.h"
#include "watch/monitor.h"

enum {
    MAX_BATCHES = 8,
    ROUNDS = 9,
    MAX_SAMPLES = 2048,   /* whose requests are counted, */
    LEAST_SAMPLES = 64,   /* or so few of many */
    MAX_COUNTED = 1 << 22 /* chunks of a batch that are held to find those that are met again */
};
/* Rounds are short, because a shared machine changes its speed within tenths of a second. */
#define ROUND_SECONDS 0.08  /* of measuring; one batch where it takes longer */
#define PROBE_SECONDS 0.025 /* an array and round */
#define MOST_SECONDS  4.0   /* in all: then the rounds end */
#define COUNT_SECONDS 0.1

typedef struct foresight {
    cm_bench *b;
    cm_reader *reader;
    cm_cost_probe *first[CM_LOAD_MAX_PARTS], *again[CM_LOAD_MAX_PARTS]; /* of each array */
    cm_batch_calls calls[CM_LOAD_MAX_PARTS];
    cm_load_options options; /* as the user's, without caches */
    cm_load_setting setting;
    cm_load_origin origin;
    cm_load_source source;
    void *worker;
    cm_arena arena;
    cm_load_task *task;
    uint64_t *met; /* chunks of a batch, with their array */
    size_t nmet, room;
    uint64_t nbatches;
    double wall[ROUNDS], cpu[ROUNDS];
    unsigned nrounds;
} foresight;

/* ---- what a batch asks for ---- */

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t count_distinct(foresight *f)
{
    uint64_t n = 0;
    qsort(f->met, f->nmet, sizeof *f->met, compare);
    for (size_t i = 0; i < f->nmet; i++)
        n += i == 0 || f->met[i] != f->met[i - 1];
    return n;
}

static int keep_met(foresight *f, uint64_t number, cm_error *err)
{
    uint64_t *more =
        f->nmet == MAX_COUNTED ? NULL : cm_make_room(f->met, f->nmet, &f->room, sizeof *more, 4096);
    if (more == NULL)
        return cm_fail(err, CM_ENOMEM, "a batch meets too many chunks to count them");
    f->met = more;
    f->met[f->nmet++] = number;
    return CM_OK;
}

static int count_chunks(foresight *f, const cm_array *a, const cm_box *box, cm_error *err)
{
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], coord[CM_MAX_RANK], left = 1;
    int rc = CM_OK;
    cm_grid_cover(&a->grid, box, first, count);
    for (unsigned j = 0; j < a->rank; j++) {
        coord[j] = first[j];
        left *= count[j];
    }
    for (; left > 0 && rc == CM_OK; left--) {
        rc = keep_met(f, cm_grid_number(&a->grid, coord), err);
        for (unsigned j = a->rank; j-- > 0 && ++coord[j] == first[j] + count[j];)
            coord[j] = first[j];
    }
    return rc;
}

/* Chunks, calls and bytes that BATCH takes of array I. */
static int count_work(foresight *f, uint64_t batch, unsigned i, cm_batch_work *w, cm_error *err)
{
    const cm_load_space *s = &f->b->load.shared.space;
    cm_load_rank *rank = f->b->rank[0].load;
    const cm_epoch_share *share = &rank->share;
    cm_array *a = f->b->load.shared.data.array[i];
    cm_load_counts counts = {0};
    int rc = CM_OK;
    f->nmet = 0;
    for (uint64_t k = 0; k < cm_epoch_share_batch(share, batch) && rc == CM_OK; k++) {
        cm_box sample, box;
        cm_sample_at(&s->space, 0, cm_load_number(rank, 0, batch * share->batch + k), &sample);
        for (size_t p = 0; p < s->nparts && rc == CM_OK; p++) {
            if (s->part[p].array != i)
                continue;
            cm_sample_part_box(&s->part[p], &sample, &box);
            rc = cm_reader_count(f->reader, a, &box, &counts, err);
            if (rc == CM_OK)
                rc = count_chunks(f, a, &box, err);
        }
    }
    w->calls = counts.stage_calls[CM_LOAD_STORAGE];
    w->requests = counts.requests;
    w->stored_nbytes = counts.stored_nbytes;
    w->chunks = f->nmet;
    w->distinct = count_distinct(f);
    return rc;
}

/* ---- a batch, measured ---- */

static int open_worker(foresight *f, cm_error *err)
{
    cm_bench *b = f->b;
    f->options = b->load_options;
    f->options.cache_nbytes = 0;
    f->options.cache_dir = NULL;
    f->setting = b->load.setting;
    f->setting.worker_threads = 1;
    f->origin = (cm_load_origin){.options = &f->options,
                                 .setting = &f->setting,
                                 .store = b->load.store,
                                 .monitor = b->monitor};
    int rc = CM_OK;
    if (f->setting.emulated)
        rc = cm_delay_create(&f->setting.delay, &f->origin.delay, err);
    if (rc == CM_OK)
        rc = cm_load_origin_source(&f->origin, &f->source, err);
    if (rc == CM_OK)
        rc = f->source.open(f->source.context, 0, &f->worker, err);
    if (rc == CM_OK)
        rc = cm_arena_create(b->load.slot_nbytes, false, true, &f->arena, err);
    if (rc != CM_OK)
        return rc;
    f->task = cm_calloc(1, sizeof *f->task + b->load.batch * sizeof(cm_load_piece), err);
    return f->task != NULL ? CM_OK : CM_ENOMEM;
}

static int make_batch(foresight *f, uint64_t batch, cm_seconds *took, cm_error *err)
{
    cm_load_rank *rank = f->b->rank[0].load;
    const cm_epoch_share *share = &rank->share;
    const uint32_t n = (uint32_t)cm_epoch_share_batch(share, batch);
    cm_load_result result = {0};
    *f->task = (cm_load_task){.number = batch, .kind = CM_LOAD_BATCH, .nbatch = n, .npieces = n};
    for (uint32_t k = 0; k < n; k++)
        f->task->piece[k] = (cm_load_piece){
            .sample = cm_load_number(rank, 0, batch * share->batch + k), .place = k};
    const uint64_t start = cm_now_ns();
    int rc = f->source.load(f->worker, f->task, f->arena.data, &result, err);
    took->wall += (double)(cm_now_ns() - start) * 1e-9;
    took->cpu += (double)result.counts.cpu_ns * 1e-9;
    return rc;
}

/* ---- rounds ---- */

static int probe_arrays(foresight *f, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < f->b->load.shared.data.narrays && rc == CM_OK; i++) {
        if (f->first[i] == NULL)
            continue;
        rc = cm_cost_probe_round(f->first[i], PROBE_SECONDS, err);
        if (rc == CM_OK && f->again[i] != NULL) /* the same chunks, which are in memory now */
            rc = cm_cost_probe_again(f->again[i], f->first[i], err);
    }
    return rc;
}

/* The first batches, once if they are cold, else as often as the round is long. */
static int make_batches(foresight *f, cm_error *err)
{
    const bool cold = f->b->options->cold;
    cm_seconds took = {0};
    uint64_t n = 0;
    int rc = CM_OK;
    do
        for (uint64_t i = 0; i < f->nbatches && rc == CM_OK; i++, n++) {
            if (cold)
                rc = cm_bench_evict(f->b, err);
            if (rc == CM_OK)
                rc = make_batch(f, i, &took, err);
        }
    while (rc == CM_OK && !cold && took.wall < ROUND_SECONDS);
    f->wall[f->nrounds] = took.wall / (double)n;
    f->cpu[f->nrounds++] = took.cpu / (double)n;
    return rc;
}

static int run_round(foresight *f, cm_error *err)
{
    int rc = f->b->options->cold ? cm_bench_evict(f->b, err) : CM_OK;
    if (rc == CM_OK)
        rc = probe_arrays(f, err);
    return rc == CM_OK ? make_batches(f, err) : rc;
}

/* Finds the number of batches in a round; afterwards the worker has its shard indices cached. */
static int choose_batches(foresight *f, cm_error *err)
{
    const uint64_t most = f->b->rank[0].load->share.nbatches;
    cm_seconds took = {0};
    int rc = make_batch(f, 0, &took, err);
    const double fit = took.wall > 0 ? ROUND_SECONDS / took.wall : MAX_BATCHES;
    f->nbatches = fit < 1 ? 1 : fit > MAX_BATCHES ? MAX_BATCHES : (uint64_t)fit;
    f->nbatches = f->nbatches > most ? most : f->nbatches;
    return rc;
}

/*
 * Chunks side by side in a file, a shard or an object of a repository come with one request: only
 * it knows which those are.
 */
static bool lies_together(const foresight *f)
{
    const cm_load_data *d = &f->b->load.shared.data;
    if (d->store != NULL && cm_store_joins_reads(d->store))
        return true;
    for (size_t i = 0; i < d->narrays; i++)
        if (d->variable[i]->words == NULL || d->variable[i]->is_sharded)
            return true;
    return false;
}

/*
 * Requests of a sample: the mean over many more samples of the first epoch than a round has.  Where
 * slow shard indices allow counting only few, uses arithmetic instead.
 */
static int count_requests(foresight *f, cm_error *err)
{
    const cm_load_space *s = &f->b->load.shared.space;
    cm_load_rank *rank = f->b->rank[0].load;
    const uint64_t step = rank->share.per_rank / MAX_SAMPLES + 1, start = cm_now_ns();
    cm_load_counts counts = {0};
    uint64_t n = 0;
    int rc = CM_OK;
    for (uint64_t k = 0; k < rank->share.per_rank && rc == CM_OK; k += step, n++) {
        cm_box sample, box;
        if ((double)(cm_now_ns() - start) * 1e-9 > COUNT_SECONDS)
            break;
        cm_sample_at(&s->space, 0, cm_load_number(rank, 0, k), &sample);
        for (size_t p = 0; p < s->nparts && rc == CM_OK; p++) {
            cm_sample_part_box(&s->part[p], &sample, &box);
            rc = cm_reader_count(f->reader, f->b->load.shared.data.array[s->part[p].array], &box,
                                 &counts, err);
        }
    }
    const uint64_t least =
        rank->share.per_rank < LEAST_SAMPLES ? rank->share.per_rank : LEAST_SAMPLES;
    if (rc == CM_OK && n > 0 && n >= least)
        f->b->session->predicted.requests = (double)counts.requests / (double)n;
    return rc;
}

static int sum_up(foresight *f, cm_error *err)
{
    cm_readbench_session *s = f->b->session;
    const cm_delay_model *delay = &f->setting.delay;
    cm_slowed slowed = {0};
    cm_seconds total = {0};
    double requests = 0, chunks = 0;
    int rc = CM_OK;
    if (f->setting.emulated)
        slowed = (cm_slowed){delay->latency, delay->bandwidth};
    for (uint64_t k = 0; k < f->nbatches && rc == CM_OK; k++)
        for (unsigned i = 0; i < f->b->load.shared.data.narrays && rc == CM_OK; i++) {
            cm_batch_work w = {0};
            if (f->first[i] == NULL)
                continue;
            rc = count_work(f, k, i, &w, err);
            const cm_chunk_costs costs = cm_cost_probe_result(f->first[i]);
            const cm_chunk_costs again =
                f->again[i] != NULL ? cm_cost_probe_result(f->again[i]) : costs;
            const cm_seconds t = cm_foresee(&w, &costs, &again, &slowed);
            total.wall += t.wall;
            total.cpu += t.cpu;
            requests += (double)w.requests;
            chunks += (double)w.chunks;
        }
    if (rc == CM_OK && lies_together(f))
        rc = count_requests(f, err);
    if (rc != CM_OK)
        return rc;
    s->predicted.batch_seconds = total.wall / (double)f->nbatches;
    s->predicted.batch_cpu_seconds = total.cpu / (double)f->nbatches;
    s->predicted.batch_requests = requests / (double)f->nbatches;
    s->predicted.batch_chunks = chunks / (double)f->nbatches;
    s->measured = (cm_readbench_measured){.batch_seconds = cm_cost_middle(f->wall, f->nrounds),
                                          .batch_cpu_seconds = cm_cost_middle(f->cpu, f->nrounds),
                                          .batches = f->nbatches,
                                          .rounds = f->nrounds};
    return CM_OK;
}

/* Requests over a network wait for each other's answers together. */
static bool is_together(const cm_load_data *d)
{
    return d->slow != NULL && cm_store_is_remote(d->slow);
}

static int open_probes(foresight *f, cm_error *err)
{
    const cm_load_data *d = &f->b->load.shared.data;
    const size_t group_nbytes = cm_load_group_nbytes(&f->b->load.setting);
    const cm_cost_kind kind = is_together(d)        ? CM_COST_TOGETHER
                              : f->b->options->cold ? CM_COST_COLD
                                                    : CM_COST_WARM;
    int rc = CM_OK;
    for (unsigned i = 0; i < d->narrays && rc == CM_OK; i++) {
        rc = cm_batch_calls_make(f->b, i, f->nbatches, group_nbytes, f->arena.data, &f->calls[i],
                                 err);
        if (rc != CM_OK || f->calls[i].ncalls == 0)
            continue;
        const cm_cost_calls calls = cm_batch_calls_costs(&f->calls[i]);
        rc = cm_cost_probe_create(d->array[i], kind, &calls, &f->first[i], err);
        if (rc == CM_OK && kind == CM_COST_COLD)
            rc = cm_cost_probe_create(d->array[i], kind, &calls, &f->again[i], err);
    }
    return rc;
}

static int open_counter(foresight *f, cm_error *err)
{
    const cm_reader_options options = {.group_nbytes = cm_load_group_nbytes(&f->b->load.setting)};
    return cm_reader_create(&options, &f->reader, err);
}

static void release(foresight *f)
{
    for (size_t i = 0; i < CM_LOAD_MAX_PARTS; i++) {
        cm_cost_probe_free(f->first[i]);
        cm_cost_probe_free(f->again[i]);
        cm_batch_calls_release(&f->calls[i]);
    }
    cm_reader_free(f->reader);
    if (f->worker != NULL)
        f->source.close(f->worker);
    cm_load_origin_release(&f->origin, &f->source);
    cm_delay_free(f->origin.delay);
    cm_arena_release(&f->arena);
    free(f->task);
    free(f->met);
}

static int foresee(foresight *f, cm_error *err)
{
    const uint64_t start = cm_now_ns();
    int rc = open_counter(f, err);
    if (rc == CM_OK)
        rc = open_worker(f, err);
    if (rc == CM_OK)
        rc = choose_batches(f, err);
    if (rc == CM_OK)
        rc = open_probes(f, err);
    while (rc == CM_OK && f->nrounds < ROUNDS &&
           (f->nrounds == 0 || (double)(cm_now_ns() - start) * 1e-9 < MOST_SECONDS) &&
           !cm_monitor_canceled(f->b->monitor))
        rc = run_round(f, err);
    return rc == CM_OK && f->nrounds > 0 ? sum_up(f, err) : rc;
}

static bool is_native(const cm_bench *b)
{
    const cm_load_setting *t = &b->load.setting;
    const cm_load_data *d = &b->load.shared.data;
    if (t->engine != CM_LOAD_NATIVE || (b->options->hook != NULL && b->options->hook->no_probe))
        return false;
    for (size_t i = 0; i < d->narrays; i++)
        if (!d->array[i]->chunked || d->array[i]->grid.nchunks == 0 ||
            d->array[i]->ops->place != NULL)
            return false;
    return true;
}

uint64_t cm_bench_foreseeing_nbytes(const cm_bench *b)
{
    const cm_load_data *d = &b->load.shared.data;
    if (!is_native(b))
        return 0;
    const cm_cost_kind kind = is_together(d) ? CM_COST_TOGETHER : CM_COST_COLD;
    const uint64_t group_nbytes = cm_load_group_nbytes(&b->load.setting);
    uint64_t total = cm_add_sat(b->load.slot_nbytes, cm_load_open_nbytes(&b->load));
    total = cm_add_sat(total, cm_batch_calls_nbytes(b, MAX_BATCHES));
    for (size_t i = 0; i < d->narrays; i++)
        total = cm_add_sat(
            total, cm_add_sat(cm_mul_sat(2, cm_cost_probe_nbytes(d->array[i], kind, group_nbytes)),
                              cm_reader_memory(d->array[i], NULL)));
    return cm_add_sat(total, UINT64_C(12) << 20);
}

static bool is_possible(const cm_bench *b)
{
    return !cm_monitor_canceled(b->monitor) && is_native(b) &&
           cm_bench_foreseeing_nbytes(b) <= cm_load_room(&b->load);
}

int cm_bench_foresee(cm_bench *b, cm_error *err)
{
    cm_readbench_session *s = b->session;
    cm_error ignored = {0};
    s->predicted.batch_seconds = s->predicted.batch_cpu_seconds = -1;
    s->measured = (cm_readbench_measured){.batch_seconds = -1, .batch_cpu_seconds = -1};
    if (!is_possible(b))
        return CM_OK;
    foresight *f = cm_calloc(1, sizeof *f, err);
    if (f == NULL)
        return CM_ENOMEM;
    f->b = b;
    /* Batches have reported chunks that cannot be read. */
    int rc = foresee(f, &ignored);
    release(f);
    free(f);
    return rc == CM_ENOMEM ? cm_fail(err, rc, "%s", ignored.text) : CM_OK;
}
