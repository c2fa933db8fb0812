/*
 * A drawing surface with three ways out: SVG files, written here, SVG inside a page,
 * and PNG through the cairo library.  Coordinates are pixels from the upper left
 * corner; colours are 0xRRGGBB.  Inside a page a colour is a class, fRRGGBB or
 * sRRGGBB for filling and stroking, so that the page's style can hold a dark counterpart for each.
 */
#ifndef CM_TOOLS_CANVAS_H
#define CM_TOOLS_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <chunkmill/error.h>

typedef struct canvas canvas;

typedef struct canvas_point {
    double x, y;
} canvas_point;

typedef struct canvas_box {
    double x, y, width, height;
} canvas_box;

typedef enum canvas_anchor {
    CANVAS_START,
    CANVAS_MIDDLE,
    CANVAS_END
} canvas_anchor;

typedef struct canvas_text {
    double x, y; /* of the anchor, on the base line */
    double size;
    double angle; /* degrees, clockwise */
    canvas_anchor anchor;
    bool bold;
    unsigned colour;
} canvas_text;

/*
 * A picture that is written to TO, which stays its owner's, to close and to ask whether it took
 * everything.  NAME, for messages, ends in .svg or .png.  The file begins with the mark of
 * base/marks.h.
 */
int canvas_create(FILE *to, const char *name, unsigned width, unsigned height, canvas **out,
                  cm_error *err);

/*
 * An element of a page, written to TO, which stays open.  ATTRIBUTES are the page's
 * own, LABEL is what a screen reader says.
 */
int canvas_create_inline(FILE *to, unsigned width, unsigned height, const char *attributes,
                         const char *label, canvas **out, cm_error *err);

/* DASH is the length of dashes and gaps, 0 for a solid line. */
void canvas_line(canvas *c, const canvas_point *p, size_t n, double width, double dash,
                 unsigned colour);
void canvas_area(canvas *c, const canvas_point *p, size_t n, double opacity, unsigned colour);
/* N boxes of one colour: one element, however many. */
void canvas_boxes(canvas *c, const canvas_box *box, size_t n, double opacity, unsigned colour);
void canvas_write(canvas *c, const canvas_text *style, const char *text);

/* Writes the rest of the picture and frees C, also when it fails. */
int canvas_finish(canvas *c, cm_error *err);

#endif
