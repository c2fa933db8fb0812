/* Time a batch: stages as stacked bars, and waiting and step together. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "plot.h"

enum {
    MAX_SERIES = 6
};

typedef struct bars {
    size_t n;    /* columns */
    size_t each; /* batches a column, at most */
    size_t nseries;
    double *value; /* [n][nseries], seconds, means of a column */
    double *most;  /* [n], of one batch */
} bars;

typedef void bar_values(const cm_readbench_batch *b, double *out);

static int make_bars(const cm_readbench_session *s, size_t most, size_t nseries, bar_values *values,
                     bars *out, cm_error *err)
{
    const cm_readbench_batch **sorted;
    int rc = plot_sorted(s, &sorted, err);
    if (rc != CM_OK)
        return rc;
    bars b = {.nseries = nseries, .each = (s->nrecords + most - 1) / most};
    b.each = b.each ? b.each : 1;
    b.n = (s->nrecords + b.each - 1) / b.each;
    b.value = cm_calloc(b.n * nseries + 1, sizeof(double), err);
    b.most = b.value ? cm_calloc(b.n + 1, sizeof(double), err) : NULL;
    if (b.most == NULL) {
        free(b.value);
        free(sorted);
        return CM_ENOMEM;
    }
    for (size_t i = 0; i < s->nrecords; i++) {
        double v[MAX_SERIES], all = 0;
        size_t column = i / b.each;
        size_t members = column + 1 < b.n ? b.each : s->nrecords - column * b.each;
        values(sorted[i], v);
        for (size_t k = 0; k < nseries; k++) {
            b.value[column * nseries + k] += v[k] / (double)members;
            all += v[k];
        }
        b.most[column] = fmax(b.most[column], all);
    }
    free(sorted);
    *out = b;
    return CM_OK;
}

static void release_bars(bars *b)
{
    free(b->value);
    free(b->most);
}

static double column_sum(const bars *b, size_t i)
{
    double sum = 0;
    for (size_t k = 0; k < b->nseries; k++)
        sum += b->value[i * b->nseries + k];
    return sum;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/*
 * The end of the scale: the highest column, unless a few are so high, as a first batch
 * is, that the others would lie flat; those are then cut and labelled.
 */
static double top_of(const bars *b, cm_error *err)
{
    double *sums = cm_calloc(b->n + 1, sizeof(*sums), err), top = 0;
    if (sums == NULL)
        return -1;
    for (size_t i = 0; i < b->n; i++)
        sums[i] = column_sum(b, i);
    qsort(sums, b->n, sizeof(*sums), ascending);
    if (b->n > 0) {
        double most = sums[b->n - 1], usual = sums[(b->n - 1) * 9 / 10];
        top = usual > 0 && most > 5 * usual ? 2.5 * usual : most;
    }
    free(sums);
    return top;
}

static void label_cut(const plot *p, double x, double value)
{
    char text[32];
    canvas_point up[] = {{x - 4, p->top - 2}, {x + 4, p->top - 2}, {x, p->top - 8}};
    canvas_area(p->c, up, 3, 1, GREY);
    if (value < 1)
        snprintf(text, sizeof(text), "%.0f ms", value * 1e3);
    else
        snprintf(text, sizeof(text), "%.2g s", value);
    bool right = x + 8 + plot_text_width(text, 11) < p->right;
    plot_text(p, right ? x + 7 : x - 7, p->top + 8, 11, right ? CANVAS_START : CANVAS_END, GREY,
              text);
}

static int draw_boxes(plot *p, const bars *b, const plot_entry *series, cm_error *err)
{
    canvas_box *box = cm_calloc(b->n + 1, sizeof(*box), err);
    if (box == NULL)
        return CM_ENOMEM;
    double step = (p->right - p->left) / (double)(b->n ? b->n : 1);
    double gap = step > 3 ? fmin(step * 0.15, 3) : 0;
    for (size_t k = 0; k < b->nseries; k++) {
        size_t n = 0;
        for (size_t i = 0; i < b->n; i++) {
            double below = 0, v = b->value[i * b->nseries + k];
            for (size_t j = 0; j < k; j++)
                below += b->value[i * b->nseries + j];
            double y = plot_y(p, below + v), y0 = plot_y(p, below);
            if (y0 - y < 0.05)
                continue;
            box[n++] = (canvas_box){p->left + step * (double)i + gap / 2, y, step - gap, y0 - y};
        }
        canvas_boxes(p->c, box, n, 1, series[k].colour);
    }
    free(box);
    size_t labelled = 0;
    for (size_t i = 0; i < b->n; i++)
        if (column_sum(b, i) > p->yhigh * 1.001 && labelled++ < (p->narrow ? 1 : 3))
            label_cut(p, p->left + step * ((double)i + 0.5), column_sum(b, i));
    return CM_OK;
}

static int draw_bars(plot *p, const cm_readbench_session *s, const plot_entry *series,
                     size_t nseries, bar_values *values, cm_error *err)
{
    bars b;
    char title[96];
    int rc = make_bars(s, p->narrow ? 72 : 200, nseries, values, &b, err);
    if (rc != CM_OK)
        return rc;
    double top = top_of(&b, err);
    if (top < 0) {
        release_bars(&b);
        return CM_ENOMEM;
    }
    p->top += plot_legend(p, p->top, series, nseries) + 28;
    plot_y_axis(p, top, PLOT_SECONDS, "a batch");
    if (b.each > 1)
        snprintf(title, sizeof(title), "batch (a bar: the mean of %zu)", b.each);
    else
        snprintf(title, sizeof(title), "batch, in the order wanted");
    rc = draw_boxes(p, &b, series, err);
    plot_x_axis(p, 0, (double)(s->nrecords ? s->nrecords : 1), PLOT_COUNT, title);
    release_bars(&b);
    return rc;
}

static void stage_values(const cm_readbench_batch *b, double *out)
{
    for (size_t k = 0; k < CM_READBENCH_STAGES; k++)
        out[k] = (double)b->stage_ns[k] / 1e9;
    out[CM_READBENCH_STAGES] = (double)b->copy_ns / 1e9;
}

int plot_batch_breakdown(plot *p, const cm_readbench_session *s, cm_error *err)
{
    static const plot_entry SERIES[] = {{"storage", COLOUR_STORAGE, false, false},
                                        {"decode", COLOUR_DECODE, false, false},
                                        {"assemble", COLOUR_ASSEMBLE, false, false},
                                        {"convert", COLOUR_CONVERT, false, false},
                                        {"copy to device", COLOUR_COPY, false, false}};
    return draw_bars(p, s, SERIES, s->device.used ? 5 : 4, stage_values, err);
}

static void total_values(const cm_readbench_batch *b, double *out)
{
    readbench_times t;
    readbench_batch_times(b, &t);
    out[0] = t.step;
    out[1] = t.loader;
    out[2] = t.memcpy;
}

int plot_batch_total(plot *p, const cm_readbench_session *s, cm_error *err)
{
    static const plot_entry SERIES[] = {{"step", COLOUR_STEP, false, false},
                                        {"waiting for the loader", COLOUR_WAIT, false, false},
                                        {"waiting for the copy", COLOUR_COPY, false, false}};
    return draw_bars(p, s, SERIES, s->device.used ? 3 : 2, total_values, err);
}
