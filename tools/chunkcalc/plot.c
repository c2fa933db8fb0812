/*
 * Chunks and bytes of the first read against the chunk size, as a band from the
 * fewest to the most.  Blue and vermilion of the Okabe-Ito palette tell apart for
 * colour-blind eyes; band, line and marker differ in print without colour too.
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
    RIGHT = 30,
    TOP = 70,
    BETWEEN = 40,
    BOTTOM = 110,
    HEIGHT = TOP + 2 * PANEL + BETWEEN + BOTTOM,
    MAX_LABELS = 24,
    LABEL_TEXT = 40
};

#define BLUE      0x0072b2u
#define VERMILION 0xd55e00u
#define BLACK     0x222222u
#define GREY      0x666666u
#define PALE      0xd9d9d9u

typedef struct panel {
    canvas *c;
    const cm_chunkcalc_report *r;
    const cm_chunkcalc_layout **layout; /* by size of a chunk */
    size_t n;
    bool bytes;
    double top;
    double low, high; /* log10 of the range */
} panel;

int chunkcalc_plot_check(const char *path, cm_error *err)
{
    size_t n = strlen(path);

    if (n > 4 && (strcmp(path + n - 4, ".svg") == 0 || strcmp(path + n - 4, ".png") == 0))
        return CM_OK;
    return cm_fail(err, CM_EINVAL, "--plot %s: the name must end in .svg or .png", path);
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

static void draw_dots(const panel *p)
{
    for (size_t i = 0; i < p->n; i++) {
        double x = x_of(p, i), y = y_of(p, stat_of(p, i)->mean);
        canvas_point square[] = {{x - 3, y - 3}, {x + 3, y - 3}, {x + 3, y + 3}, {x - 3, y + 3}};
        canvas_area(p->c, square, 4, 1, BLUE);
        if (p->r->recommended == SIZE_MAX || p->layout[i] != &p->r->layout[p->r->recommended])
            continue;
        canvas_point line[] = {{x, p->top}, {x, p->top + PANEL}};
        canvas_line(p->c, line, 2, 1.6, 6, VERMILION);
        canvas_point diamond[] = {{x, y - 9}, {x + 9, y}, {x, y + 9}, {x - 9, y}};
        canvas_area(p->c, diamond, 4, 1, VERMILION);
    }
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
        bool best =
            p->r->recommended != SIZE_MAX && p->layout[i] == &p->r->layout[p->r->recommended];
        char text[LABEL_TEXT];
        if (i % every != 0 && !best)
            continue;
        canvas_text style = {x_of(p, i) + 4,          y + 18, 12, -35, CANVAS_END, best,
                             best ? VERMILION : BLACK};
        canvas_write(p->c, &style,
                     cm_format_shape(p->r->rank, p->layout[i]->chunk, text, sizeof(text)));
    }
    canvas_text axis = {
        LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 12, 14, 0, CANVAS_MIDDLE, true, BLACK};
    canvas_write(p->c, &axis, "chunk, from small to large");
}

static void draw_legend(canvas *c, const cm_chunkcalc_report *r)
{
    canvas_text title = {LEFT, 28, 17, 0, CANVAS_START, true, BLACK};
    canvas_text entry = {LEFT + 34, 54, 12, 0, CANVAS_START, false, BLACK};
    canvas_point band[] = {{LEFT, 44}, {LEFT + 28, 44}, {LEFT + 28, 56}, {LEFT, 56}};
    canvas_point line[] = {{LEFT + 190, 50}, {LEFT + 218, 50}};
    canvas_point mark[] = {{LEFT + 324, 41}, {LEFT + 333, 50}, {LEFT + 324, 59}, {LEFT + 315, 50}};
    char text[200];

    snprintf(text, sizeof(text), "Reads of %.150s", r->read[0].text);
    canvas_write(c, &title, text);
    canvas_area(c, band, 4, 0.22, BLUE);
    canvas_write(c, &entry, "fewest to most");
    canvas_line(c, line, 2, 2.4, 0, BLUE);
    entry.x = LEFT + 224;
    canvas_write(c, &entry, "mean");
    if (r->recommended == SIZE_MAX)
        return;
    canvas_area(c, mark, 4, 1, VERMILION);
    entry.x = LEFT + 340;
    canvas_write(c, &entry, "recommended");
}

static int by_size(const void *a, const void *b)
{
    const cm_chunkcalc_layout *x = *(const cm_chunkcalc_layout *const *)a;
    const cm_chunkcalc_layout *y = *(const cm_chunkcalc_layout *const *)b;

    if (x->chunk_nbytes != y->chunk_nbytes)
        return x->chunk_nbytes < y->chunk_nbytes ? -1 : 1;
    return (x > y) - (x < y);
}

int chunkcalc_plot(const cm_chunkcalc_report *r, cm_outfile *file, cm_error *err)
{
    const cm_chunkcalc_layout **sorted = calloc(r->nlayouts, sizeof(*sorted));
    canvas *c;

    if (sorted == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for the plot");
    for (size_t i = 0; i < r->nlayouts; i++)
        sorted[i] = &r->layout[i];
    qsort(sorted, r->nlayouts, sizeof(*sorted), by_size);
    int rc = cm_outfile_open(file, err);
    FILE *to = rc == CM_OK ? cm_outfile_stream(file, err) : NULL;
    if (to == NULL || (rc = canvas_create(to, file->path, WIDTH, HEIGHT, &c, err)) != CM_OK) {
        free(sorted);
        return rc != CM_OK ? rc : CM_ENOMEM;
    }
    panel p = {.c = c, .r = r, .layout = sorted, .n = r->nlayouts, .top = TOP};
    draw_legend(c, r);
    rc = draw_panel(&p, err);
    p.bytes = true;
    p.top = TOP + PANEL + BETWEEN;
    if (rc == CM_OK)
        rc = draw_panel(&p, err);
    draw_labels(&p);
    int finished = canvas_finish(c, rc == CM_OK ? err : NULL);
    free(sorted);
    if (rc == CM_OK)
        rc = finished;
    return rc == CM_OK ? cm_outfile_commit(file, err) : rc;
}
