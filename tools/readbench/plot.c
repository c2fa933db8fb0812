#include "plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common/print.h"
#include "base/mem.h"

double plot_x(const plot *p, double value)
{
    double t = (value - p->xlow) / (p->xhigh - p->xlow);
    return p->left + fmin(fmax(t, 0), 1) * (p->right - p->left);
}

double plot_y(const plot *p, double value)
{
    double t = (value - p->ylow) / (p->yhigh - p->ylow);
    return p->bottom - fmin(fmax(t, 0), 1) * (p->bottom - p->top);
}

double plot_text_width(const char *text, double size)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return 0.56 * size * (double)n;
}

void plot_text(const plot *p, double x, double y, double size, canvas_anchor anchor,
               unsigned colour, const char *text)
{
    canvas_text style = {.x = x, .y = y, .size = size, .anchor = anchor, .colour = colour};
    canvas_write(p->c, &style, text);
}

/* The largest of a round 1, 2 or 5 times a power of ten that divides SPAN into at least N parts. */
static double round_step(double span, unsigned n)
{
    static const double STEPS[] = {5, 2, 1};
    double most = span / n, base = pow(10, floor(log10(most)));
    for (size_t k = 0; k < 3; k++)
        if (STEPS[k] * base <= most * (1 + 1e-9))
            return STEPS[k] * base;
    return base;
}

/* ---- axes ----------------------------------------------------------------------------------- */

typedef struct unit {
    double from; /* values this large and larger */
    double size;
    const char *name;
} unit;

static const unit SECONDS[] = {{7200, 3600, "h"},  {180, 60, "min"},   {1, 1, "s"},
                               {1e-3, 1e-3, "ms"}, {1e-6, 1e-6, "us"}, {0, 1e-9, "ns"}};
static const unit RATES[] = {{1e12, 1e12, "TB/s"},
                             {1e9, 1e9, "GB/s"},
                             {1e6, 1e6, "MB/s"},
                             {1e3, 1e3, "kB/s"},
                             {0, 1, "B/s"}};
static const unit BYTES[] = {{0x1p40, 0x1p40, "TiB"},
                             {0x1p30, 0x1p30, "GiB"},
                             {0x1p20, 0x1p20, "MiB"},
                             {0x1p10, 0x1p10, "KiB"},
                             {0, 1, "B"}};
static const unit COUNTS[] = {{0, 1, ""}};
static const unit SHARES[] = {{0, 0.01, "%"}};

static const unit *unit_of(plot_kind kind, double value)
{
    static const unit *const UNITS[] = {SECONDS, RATES, BYTES, COUNTS, COUNTS, SHARES};
    const unit *u = UNITS[kind];
    while (value < u->from)
        u++;
    return u;
}

/* VALUE, in units, with the decimals that STEP needs. */
static void format_tick(double value, double step, char *buf, size_t size)
{
    value = value == 0 ? 0 : value; /* never "-0" */
    int decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    if (decimals == 0 && value >= 1000 && value < 1e15)
        cm_format_count((uint64_t)(value + 0.5), buf, size);
    else
        snprintf(buf, size, "%.*f", decimals > 9 ? 9 : decimals, value);
}

static void axis_title(char *buf, size_t size, const char *title, const unit *u)
{
    snprintf(buf, size, "%s%s%s", title, *u->name && *title ? ", " : "", u->name);
}

void plot_x_axis(plot *p, double low, double high, plot_kind kind, const char *title)
{
    char text[128];

    p->xlow = low;
    p->xhigh = high > low ? high : low + 1;
    const unit *u = unit_of(kind, p->xhigh - p->xlow);
    double step = round_step((p->xhigh - p->xlow) / u->size, p->narrow ? 3 : 6) * u->size;
    if (kind == PLOT_COUNT && step < 1)
        step = 1;
    canvas_point base[] = {{p->left, p->bottom}, {p->right, p->bottom}};
    canvas_line(p->c, base, 2, 1, 0, GREY);
    for (double i = ceil(p->xlow / step - 1e-9); i * step <= p->xhigh * (1 + 1e-9); i++) {
        double x = plot_x(p, i * step);
        canvas_point tick[] = {{x, p->bottom}, {x, p->bottom + 4}};
        canvas_line(p->c, tick, 2, 1, 0, GREY);
        format_tick(i * step / u->size, step / u->size, text, sizeof(text));
        bool last = x > p->right - plot_text_width(text, PLOT_TEXT) / 2;
        plot_text(p, last ? p->right : x, p->bottom + 18, PLOT_TEXT,
                  last ? CANVAS_END : CANVAS_MIDDLE, GREY, text);
    }
    axis_title(text, sizeof(text), title, u);
    if (*title)
        plot_text(p, p->right, p->bottom + 36, PLOT_TEXT, CANVAS_END, GREY, text);
}

void plot_y_axis(plot *p, double high, plot_kind kind, const char *title)
{
    char text[128];

    if (!(high > 0) || !isfinite(high))
        high = kind == PLOT_COUNT || kind == PLOT_SHARE ? 1 : 1e-3;
    const unit *u = unit_of(kind, high);
    double step = round_step(high / u->size, 4) * u->size;
    if (kind == PLOT_COUNT && step < 1)
        step = 1;
    p->ylow = 0;
    p->yhigh = ceil(high / step - 1e-9) * step;
    for (double i = 0; i * step <= p->yhigh * (1 + 1e-9); i++) {
        double y = plot_y(p, i * step);
        canvas_point grid[] = {{p->left, y}, {p->right, y}};
        canvas_line(p->c, grid, 2, 0.7, 0, PALE);
        format_tick(i * step / u->size, step / u->size, text, sizeof(text));
        plot_text(p, p->left - 7, y + 4, PLOT_TEXT, CANVAS_END, GREY, text);
    }
    axis_title(text, sizeof(text), title, u);
    plot_text(p, 4, p->top - 10, PLOT_TEXT, CANVAS_START, GREY, text);
}

/* A tick at VALUE seconds, in its unit. */
static void tick_of_seconds(const plot *p, double value)
{
    char text[64];
    double x = plot_x(p, log10(value));
    canvas_point tick[] = {{x, p->bottom}, {x, p->bottom + 4}};
    canvas_line(p->c, tick, 2, 1, 0, GREY);
    const unit *u = unit_of(PLOT_SECONDS, value * (1 + 1e-9));
    if (u->size > 1) /* minutes are no decades */
        u = unit_of(PLOT_SECONDS, 1);
    snprintf(text, sizeof(text), "%.3g %s", value / u->size, u->name);
    bool last = x > p->right - plot_text_width(text, PLOT_TEXT) / 2;
    plot_text(p, last ? p->right : x, p->bottom + 18, PLOT_TEXT, last ? CANVAS_END : CANVAS_MIDDLE,
              GREY, text);
}

void plot_x_decades(plot *p, double low, double high, const char *title)
{
    static const double PARTS[3][6] = {{1}, {1, 2, 5}, {1, 1.5, 2, 3, 5, 7}};
    const double span = high - low;
    const int parts = span > (p->narrow ? 1 : 2.2) ? 0 : span > (p->narrow ? 0.5 : 0.9) ? 1 : 2;
    const int stride = (int)ceil(span / (p->narrow ? 4 : 9));
    const int from = (int)floor(low);

    p->xlow = low;
    p->xhigh = high;
    canvas_point base[] = {{p->left, p->bottom}, {p->right, p->bottom}};
    canvas_line(p->c, base, 2, 1, 0, GREY);
    for (int e = from; e <= (int)floor(high); e += stride > 1 ? stride : 1)
        for (int k = 0; k < 6 && PARTS[parts][k] > 0; k++) {
            const double value = PARTS[parts][k] * pow(10, e);
            if (log10(value) >= low && log10(value) <= high)
                tick_of_seconds(p, value);
        }
    plot_text(p, p->right, p->bottom + 36, PLOT_TEXT, CANVAS_END, GREY, title);
}

double plot_legend(const plot *p, double y, const plot_entry *entry, size_t n)
{
    const double mark = 12, gap = 6, between = 18, line = 18;
    double x = 4, start = y;

    for (size_t i = 0; i < n; i++) {
        double needs = mark + gap + plot_text_width(entry[i].text, PLOT_TEXT);
        if (x > 4 && x + needs > p->width - 4) {
            x = 4;
            y += line;
        }
        if (entry[i].line) {
            canvas_point l[] = {{x, y + 6}, {x + mark, y + 6}};
            canvas_line(p->c, l, 2, 2.2, entry[i].dashed ? 4 : 0, entry[i].colour);
        } else {
            canvas_box b = {x, y, mark, mark};
            canvas_boxes(p->c, &b, 1, 1, entry[i].colour);
        }
        plot_text(p, x + mark + gap, y + 10.5, PLOT_TEXT, CANVAS_START, INK, entry[i].text);
        x += needs + between;
    }
    return n > 0 ? y + line - start : 0;
}

/* ---- data ----------------------------------------------------------------------------------- */

static int by_want(const void *a, const void *b)
{
    const cm_readbench_batch *x = *(const cm_readbench_batch *const *)a;
    const cm_readbench_batch *y = *(const cm_readbench_batch *const *)b;
    if (x->want_ns != y->want_ns)
        return x->want_ns < y->want_ns ? -1 : 1;
    return (x > y) - (x < y);
}

int plot_sorted(const cm_readbench_session *s, const cm_readbench_batch ***out, cm_error *err)
{
    const cm_readbench_batch **sorted = cm_calloc(s->nrecords + 1, sizeof(*sorted), err);
    if (sorted == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < s->nrecords; i++)
        sorted[i] = &s->record[i];
    qsort(sorted, s->nrecords, sizeof(*sorted), by_want);
    *out = sorted;
    return CM_OK;
}

double plot_end(const cm_readbench_session *s)
{
    uint64_t end = 0;
    for (size_t i = 0; i < s->nrecords; i++)
        end = s->record[i].done_ns > end ? s->record[i].done_ns : end;
    for (size_t i = 0; i < s->nevents; i++)
        end = s->event[i].end_ns > end ? s->event[i].end_ns : end;
    for (size_t i = 0; i < s->nlooks; i++)
        end = s->look[i].at_ns > end ? s->look[i].at_ns : end;
    return (double)end / 1e9;
}
