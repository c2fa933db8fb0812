#include "replay.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/sentences.h"
#include "bench/readbench.h"

/* Of each of two epochs; the first one warms caches up. */
#define EPOCH_SECONDS 1.0

enum {
    LEAST_READS = 32,
    MOST_READS = 20000,
    CACHED_READS = 16,
    CACHED_EPOCHS = 100
};
#define CACHE_NBYTES (UINT64_C(256) << 20)

static int add_note(cm_chunkcalc_report *r, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int add_note(cm_chunkcalc_report *r, cm_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = cm_sentences_add(&r->note, &r->nnotes, err, format, args);
    va_end(args);
    return rc;
}

/* Reads a second of the last epoch. */
static double rate_of(const cm_readbench_session *s)
{
    uint64_t first = UINT64_MAX, last = 0, n = 0;
    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *b = &s->record[i];
        if (b->epoch == 0 || b->failed)
            continue;
        first = b->want_ns < first ? b->want_ns : first;
        last = b->done_ns > last ? b->done_ns : last;
        n += b->nsamples;
    }
    return last > first && n > 0 ? (double)n * 1e9 / (double)(last - first) : 0;
}

typedef struct measured {
    double rate; /* reads a second; 0: it could not be measured */
    double cpu;  /* seconds of CPU time a read */
} measured;

/* READS of them in each of EPOCHS, decoded chunks kept in CACHE bytes. */
static int replay(const cm_chunkcalc_options *o, const cm_chunkcalc_report *r, uint64_t reads,
                  uint64_t epochs, uint64_t cache, measured *out, cm_error *err)
{
    struct cm_readbench_hook hook = {.no_probe = true};
    const char *variable = r->pattern;
    cm_readbench_options b;
    cm_readbench_report report;
    cm_readbench_options_init(&b);
    b.store = (cm_texts){.text = &o->store, .n = 1};
    b.variables = (cm_texts){.text = &variable, .n = variable[0] != '\0'};
    b.replay = o->access;
    b.batch = 1;
    b.batches = reads;
    b.epochs = epochs;
    b.cache_nbytes = cache;
    b.workers = r->access.streams;
    b.worker_threads = 1;
    b.step_forward = b.step_backward = b.step_other = 0;
    b.net = o->net;
    b.hook = &hook;
    int rc = cm_readbench(&b, NULL, &report, err);
    *out = (measured){.rate = 0};
    if (rc == CM_OK && report.session[0].counts.samples > 0)
        *out = (measured){.rate = rate_of(&report.session[0]),
                          .cpu = report.session[0].cpu_seconds /
                                 (double)report.session[0].counts.samples};
    cm_readbench_report_release(&report);
    return rc;
}

/*
 * NOW is what reads take with the present chunks, and HANDING of that whatever the chunks are; the
 * rest goes by the model.  Where requests were timed, no read is faster than one of them: reads of
 * the model take longer than measured ones, so that those which only wait seem shorter.
 */
static void set_rates(const cm_chunkcalc_options *o, cm_chunkcalc_report *r, const measured *now,
                      double handing)
{
    const double model = r->layout[r->present].seconds;
    const double share = now->cpu > handing ? handing / now->cpu : 0;
    const double request = r->measured && o->latency < 0 ? fmin(r->latency, r->range) : 0;
    const double most = fmax(now->rate, r->access.streams / request);
    for (size_t i = 0; i < r->nlayouts; i++) {
        const double seconds = share + (1 - share) * r->layout[i].seconds / model;
        r->layout[i].rate = fmin(now->rate / seconds, most);
    }
    r->access.measured_rate = now->rate;
}

int chunkcalc_measure_rate(const cm_chunkcalc_options *o, cm_chunkcalc_report *r, cm_error *err)
{
    measured now, cached = {.cpu = 0};
    cm_error inner = {0};
    if (r->present == SIZE_MAX || r->layout[r->present].seconds <= 0)
        return CM_OK;
    const double reads = EPOCH_SECONDS * r->access.streams / r->layout[r->present].seconds;
    int rc = replay(o, r,
                    reads < LEAST_READS  ? LEAST_READS
                    : reads > MOST_READS ? MOST_READS
                                         : (uint64_t)reads,
                    2, 0, &now, &inner);
    /* Without fetching and decoding: the same few reads again and again, out of a cache.  Where
       storage is waited for, that is little. */
    if (rc == CM_OK && now.rate > 0 && r->measured && !r->cold && o->net == NULL)
        rc = replay(o, r, CACHED_READS, CACHED_EPOCHS, CACHE_NBYTES, &cached, &inner);
    if (rc == CM_OK && now.rate > 0)
        set_rates(o, r, &now, cached.cpu);
    if (rc == CM_ENOMEM)
        return cm_fail(err, rc, "%s", inner.text);
    return rc == CM_OK && now.rate > 0
               ? CM_OK
               : add_note(r, err,
                          "the reads are not measured as the store is, rates are the cost "
                          "model's: %s",
                          rc != CM_OK ? inner.text : "nothing was read");
}
