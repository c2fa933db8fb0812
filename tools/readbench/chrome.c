/*
 * trace.json for chrome://tracing and Perfetto: a row for each rank and each worker,
 * and counters of the machine (the Trace Event Format of the Chromium project).
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/marks.h"
#include "base/mem.h"
#include "files.h"
#include "plot.h"

enum {
    TRAINING = 1, /* processes of the trace */
    WORKERS = 2,
    MACHINE = 3,
    COPIES = 4,
    /* Some 12 events each; a viewer takes a few hundred thousand before it becomes slow. */
    MAX_BATCHES = 20000
};

typedef struct trace {
    FILE *to;
    bool any;
} trace;

static void begin(trace *t)
{
    fputs(t->any ? ",\n" : "\n", t->to);
    t->any = true;
}

/* Microseconds with the nanoseconds kept, which a double would lose after hours. */
static void print_us(uint64_t ns, FILE *to)
{
    fprintf(to, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

static void name_row(trace *t, int pid, uint64_t tid, bool process, const char *name)
{
    begin(t);
    fprintf(t->to,
            "{\"ph\":\"M\",\"pid\":%d,\"tid\":%" PRIu64
            ",\"name\":\"%s\",\"args\":{\"name\":\"%s\"}}",
            pid, tid, process ? "process_name" : "thread_name", name);
}

static void slice(trace *t, int pid, uint64_t tid, const char *name, uint64_t start, uint64_t end)
{
    begin(t);
    fprintf(t->to, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%" PRIu64 ",\"name\":\"%s\",\"ts\":", pid, tid,
            name);
    print_us(start, t->to);
    fputs(",\"dur\":", t->to);
    print_us(end > start ? end - start : 0, t->to);
    putc('}', t->to);
}

static uint64_t latest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void trace_step(trace *t, const cm_readbench_batch *b)
{
    uint64_t got = latest(b->got_ns, b->want_ns), ready = latest(b->ready_ns, got);
    if (got > b->want_ns)
        slice(t, TRAINING, b->rank, "wait for loader", b->want_ns, got);
    if (ready > got)
        slice(t, TRAINING, b->rank, "wait for copy", got, ready);
    slice(t, TRAINING, b->rank, "step", ready, b->done_ns);
}

/* On a row of its own: what lies above a step of the rank was copied meanwhile. */
static void trace_copy(trace *t, const cm_readbench_batch *b)
{
    char name[64];
    if (b->copy_ns == 0)
        return;
    snprintf(name, sizeof(name), "copy of batch %u of epoch %u", b->number, b->epoch);
    slice(t, COPIES, b->rank, name, b->copy_start_ns, b->copy_start_ns + b->copy_ns);
}

/*
 * A batch and inside it its stages.  They were many and mixed; their sums are laid one
 * after the other, and shrunk where several threads worked at once.
 */
static void trace_batch(trace *t, const cm_readbench_batch *b, uint64_t begin_ns)
{
    char name[64];
    /* The planned loader's batches are of no worker: a row for each rank. */
    uint64_t tid = b->worker >= 0 ? (uint64_t)b->worker : b->rank;
    uint64_t room = b->end_ns > begin_ns ? b->end_ns - begin_ns : 0, sum = 0;

    snprintf(name, sizeof(name), "batch %u of epoch %u%s", b->number, b->epoch,
             b->failed ? ", failed" : "");
    slice(t, WORKERS, tid, name, begin_ns, b->end_ns);
    for (size_t k = 0; k < CM_READBENCH_STAGES; k++)
        sum += b->stage_ns[k];
    double scale = sum > room ? (double)room / (double)sum : 1;
    uint64_t at = begin_ns;
    for (size_t k = 0; k < CM_READBENCH_STAGES; k++) {
        uint64_t ns = (uint64_t)((double)b->stage_ns[k] * scale);
        if (ns > 0)
            slice(t, WORKERS, tid, READBENCH_STAGE[k], at, at + ns);
        at += ns;
    }
}

static void counter(trace *t, const char *name, uint64_t at, const char *unit, double value)
{
    begin(t);
    fprintf(t->to, "{\"ph\":\"C\",\"pid\":%d,\"name\":\"%s\",\"ts\":", MACHINE, name);
    print_us(at, t->to);
    fprintf(t->to, ",\"args\":{\"%s\":%.3f}}", unit, isfinite(value) ? value : 0);
}

static void trace_look(trace *t, const cm_readbench_look *l, unsigned ncpus)
{
    double busy = 0;
    for (unsigned c = 0; c < ncpus; c++)
        busy += (double)l->cpu[c];
    counter(t, "memory", l->at_ns, "MiB", (double)l->rss_nbytes / 1048576);
    counter(t, "CPUs used by readbench", l->at_ns, "CPUs", (double)l->process_cpu);
    counter(t, "CPUs busy", l->at_ns, "CPUs", busy);
    if (l->gpu >= 0)
        counter(t, "GPU", l->at_ns, "share", (double)l->gpu);
    if (l->gpu_memory >= 0)
        counter(t, "GPU memory", l->at_ns, "share", (double)l->gpu_memory);
}

static void trace_rows(trace *t, const cm_readbench_session *s)
{
    char name[64];
    name_row(t, TRAINING, 0, true, "training");
    name_row(t, WORKERS, 0, true, s->emulated ? "loader, EMULATED storage" : "loader");
    name_row(t, MACHINE, 0, true, "machine");
    if (s->device.used)
        name_row(t, COPIES, 0, true, "copies to the device");
    for (unsigned r = 0; r < s->ranks; r++) {
        snprintf(name, sizeof(name), "rank %u", r);
        name_row(t, TRAINING, r, false, name);
        if (s->device.used)
            name_row(t, COPIES, r, false, name);
    }
    bool planned = s->nrecords > 0 && s->record[0].worker < 0;
    uint64_t n = planned ? s->ranks : s->workers;
    for (size_t i = 0; i < s->nrecords; i++)
        if (s->record[i].worker >= 0)
            n = latest(n, (uint64_t)s->record[i].worker + 1);
    for (uint64_t w = 0; w < n; w++) {
        snprintf(name, sizeof(name), planned ? "loader %" PRIu64 : "worker %" PRIu64, w);
        name_row(t, WORKERS, w, false, name);
    }
}

/* The first N batches, in the order in which they were wanted. */
static int trace_batches(trace *t, const cm_readbench_session *s, size_t n, cm_error *err)
{
    const cm_readbench_batch **sorted;
    uint64_t *ready = cm_calloc(s->ranks + 1, sizeof(*ready), err);
    int rc = ready ? plot_sorted(s, &sorted, err) : CM_ENOMEM;
    if (rc != CM_OK) {
        free(ready);
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        const cm_readbench_batch *b = sorted[i];
        uint64_t begin = b->begin_ns, *before = &ready[b->rank < s->ranks ? b->rank : s->ranks];
        /* Batches of a planned loader are made side by side: each from when the last was ready. */
        if (b->worker < 0 && begin < *before)
            begin = *before < b->end_ns ? *before : b->end_ns;
        *before = latest(*before, b->end_ns);
        trace_step(t, b);
        trace_copy(t, b);
        trace_batch(t, b, begin);
    }
    free(sorted);
    free(ready);
    return CM_OK;
}

int readbench_chrome_trace(const void *context, FILE *to, cm_error *err)
{
    const cm_readbench_session *s = context;
    trace t = {.to = to};
    size_t n = s->nrecords < MAX_BATCHES ? s->nrecords : MAX_BATCHES;

    fputs("{" CM_MARK_TRACE "\"traceEvents\":[", to);
    trace_rows(&t, s);
    for (size_t i = 0; i < s->nevents; i++) {
        const cm_readbench_event *e = &s->event[i];
        char name[32];
        if (e->kind == CM_EVENT_SETUP)
            slice(&t, TRAINING, 0, "setup", e->start_ns, e->end_ns);
        if (e->kind != CM_EVENT_EPOCH)
            continue;
        snprintf(name, sizeof(name), "epoch %u", e->epoch);
        slice(&t, TRAINING, e->rank == UINT32_MAX ? 0 : e->rank, name, e->start_ns, e->end_ns);
    }
    int rc = trace_batches(&t, s, n, err);
    for (size_t i = 0; i < s->nlooks; i++)
        trace_look(&t, &s->look[i], s->ncpus);
    fprintf(to,
            "\n],\"otherData\":{\"batches\":%zu,\"batches in this trace\":%zu,\"emulated\":%s}}\n",
            s->nrecords, n, s->emulated ? "true" : "false");
    return rc;
}
