/*
 * The statistics of each step of a variable: the mean within a band from the least to the largest
 * value, missing values below it, and the places of findings, which are marked with their numbers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/path.h"
#include "canvas.h"
#include "palette.h"
#include "passport_page.h"

enum {
    WIDE = 860,
    NARROW = 340,
    MOST_COLUMNS = 400, /* of neighbouring steps */
    BAND = 120,         /* heights */
    GAP = 8,
    MISSING = 22,
    MARKS = 20,
    LABELS = 18,
    TEXT = 12,
    NUMBER = 14 /* the width of one below a mark */
};

/* Some neighbouring steps. */
typedef struct column {
    double min, max, mean, missing; /* the last: a share; NaN: nothing was counted */
} column;

typedef struct strip {
    const cm_passport *p;
    const cm_passport_variable *v;
    column column[MOST_COLUMNS];
    size_t n;
    double low, high; /* of the frame */
    bool cut;         /* some values lie beyond it */
    double left, right;
} strip;

/* F is about V, or about the coordinate of its steps. */
static bool is_about(const cm_passport_finding *f, const cm_passport_variable *v)
{
    if (strcmp(f->variable, v->name) == 0)
        return true;
    const char *dim = v->rank > 0 && v->is_counted ? v->dim_name[v->step_dim] : NULL;
    return dim != NULL && strcmp(cm_path_last(f->variable), dim) == 0;
}

static column column_of(const cm_passport_variable *v, size_t first, size_t end)
{
    column c = {.min = INFINITY, .max = -INFINITY};
    double count = 0, missing = 0;
    for (size_t i = first; i < end; i++) {
        const cm_passport_step *s = &v->step[i];
        missing += (double)s->missing;
        if (s->count == 0)
            continue;
        c.mean += s->mean * (double)s->count;
        count += (double)s->count;
        c.min = fmin(c.min, s->min);
        c.max = fmax(c.max, s->max);
    }
    c.mean = count > 0 ? c.mean / count : NAN;
    c.missing = count + missing > 0 ? missing / (count + missing) : 0;
    return c;
}

/* A value far from all others would flatten what it is to be compared with. */
static void find_frame(strip *s)
{
    double low[MOST_COLUMNS], high[MOST_COLUMNS];
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (isfinite(s->column[i].mean)) {
            low[n] = s->column[i].min;
            high[n++] = s->column[i].max;
        }
    s->low = 0;
    s->high = 1;
    if (n == 0)
        return;
    cm_sort_doubles(low, n);
    cm_sort_doubles(high, n);
    const double bottom = low[n / 4], top = high[n - 1 - n / 4], span = 3 * (top - bottom);
    s->low = fmax(low[0], bottom - span);
    s->high = fmin(high[n - 1], top + span);
    s->cut = s->low > low[0] || s->high < high[n - 1];
    if (!(s->high > s->low)) {
        s->high = s->low + fmax(1, fabs(s->low));
        s->low -= fmax(1, fabs(s->low));
    }
}

static void make_columns(strip *s)
{
    const size_t n = s->v->nstep;
    s->n = n < MOST_COLUMNS ? n : MOST_COLUMNS;
    for (size_t k = 0; k < s->n; k++)
        s->column[k] = column_of(s->v, k * n / s->n, (k + 1) * n / s->n);
    find_frame(s);
}

static double x_of(const strip *s, double share)
{
    return s->left + share * (s->right - s->left);
}

static double y_of(const strip *s, double value)
{
    const double at = (value - s->low) / (s->high - s->low);
    return 4 + BAND * (1 - (at < 0 ? 0 : at > 1 ? 1 : at));
}

/* ---- pieces ---- */

static void draw_run(const canvas *c, const strip *s, size_t first, size_t end)
{
    canvas_point band[2 * MOST_COLUMNS + 4], line[MOST_COLUMNS + 2];
    size_t n = 0;
    for (size_t k = first; k < end; k++) {
        /* A column reaches from edge to edge, so that one alone is seen. */
        const double x = x_of(s, ((double)k + 0.5) / (double)s->n);
        line[n] = (canvas_point){x, y_of(s, s->column[k].mean)};
        band[n++] = (canvas_point){x, y_of(s, s->column[k].max)};
    }
    for (size_t k = end; k-- > first;)
        band[2 * n - 1 - (k - first)] =
            (canvas_point){line[k - first].x, y_of(s, s->column[k].min)};
    if (n > 1) {
        canvas_area(c, band, 2 * n, 0.35, SKY);
        canvas_line(c, line, n, 1.6, 0, BLUE);
        return;
    }
    const double half = 0.4 * (s->right - s->left) / (double)s->n;
    const double width = half < 2 ? 4 : half > 12 ? 24 : 2 * half, x = line[0].x - width / 2;
    canvas_boxes(c, &(canvas_box){x, band[0].y, width, band[1].y - band[0].y + 1}, 1, 0.35, SKY);
    canvas_boxes(c, &(canvas_box){x, line[0].y - 1, width, 2}, 1, 1, BLUE);
}

static void draw_values(const canvas *c, const strip *s)
{
    const canvas_point base[2] = {{s->left, BAND + 4}, {s->right, BAND + 4}};
    const canvas_point top[2] = {{s->left, 4}, {s->right, 4}};
    char text[32];
    canvas_line(c, base, 2, 1, 0, PALE);
    canvas_line(c, top, 2, 1, 0, PALE);
    for (size_t k = 0; k < s->n; k++) {
        size_t end = k;
        while (end < s->n && isfinite(s->column[end].mean))
            end++;
        if (end > k)
            draw_run(c, s, k, end);
        k = end > k ? end - 1 : k;
    }
    const double ends[] = {s->low, s->high};
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%.4g", ends[i]);
        canvas_write(c,
                     &(canvas_text){.x = s->left - 6,
                                    .y = y_of(s, ends[i]) + (i ? 9 : 0),
                                    .size = TEXT,
                                    .anchor = CANVAS_END,
                                    .colour = GREY},
                     text);
    }
}

static void draw_missing(const canvas *c, const strip *s)
{
    const double top = 4 + BAND + GAP;
    canvas_box box[MOST_COLUMNS];
    size_t n = 0;
    const double width = (s->right - s->left) / (double)(s->n > 0 ? s->n : 1);
    canvas_boxes(c, &(canvas_box){s->left, top, s->right - s->left, MISSING}, 1, 0.5, PALE);
    for (size_t k = 0; k < s->n; k++) {
        const double share = s->column[k].missing;
        if (!(share > 0))
            continue;
        const double height = fmax(1.5, share * MISSING);
        box[n++] = (canvas_box){x_of(s, (double)k / (double)s->n), top + MISSING - height,
                                fmax(width, 1), height};
    }
    canvas_boxes(c, box, n, 1, VERMILION);
    canvas_write(
        c,
        &(canvas_text){
            .x = s->left - 6, .y = top + 15, .size = TEXT, .anchor = CANVAS_END, .colour = GREY},
        "missing");
}

/* A triangle for each finding about steps, and its number where there is room. */
static void draw_marks(const canvas *c, const strip *s)
{
    const double top = 4 + BAND + GAP + MISSING + 3;
    bool taken[WIDE / NUMBER + 3] = {false}; /* by a number */
    for (size_t i = 0; i < s->p->nfindings; i++) {
        const cm_passport_finding *f = &s->p->finding[i];
        if (!is_about(f, s->v) || !f->has_steps || s->v->nsteps == 0)
            continue;
        const double n = (double)s->v->nsteps;
        const double from = x_of(s, (double)f->first / n), to = x_of(s, (double)(f->last + 1) / n);
        const double x = (from + to) / 2;
        const canvas_point mark[] = {{x, top}, {x - 5, top + 8}, {x + 5, top + 8}};
        canvas_boxes(c, &(canvas_box){from, top - 2, fmax(to - from, 1.5), 2}, 1, 1, VERMILION);
        canvas_area(c, mark, 3, 1, VERMILION);
        const size_t at = (size_t)(x / NUMBER) + 1;
        if (taken[at - 1] || taken[at] || taken[at + 1])
            continue;
        char text[24];
        snprintf(text, sizeof text, "%zu", i + 1);
        taken[at] = true;
        canvas_write(c,
                     &(canvas_text){.x = x,
                                    .y = top + 19,
                                    .size = TEXT,
                                    .anchor = CANVAS_MIDDLE,
                                    .bold = true,
                                    .colour = INK},
                     text);
    }
}

static void draw_ends(const canvas *c, const strip *s, double y)
{
    char text[80];
    for (int last = 0; last < (s->v->nsteps > 1 ? 2 : 1); last++) {
        const char *label = last ? s->v->last_label : s->v->first_label;
        const uint64_t step = last ? s->v->nsteps - 1 : 0;
        if (label != NULL)
            snprintf(text, sizeof text, "%.70s", label);
        else
            snprintf(text, sizeof text, "step %llu", (unsigned long long)step);
        canvas_write(c,
                     &(canvas_text){.x = last ? s->right : s->left,
                                    .y = y,
                                    .size = TEXT,
                                    .anchor = last ? CANVAS_END : CANVAS_START,
                                    .colour = GREY},
                     text);
    }
}

static bool has_marks(const strip *s)
{
    for (size_t i = 0; i < s->p->nfindings; i++)
        if (is_about(&s->p->finding[i], s->v) && s->p->finding[i].has_steps)
            return true;
    return false;
}

static void draw(strip *s, unsigned width, const char *attributes, const char *label, FILE *to)
{
    const unsigned marks = has_marks(s) ? MARKS + 4 : 0;
    const unsigned height = 4 + BAND + GAP + MISSING + marks + LABELS;
    s->left = 76;
    s->right = width - 6;
    const canvas c = canvas_begin_inline(to, width, height, attributes, label);
    draw_values(&c, s);
    draw_missing(&c, s);
    draw_marks(&c, s);
    if (s->v->nsteps > 0)
        draw_ends(&c, s, height - 4);
    canvas_end(&c);
}

int passport_strip(const cm_passport *p, const cm_passport_variable *v, FILE *to, cm_error *err)
{
    char label[400];
    strip *s = cm_calloc(1, sizeof(*s), err);
    if (s == NULL)
        return CM_ENOMEM;
    s->p = p;
    s->v = v;
    make_columns(s);
    snprintf(label, sizeof label,
             "%.80s: %llu values from %.6g to %.6g, mean %.6g, %llu missing, over %llu steps",
             v->name, (unsigned long long)v->all.count, v->all.min, v->all.max, v->all.mean,
             (unsigned long long)v->all.missing, (unsigned long long)v->nsteps);
    draw(s, WIDE, "class=\"wide\"", label, to);
    draw(s, NARROW, "class=\"narrow\"", label, to);
    if (s->cut)
        fputs("<p class=\"note\">Values far from all others are cut off at the frame.</p>\n", to);
    free(s);
    return CM_OK;
}
