/* Throughput and resource use over time. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "plot.h"

/* AMOUNT spread evenly over FROM to TO, added to N bins of WIDTH seconds each. */
static void spread(double *bin, size_t n, double width, double from, double to, double amount)
{
    double first = fmax(0, floor(from / width));
    if (!(to > from)) {
        if (first < (double)n)
            bin[(size_t)first] += amount;
        return;
    }
    for (double i = first; i < (double)n && i * width < to; i++) {
        double a = fmax(from, i * width), b = fmin(to, (i + 1) * width);
        bin[(size_t)i] += amount * fmax(0, b - a) / (to - from);
    }
}

static void draw_series(const plot *p, canvas_point *point, const double *bin, size_t n,
                        double width, unsigned colour)
{
    for (size_t i = 0; i < n; i++)
        point[i] = (canvas_point){plot_x(p, ((double)i + 0.5) * width), plot_y(p, bin[i] / width)};
    canvas_line(p->c, point, n, 1.8, 0, colour);
}

/* Bins no shorter than two steps, else the line would show the steps and not the rate. */
static size_t count_bins(const cm_readbench_session *s, bool narrow, double end)
{
    double most = narrow ? 60 : 160, step = s->batch_time.mean > 0 ? s->batch_time.mean : end;
    double n = floor(end / fmax(2 * step, end / most));
    return n < 2 ? 2 : (size_t)n;
}

int plot_throughput(plot *p, const cm_readbench_session *s, cm_error *err)
{
    static const plot_entry SERIES[] = {{"logical, to the training", BLUE, true, false},
                                        {"physical, from storage", ORANGE, true, false},
                                        {"needed", INK, true, true}};
    double end = fmax(plot_end(s), 1e-6), top = s->accelerators.needed;
    size_t n = count_bins(s, p->narrow, end);
    double width = end / (double)n;
    double *bin = cm_calloc(2 * n, sizeof(*bin), err);
    canvas_point *point = bin ? cm_calloc(n, sizeof(*point), err) : NULL;

    if (point == NULL) {
        free(bin);
        return CM_ENOMEM;
    }
    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *b = &s->record[i];
        spread(bin, n, width, (double)b->want_ns / 1e9, (double)b->done_ns / 1e9,
               (double)b->logical_nbytes);
        spread(bin + n, n, width, (double)b->begin_ns / 1e9, (double)b->end_ns / 1e9,
               (double)b->stored_nbytes);
    }
    for (size_t i = 0; i < 2 * n; i++)
        top = fmax(top, bin[i] / width);
    p->top += plot_legend(p, p->top, SERIES, s->accelerators.needed > 0 ? 3 : 2) + 28;
    plot_y_axis(p, top, PLOT_RATE, "");
    plot_x_axis(p, 0, end, PLOT_SECONDS, "since the run began");
    draw_series(p, point, bin + n, n, width, ORANGE);
    draw_series(p, point, bin, n, width, BLUE);
    if (s->accelerators.needed > 0) {
        double y = plot_y(p, s->accelerators.needed);
        canvas_point line[] = {{p->left, y}, {p->right, y}};
        canvas_line(p->c, line, 2, 1.4, 5, INK);
    }
    free(bin);
    free(point);
    return CM_OK;
}

/* ---- resources ------------------------------------------------------------------------------ */

/* One point of the panel from EACH looks: shares of the CPUs, of the GPU, and bytes. */
typedef struct moment {
    double at;
    double used;            /* by this process and its workers, of all CPUs */
    double mean, low, high; /* of the CPUs one by one */
    double gpu, gpu_memory; /* negative: not known */
    double nbytes;
} moment;

static moment moment_of(const cm_readbench_session *s, size_t first, size_t n)
{
    moment m = {.low = 1, .gpu = -1, .gpu_memory = -1};
    for (size_t i = first; i < first + n; i++) {
        const cm_readbench_look *l = &s->look[i];
        m.at += (double)l->at_ns / 1e9 / (double)n;
        m.used += (double)l->process_cpu / (double)(s->ncpus ? s->ncpus : 1) / (double)n;
        m.nbytes = fmax(m.nbytes, (double)l->rss_nbytes);
        m.gpu = fmax(m.gpu, (double)l->gpu);
        m.gpu_memory = fmax(m.gpu_memory, (double)l->gpu_memory);
        double low = 1, high = 0;
        for (unsigned c = 0; c < s->ncpus; c++) {
            m.mean += (double)l->cpu[c] / (double)s->ncpus / (double)n;
            low = fmin(low, (double)l->cpu[c]);
            high = fmax(high, (double)l->cpu[c]);
        }
        m.low = fmin(m.low, low);
        m.high = fmax(m.high, high);
    }
    return m;
}

static void draw_band(const plot *p, const moment *m, size_t n, canvas_point *point)
{
    for (size_t i = 0; i < n; i++) {
        point[i] = (canvas_point){plot_x(p, m[i].at), plot_y(p, m[i].high)};
        point[2 * n - 1 - i] = (canvas_point){plot_x(p, m[i].at), plot_y(p, m[i].low)};
    }
    canvas_area(p->c, point, 2 * n, 0.25, SKY);
}

static void draw_member(const plot *p, const moment *m, size_t n, size_t offset, unsigned colour,
                        canvas_point *point)
{
    for (size_t i = 0; i < n; i++)
        point[i] = (canvas_point){plot_x(p, m[i].at),
                                  plot_y(p, *(const double *)((const char *)&m[i] + offset))};
    canvas_line(p->c, point, n, 1.8, 0, colour);
}

static void draw_shares(plot *p, const cm_readbench_session *s, const moment *m, size_t n,
                        double end, canvas_point *point)
{
    bool gpu = false;
    for (size_t i = 0; i < n; i++)
        gpu = gpu || m[i].gpu >= 0;
    const plot_entry series[] = {{"busy CPUs, mean", BLUE, true, false},
                                 {"least to most busy", SKY, false, false},
                                 {"used by readbench", ORANGE, true, false},
                                 {"GPU", GREEN, true, false}};
    p->top += plot_legend(p, p->top, series, gpu ? 4 : 3) + 28;
    plot_y_axis(p, 1, PLOT_SHARE, "of the CPUs");
    plot_x_axis(p, 0, end, PLOT_SECONDS, "");
    if (s->ncpus > 0) {
        draw_band(p, m, n, point);
        draw_member(p, m, n, offsetof(moment, mean), BLUE, point);
    }
    draw_member(p, m, n, offsetof(moment, used), ORANGE, point);
    if (gpu)
        draw_member(p, m, n, offsetof(moment, gpu), GREEN, point);
}

static void draw_memory(plot *p, const cm_readbench_session *s, const moment *m, size_t n,
                        double end, canvas_point *point)
{
    double top = 0, limit = (double)s->memory_limit;
    for (size_t i = 0; i < n; i++)
        top = fmax(top, m[i].nbytes);
    /* A limit far above would flatten what is used. */
    bool show = limit > 0 && limit < 3 * top;
    const plot_entry series[] = {{"resident memory, workers included", PURPLE, true, false},
                                 {"limit", INK, true, true}};
    p->top += plot_legend(p, p->top, series, show ? 2 : 1) + 28;
    plot_y_axis(p, show ? fmax(top, limit) : top, PLOT_BYTES, "");
    plot_x_axis(p, 0, end, PLOT_SECONDS, "since the run began");
    draw_member(p, m, n, offsetof(moment, nbytes), PURPLE, point);
    if (show) {
        canvas_point line[] = {{p->left, plot_y(p, limit)}, {p->right, plot_y(p, limit)}};
        canvas_line(p->c, line, 2, 1.4, 5, INK);
    }
}

int plot_resources(plot *p, const cm_readbench_session *s, cm_error *err)
{
    size_t most = p->narrow ? 110 : 280, each = (s->nlooks + most - 1) / most;
    size_t n = each ? (s->nlooks + each - 1) / each : 0;
    double end = fmax(plot_end(s), 1e-6), height = (p->bottom - p->top) / 2;
    moment *m = cm_calloc(n + 1, sizeof(*m), err);
    canvas_point *point = m ? cm_calloc(2 * n + 2, sizeof(*point), err) : NULL;

    if (point == NULL) {
        free(m);
        return CM_ENOMEM;
    }
    if (n == 0)
        plot_text(p, p->width / 2, (p->top + p->bottom) / 2, 13, CANVAS_MIDDLE, GREY,
                  "the run was too short for a look");
    for (size_t i = 0; i < n; i++)
        m[i] = moment_of(s, i * each, i + 1 < n ? each : s->nlooks - i * each);
    if (n > 0) {
        plot upper = *p, lower = *p;
        upper.bottom = p->top + height - 28;
        lower.top = p->top + height + 20;
        draw_shares(&upper, s, m, n, end, point);
        draw_memory(&lower, s, m, n, end, point);
    }
    free(m);
    free(point);
    return CM_OK;
}
