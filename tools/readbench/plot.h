/* One plot: a frame on a canvas, axes with round ticks, a legend. */
#ifndef CM_TOOLS_READBENCH_PLOT_H
#define CM_TOOLS_READBENCH_PLOT_H

#include "../common/canvas.h"
#include "../common/palette.h"
#include "file.h"
#include "readbench.h"

enum {
    PLOT_WIDE = 860, /* of the two renderings of each plot, in pixels */
    PLOT_NARROW = 340,
    PLOT_TEXT = 12
};

typedef enum plot_kind {
    PLOT_SECONDS,
    PLOT_RATE,
    PLOT_BYTES,
    PLOT_COUNT, /* whole numbers */
    PLOT_NUMBER,
    PLOT_SHARE
} plot_kind;

typedef struct plot {
    const canvas *c;
    double width, height;
    bool narrow;
    double left, right, top, bottom; /* of the area inside the axes */
    double xlow, xhigh, ylow, yhigh; /* values there */
} plot;

typedef struct plot_entry { /* of a legend */
    const char *text;
    unsigned colour;
    bool line;   /* a line instead of a box */
    bool dashed; /* the line */
} plot_entry;

double plot_x(const plot *p, double value); /* both clip to the area */
double plot_y(const plot *p, double value);

/*
 * Draws the axis from LOW to HIGH with round ticks; HIGH is raised to the next tick for the
 * vertical one.
 */
void plot_x_axis(plot *p, double low, double high, plot_kind kind, const char *title);
void plot_y_axis(plot *p, double high, plot_kind kind, const char *title);
/* The horizontal axis of seconds, logarithmic, LOW and HIGH as log10. */
void plot_x_decades(plot *p, double low, double high, const char *title);

/* From the upper left corner of the plot's head, wrapped; returns the height that it took. */
double plot_legend(const plot *p, double y, const plot_entry *entry, size_t n);
void plot_text(const plot *p, double x, double y, double size, canvas_anchor anchor,
               unsigned colour, const char *text);
/* About how wide TEXT is, for leaving room. */
double plot_text_width(const char *text, double size);

/* Batches in the order in which they were wanted; to be freed. */
int plot_sorted(const cm_readbench_session *s, const cm_readbench_batch ***out, cm_error *err);
/* When the last of everything recorded ended, seconds. */
double plot_end(const cm_readbench_session *s);

/* ---- the plots ------------------------------------------------------------------------------ */

typedef int plot_draw(plot *p, const cm_readbench_session *s, cm_error *err);
plot_draw plot_batch_breakdown, plot_batch_total, plot_shares, plot_waits, plot_timeline,
    plot_throughput, plot_resources;

typedef struct readbench_plot {
    const char *name; /* of its files */
    const char *title;
    const char *caption;
    unsigned height, narrow_height;
    plot_draw *draw;
    /* Height that it needs in place of the fixed ones, or NULL. */
    unsigned (*height_of)(const cm_readbench_session *s, bool narrow);
} readbench_plot;

extern const readbench_plot READBENCH_PLOTS[]; /* a row without a name ends */
unsigned plot_timeline_height(const cm_readbench_session *s, bool narrow);

/* NAME.svg in FOLDER. */
int plot_write(const readbench_plot *plot, const cm_readbench_session *s, const char *folder,
               cm_error *err);
/* Both renderings into a page. */
int plot_inline(const readbench_plot *plot, const cm_readbench_session *s, FILE *to, cm_error *err);

/* ---- several sessions ----------------------------------------------------------------------- */

typedef struct readbench_comparison {
    const char *name, *title, *caption;
    void (*draw)(plot *p, const cm_readbench_report *r);
} readbench_comparison;

extern const readbench_comparison READBENCH_COMPARISONS[]; /* a row without a name ends */
int plot_comparison_write(const readbench_comparison *plot, const cm_readbench_report *r,
                          const char *folder, cm_error *err);
void plot_comparison_inline(const readbench_comparison *plot, const cm_readbench_report *r,
                            FILE *to);

/* ---- pictures ------------------------------------------------------------------------------- */

enum {
    PLOT_TITLE = 34 /* height above a plot that stands alone */
};

/* FOLDER/NAME.svg, as CONTENT draws it. */
int plot_file(const char *folder, const char *name, readbench_content *content, const void *context,
              cm_error *err);
/* The frame of a plot of HEIGHT whose upper HEAD pixels are taken. */
plot plot_frame(const canvas *c, bool narrow, unsigned height, double head);

#endif
