/*
 * A drawing surface with two ways out: SVG, written here, and PNG through the
 * cairo library, which is looked up at run time so that nothing else needs it.
 * Coordinates are pixels from the upper left corner; colours are 0xRRGGBB.
 */
#ifndef CM_TOOLS_CHUNKCALC_CANVAS_H
#define CM_TOOLS_CHUNKCALC_CANVAS_H

#include <stdbool.h>
#include <stddef.h>

#include <chunkmill/error.h>

typedef struct canvas canvas;

typedef struct canvas_point {
    double x, y;
} canvas_point;

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

/* PATH ends in .svg or .png.  CM_EUNSUPPORTED for .png where cairo is not installed. */
int canvas_create(const char *path, unsigned width, unsigned height, canvas **out, cm_error *err);

/* DASH is the length of dashes and gaps, 0 for a solid line. */
void canvas_line(canvas *c, const canvas_point *p, size_t n, double width, double dash,
                 unsigned colour);
void canvas_area(canvas *c, const canvas_point *p, size_t n, double opacity, unsigned colour);
void canvas_write(canvas *c, const canvas_text *style, const char *text);

/* Writes the file and frees C, also when it fails. */
int canvas_finish(canvas *c, cm_error *err);

#endif
