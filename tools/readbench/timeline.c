/*
 * Draws when things happened: set-up and epochs, a row for each rank with its steps and the
 * waits between them, a row for each worker.  A long run is shown as shares over all of
 * it, and in full where it began and around its longest wait.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "plot.h"

enum {
    MAX_STEPS = 60, /* a rank, that fit beside each other */
    MAX_RANKS = 8,
    MAX_WORKERS = 16,
    MAX_PANELS = 3,
    OVERVIEW_ROWS = 2,
    PANEL_HEAD = 26, /* title above, axis below the rows of a panel */
    PANEL_FOOT = 50,
    LEGEND = 46
};

typedef struct panel {
    double from, to;
    bool overview;
    char title[96];
} panel;

typedef struct timeline {
    plot *p;
    const cm_readbench_session *s;
    const cm_readbench_batch **sorted;
    unsigned ranks, workers; /* rows */
    double row, gap;
} timeline;

/* Boxes of one colour.  Neighbours that touch, or are too thin to be told apart, become one. */
typedef struct strip {
    canvas_box *box;
    size_t n, capacity;
    bool failed;
} strip;

static void add(strip *t, double x0, double x1, double y, double height)
{
    canvas_box *last = t->n > 0 ? &t->box[t->n - 1] : NULL;
    double gap = last ? x0 - (last->x + last->width) : 0;
    bool beside = last && last->y == y && last->height == height && gap >= -0.5;
    if (beside && (gap < 0.05 || (gap < 0.5 && (x1 - x0 < 0.5 || last->width < 0.5)))) {
        last->width = fmax(last->width, x1 - last->x);
        return;
    }
    canvas_box *box = cm_make_room(t->box, t->n, &t->capacity, sizeof(*box), 256);
    if (box == NULL) {
        t->failed = true;
        return;
    }
    t->box = box;
    t->box[t->n++] = (canvas_box){x0, y, fmax(x1 - x0, 0.3), height};
}

static void draw(const plot *p, strip *t, double opacity, unsigned colour)
{
    canvas_boxes(p->c, t->box, t->n, opacity, colour);
    t->n = 0;
}

/* ---- which parts ---------------------------------------------------------------------------- */

/* The planned loader's batches are of no worker: each rank's loader has a row instead. */
static bool is_planned(const cm_readbench_session *s)
{
    return s->nrecords > 0 && s->record[0].worker < 0;
}

static unsigned worker_rows(const cm_readbench_session *s)
{
    if (is_planned(s))
        return s->ranks;
    return s->pool_workers > s->workers ? s->pool_workers : s->workers;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned rows_of(const cm_readbench_session *s)
{
    return 1 + least(s->ranks, MAX_RANKS) + least(worker_rows(s), MAX_WORKERS);
}

static bool is_long(const cm_readbench_session *s)
{
    return s->nrecords > (size_t)MAX_STEPS * (s->ranks ? s->ranks : 1);
}

static const cm_readbench_batch *longest_wait(const cm_readbench_session *s, double *wait)
{
    const cm_readbench_batch *worst = NULL;
    *wait = 0;
    for (size_t i = 0; i < s->nrecords; i++) {
        readbench_times t;
        readbench_batch_times(&s->record[i], &t);
        if (readbench_is_step(&s->record[i]) && t.loader + t.memcpy > *wait) {
            *wait = t.loader + t.memcpy;
            worst = &s->record[i];
        }
    }
    return worst;
}

static size_t choose_panels(const cm_readbench_session *s, panel *out)
{
    double end = fmax(plot_end(s), 1e-6), wait;
    size_t n = 0;
    char time[32];

    out[n++] = (panel){0, end, is_long(s), ""};
    if (!is_long(s))
        return n;
    snprintf(out[0].title, sizeof(out[0].title), "the whole run, as shares of the time");
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < s->nrecords; i++)
        first = s->record[i].want_ns < first ? s->record[i].want_ns : first;
    double each = s->batch_time.mean > 0 ? s->batch_time.mean : end / (double)s->nrecords;
    double length = fmin(end, fmax(40 * each, 1.6 * s->first_step_seconds));
    double from = fmax(0, (double)first / 1e9 - 0.15 * length);
    out[n] = (panel){from, fmin(end, from + length), false, ""};
    snprintf(out[n++].title, sizeof(out[0].title), "where it began");
    const cm_readbench_batch *worst = longest_wait(s, &wait);
    if (worst == NULL || wait < 1e-6)
        return n;
    cm_format_time(wait, time, sizeof(time));
    double wanted = (double)worst->want_ns / 1e9;
    if (wanted >= out[1].from && wanted + wait <= out[1].to) {
        snprintf(out[1].title, sizeof(out[1].title),
                 "where it began, with the longest wait: %s, batch %u", time, worst->number);
        return n;
    }
    length = fmin(end, fmax(40 * each, 1.6 * wait));
    from = fmax(0, wanted - 0.3 * length);
    out[n] = (panel){from, fmin(end, from + length), false, ""};
    snprintf(out[n++].title, sizeof(out[0].title), "the longest wait: %s, batch %u of epoch %u",
             time, worst->number, worst->epoch);
    return n;
}

static double row_height(bool narrow)
{
    return narrow ? 13 : 15;
}

static double row_gap(bool narrow)
{
    return narrow ? 3 : 4;
}

static double head_height(const panel *a)
{
    return *a->title ? PANEL_HEAD : 4;
}

static double panel_height(const cm_readbench_session *s, const panel *a, bool narrow)
{
    double pitch = row_height(narrow) + row_gap(narrow);
    double rows = a->overview ? OVERVIEW_ROWS * 2.2 * pitch + pitch : rows_of(s) * pitch;
    return head_height(a) + rows + PANEL_FOOT;
}

unsigned plot_timeline_height(const cm_readbench_session *s, bool narrow)
{
    panel a[MAX_PANELS];
    size_t n = choose_panels(s, a);
    double height = LEGEND + (narrow ? 40 : 0);
    for (size_t i = 0; i < n; i++)
        height += panel_height(s, &a[i], narrow);
    return (unsigned)ceil(height);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static bool inside(const plot *p, uint64_t start, uint64_t end, double *x0, double *x1)
{
    double from = (double)start / 1e9, to = (double)end / 1e9;
    if (to < p->xlow || from > p->xhigh || to < from)
        return false;
    *x0 = plot_x(p, from);
    *x1 = plot_x(p, to);
    return true;
}

static void name_row(const timeline *t, double y, const char *name)
{
    plot_text(t->p, t->p->left - 7, y + t->row - 3, 11, CANVAS_END, GREY, name);
}

static void draw_run_row(const timeline *t, double y)
{
    plot *p = t->p;
    char text[32];
    double x0, x1;

    for (size_t i = 0; i < t->s->nevents; i++) {
        const cm_readbench_event *e = &t->s->event[i];
        bool epoch = e->kind == CM_EVENT_EPOCH && (e->rank == 0 || e->rank == UINT32_MAX);
        if ((!epoch && e->kind != CM_EVENT_SETUP) || !inside(p, e->start_ns, e->end_ns, &x0, &x1))
            continue;
        if (x1 - x0 < 0.3)
            continue;
        canvas_box box = {x0, y, fmax(x1 - x0 - 1, 0.3), t->row};
        canvas_boxes(p->c, &box, 1, epoch ? 0.35 : 1, GREY);
        snprintf(text, sizeof(text), epoch ? "epoch %u" : "set-up", e->epoch);
        if (plot_text_width(text, 11) + 6 < x1 - x0)
            plot_text(p, x0 + 4, y + t->row - 4, 11, CANVAS_START, epoch ? INK : PAPER, text);
    }
}

static bool draw_rank_rows(const timeline *t, double y)
{
    strip step = {0}, wait = {0}, late = {0}, copy = {0};
    char name[32];
    double x0, x1;

    for (unsigned r = 0; r < t->ranks; r++, y += t->row + t->gap) {
        snprintf(name, sizeof(name), "rank %u", r);
        name_row(t, y, name);
        for (size_t i = 0; i < t->s->nrecords; i++) {
            const cm_readbench_batch *b = t->sorted[i];
            if (b->rank != r)
                continue;
            uint64_t got = b->got_ns > b->want_ns ? b->got_ns : b->want_ns;
            uint64_t ready = b->ready_ns > got ? b->ready_ns : got;
            if (inside(t->p, ready, b->done_ns, &x0, &x1)) /* one is told from the next */
                add(&step, x0, x1 - x0 > 3 ? x1 - 0.8 : x1, y, t->row);
            if (got > b->want_ns && inside(t->p, b->want_ns, got, &x0, &x1))
                add(&wait, x0, x1, y + t->row * 0.3, t->row * 0.4);
            if (ready > got && inside(t->p, got, ready, &x0, &x1))
                add(&late, x0, x1, y + t->row * 0.3, t->row * 0.4);
            /* Over the steps: one that hides a copy has its colour on its lower edge. */
            if (b->copy_ns > 0 &&
                inside(t->p, b->copy_start_ns, b->copy_start_ns + b->copy_ns, &x0, &x1))
                add(&copy, x0, x1, y + t->row * 0.75, t->row * 0.25);
        }
    }
    bool ok = !step.failed && !wait.failed && !late.failed && !copy.failed;
    draw(t->p, &step, 1, COLOUR_STEP);
    draw(t->p, &wait, 1, COLOUR_WAIT);
    draw(t->p, &late, 1, COLOUR_COPY);
    draw(t->p, &copy, 1, COLOUR_COPY);
    free(step.box);
    free(wait.box);
    free(late.box);
    free(copy.box);
    return ok;
}

/* The sums of a batch's stages, one after the other from BEGIN to its end. */
static void add_stages(const timeline *t, strip *stage, const cm_readbench_batch *b,
                       uint64_t begin_ns, double y)
{
    double sum = 0, x0, x1;
    if (!inside(t->p, begin_ns, b->end_ns, &x0, &x1))
        return;
    for (size_t k = 0; k < CM_READBENCH_STAGES; k++)
        sum += (double)b->stage_ns[k];
    double whole = (double)(b->end_ns - begin_ns), at = (double)begin_ns;
    double scale = sum > whole ? whole / sum : 1;
    for (size_t k = 0; k < CM_READBENCH_STAGES; k++) {
        double ns = (double)b->stage_ns[k] * scale;
        if (ns > 0 && inside(t->p, (uint64_t)at, (uint64_t)(at + ns), &x0, &x1))
            add(&stage[k], x0, x1, y, t->row);
        at += ns;
    }
}

/*
 * Batches of one planned loader.  They are made side by side, and a batch's sums are of
 * the chunks that came since the one before was ready: that is where they are drawn.
 */
static void add_planned(const timeline *t, strip *stage, unsigned rank, double y)
{
    uint64_t ready = 0;
    for (size_t i = 0; i < t->s->nrecords; i++) {
        const cm_readbench_batch *b = t->sorted[i];
        if (b->rank != rank || b->end_ns < ready)
            continue;
        uint64_t sum = 0;
        for (size_t k = 0; k < CM_READBENCH_STAGES; k++)
            sum += b->stage_ns[k];
        /* Their work ends when it is ready. */
        add_stages(t, stage, b, b->end_ns - ready > sum ? b->end_ns - sum : ready, y);
        ready = b->end_ns;
    }
}

/* Batches that one worker made: their spans, and their stages inside them. */
static void add_worker(const timeline *t, strip *busy, strip *stage, unsigned rank, int64_t worker,
                       double y)
{
    double x0, x1;
    for (size_t i = 0; i < t->s->nrecords; i++) {
        const cm_readbench_batch *b = t->sorted[i];
        if (b->worker != worker || (rank != UINT32_MAX && b->rank != rank))
            continue;
        if (inside(t->p, b->begin_ns, b->end_ns, &x0, &x1))
            add(busy, x0, x1, y, t->row);
        add_stages(t, stage, b, b->begin_ns, y);
    }
}

static bool draw_worker_rows(const timeline *t, double y)
{
    static const unsigned COLOURS[] = {COLOUR_STORAGE, COLOUR_DECODE, COLOUR_ASSEMBLE,
                                       COLOUR_CONVERT};
    strip stage[CM_READBENCH_STAGES] = {{0}}, busy = {0};
    bool shared = t->s->pool && strcmp(t->s->pool, "shared") == 0, ok = true;
    char name[32];

    for (unsigned w = 0; w < t->workers; w++, y += t->row + t->gap) {
        unsigned rank = shared || t->s->workers == 0 ? 0 : w / t->s->workers;
        int64_t worker = shared || t->s->workers == 0 ? w : w % t->s->workers;
        if (is_planned(t->s)) {
            snprintf(name, sizeof(name), t->workers > 1 ? "loader %u" : "loader", w);
            add_planned(t, stage, w, y);
        } else {
            snprintf(name, sizeof(name), rank > 0 ? "w %" PRId64 ", r %u" : "worker %" PRId64,
                     worker, rank);
            add_worker(t, &busy, stage, shared ? UINT32_MAX : rank, worker, y);
        }
        name_row(t, y, name);
    }
    ok = !busy.failed;
    draw(t->p, &busy, 1, PALE);
    free(busy.box);
    for (size_t k = 0; k < CM_READBENCH_STAGES; k++) {
        ok = ok && !stage[k].failed;
        draw(t->p, &stage[k], 1, COLOURS[k]);
        free(stage[k].box);
    }
    return ok;
}

/* ---- the whole run -------------------------------------------------------------------------- */

typedef struct shares {
    size_t n;
    double *wait, *step, *busy; /* seconds in each bin, all ranks and workers */
} shares;

static void spread(double *bin, size_t n, double width, uint64_t start, uint64_t end)
{
    double from = (double)start / 1e9, to = (double)end / 1e9;
    for (double i = floor(from / width); to > from && i < (double)n && i * width < to; i++)
        bin[(size_t)i] += fmax(0, fmin(to, (i + 1) * width) - fmax(from, i * width));
}

static int count_shares(const cm_readbench_session *s, double end, shares *out, cm_error *err)
{
    double width = end / (double)out->n;
    out->wait = cm_calloc(3 * out->n, sizeof(double), err);
    if (out->wait == NULL)
        return CM_ENOMEM;
    out->step = out->wait + out->n;
    out->busy = out->step + out->n;
    for (size_t i = 0; i < s->nrecords; i++) {
        const cm_readbench_batch *b = &s->record[i];
        uint64_t ready = b->ready_ns > b->got_ns ? b->ready_ns : b->got_ns;
        ready = ready > b->want_ns ? ready : b->want_ns;
        spread(out->wait, out->n, width, b->want_ns, ready);
        spread(out->step, out->n, width, ready, b->done_ns);
        spread(out->busy, out->n, width, b->begin_ns, b->end_ns);
    }
    return CM_OK;
}

static int draw_overview(const timeline *t, const panel *a, double y, cm_error *err)
{
    plot *p = t->p;
    const cm_readbench_session *s = t->s;
    shares h = {.n = p->narrow ? 90 : 250};
    double tall = 2.2 * (t->row + t->gap) - 8;
    strip wait = {0}, step = {0}, busy = {0};
    /* A little over each other, or seams would show. */
    const double over = 0.15;
    double width = (a->to - a->from) / (double)h.n, pixels = (p->right - p->left) / (double)h.n;
    double ranks = s->ranks ? s->ranks : 1, workers = worker_rows(s);
    int rc = count_shares(s, a->to, &h, err);

    if (rc != CM_OK)
        return rc;
    name_row(t, y, "run");
    draw_run_row(t, y);
    y += t->row + t->gap;
    plot_text(p, p->left - 7, y + tall / 2 + 4, 11, CANVAS_END, GREY, "ranks");
    plot_text(p, p->left - 7, y + tall * 1.5 + 12, 11, CANVAS_END, GREY, "workers");
    for (size_t i = 0; i < h.n; i++) {
        double x = p->left + pixels * (double)i;
        double stepping = fmin(h.step[i] / width / ranks, 1) * tall;
        double waiting = fmin(h.wait[i] / width / ranks, 1) * tall;
        double working = workers > 0 ? fmin(h.busy[i] / width / workers, 1) * tall : 0;
        waiting = fmin(waiting, tall - stepping);
        if (stepping > 0.1)
            add(&step, x, x + pixels + over, y + tall - stepping, stepping);
        if (waiting > 0.1)
            add(&wait, x, x + pixels + over, y + tall - stepping - waiting, waiting);
        if (working > 0.1)
            add(&busy, x, x + pixels + over, y + 2 * tall + 8 - working, working);
    }
    if (step.failed || wait.failed || busy.failed)
        rc = cm_fail(err, CM_ENOMEM, "no memory for the timeline");
    draw(p, &step, 1, COLOUR_STEP);
    draw(p, &wait, 1, COLOUR_WAIT);
    draw(p, &busy, 0.6, GREY);
    free(step.box);
    free(wait.box);
    free(busy.box);
    free(h.wait);
    return rc;
}

/* ---- */

static int draw_rows(timeline *t, double y, cm_error *err)
{
    name_row(t, y, "run");
    draw_run_row(t, y);
    y += t->row + t->gap;
    bool ok = draw_rank_rows(t, y);
    y += t->ranks * (t->row + t->gap);
    ok = draw_worker_rows(t, y) && ok;
    return ok ? CM_OK : cm_fail(err, CM_ENOMEM, "no memory for the timeline");
}

static void draw_head(plot *p, const cm_readbench_session *s, const timeline *t)
{
    static const plot_entry ENTRIES[] = {
        {"step", COLOUR_STEP, false, false},
        {"wait", COLOUR_WAIT, false, false},
        {"storage", COLOUR_STORAGE, false, false},
        {"decode", COLOUR_DECODE, false, false},
        {"assemble", COLOUR_ASSEMBLE, false, false},
        {"convert", COLOUR_CONVERT, false, false},
        {"copy to device, wait for it", COLOUR_COPY, false, false}};
    char text[96];

    double y = plot_legend(p, p->top, ENTRIES, s->device.used ? 7 : 6);
    if (t->ranks < s->ranks || t->workers < worker_rows(s)) {
        snprintf(text, sizeof(text), "shown: %u of %u ranks, %u of %u rows of the loader", t->ranks,
                 s->ranks, t->workers, worker_rows(s));
        plot_text(p, 4, p->top + y + 8, 11, CANVAS_START, GREY, text);
    }
}

int plot_timeline(plot *p, const cm_readbench_session *s, cm_error *err)
{
    panel a[MAX_PANELS];
    size_t n = choose_panels(s, a);
    timeline t = {.p = p,
                  .s = s,
                  .ranks = least(s->ranks, MAX_RANKS),
                  .workers = least(worker_rows(s), MAX_WORKERS),
                  .row = row_height(p->narrow),
                  .gap = row_gap(p->narrow)};
    int rc = plot_sorted(s, &t.sorted, err);
    if (rc != CM_OK)
        return rc;
    draw_head(p, s, &t);
    double y = p->top + LEGEND + (p->narrow ? 40 : 0);
    p->left = p->narrow ? 54 : 66;
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        double height = panel_height(s, &a[i], p->narrow);
        plot_text(p, 4, y + 12, p->narrow ? 12 : 13, CANVAS_START, INK, a[i].title);
        p->bottom = y + height - PANEL_FOOT;
        plot_x_axis(p, a[i].from, a[i].to, PLOT_SECONDS,
                    i + 1 == n ? "since the run began" : "time");
        rc = a[i].overview ? draw_overview(&t, &a[i], y + head_height(&a[i]), err)
                           : draw_rows(&t, y + head_height(&a[i]), err);
        y += height;
    }
    free(t.sorted);
    return rc;
}
