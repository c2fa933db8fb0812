/*
 * One rank of a training, in a thread of its own: takes batches, steps on them,
 * and records when each was wanted and when it came.
 *
 * A step wants its batch when the step before has ended.  Without a device the
 * batch is asked for then.  With one, the next batch is taken and its copy begun
 * while the step runs (unless copying is not to overlap), so that a batch may be
 * ready before it is wanted; it is late only from then on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "bench/readbench.h"
#include "codec/checksum.h"
#include "watch/monitor.h"

typedef struct taken { /* a batch on its way to its step */
    cm_load_batch batch;
    bool have, failed;
    uint64_t want_ns, got_ns, ready_ns, copy_start_ns, copy_ns;
} taken;

static bool is_canceled(void *context)
{
    return cm_monitor_canceled(((cm_bench_rank *)context)->bench->monitor);
}

/* ---- taking -------------------------------------------------------------------------------- */

static int keep_failure(cm_bench_rank *r, const char *text)
{
    if (r->first_failure == NULL && (r->first_failure = cm_strdup(text, &r->load->err)) == NULL)
        return CM_ENOMEM;
    return CM_OK;
}

static int take(cm_bench_rank *r, uint64_t epoch, taken *t)
{
    cm_bench *b = r->bench;
    memset(t, 0, sizeof *t);
    int rc = cm_load_next(r->load, is_canceled, r, &t->batch, &t->have);
    t->got_ns = cm_bench_now(b);
    t->ready_ns = t->got_ns;
    if (rc != CM_OK || !t->have)
        return rc;
    t->failed = t->batch.status != CM_OK;
    if (t->failed)
        return keep_failure(r, t->batch.error);
    return r->load->stage != NULL ? cm_load_stage_submit(r->load, &t->batch, epoch) : CM_OK;
}

/* Waits until the batch is where the step wants it. */
static int arrive(cm_bench_rank *r, taken *t)
{
    if (t->failed || r->load->stage == NULL)
        return CM_OK;
    cm_staged staged;
    int rc = cm_bench_stage_wait(r, &staged);
    t->ready_ns = cm_bench_now(r->bench);
    if (rc != CM_OK)
        return rc;
    t->copy_start_ns = cm_bench_since(r->bench, staged.copy_start_ns);
    t->copy_ns = staged.copy_end_ns - staged.copy_start_ns;
    return CM_OK;
}

/* ---- logging ------------------------------------------------------------------------------- */

static int log_part(cm_bench_rank *r, const taken *t, uint64_t epoch, uint64_t place, size_t p,
                    const cm_box *sample)
{
    const cm_load_space *s = &r->bench->load.shared.space;
    cm_readbench_sample *x = cm_bench_log(r, &r->load->err);
    cm_box box;
    if (x == NULL)
        return CM_ENOMEM;
    cm_sample_part_box(&s->part[p], sample, &box);
    size_t offset = place * s->part_nbytes[p];
    for (size_t q = 0; q < p; q++)
        offset += t->batch.nsamples * s->part_nbytes[q];
    x->epoch = (uint32_t)epoch;
    x->rank = r->load->index;
    x->batch = (uint32_t)t->batch.number;
    x->place = (uint32_t)place;
    x->number = cm_load_place(r->load, &t->batch, place);
    x->part = (uint32_t)p;
    memcpy(x->start, box.start, sizeof x->start);
    memcpy(x->shape, box.shape, sizeof x->shape);
    x->crc32c = cm_crc32c(cm_cpu_simd(), t->batch.data + offset,
                          cm_box_nelem(&box) * cm_feed_nbytes(&s->feed[p]));
    return CM_OK;
}

static int log_samples(cm_bench_rank *r, const taken *t, uint64_t epoch)
{
    const cm_load_space *s = &r->bench->load.shared.space;
    int rc = CM_OK;
    for (uint64_t k = 0; k < t->batch.nsamples && rc == CM_OK; k++) {
        cm_box sample;
        cm_sample_at(&s->space, epoch, t->batch.sample[k], &sample);
        for (size_t p = 0; p < s->nparts && rc == CM_OK; p++)
            rc = log_part(r, t, epoch, k, p, &sample);
    }
    return rc;
}

/* ---- stepping ------------------------------------------------------------------------------ */

static uint64_t step_length_ns(const cm_bench *b, const taken *t)
{
    return (uint64_t)(b->setting.step_ns +
                      b->setting.step_per_sample_ns * (double)t->batch.nsamples);
}

/* In slices, so that a signal need not wait for a long step. */
static void sleep_until(cm_bench_rank *r, uint64_t deadline_ns)
{
    const uint64_t slice = 100000000;
    for (uint64_t t = cm_now_ns(); t < deadline_ns && !is_canceled(r); t = cm_now_ns()) {
        const uint64_t to = deadline_ns - t > slice ? t + slice : deadline_ns;
        const struct timespec at = {(time_t)(to / 1000000000), (long)(to % 1000000000)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
        }
    }
}

static int record(cm_bench_rank *r, const taken *t, uint64_t epoch, uint64_t done_ns)
{
    const cm_bench *b = r->bench;
    const cm_load_counts *c = &t->batch.counts;
    /* libnetcdf has its own caches and does not tell what it requested and decoded. */
    const bool told = b->load.setting.engine != CM_LOAD_NETCDF;
    cm_readbench_batch *x = cm_bench_record(r, &r->load->err);
    if (x == NULL)
        return CM_ENOMEM;
    *x = (cm_readbench_batch){.epoch = (uint32_t)epoch,
                              .rank = r->load->index,
                              .number = (uint32_t)t->batch.number,
                              .nsamples = (uint32_t)t->batch.nsamples,
                              .worker = b->load.setting.planned ? -1 : (int64_t)t->batch.worker,
                              .queued_ns = cm_bench_since(b, t->batch.queued_ns),
                              .begin_ns = cm_bench_since(b, t->batch.begin_ns),
                              .end_ns = cm_bench_since(b, t->batch.end_ns),
                              .want_ns = t->want_ns,
                              .got_ns = t->got_ns,
                              .ready_ns = t->ready_ns,
                              .done_ns = done_ns,
                              .copy_start_ns = t->copy_start_ns,
                              .copy_ns = t->copy_ns,
                              .chunks = c->chunks,
                              .decoded = told ? c->decoded : 0,
                              .requests = told ? c->requests : 0,
                              .stored_nbytes = c->stored_nbytes,
                              .decoded_nbytes = told ? c->decoded_nbytes : 0,
                              .logical_nbytes = c->logical_nbytes,
                              .cache_hits = c->cache_hits,
                              .cache_misses = c->cache_misses,
                              .cache_evictions = c->cache_evictions,
                              .disk_hits = c->disk_hits,
                              .disk_misses = c->disk_misses,
                              .disk_evictions = c->disk_evictions,
                              .disk_nbytes = c->disk_nbytes,
                              .missing_chunks = c->missing_chunks,
                              .missing_nbytes = c->missing_nbytes,
                              .failed_chunks = c->failed_chunks,
                              .rss_nbytes = t->batch.rss_nbytes,
                              .deaths = t->batch.deaths,
                              .first = r->nrecords == 1, /* it is in the list already */
                              .failed = t->failed};
    memcpy(x->stage_ns, c->stage_ns, sizeof x->stage_ns);
    return CM_OK;
}

/*
 * The end of a step that lasts until DEADLINE_NS.  A batch that was taken meanwhile may
 * have come after it; that is the next step's waiting, not this one's length.
 */
static int end_step(cm_bench_rank *r, bool on_device, uint64_t deadline_ns, uint64_t *done_ns)
{
    const cm_bench *b = r->bench;
    cm_stage_step_times times = {0};
    uint64_t end = deadline_ns;
    /* A kernel's end is known by the device's clock. */
    const bool by_device = on_device && b->options->device_step;
    if (!by_device && cm_now_ns() < deadline_ns) {
        sleep_until(r, deadline_ns);
        end = cm_now_ns();
    }
    int rc = on_device ? cm_bench_stage_stepped(r, &times) : CM_OK;
    *done_ns = cm_bench_since(b, by_device ? times.end_ns : end);
    return rc;
}

/* A step on CUR, and, where copies overlap, NEXT taken meanwhile.  *DONE_NS is its end. */
static int step(cm_bench_rank *r, const taken *cur, uint64_t epoch, taken *next, uint64_t *done_ns)
{
    const cm_bench *b = r->bench;
    const bool on_device = !cur->failed && r->load->stage != NULL;
    const uint64_t length = cur->failed ? 0 : step_length_ns(b, cur);
    uint64_t deadline = cm_now_ns() + length;
    int rc = on_device ? cm_bench_stage_step(r) : CM_OK;
    if (rc == CM_OK && !cur->failed && b->options->log_samples)
        rc = log_samples(r, cur, epoch);
    if (cm_now_ns() > deadline) /* logging is part of the step */
        deadline = cm_now_ns();
    if (rc == CM_OK && next != NULL)
        rc = take(r, epoch, next);
    return rc == CM_OK ? end_step(r, on_device, deadline, done_ns) : rc;
}

/* ---- an epoch ------------------------------------------------------------------------------ */

static int run(cm_bench_rank *r, uint64_t epoch)
{
    cm_bench *b = r->bench;
    const bool overlaps = r->load->stage != NULL && !b->options->no_overlap;
    taken cur, next = {.have = false};
    uint64_t want = b->epoch_start_ns[epoch]; /* planning and new workers make it late */
    int rc = take(r, epoch, &cur);
    while (rc == CM_OK && cur.have) {
        uint64_t done = want;
        cur.want_ns = want;
        rc = arrive(r, &cur);
        /*
         * A step that would not be slept through is no measurement; one on a device cannot be
         * cut short.
         */
        if (rc == CM_OK && is_canceled(r))
            rc = cm_fail(&r->load->err, CM_ECANCELED, "stopped before the step on batch %" PRIu64,
                         cur.batch.number);
        if (rc == CM_OK)
            rc = step(r, &cur, epoch, overlaps ? &next : NULL, &done);
        if (rc == CM_OK)
            rc = record(r, &cur, epoch, done);
        cm_monitor_add(b->monitor, cur.batch.nbytes);
        cm_load_release(r->load, &cur.batch);
        want = done;
        if (rc == CM_OK && !overlaps)
            rc = take(r, epoch, &next);
        cur = next;
    }
    return rc;
}

void cm_bench_rank_epoch(cm_bench_rank *r, uint64_t epoch)
{
    r->status = cm_load_begin(r->load, epoch, 0);
    if (r->status == CM_OK)
        r->status = run(r, epoch);
}

int cm_bench_rank_again(cm_bench_rank *r, cm_bench_batch_fn *each, void *context)
{
    const uint64_t start = cm_now_ns();
    bool more = true;
    int rc = cm_load_begin(r->load, 0, 0);
    while (rc == CM_OK && more) {
        cm_load_batch batch;
        rc = cm_load_next(r->load, is_canceled, r, &batch, &more);
        if (rc != CM_OK || !more)
            break;
        if (batch.status == CM_OK) { /* one that failed was counted in the timed pass */
            rc = each(context, &batch);
            r->nvalidated_batches++;
        }
        cm_monitor_add(r->bench->monitor, batch.nbytes);
        cm_load_release(r->load, &batch);
    }
    r->validated_ns += cm_now_ns() - start;
    return rc;
}
