/*
 * Events and times under the names and in the form that notebooks of others read: the log of
 * Earthmover's dataloader demo (run, setup, epoch, training, get-batch; each with a line where it
 * starts and one with its duration where it ends), and the timings of the guide that --preset
 * loader-demo cites.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "files.h"

static const char *const NAMES[] = {[CM_EVENT_RUN] = "run",
                                    [CM_EVENT_SETUP] = "setup",
                                    [CM_EVENT_EPOCH] = "epoch",
                                    [CM_EVENT_TRAINING] = "training",
                                    [CM_EVENT_MAKE_BATCH] = "get-batch"};

typedef struct moment { /* where an event starts or ends */
    const cm_readbench_event *event;
    uint64_t at_ns;
    bool end;
} moment;

static bool has_name(cm_readbench_event_kind kind)
{
    return kind < sizeof NAMES / sizeof *NAMES && NAMES[kind] != NULL;
}

/* At the same time ends come before starts, and an event that holds others around these. */
static int by_time(const void *a, const void *b)
{
    const moment *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    if (x->event == y->event)
        return (x->end > y->end) - (x->end < y->end);
    if (x->end != y->end)
        return x->end ? -1 : 1;
    if (x->event->kind != y->event->kind)
        return (x->event->kind < y->event->kind) != x->end ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

static void print_settings(const cm_readbench_session *s, FILE *to)
{
    static const struct {
        const char *theirs, *ours;
    } KEYS[] = {{"num_epochs", "epochs"},        {"num_batches", "batches"},
                {"batch_size", "batch"},         {"num_workers", "workers"},
                {"prefetch_factor", "prefetch"}, {"seed", "seed"}};
    fprintf(to, ",\"data_params\":\"%s\",\"locals\":{", s->workers > 0 ? s->mode : "sync");
    for (size_t k = 0, n = 0; k < sizeof KEYS / sizeof *KEYS; k++)
        for (size_t i = 0; i < s->nsettings; i++)
            if (strcmp(s->setting[i].name, KEYS[k].ours) == 0) /* whole numbers, all of them */
                fprintf(to, "%s\"%s\":%s", n++ > 0 ? "," : "", KEYS[k].theirs, s->setting[i].value);
    fputs("}", to);
}

static void print_moment(const readbench_guide *g, const moment *m, FILE *to)
{
    const cm_readbench_event *e = m->event;
    fprintf(to, "{\"event\":\"%s %s\",\"time\":%.6f", NAMES[e->kind], m->end ? "end" : "start",
            g->began + (double)m->at_ns * 1e-9);
    if (e->kind == CM_EVENT_EPOCH)
        fprintf(to, ",\"epoch\":%u", e->epoch);
    if (e->kind == CM_EVENT_TRAINING)
        fprintf(to, ",\"batch\":%u", e->batch);
    if (e->kind == CM_EVENT_MAKE_BATCH) {
        fprintf(to, ",\"idx\":%u", e->batch);
        fprintf(to, ",\"pid\":%" PRId64, e->pid > 0 ? e->pid : e->worker);
    }
    if (e->kind == CM_EVENT_RUN && !m->end)
        print_settings(g->session, to);
    if (m->end)
        fprintf(to, ",\"duration\":%.9f", (double)(e->end_ns - e->start_ns) * 1e-9);
    fputs(g->session->emulated ? ",\"emulated\":true}\n" : "}\n", to);
}

static int print_log(const readbench_guide *g, bool workers, FILE *to, cm_error *err)
{
    const cm_readbench_session *s = g->session;
    moment *m = cm_calloc(2 * s->nevents + 1, sizeof *m, err);
    size_t n = 0;
    if (m == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < s->nevents; i++) {
        const cm_readbench_event *e = &s->event[i];
        if (!has_name(e->kind) || (workers && e->kind != CM_EVENT_MAKE_BATCH))
            continue;
        m[n++] = (moment){.event = e, .at_ns = e->start_ns};
        m[n++] = (moment){.event = e, .at_ns = e->end_ns, .end = true};
    }
    qsort(m, n, sizeof *m, by_time);
    for (size_t i = 0; i < n; i++)
        print_moment(g, &m[i], to);
    free(m);
    return CM_OK;
}

int readbench_guide_log(const void *context, FILE *to, cm_error *err)
{
    return print_log(context, false, to, err);
}

int readbench_guide_workers_log(const void *context, FILE *to, cm_error *err)
{
    return print_log(context, true, to, err);
}

/* ---- times of batches ---------------------------------------------------------------------- */

int readbench_guide_timings_csv(const void *context, FILE *to, cm_error *err)
{
    const readbench_guide *g = context;
    (void)err;
    fputs("epoch,batch,data_loading_time,memcpy_time,step_time,total_batch_time\n", to);
    for (size_t i = 0; i < g->session->nrecords; i++) {
        const cm_readbench_batch *b = &g->session->record[i];
        readbench_times t;
        if (b->failed)
            continue;
        readbench_batch_times(b, &t);
        fprintf(to, "%u,%u,%.9f,%.9f,%.9f,%.9f\n", b->epoch, b->number, t.loader, t.memcpy, t.step,
                t.total);
    }
    return CM_OK;
}

static void print_times(const char *name, double *value, size_t n, double all, FILE *to)
{
    double sum = 0, squares = 0;
    cm_sort_doubles(value, n);
    for (size_t i = 0; i < n; i++)
        sum += value[i];
    for (size_t i = 0; i < n; i++)
        squares += (value[i] - sum / (double)n) * (value[i] - sum / (double)n);
    fprintf(to, "%s:\n  mean: %.9f\n  std: %.9f\n  min: %.9f\n  median: %.9f\n  max: %.9f\n", name,
            sum / (double)n, sqrt(squares / (double)n), value[0], value[(n - 1) / 2], value[n - 1]);
    if (all > 0)
        fprintf(to, "  share: %.4f\n", sum / all);
}

int readbench_guide_timings_yaml(const void *context, FILE *to, cm_error *err)
{
    const cm_readbench_session *s = ((const readbench_guide *)context)->session;
    double *value = cm_calloc(4 * (s->nrecords + 1), sizeof *value, err), all = 0;
    double *part[] = {value, value + s->nrecords, value + 2 * s->nrecords, value + 3 * s->nrecords};
    size_t n = 0;
    if (value == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < s->nrecords; i++) {
        readbench_times t;
        if (!readbench_is_step(&s->record[i])) /* the first one pays for starting up */
            continue;
        readbench_batch_times(&s->record[i], &t);
        part[0][n] = t.loader;
        part[1][n] = t.memcpy;
        part[2][n] = t.step;
        part[3][n++] = t.total;
        all += t.total;
    }
    fprintf(to, "batches: %zu\n", n);
    fputs(s->emulated ? "emulated: true\n" : "emulated: false\n", to);
    static const char *const names[] = {"data_loading", "memcpy", "step", "total_batch"};
    for (unsigned k = 0; k < 4 && n > 0; k++)
        print_times(names[k], part[k], n, all, to);
    free(value);
    return CM_OK;
}
