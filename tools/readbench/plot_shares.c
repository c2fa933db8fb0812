/* Shares as two rings, and the distribution of waits. */
#include <math.h>
#include <stdlib.h>

#include "../common/print.h"
#include "base/mem.h"
#include "base/number.h"
#include "plot.h"

/* ---- rings ---------------------------------------------------------------------------------- */

enum {
    ARC = 48 /* corners of half a ring: rounder than a pixel shows */
};

typedef struct slice {
    const char *name;
    double value;
    unsigned colour;
} slice;

static void draw_arc(const plot *p, double x, double y, double radius, double from, double to,
                     unsigned colour)
{
    canvas_point q[4 * ARC + 2];
    size_t n = (size_t)ceil((to - from) / M_PI * ARC);
    if (n < 1)
        n = 1;
    if (n > 2 * ARC)
        n = 2 * ARC;
    for (size_t i = 0; i <= n; i++) {
        double a = from + (to - from) * (double)i / (double)n - M_PI / 2;
        q[i] = (canvas_point){x + radius * cos(a), y + radius * sin(a)};
        q[2 * n + 1 - i] = (canvas_point){x + 0.62 * radius * cos(a), y + 0.62 * radius * sin(a)};
    }
    canvas_area(p->c, q, 2 * n + 2, 1, colour);
}

static void draw_ring(const plot *p, double x, double y, double radius, const char *title,
                      double whole_mean, const slice *s, size_t n)
{
    double all = 0, at = 0;
    char text[96], time[32], percent[32];

    for (size_t i = 0; i < n; i++)
        all += s[i].value;
    plot_text(p, x - radius, y - radius - 14, 13, CANVAS_START, INK, title);
    if (!(all > 0)) {
        draw_arc(p, x, y, radius, 0, 2 * M_PI, PALE);
        plot_text(p, x, y + 4, PLOT_TEXT, CANVAS_MIDDLE, GREY, "nothing");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        double angle = 2 * M_PI * s[i].value / all;
        if (angle > 1e-4)
            draw_arc(p, x, y, radius, at, at + angle, s[i].colour);
        at += angle;
    }
    plot_text(p, x, y + 1, 17, CANVAS_MIDDLE, INK, cm_format_time(whole_mean, time, sizeof(time)));
    plot_text(p, x, y + 17, 11, CANVAS_MIDDLE, GREY, "a batch, mean");
    double row = y - 11 * (double)n + 10;
    for (size_t i = 0; i < n; i++, row += 22) {
        canvas_box mark = {x + radius + 20, row - 10, 12, 12};
        canvas_boxes(p->c, &mark, 1, 1, s[i].colour);
        snprintf(text, sizeof(text), "%s  %s", s[i].name,
                 cm_format_percent(s[i].value, all, percent, sizeof(percent)));
        plot_text(p, x + radius + 38, row, PLOT_TEXT, CANVAS_START, INK, text);
    }
}

int plot_shares(plot *p, const cm_readbench_session *s, cm_error *err)
{
    (void)err;
    slice training[] = {{"step", 0, COLOUR_STEP},
                        {"waiting for loader", 0, COLOUR_WAIT},
                        {"waiting for copy", 0, COLOUR_COPY}};
    slice work[] = {{"storage", 0, COLOUR_STORAGE},
                    {"decode", 0, COLOUR_DECODE},
                    {"assemble", 0, COLOUR_ASSEMBLE},
                    {"convert", 0, COLOUR_CONVERT}};
    double n = 0, made = 0;

    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *b = &s->record[i];
        readbench_times t;
        for (size_t k = 0; k < CM_READBENCH_STAGES; k++)
            work[k].value += (double)b->stage_ns[k] / 1e9;
        made++;
        if (!readbench_is_step(b))
            continue;
        readbench_batch_times(b, &t);
        training[0].value += t.step;
        training[1].value += t.loader;
        training[2].value += t.memcpy;
        n++;
    }
    double stepping = training[0].value + training[1].value + training[2].value, working = 0;
    for (size_t k = 0; k < CM_READBENCH_STAGES; k++)
        working += work[k].value;
    double radius = p->narrow ? 72 : 88;
    double x = radius + 8, y = p->top + radius + 30;
    draw_ring(p, x, y, radius, "the training's time", n > 0 ? stepping / n : 0, training,
              s->device.used ? 3 : 2);
    if (p->narrow)
        y += 2 * radius + 56;
    else
        x += p->width / 2;
    draw_ring(p, x, y, radius, "the workers' time", made > 0 ? working / made : 0, work, 4);
    return CM_OK;
}

/* ---- waits ---------------------------------------------------------------------------------- */

enum {
    FEWEST = 20, /* waits that make a histogram; fewer are drawn one by one */
    LEAST_BINS = 10,
    MOST_BINS = 40
};
#define NO_WAIT 1e-6 /* what is less counts as none */

typedef struct waits {
    uint64_t none;    /* of the steps */
    size_t n;         /* that waited, in order: */
    double *wait;     /* log10 of seconds */
    double low, high; /* of the axis */
    size_t nbins;     /* 0: too few for bars */
    uint64_t bin[MOST_BINS];
    uint64_t most;
} waits;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int find_waits(const cm_readbench_session *s, waits *w, cm_error *err)
{
    *w = (waits){.low = -3.5, .high = -2.5};
    w->wait = cm_calloc(s->nrecords + 1, sizeof(*w->wait), err);
    if (w->wait == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < s->nrecords; i++) {
        readbench_times t;
        readbench_batch_times(&s->record[i], &t);
        if (!readbench_is_step(&s->record[i]))
            continue;
        if (t.loader + t.memcpy < NO_WAIT)
            w->none++;
        else
            w->wait[w->n++] = log10(t.loader + t.memcpy);
    }
    if (w->n == 0)
        return CM_OK;
    qsort(w->wait, w->n, sizeof(*w->wait), ascending);
    /* All that was waited, and as much more as it takes to tell one value from the next. */
    const double room = fmax(0.02 * (w->wait[w->n - 1] - w->wait[0]), 0.05);
    w->low = w->wait[0] - room;
    w->high = w->wait[w->n - 1] + room;
    return CM_OK;
}

/* More bars for more waits, over what was waited and no wider. */
static void fill_bins(waits *w)
{
    if (w->n < FEWEST)
        return;
    const double wanted = 2 * sqrt((double)w->n);
    w->nbins = wanted < LEAST_BINS ? LEAST_BINS : wanted > MOST_BINS ? MOST_BINS : (size_t)wanted;
    for (size_t i = 0; i < w->n; i++) {
        const size_t k = (size_t)((w->wait[i] - w->low) / (w->high - w->low) * (double)w->nbins);
        w->bin[k < w->nbins ? k : w->nbins - 1]++;
    }
    for (size_t k = 0; k < w->nbins; k++)
        w->most = w->bin[k] > w->most ? w->bin[k] : w->most;
}

static void mark_percentile(const plot *p, const char *name, double value, double y)
{
    char time[32], text[64];
    double x = plot_x(p, log10(fmax(value, 1e-9)));
    canvas_point line[] = {{x, y}, {x, p->bottom}};

    canvas_line(p->c, line, 2, 1.4, 3, INK);
    snprintf(text, sizeof(text), "%s %s", name, cm_format_time(value, time, sizeof(time)));
    bool left = x + 6 + plot_text_width(text, 11) > p->right;
    plot_text(p, left ? x - 5 : x + 5, y + 9, 11, left ? CANVAS_END : CANVAS_START, INK, text);
}

static void draw_bins(const plot *p, const waits *w)
{
    const double width = (p->right - p->left) / (double)w->nbins;
    for (size_t k = 0; k < w->nbins; k++) {
        const double y = plot_y(p, (double)w->bin[k]);
        canvas_box box = {p->left + width * (double)k + 0.5, y, width - 1, p->bottom - y};
        canvas_boxes(p->c, &box, w->bin[k] > 0, 1, COLOUR_WAIT);
    }
}

/* Each wait a mark: what so few have of a distribution. */
static void draw_marks(const plot *p, const waits *w)
{
    char text[96];
    for (size_t i = 0; i < w->n; i++) {
        const double x = plot_x(p, w->wait[i]);
        canvas_point line[] = {{x, p->bottom - 28}, {x, p->bottom}};
        canvas_line(p->c, line, 2, 2, 0, COLOUR_WAIT);
    }
    snprintf(text, sizeof(text),
             w->n == 0 ? "no step waited" : "%zu step%s waited: too few for bars", w->n,
             cm_of_count(w->n, "", "s"));
    plot_text(p, p->left + 6, p->bottom - 38, PLOT_TEXT, CANVAS_START, GREY, text);
}

/* Steps that did not wait; CUT: there are more of them than the axis has. */
static void draw_none(const plot *p, const cm_readbench_session *s, const waits *w, bool cut,
                      double x, double width)
{
    char percent[32];
    const double y = plot_y(p, (double)w->none), middle = x + width / 2;
    canvas_box box = {x, y, width, p->bottom - y};
    canvas_boxes(p->c, &box, w->none > 0, 1, COLOUR_STEP);
    plot_text(p, middle, p->bottom + 18, PLOT_TEXT, CANVAS_MIDDLE, GREY, "none");
    if (s->wait.n == 0)
        return;
    canvas_point up[] = {{middle - 5, y - 2}, {middle + 5, y - 2}, {middle, y - 10}};
    if (cut)
        canvas_area(p->c, up, 3, 1, COLOUR_STEP);
    plot_text(p, middle, y - (cut ? 14 : 5), 11, CANVAS_MIDDLE, INK,
              cm_format_percent((double)w->none, (double)s->wait.n, percent, sizeof(percent)));
}

int plot_waits(plot *p, const cm_readbench_session *s, cm_error *err)
{
    waits w;

    if (find_waits(s, &w, err) != CM_OK)
        return CM_ENOMEM;
    fill_bins(&w);
    p->top += 60;
    /* Where nearly no step waited, those that did still show how long. */
    const bool cut = w.most > 0 && w.none > 3 * w.most;
    plot_y_axis(p, (double)(cut || w.none < w.most ? w.most : w.none), PLOT_COUNT, "steps");
    double none = p->narrow ? 62 : 84, axis = p->left;
    draw_none(p, s, &w, cut, axis + 6, none - 40);
    p->left += none;
    plot_x_decades(p, w.low, w.high, "wait for the batch (logarithmic)");
    if (w.nbins > 0)
        draw_bins(p, &w);
    else
        draw_marks(p, &w);
    /* Staggered, because they often lie close. */
    if (s->wait.n > 0 && s->wait.p50 >= NO_WAIT)
        mark_percentile(p, "p50", s->wait.p50, p->top - 38);
    if (s->wait.n > 0 && s->wait.p95 >= NO_WAIT)
        mark_percentile(p, "p95", s->wait.p95, p->top - 24);
    if (s->wait.n > 0 && s->wait.p99 >= NO_WAIT)
        mark_percentile(p, "p99", s->wait.p99, p->top - 10);
    p->left = axis;
    free(w.wait);
    return CM_OK;
}
