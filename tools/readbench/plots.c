/* Every plot by name, to files and into a page. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "file.h"
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
     "Bytes that the training took, and bytes that were read to make them.", 280, 290,
     plot_throughput, NULL},
    {"resources", "CPUs and memory over time",
     "Of this machine, and of readbench with its workers.", 500, 520, plot_resources, NULL},
    {NULL, NULL, NULL, 0, 0, NULL, NULL},
};

enum {
    TITLE = 34 /* above a plot that stands alone */
};

static unsigned height_of(const readbench_plot *r, const cm_readbench_session *s, bool narrow)
{
    if (r->height_of)
        return r->height_of(s, narrow);
    return narrow ? r->narrow_height : r->height;
}

static plot frame(canvas *c, bool narrow, unsigned height, double head)
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

/* Without the cairo library there are no PNGs: that is told once, and is no failure. */
static int missing_cairo(int rc, char **note, const cm_error *e, cm_error *err)
{
    if (rc != CM_EUNSUPPORTED) {
        if (err)
            *err = *e;
        return rc;
    }
    *note = cm_strdup("the PNG files are left out: they need the cairo library (Debian package "
                      "libcairo2), which is not installed",
                      err);
    return *note ? CM_OK : CM_ENOMEM;
}

/* Under a name for files that are not complete, then renamed. */
typedef struct picture {
    char *part, *whole;
    canvas *c;
} picture;

static int begin_picture(picture *f, const char *folder, const char *name, const char *suffix,
                         unsigned height, cm_error *err)
{
    char file[96];
    snprintf(file, sizeof(file), "%s.%s", name, suffix);
    f->part = readbench_file_path(folder, READBENCH_PART, file, err);
    f->whole = readbench_file_path(folder, "", file, err);
    if (f->part == NULL || f->whole == NULL)
        return CM_ENOMEM;
    return canvas_create(f->part, PLOT_WIDE, height, &f->c, err);
}

static int end_picture(picture *f, int rc, cm_error *err)
{
    if (f->c) {
        int finished = canvas_finish(f->c, rc == CM_OK ? err : NULL);
        rc = rc == CM_OK ? finished : rc;
        if (rc == CM_OK && rename(f->part, f->whole) != 0)
            rc = cm_fail(err, CM_EIO, "%s: cannot be renamed", f->part);
        if (rc != CM_OK)
            unlink(f->part);
    }
    free(f->part);
    free(f->whole);
    return rc;
}

int plot_write(const readbench_plot *r, const cm_readbench_session *s, const char *folder,
               char **note, cm_error *err)
{
    static const char *const SUFFIXES[] = {"svg", "png"};
    int rc = CM_OK;

    for (size_t i = 0; i < 2 && rc == CM_OK; i++) {
        picture f = {NULL};
        cm_error e = {0};
        if (i == 1 && *note)
            break;
        unsigned height = height_of(r, s, false) + TITLE;
        rc = begin_picture(&f, folder, r->name, SUFFIXES[i], height, &e);
        if (rc == CM_OK) {
            plot p = frame(f.c, false, height, TITLE);
            draw_title(&p, r->title, s);
            rc = r->draw(&p, s, &e);
        }
        rc = end_picture(&f, rc, &e);
        if (rc != CM_OK)
            rc = missing_cairo(rc, note, &e, err);
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
        plot p = frame(c, narrow, height, 0);
        rc = r->draw(&p, s, err);
        int finished = canvas_finish(c, NULL);
        rc = rc == CM_OK ? finished : rc;
    }
    return rc;
}

/* ---- several sessions ----------------------------------------------------------------------- */

enum {
    BAR = 40, /* height that each takes */
    COMPARISON_FOOT = 46,
    MAX_BARS = 40
};

static unsigned comparison_height(const cm_readbench_report *r)
{
    size_t n = r->nsessions < MAX_BARS ? r->nsessions : MAX_BARS;
    return (unsigned)(n * BAR + 10 + COMPARISON_FOOT);
}

static void draw_comparison(plot *p, const cm_readbench_report *r)
{
    double most = 0;
    char text[192];
    size_t n = r->nsessions < MAX_BARS ? r->nsessions : MAX_BARS;

    for (size_t i = 0; i < n; i++)
        most = r->session[i].rates.samples > most ? r->session[i].rates.samples : most;
    p->left = 6;
    plot_x_axis(p, 0, most > 0 ? most : 1, PLOT_COUNT, "samples a second");
    for (size_t i = 0; i < n; i++) {
        const cm_readbench_session *s = &r->session[i];
        double y = p->top + BAR * (double)i;
        unsigned colour = i == r->best ? VERMILION : i == r->baseline ? GREY : BLUE;
        int used =
            snprintf(text, sizeof(text), "%.80s: %.4g samples/s", s->label, s->rates.samples);
        if (r->ratio && i > 0 && used > 0 && (size_t)used < sizeof(text))
            snprintf(text + used, sizeof(text) - (size_t)used, ", %.2f of the first%s", r->ratio[i],
                     i == r->best ? ", the best" : "");
        plot_text(p, p->left + 2, y + 12, PLOT_TEXT, CANVAS_START, INK, text);
        canvas_box box = {p->left, y + 17, plot_x(p, s->rates.samples) - p->left, 15};
        canvas_boxes(p->c, &box, 1, 1, colour);
    }
}

int plot_comparison_write(const cm_readbench_report *r, const char *folder, char **note,
                          cm_error *err)
{
    static const char *const SUFFIXES[] = {"svg", "png"};
    int rc = CM_OK;

    for (size_t i = 0; i < 2 && rc == CM_OK; i++) {
        picture f = {NULL};
        cm_error e = {0};
        if (i == 1 && *note)
            break;
        unsigned height = comparison_height(r) + TITLE;
        rc = begin_picture(&f, folder, "comparison", SUFFIXES[i], height, &e);
        if (rc == CM_OK) {
            plot p = frame(f.c, false, height, TITLE);
            canvas_text style = {.x = 4, .y = 22, .size = 17, .bold = true, .colour = INK};
            canvas_write(f.c, &style,
                         readbench_emulated(r) ? "Samples a second (EMULATED)"
                                               : "Samples a second");
            draw_comparison(&p, r);
        }
        rc = end_picture(&f, rc, &e);
        if (rc != CM_OK)
            rc = missing_cairo(rc, note, &e, err);
    }
    return rc;
}

int plot_comparison_inline(const cm_readbench_report *r, FILE *to, cm_error *err)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        canvas *c;
        unsigned height = comparison_height(r);
        int rc = canvas_create_inline(to, narrow ? PLOT_NARROW : PLOT_WIDE, height,
                                      narrow ? "class=\"narrow\" data-plot=\"comparison\""
                                             : "class=\"wide\" data-plot=\"comparison\"",
                                      "Samples a second of each", &c, err);
        if (rc != CM_OK)
            return rc;
        plot p = frame(c, narrow, height, 0);
        draw_comparison(&p, r);
        canvas_finish(c, NULL);
    }
    return CM_OK;
}
