/*
 * A drawing surface: an SVG file, or SVG inside a page.  Coordinates are pixels from the
 * upper left corner; colours are 0xRRGGBB.  Inside a page a colour is a class, fRRGGBB or
 * sRRGGBB for filling and stroking, so that the page's style can hold a dark counterpart for each.
 */
#ifndef CM_TOOLS_CANVAS_H
#define CM_TOOLS_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct canvas {
    FILE *to;     /* its owner closes it, and asks whether it took everything */
    bool inlined; /* in a page: colours are classes */
} canvas;

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

/* A file, which begins with the mark of base/marks.h. */
canvas canvas_begin(FILE *to, unsigned width, unsigned height);

/* An element of a page.  ATTRIBUTES are the page's own, LABEL is what a screen reader says. */
canvas canvas_begin_inline(FILE *to, unsigned width, unsigned height, const char *attributes,
                           const char *label);

/* DASH is the length of dashes and gaps, 0 for a solid line. */
void canvas_line(const canvas *c, const canvas_point *p, size_t n, double width, double dash,
                 unsigned colour);
void canvas_area(const canvas *c, const canvas_point *p, size_t n, double opacity, unsigned colour);
/* N boxes of one colour: one element, however many. */
void canvas_boxes(const canvas *c, const canvas_box *box, size_t n, double opacity,
                  unsigned colour);
void canvas_write(const canvas *c, const canvas_text *style, const char *text);

/* Writes the rest of the picture. */
void canvas_end(const canvas *c);

#endif
