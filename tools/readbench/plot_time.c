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

/* ---- turns ---------------------------------------------------------------------------------- */

/* Epochs of this store; between them it is another one's turn. */
typedef struct turns {
    size_t n;
    canvas_point *span; /* from x to y, seconds */
    double set_up;      /* when this store was; all before is its own */
} turns;

static int find_turns(const cm_readbench_session *s, turns *out, cm_error *err)
{
    *out = (turns){0};
    double first = INFINITY;
    size_t n = 0;
    for (size_t i = 0; i < s->nevents; i++)
        n += s->event[i].kind == CM_EVENT_EPOCH;
    out->span = cm_calloc(n + 1, sizeof(*out->span), err);
    if (out->span == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < s->nevents; i++) {
        const cm_readbench_event *e = &s->event[i];
        if (e->kind == CM_EVENT_SETUP)
            out->set_up = fmax(out->set_up, (double)e->end_ns / 1e9);
        if (e->kind != CM_EVENT_EPOCH)
            continue;
        const canvas_point span = {(double)e->start_ns / 1e9, (double)e->end_ns / 1e9};
        out->span[out->n++] = span;
        first = fmin(first, span.x);
    }
    if (out->set_up <= 0) /* it is not recorded */
        out->set_up = first;
    return CM_OK;
}

/* The seconds of FROM to TO that are this store's; all of them where no epoch is recorded. */
static double own_seconds(const turns *t, double from, double to)
{
    double own = t->n > 0 ? 0 : to - from;
    for (size_t i = 0; i < t->n; i++)
        own += fmax(0, fmin(to, t->span[i].y) - fmax(from, t->span[i].x));
    return fmin(own, to - from); /* ranks have epochs at the same time */
}

/* ---- throughput ----------------------------------------------------------------------------- */

typedef struct rates { /* of N spans as long as each other */
    size_t n;
    double width;
    double *own;                /* seconds of a span that were this store's turn */
    double *delivered, *stored; /* bytes a second of them */
} rates;

/* A rate is a line; where it was another store's turn there is none. */
static void draw_rates(const plot *p, canvas_point *point, const double *value, const rates *r,
                       unsigned colour)
{
    size_t n = 0;
    for (size_t i = 0; i <= r->n; i++) {
        if (i < r->n && r->own[i] > 0) {
            point[n++] =
                (canvas_point){plot_x(p, ((double)i + 0.5) * r->width), plot_y(p, value[i])};
            continue;
        }
        if (n == 1) { /* a line of one point would not be seen */
            point[1] = (canvas_point){point[0].x + 2, point[0].y};
            point[0].x -= 2;
            n = 2;
        }
        if (n > 0)
            canvas_line(p->c, point, n, 1.8, 0, colour);
        n = 0;
    }
}

/* Bins no shorter than two steps, else the line would show the steps and not the rate. */
static size_t count_bins(const cm_readbench_session *s, bool narrow, double end)
{
    double most = narrow ? 60 : 160, step = s->batch_time.mean > 0 ? s->batch_time.mean : end;
    double n = floor(end / fmax(2 * step, end / most));
    return n < 2 ? 2 : (size_t)n;
}

static void fill_rates(const cm_readbench_session *s, const turns *t, rates *r)
{
    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *b = &s->record[i];
        spread(r->delivered, r->n, r->width, (double)b->want_ns / 1e9, (double)b->done_ns / 1e9,
               (double)b->logical_nbytes);
        spread(r->stored, r->n, r->width, (double)b->begin_ns / 1e9, (double)b->end_ns / 1e9,
               (double)b->stored_nbytes);
    }
    for (size_t i = 0; i < r->n; i++) {
        const double from = (double)i * r->width;
        r->own[i] = own_seconds(t, from, from + r->width);
        if (r->own[i] < 0.1 * r->width) /* too little of it for a rate */
            r->own[i] = 0;
        r->delivered[i] /= r->own[i] > 0 ? r->own[i] : 1;
        r->stored[i] /= r->own[i] > 0 ? r->own[i] : 1;
    }
}

static double most_of(const double *value, const rates *r)
{
    double top = 0;
    for (size_t i = 0; i < r->n; i++)
        top = r->own[i] > 0 ? fmax(top, value[i]) : top;
    return top;
}

static void draw_delivered(plot *p, const cm_readbench_session *s, const rates *r, double end,
                           canvas_point *point)
{
    static const plot_entry SERIES[] = {{"delivered", BLUE, true, false},
                                        {"needed by the steps", INK, true, true}};
    const double needed = s->accelerators.needed;
    p->top += plot_legend(p, p->top, SERIES, needed > 0 ? 2 : 1) + 28;
    plot_y_axis(p, fmax(needed, most_of(r->delivered, r)), PLOT_RATE, "decoded bytes");
    plot_x_axis(p, 0, end, PLOT_SECONDS, "");
    draw_rates(p, point, r->delivered, r, BLUE);
    if (needed > 0) {
        double y = plot_y(p, needed);
        canvas_point line[] = {{p->left, y}, {p->right, y}};
        canvas_line(p->c, line, 2, 1.4, 5, INK);
    }
}

static void draw_stored(plot *p, const rates *r, double end, canvas_point *point)
{
    static const plot_entry SERIES[] = {{"read from storage", ORANGE, true, false}};
    p->top += plot_legend(p, p->top, SERIES, 1) + 28;
    plot_y_axis(p, most_of(r->stored, r), PLOT_RATE, "stored bytes");
    plot_x_axis(p, 0, end, PLOT_SECONDS, "since the run began");
    draw_rates(p, point, r->stored, r, ORANGE);
}

int plot_throughput(plot *p, const cm_readbench_session *s, cm_error *err)
{
    const double end = fmax(plot_end(s), 1e-6), height = (p->bottom - p->top) / 2;
    const size_t n = count_bins(s, p->narrow, end);
    double *bin = cm_calloc(3 * n, sizeof(*bin), err);
    canvas_point *point = bin ? cm_calloc(n + 2, sizeof(*point), err) : NULL;
    turns t = {.n = 0};

    if (point == NULL || find_turns(s, &t, err) != CM_OK) {
        free(bin);
        free(point);
        return CM_ENOMEM;
    }
    rates r = {n, end / (double)n, bin, bin + n, bin + 2 * n};
    fill_rates(s, &t, &r);
    plot upper = *p, lower = *p;
    upper.bottom = p->top + height - 28;
    lower.top = p->top + height + 20;
    draw_delivered(&upper, s, &r, end, point);
    draw_stored(&lower, &r, end, point);
    free(t.span);
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
    bool other; /* between epochs of this store: another one's turn */
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

/* How many moments from FIRST on follow each other in this store's turn; *FIRST skips others. */
static size_t next_turn(const moment *m, size_t n, size_t *first)
{
    while (*first < n && m[*first].other)
        ++*first;
    size_t end = *first;
    while (end < n && !m[end].other)
        end++;
    return end - *first;
}

static void draw_band(const plot *p, const moment *m, size_t n, canvas_point *point)
{
    for (size_t at = 0, k; (k = next_turn(m, n, &at)) > 0; at += k) {
        for (size_t i = 0; i < k; i++) {
            const moment *one = &m[at + i];
            point[i] = (canvas_point){plot_x(p, one->at), plot_y(p, one->high)};
            point[2 * k - 1 - i] = (canvas_point){plot_x(p, one->at), plot_y(p, one->low)};
        }
        canvas_area(p->c, point, 2 * k, 0.25, SKY);
    }
}

static void draw_member(const plot *p, const moment *m, size_t n, size_t offset, unsigned colour,
                        canvas_point *point)
{
    for (size_t at = 0, k; (k = next_turn(m, n, &at)) > 0; at += k) {
        for (size_t i = 0; i < k; i++)
            point[i] =
                (canvas_point){plot_x(p, m[at + i].at),
                               plot_y(p, *(const double *)((const char *)&m[at + i] + offset))};
        canvas_line(p->c, point, k, 1.8, 0, colour);
    }
}

static bool is_others(const turns *t, double at, double half)
{
    return at - half > t->set_up && !(own_seconds(t, at - half, at + half) > 0);
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
    turns t = {.n = 0};

    if (point == NULL || find_turns(s, &t, err) != CM_OK) {
        free(m);
        free(point);
        return CM_ENOMEM;
    }
    if (n == 0)
        plot_text(p, p->width / 2, (p->top + p->bottom) / 2, 13, CANVAS_MIDDLE, GREY,
                  "the run was too short for a look");
    for (size_t i = 0; i < n; i++)
        m[i] = moment_of(s, i * each, i + 1 < n ? each : s->nlooks - i * each);
    for (size_t i = 0; i < n; i++)
        m[i].other = is_others(&t, m[i].at, i > 0 ? (m[i].at - m[i - 1].at) / 2 : 0);
    if (n > 0) {
        plot upper = *p, lower = *p;
        upper.bottom = p->top + height - 28;
        lower.top = p->top + height + 20;
        draw_shares(&upper, s, m, n, end, point);
        draw_memory(&lower, s, m, n, end, point);
    }
    free(t.span);
    free(m);
    free(point);
    return CM_OK;
}
