/* Every plot by name, to files and into a page. */

#include "plot.h"

const readbench_plot READBENCH_PLOTS[] = {
    {"timeline", "Timeline",
     "Steps and, as thin bars between them, the waits; below, what each worker did. The stages of "
     "a batch are its sums, laid one after the other.",
     0, 0, plot_timeline, plot_timeline_height},
    {"total_batch_time", "Time a batch",
     "From when a batch was wanted to the end of its step. Whatever is not step is waiting.", 300,
     300, plot_batch_total, NULL},
    {"batch_time_breakdown", "Work a batch",
     "What the workers spent on it, summed over the threads that shared it.", 300, 320,
     plot_batch_breakdown, NULL},
    {"time_distribution_pie", "Where the time goes",
     "Left, the training without each rank's first step; right, the workers while they made "
     "batches.",
     250, 470, plot_shares, NULL},
    {"wait_histogram", "How long steps waited",
     "Steps by the wait for their batch, from when it was wanted; none: below a microsecond.", 320,
     310, plot_waits, NULL},
    {"throughput", "Throughput over time",
     "Above, what the training took and what it needs, both in decoded bytes; below, what was read "
     "from storage to make it. Another store's turn is left blank.",
     440, 460, plot_throughput, NULL},
    {"resources", "CPUs and memory over time",
     "Of this machine, and of readbench with its workers. Another store's turn is left blank.", 500,
     520, plot_resources, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL},
};

static unsigned height_of(const readbench_plot *r, const cm_readbench_session *s, bool narrow)
{
    if (r->height_of)
        return r->height_of(s, narrow);
    return narrow ? r->narrow_height : r->height;
}

plot plot_frame(const canvas *c, bool narrow, unsigned height, double head)
{
    plot p = {.c = c,
              .narrow = narrow,
              .width = narrow ? PLOT_NARROW : PLOT_WIDE,
              .height = height,
              .left = narrow ? 44 : 58,
              .top = head + 6};
    p.right = p.width - (narrow ? 8 : 16);
    p.bottom = height - 46;
    return p;
}

static void draw_title(const plot *p, const char *title, const cm_readbench_session *s)
{
    char text[256];
    canvas_text style = {.x = 4, .y = 22, .size = 17, .bold = true, .colour = INK};
    snprintf(text, sizeof(text), "%s: %s%s", title, s->label, s->emulated ? " (EMULATED)" : "");
    canvas_write(p->c, &style, text);
}

int plot_file(const char *folder, const char *name, readbench_content *content, const void *context,
              cm_error *err)
{
    char file[96];
    snprintf(file, sizeof(file), "%s.svg", name);
    return readbench_file_write(folder, file, content, context, err);
}

typedef struct picture {
    const readbench_plot *plot;
    const cm_readbench_session *s;
} picture;

static int draw_picture(const void *context, FILE *to, cm_error *err)
{
    const picture *f = context;
    const unsigned height = height_of(f->plot, f->s, false) + PLOT_TITLE;
    const canvas c = canvas_begin(to, PLOT_WIDE, height);
    plot p = plot_frame(&c, false, height, PLOT_TITLE);
    draw_title(&p, f->plot->title, f->s);
    int rc = f->plot->draw(&p, f->s, err);
    canvas_end(&c);
    return rc;
}

int plot_write(const readbench_plot *r, const cm_readbench_session *s, const char *folder,
               cm_error *err)
{
    return plot_file(folder, r->name, draw_picture, &(picture){r, s}, err);
}

int plot_inline(const readbench_plot *r, const cm_readbench_session *s, FILE *to, cm_error *err)
{
    int rc = CM_OK;
    for (int narrow = 0; narrow < 2 && rc == CM_OK; narrow++) {
        char attributes[96];
        unsigned height = height_of(r, s, narrow);
        snprintf(attributes, sizeof(attributes), "class=\"%s\" data-plot=\"%s\"",
                 narrow ? "narrow" : "wide", r->name);
        const canvas c =
            canvas_begin_inline(to, narrow ? PLOT_NARROW : PLOT_WIDE, height, attributes, r->title);
        plot p = plot_frame(&c, narrow, height, 0);
        rc = r->draw(&p, s, err);
        canvas_end(&c);
    }
    return rc;
}
