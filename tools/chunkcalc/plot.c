/*
 * Chunks and bytes of the first read against the chunk size, as a band from the fewest to the
 * most, and its time on a second axis.  The chunks that are there and those that are recommended
 * are marked.  Blue, green and vermilion tell apart for colour-blind eyes; band, line, dashes and
 * marker differ in print without colour too.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common/canvas.h"
#include "../common/print.h"
#include "base/number.h"
#include "chunkcalc.h"

enum {
    WIDTH = 900,
    PANEL = 250,
    LEFT = 112,
    RIGHT = 92,
    TOP = 70,
    BETWEEN = 40,
    BOTTOM = 110,
    HEIGHT = TOP + 2 * PANEL + BETWEEN + BOTTOM,
    MAX_LABELS = 24,
    LABEL_TEXT = 40
};

#define BLUE      0x0072b2u
#define VERMILION 0xd55e00u
#define GREEN     0x00694du
#define BLACK     0x222222u
#define GREY      0x666666u
#define PALE      0xd9d9d9u

typedef struct panel {
    const canvas *c;
    const cm_chunkcalc_report *r;
    const cm_chunkcalc_layout **layout; /* by size of a chunk */
    size_t n;
    bool bytes;
    double top;
    double low, high;           /* log10 of the range, */
    double time_low, time_high; /* and of seconds */
} panel;

int chunkcalc_plot_check(const char *path, cm_error *err)
{
    size_t n = strlen(path);

    if (n > 4 && strcmp(path + n - 4, ".svg") == 0)
        return CM_OK;
    return cm_fail(err, CM_EINVAL,
                   "--plot %s: the picture is an SVG: give a name that ends in .svg", path);
}

static const cm_chunkcalc_stat *stat_of(const panel *p, size_t i)
{
    const cm_chunkcalc_result *result = &p->layout[i]->result[0];
    return p->bytes ? &result->bytes : &result->chunks;
}

static double x_of(const panel *p, size_t i)
{
    double width = WIDTH - LEFT - RIGHT;
    return LEFT + width * ((double)i + 0.5) / (double)p->n;
}

static double y_of(const panel *p, double value)
{
    double t = (log10(fmax(value, 1e-3)) - p->low) / (p->high - p->low);
    return p->top + PANEL * (1 - t);
}

static double seconds_of(const panel *p, size_t i)
{
    return fmax(p->layout[i]->result[0].seconds, 1e-12);
}

static double y_of_time(const panel *p, double seconds)
{
    double t = (log10(seconds) - p->time_low) / (p->time_high - p->time_low);
    return p->top + PANEL * (1 - t);
}

static bool is_layout(const panel *p, size_t i, size_t number)
{
    return number != SIZE_MAX && p->layout[i] == &p->r->layout[number];
}

static void set_range(panel *p)
{
    double low = INFINITY, high = -INFINITY;

    for (size_t i = 0; i < p->n; i++) {
        low = fmin(low, log10(fmax((double)stat_of(p, i)->min, 1)));
        high = fmax(high, log10(fmax((double)stat_of(p, i)->max, 1)));
    }
    double room = fmax(0.08 * (high - low), 0.05);
    p->low = low - room;
    p->high = high + room;
    low = INFINITY;
    high = -INFINITY;
    for (size_t i = 0; i < p->n; i++) {
        low = fmin(low, log10(seconds_of(p, i)));
        high = fmax(high, log10(seconds_of(p, i)));
    }
    room = fmax(0.08 * (high - low), 0.15);
    p->time_low = low - room;
    p->time_high = high + room;
}

static void draw_tick(const panel *p, double value, const char *text)
{
    double y = y_of(p, value);
    canvas_point line[] = {{LEFT, y}, {WIDTH - RIGHT, y}};
    canvas_text style = {LEFT - 8, y + 4, 12, 0, CANVAS_END, false, GREY};

    canvas_line(p->c, line, 2, 0.7, 0, PALE);
    canvas_write(p->c, &style, text);
}

/*
 * Round numbers: powers of ten, or of 1024 for bytes, with steps between when the range is
 * small.
 */
static void draw_ticks(const panel *p)
{
    static const double DECADE[] = {1, 2, 5};
    double span = p->high - p->low;
    char text[32];

    for (int e = 0; e < 64; e++) {
        double base = p->bytes ? exp2(e) : pow(10, e);
        int steps = p->bytes ? 1 : span < 2 ? 3 : 1;
        int stride = p->bytes ? (span < 1.5 ? 1
                                 : span < 4 ? 2
                                 : span < 7 ? 4
                                            : 10)
                              : (span > 8 ? 2 : 1);
        for (int k = 0; k < steps && e % stride == 0; k++) {
            double value = base * (p->bytes ? 1 : DECADE[k]);
            if (log10(value) < p->low || log10(value) > p->high || value > 1e18)
                continue;
            if (p->bytes)
                cm_format_size((uint64_t)value, text, sizeof(text));
            else
                cm_format_count((uint64_t)value, text, sizeof(text));
            draw_tick(p, value, text);
        }
    }
}

static int draw_band(const panel *p, cm_error *err)
{
    canvas_point *points = calloc(3 * p->n, sizeof(*points));

    if (points == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for the plot");
    for (size_t i = 0; i < p->n; i++) {
        double x = x_of(p, i);
        points[i] = (canvas_point){x, y_of(p, (double)stat_of(p, i)->min)};
        points[2 * p->n - 1 - i] = (canvas_point){x, y_of(p, (double)stat_of(p, i)->max)};
        points[2 * p->n + i] = (canvas_point){x, y_of(p, stat_of(p, i)->mean)};
    }
    canvas_area(p->c, points, 2 * p->n, 0.22, BLUE);
    canvas_line(p->c, points, p->n, 1.2, 4, BLUE);
    canvas_line(p->c, points + p->n, p->n, 1.2, 4, BLUE);
    canvas_line(p->c, points + 2 * p->n, p->n, 2.4, 0, BLUE);
    free(points);
    return CM_OK;
}

/* Down to where both panels show it, and a mark on the mean. */
static void mark(const panel *p, double x, double y, double dash, unsigned colour)
{
    canvas_point line[] = {{x, p->top}, {x, p->top + PANEL}};
    canvas_line(p->c, line, 2, 1.6, dash, colour);
    canvas_point diamond[] = {{x, y - 9}, {x + 9, y}, {x, y + 9}, {x - 9, y}};
    canvas_area(p->c, diamond, 4, 1, colour);
}

static void draw_dots(const panel *p)
{
    for (size_t i = 0; i < p->n; i++) {
        double x = x_of(p, i), y = y_of(p, stat_of(p, i)->mean);
        canvas_point square[] = {{x - 3, y - 3}, {x + 3, y - 3}, {x + 3, y + 3}, {x - 3, y + 3}};
        canvas_area(p->c, square, 4, 1, BLUE);
        if (is_layout(p, i, p->r->present))
            mark(p, x, y, 2, BLACK);
        if (is_layout(p, i, p->r->recommended))
            mark(p, x, y, 6, VERMILION);
    }
}

/* Its axis is on the right: one, two and five of each decade that is there. */
static int draw_time(const panel *p, cm_error *err)
{
    static const double STEPS[] = {1, 2, 5};
    canvas_point *points = calloc(p->n, sizeof(*points));
    const int steps = p->time_high - p->time_low < 2.5 ? 3 : 1;
    char text[32];

    if (points == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for the plot");
    for (size_t i = 0; i < p->n; i++)
        points[i] = (canvas_point){x_of(p, i), y_of_time(p, seconds_of(p, i))};
    canvas_line(p->c, points, p->n, 2, 8, GREEN);
    free(points);
    for (int e = (int)floor(p->time_low); e <= (int)ceil(p->time_high); e++)
        for (int k = 0; k < steps; k++) {
            const double value = STEPS[k] * pow(10, e), y = y_of_time(p, value);
            if (log10(value) < p->time_low || log10(value) > p->time_high)
                continue;
            canvas_point tick[] = {{WIDTH - RIGHT, y}, {WIDTH - RIGHT + 5, y}};
            canvas_line(p->c, tick, 2, 1, 0, GREEN);
            canvas_text style = {WIDTH - RIGHT + 9, y + 4, 12, 0, CANVAS_START, false, GREEN};
            canvas_write(p->c, &style, cm_format_time(value * (1 + 1e-9), text, sizeof(text)));
        }
    canvas_text title = {WIDTH - 12, p->top + PANEL / 2.0, 14, -90, CANVAS_MIDDLE, true, GREEN};
    canvas_write(p->c, &title, "time of a read");
    return CM_OK;
}

static int draw_panel(panel *p, cm_error *err)
{
    canvas_point frame[] = {{LEFT, p->top},
                            {WIDTH - RIGHT, p->top},
                            {WIDTH - RIGHT, p->top + PANEL},
                            {LEFT, p->top + PANEL},
                            {LEFT, p->top}};
    canvas_text title = {20, p->top + PANEL / 2.0, 14, -90, CANVAS_MIDDLE, true, BLACK};

    set_range(p);
    draw_ticks(p);
    int rc = draw_band(p, err);
    if (rc == CM_OK)
        rc = draw_time(p, err);
    draw_dots(p);
    canvas_line(p->c, frame, 5, 1, 0, GREY);
    canvas_write(p->c, &title, p->bytes ? "bytes read" : "chunks met");
    return rc;
}

static void draw_labels(const panel *p)
{
    double y = p->top + PANEL;
    size_t every = (p->n + MAX_LABELS - 1) / MAX_LABELS;

    for (size_t i = 0; i < p->n; i++) {
        const bool best = is_layout(p, i, p->r->recommended);
        const bool present = is_layout(p, i, p->r->present);
        char text[LABEL_TEXT];
        if (i % every != 0 && !best && !present)
            continue;
        canvas_text style = {x_of(p, i) + 4,          y + 18, 12, -35, CANVAS_END, best || present,
                             best ? VERMILION : BLACK};
        canvas_write(p->c, &style,
                     cm_format_shape(p->r->rank, p->layout[i]->chunk, text, sizeof(text)));
    }
    canvas_text axis = {
        LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 12, 14, 0, CANVAS_MIDDLE, true, BLACK};
    canvas_write(p->c, &axis, "chunk, from small to large");
}

static void put_mark(const canvas *c, double *x, unsigned colour, const char *what)
{
    canvas_point diamond[] = {{*x, 50}, {*x + 9, 41}, {*x + 18, 50}, {*x + 9, 59}};
    canvas_text entry = {*x + 24, 54, 12, 0, CANVAS_START, false, BLACK};
    canvas_area(c, diamond, 4, 1, colour);
    canvas_write(c, &entry, what);
    *x += 130;
}

static void draw_legend(const canvas *c, const cm_chunkcalc_report *r)
{
    canvas_text title = {LEFT, 28, 17, 0, CANVAS_START, true, BLACK};
    canvas_text entry = {LEFT + 34, 54, 12, 0, CANVAS_START, false, BLACK};
    canvas_point band[] = {{LEFT, 44}, {LEFT + 28, 44}, {LEFT + 28, 56}, {LEFT, 56}};
    canvas_point line[] = {{LEFT + 140, 50}, {LEFT + 168, 50}};
    canvas_point time[] = {{LEFT + 230, 50}, {LEFT + 258, 50}};
    char text[200];
    double x = LEFT + 370;

    snprintf(text, sizeof(text), "Reads of %.150s", r->read[0].text);
    canvas_write(c, &title, text);
    canvas_area(c, band, 4, 0.22, BLUE);
    canvas_write(c, &entry, "fewest to most");
    canvas_line(c, line, 2, 2.4, 0, BLUE);
    entry.x = LEFT + 174;
    canvas_write(c, &entry, "mean");
    canvas_line(c, time, 2, 2, 8, GREEN);
    entry.x = LEFT + 264;
    canvas_write(c, &entry, "time (right)");
    if (r->present != SIZE_MAX)
        put_mark(c, &x, BLACK, "present chunks");
    if (r->recommended != SIZE_MAX)
        put_mark(c, &x, VERMILION, "recommended");
}

static int by_size(const void *a, const void *b)
{
    const cm_chunkcalc_layout *x = *(const cm_chunkcalc_layout *const *)a;
    const cm_chunkcalc_layout *y = *(const cm_chunkcalc_layout *const *)b;

    if (x->chunk_nbytes != y->chunk_nbytes)
        return x->chunk_nbytes < y->chunk_nbytes ? -1 : 1;
    return (x > y) - (x < y);
}

static int draw(const cm_chunkcalc_report *r, const cm_chunkcalc_layout **sorted, FILE *to,
                cm_error *err)
{
    const canvas c = canvas_begin(to, WIDTH, HEIGHT);
    panel p = {.c = &c, .r = r, .layout = sorted, .n = r->nlayouts, .top = TOP};
    draw_legend(&c, r);
    int rc = draw_panel(&p, err);
    p.bytes = true;
    p.top = TOP + PANEL + BETWEEN;
    if (rc == CM_OK)
        rc = draw_panel(&p, err);
    draw_labels(&p);
    canvas_end(&c);
    return rc;
}

int chunkcalc_plot(const cm_chunkcalc_report *r, cm_outfile *file, cm_error *err)
{
    const cm_chunkcalc_layout **sorted = calloc(r->nlayouts, sizeof(*sorted));

    if (sorted == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for the plot");
    for (size_t i = 0; i < r->nlayouts; i++)
        sorted[i] = &r->layout[i];
    qsort(sorted, r->nlayouts, sizeof(*sorted), by_size);
    int rc = cm_outfile_open(file, err);
    FILE *to = rc == CM_OK ? cm_outfile_stream(file, err) : NULL;
    if (to != NULL)
        rc = draw(r, sorted, to, err);
    else if (rc == CM_OK)
        rc = CM_ENOMEM;
    free(sorted);
    return rc == CM_OK ? cm_outfile_commit(file, err) : rc;
}
