/* Sessions as bars: how fast each was, and what its steps' time went to. */
#include <math.h>

#include "base/number.h"
#include "bench/tune.h"
#include "plot.h"

enum {
    BAR = 40, /* height that each takes */
    FOOT = 56,
    HEAD = 28, /* a legend */
    MAX_BARS = 40
};

static size_t count_bars(const cm_readbench_report *r)
{
    return r->nsessions < MAX_BARS ? r->nsessions : MAX_BARS;
}

static unsigned height_of(const cm_readbench_report *r)
{
    return (unsigned)(HEAD + count_bars(r) * BAR + FOOT);
}

static const char *role(const cm_readbench_report *r, size_t i)
{
    return i == r->best ? ", the best" : i == r->baseline ? ", the baseline" : "";
}

static void draw_rates(plot *p, const cm_readbench_report *r)
{
    double most = 0;
    char text[192], ratio[48] = "";
    size_t n = count_bars(r);

    for (size_t i = 0; i < n; i++)
        most = fmax(most, cm_readbench_rate(&r->session[i]));
    p->left = 6;
    plot_x_axis(p, 0, most > 0 ? most : 1, PLOT_NUMBER, "samples a second");
    for (size_t i = 0; i < n; i++) {
        const cm_readbench_session *s = &r->session[i];
        const double rate = cm_readbench_rate(s);
        double y = p->top + BAR * (double)i;
        unsigned colour = i == r->best ? GREEN : i == r->baseline ? STEEL : BLUE;
        if (r->ratio && i > 0 && isfinite(r->ratio[i]))
            snprintf(ratio, sizeof(ratio), ", %.2f times the first", r->ratio[i]);
        snprintf(text, sizeof(text), "%.80s: %.4g%s%s", s->label, rate, ratio, role(r, i));
        plot_text(p, p->left + 2, y + 12, PLOT_TEXT, CANVAS_START, INK, text);
        canvas_box box = {p->left, y + 17, plot_x(p, rate) - p->left, 15};
        canvas_boxes(p->c, &box, 1, 1, colour);
    }
}

static void draw_times(plot *p, const cm_readbench_report *r)
{
    static const plot_entry SERIES[] = {{"step", COLOUR_STEP, false, false},
                                        {"waiting for the loader", COLOUR_WAIT, false, false},
                                        {"waiting for the copy", COLOUR_COPY, false, false}};
    double most = 0;
    char text[192], time[32];
    bool device = false;
    size_t n = count_bars(r);

    for (size_t i = 0; i < n; i++) {
        most = fmax(most, r->session[i].batch_time.mean);
        device = device || r->session[i].device.used;
    }
    plot_legend(p, p->top, SERIES, device ? 3 : 2);
    p->left = 6;
    plot_x_axis(p, 0, most > 0 ? most : 1, PLOT_SECONDS, "a batch, mean");
    for (size_t i = 0; i < n; i++) {
        const cm_readbench_session *s = &r->session[i];
        readbench_breakdown b;
        readbench_break_down(s, 0, &b);
        double y = p->top + HEAD + BAR * (double)i, x = 0;
        const double value[] = {b.kernel + b.other, b.loader, b.memcpy};
        snprintf(text, sizeof(text), "%.80s: %s%s", s->label,
                 cm_format_time(b.step, time, sizeof(time)), role(r, i));
        plot_text(p, p->left + 2, y + 12, PLOT_TEXT, CANVAS_START, INK, text);
        for (size_t k = 0; k < 3; k++) {
            canvas_box box = {plot_x(p, x), y + 17, plot_x(p, x + value[k]) - plot_x(p, x), 15};
            canvas_boxes(p->c, &box, value[k] > 0, 1, SERIES[k].colour);
            x += value[k];
        }
    }
}

const readbench_comparison READBENCH_COMPARISONS[] = {
    {"comparison", "Samples a second", "Of each, and against the first.", draw_rates},
    {"comparison_time", "Where the time goes",
     "A batch's mean time, from when it was wanted to the end of its step.", draw_times},
    {NULL, NULL, NULL, NULL},
};

typedef struct picture {
    const readbench_comparison *plot;
    const cm_readbench_report *r;
} picture;

static int draw_picture(const void *context, FILE *to, cm_error *err)
{
    const picture *f = context;
    const unsigned height = height_of(f->r) + PLOT_TITLE;
    const canvas c = canvas_begin(to, PLOT_WIDE, height);
    plot p = plot_frame(&c, false, height, PLOT_TITLE);
    canvas_text style = {.x = 4, .y = 22, .size = 17, .bold = true, .colour = INK};
    char title[96];
    (void)err;
    snprintf(title, sizeof(title), "%s%s", f->plot->title,
             readbench_emulated(f->r) ? " (EMULATED)" : "");
    canvas_write(&c, &style, title);
    f->plot->draw(&p, f->r);
    canvas_end(&c);
    return CM_OK;
}

int plot_comparison_write(const readbench_comparison *plot_of, const cm_readbench_report *r,
                          const char *folder, cm_error *err)
{
    return plot_file(folder, plot_of->name, draw_picture, &(picture){plot_of, r}, err);
}

void plot_comparison_inline(const readbench_comparison *plot_of, const cm_readbench_report *r,
                            FILE *to)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        char attributes[96];
        unsigned height = height_of(r);
        snprintf(attributes, sizeof(attributes), "class=\"%s\" data-plot=\"%s\"",
                 narrow ? "narrow" : "wide", plot_of->name);
        const canvas c = canvas_begin_inline(to, narrow ? PLOT_NARROW : PLOT_WIDE, height,
                                             attributes, plot_of->title);
        plot p = plot_frame(&c, narrow, height, 0);
        plot_of->draw(&p, r);
        canvas_end(&c);
    }
}
