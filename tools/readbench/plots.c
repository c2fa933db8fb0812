/* Every plot by name, to files and into a page. */
#include <stdlib.h>
#include <string.h>

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

const char *const PLOT_SUFFIX[2] = {"svg", "png"};

static unsigned height_of(const readbench_plot *r, const cm_readbench_session *s, bool narrow)
{
    if (r->height_of)
        return r->height_of(s, narrow);
    return narrow ? r->narrow_height : r->height;
}

plot plot_frame(canvas *c, bool narrow, unsigned height, double head)
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

int plot_begin_picture(plot_picture *f, const char *folder, const char *name, const char *suffix,
                       unsigned height, cm_error *err)
{
    char file[96];
    snprintf(file, sizeof(file), "%s.%s", name, suffix);
    int rc = readbench_part_open(&f->file, folder, file, err);
    return rc == CM_OK
               ? canvas_create(f->file.stream.file, f->file.whole, PLOT_WIDE, height, &f->c, err)
               : rc;
}

int plot_end_picture(plot_picture *f, int rc, cm_error *err)
{
    if (f->c) {
        int finished = canvas_finish(f->c, rc == CM_OK ? err : NULL);
        rc = rc == CM_OK ? finished : rc;
    }
    return readbench_part_close(&f->file, rc, err);
}

int plot_write(const readbench_plot *r, const cm_readbench_session *s, const char *folder,
               cm_error *err)
{
    int rc = CM_OK;

    for (size_t i = 0; i < 2 && rc == CM_OK; i++) {
        plot_picture f = {0};
        unsigned height = height_of(r, s, false) + PLOT_TITLE;
        rc = plot_begin_picture(&f, folder, r->name, PLOT_SUFFIX[i], height, err);
        if (rc == CM_OK) {
            plot p = plot_frame(f.c, false, height, PLOT_TITLE);
            draw_title(&p, r->title, s);
            rc = r->draw(&p, s, err);
        }
        rc = plot_end_picture(&f, rc, err);
    }
    return rc;
}

int plot_inline(const readbench_plot *r, const cm_readbench_session *s, FILE *to, cm_error *err)
{
    int rc = CM_OK;
    for (int narrow = 0; narrow < 2 && rc == CM_OK; narrow++) {
        canvas *c;
        char attributes[96];
        unsigned height = height_of(r, s, narrow);
        snprintf(attributes, sizeof(attributes), "class=\"%s\" data-plot=\"%s\"",
                 narrow ? "narrow" : "wide", r->name);
        rc = canvas_create_inline(to, narrow ? PLOT_NARROW : PLOT_WIDE, height, attributes,
                                  r->title, &c, err);
        if (rc != CM_OK)
            break;
        plot p = plot_frame(c, narrow, height, 0);
        rc = r->draw(&p, s, err);
        int finished = canvas_finish(c, NULL);
        rc = rc == CM_OK ? finished : rc;
    }
    return rc;
}
