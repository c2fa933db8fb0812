/* events.log and events_workers.log: JSON lines, one an event, in the order in which they began. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "files.h"

static const char *const NAMES[] = {"run",       "setup",  "epoch",     "training",
                                    "get-batch", "worker", "make-batch"};

static bool of_workers(const cm_readbench_event *e)
{
    return e->kind == CM_EVENT_WORKER || e->kind == CM_EVENT_MAKE_BATCH;
}

static int by_start(const void *a, const void *b)
{
    const cm_readbench_event *x = *(const cm_readbench_event *const *)a;
    const cm_readbench_event *y = *(const cm_readbench_event *const *)b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns) /* what holds others comes before them */
        return x->end_ns > y->end_ns ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x > y) - (x < y);
}

static void print_event(const cm_readbench_event *e, bool emulated, FILE *to)
{
    fprintf(to, "{\"event\":\"%s\",\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64, NAMES[e->kind],
            e->start_ns, e->end_ns);
    if (e->epoch != UINT32_MAX)
        fprintf(to, ",\"epoch\":%u", e->epoch);
    if (e->rank != UINT32_MAX)
        fprintf(to, ",\"rank\":%u", e->rank);
    if (e->batch != UINT32_MAX)
        fprintf(to, ",\"batch\":%u", e->batch);
    if (e->worker >= 0)
        fprintf(to, ",\"worker\":%" PRId64, e->worker);
    if (e->pid > 0)
        fprintf(to, ",\"pid\":%" PRId64, e->pid);
    fputs(emulated ? ",\"emulated\":true}\n" : "}\n", to);
}

static int print_events(const cm_readbench_session *s, bool workers, FILE *to, cm_error *err)
{
    const cm_readbench_event **sorted = cm_calloc(s->nevents + 1, sizeof(*sorted), err);
    size_t n = 0;

    if (sorted == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < s->nevents; i++)
        if (of_workers(&s->event[i]) == workers)
            sorted[n++] = &s->event[i];
    qsort(sorted, n, sizeof(*sorted), by_start);
    for (size_t i = 0; i < n; i++)
        print_event(sorted[i], s->emulated, to);
    free(sorted);
    return CM_OK;
}

int readbench_events_log(const void *context, FILE *to, cm_error *err)
{
    return print_events(context, false, to, err);
}

int readbench_worker_events_log(const void *context, FILE *to, cm_error *err)
{
    return print_events(context, true, to, err);
}
