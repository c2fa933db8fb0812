#include "canvas.h"

#include <cairo.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/marks.h"
#include "base/mem.h"

enum {
    PNG_SCALE = 2 /* pixels a unit, so that print is sharp */
};

struct canvas {
    char *path;   /* for messages */
    FILE *to;     /* of a PNG */
    FILE *svg;    /* NULL: PNG */
    bool inlined; /* in a page: colours are classes */
    cairo_surface_t *surface;
    cairo_t *cr;
};

/* ---- PNG ----------------------------------------------------------------------------------- */

static int open_cairo(canvas *c, unsigned width, unsigned height, cm_error *err)
{
    c->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width * PNG_SCALE,
                                            (int)height * PNG_SCALE);
    c->cr = cairo_create(c->surface);
    if (cairo_status(c->cr) != CAIRO_STATUS_SUCCESS)
        return cm_fail(err, CM_ENOMEM, "%s: no memory for the picture", c->path);
    cairo_set_source_rgba(c->cr, 1, 1, 1, 1);
    cairo_paint(c->cr);
    cairo_scale(c->cr, PNG_SCALE, PNG_SCALE);
    cairo_set_line_join(c->cr, CAIRO_LINE_JOIN_ROUND);
    return CM_OK;
}

static void set_colour(canvas *c, unsigned colour, double opacity)
{
    cairo_set_source_rgba(c->cr, (colour >> 16 & 255) / 255.0, (colour >> 8 & 255) / 255.0,
                          (colour & 255) / 255.0, opacity);
}

static void trace(canvas *c, const canvas_point *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i == 0)
            cairo_move_to(c->cr, p[i].x, p[i].y);
        else
            cairo_line_to(c->cr, p[i].x, p[i].y);
    }
}

static void write_cairo(canvas *c, const canvas_text *s, const char *text)
{
    cairo_text_extents_t extents;

    cairo_save(c->cr);
    cairo_select_font_face(c->cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           s->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(c->cr, s->size);
    set_colour(c, s->colour, 1);
    cairo_translate(c->cr, s->x, s->y);
    cairo_rotate(c->cr, s->angle * M_PI / 180);
    cairo_text_extents(c->cr, text, &extents);
    cairo_move_to(c->cr, -extents.x_advance * s->anchor / 2, 0);
    cairo_show_text(c->cr, text);
    cairo_restore(c->cr);
}

/* ---- SVG ----------------------------------------------------------------------------------- */

static void escape_svg(const char *text, FILE *to)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '&')
            fputs("&amp;", to);
        else if (*p == '<')
            fputs("&lt;", to);
        else if (*p == '"')
            fputs("&quot;", to);
        else if ((unsigned char)*p >= ' ')
            putc(*p, to);
    }
}

static void open_svg(canvas *c, unsigned width, unsigned height)
{
    fprintf(c->svg,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" CM_MARK_SVG "\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
            "viewBox=\"0 0 %u %u\" font-family=\"Helvetica, Arial, sans-serif\">\n"
            "<rect width=\"%u\" height=\"%u\" fill=\"#ffffff\"/>\n",
            width, height, width, height, width, height);
}

static void open_inline(const canvas *c, unsigned width, unsigned height, const char *attributes,
                        const char *label)
{
    fprintf(c->svg, "<svg viewBox=\"0 0 %u %u\" role=\"img\" %s aria-label=\"", width, height,
            attributes);
    escape_svg(label, c->svg);
    fputs("\">\n", c->svg);
}

static void colour_svg(const canvas *c, bool stroke, unsigned colour)
{
    if (c->inlined)
        fprintf(c->svg, " class=\"%c%06x\"", stroke ? 's' : 'f', colour);
    else
        fprintf(c->svg, stroke ? " fill=\"none\" stroke=\"#%06x\"" : " fill=\"#%06x\"", colour);
}

static void points_svg(canvas *c, const char *element, const canvas_point *p, size_t n)
{
    fprintf(c->svg, "<%s points=\"", element);
    for (size_t i = 0; i < n; i++)
        fprintf(c->svg, "%s%.2f,%.2f", i > 0 ? " " : "", p[i].x, p[i].y);
    fputs("\"", c->svg);
}

static void boxes_svg(canvas *c, const canvas_box *box, size_t n, double opacity, unsigned colour)
{
    fputs("<path d=\"", c->svg);
    for (size_t i = 0; i < n; i++)
        fprintf(c->svg, "M%.1f %.1fh%.1fv%.1fh%.1fz", box[i].x, box[i].y, box[i].width,
                box[i].height, -box[i].width);
    putc('"', c->svg);
    colour_svg(c, false, colour);
    if (opacity < 1)
        fprintf(c->svg, " fill-opacity=\"%.4g\"", opacity);
    fputs("/>\n", c->svg);
}

static void write_svg(canvas *c, const canvas_text *s, const char *text)
{
    static const char *const ANCHORS[] = {"start", "middle", "end"};

    fprintf(c->svg, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.4g\"", s->x, s->y, s->size);
    colour_svg(c, false, s->colour);
    if (s->anchor != CANVAS_START)
        fprintf(c->svg, " text-anchor=\"%s\"", ANCHORS[s->anchor]);
    if (s->bold)
        fputs(" font-weight=\"bold\"", c->svg);
    if (s->angle != 0)
        fprintf(c->svg, " transform=\"rotate(%.4g %.2f %.2f)\"", s->angle, s->x, s->y);
    putc('>', c->svg);
    escape_svg(text, c->svg);
    fputs("</text>\n", c->svg);
}

/* ---- both ---------------------------------------------------------------------------------- */

static int release(canvas *c, int rc)
{
    if (c->cr != NULL)
        cairo_destroy(c->cr);
    if (c->surface != NULL)
        cairo_surface_destroy(c->surface);
    free(c->path);
    free(c);
    return rc;
}

int canvas_create(FILE *to, const char *name, unsigned width, unsigned height, canvas **out,
                  cm_error *err)
{
    canvas *c = calloc(1, sizeof(*c));
    size_t n = strlen(name);
    int rc = CM_OK;

    if (c == NULL || (c->path = strdup(name)) == NULL) {
        free(c);
        return cm_fail(err, CM_ENOMEM, "%s: no memory for the picture", name);
    }
    if (n > 4 && strcmp(name + n - 4, ".png") == 0) {
        c->to = to;
        rc = open_cairo(c, width, height, err);
    } else {
        c->svg = to;
        open_svg(c, width, height);
    }
    if (rc != CM_OK)
        return release(c, rc);
    *out = c;
    return CM_OK;
}

int canvas_create_inline(FILE *to, unsigned width, unsigned height, const char *attributes,
                         const char *label, canvas **out, cm_error *err)
{
    canvas *c = cm_calloc(1, sizeof(*c), err);

    if (c == NULL)
        return CM_ENOMEM;
    c->svg = to;
    c->inlined = true;
    open_inline(c, width, height, attributes, label);
    *out = c;
    return CM_OK;
}

void canvas_line(canvas *c, const canvas_point *p, size_t n, double width, double dash,
                 unsigned colour)
{
    if (c->svg != NULL) {
        points_svg(c, "polyline", p, n);
        colour_svg(c, true, colour);
        fprintf(c->svg, " stroke-width=\"%.4g\"", width);
        if (dash > 0)
            fprintf(c->svg, " stroke-dasharray=\"%.4g\"", dash);
        fputs(" stroke-linejoin=\"round\"/>\n", c->svg);
        return;
    }
    set_colour(c, colour, 1);
    cairo_set_line_width(c->cr, width);
    cairo_set_dash(c->cr, &dash, dash > 0 ? 1 : 0, 0);
    trace(c, p, n);
    cairo_stroke(c->cr);
}

void canvas_area(canvas *c, const canvas_point *p, size_t n, double opacity, unsigned colour)
{
    if (c->svg != NULL) {
        points_svg(c, "polygon", p, n);
        colour_svg(c, false, colour);
        fprintf(c->svg, " fill-opacity=\"%.4g\"/>\n", opacity);
        return;
    }
    set_colour(c, colour, opacity);
    trace(c, p, n);
    cairo_close_path(c->cr);
    cairo_fill(c->cr);
}

void canvas_boxes(canvas *c, const canvas_box *box, size_t n, double opacity, unsigned colour)
{
    if (n == 0)
        return;
    if (c->svg != NULL) {
        boxes_svg(c, box, n, opacity, colour);
        return;
    }
    set_colour(c, colour, opacity);
    for (size_t i = 0; i < n; i++) {
        double right = box[i].x + box[i].width, bottom = box[i].y + box[i].height;
        canvas_point p[] = {
            {box[i].x, box[i].y}, {right, box[i].y}, {right, bottom}, {box[i].x, bottom}};
        trace(c, p, 4);
        cairo_close_path(c->cr);
    }
    cairo_fill(c->cr);
}

void canvas_write(canvas *c, const canvas_text *style, const char *text)
{
    if (c->svg != NULL)
        write_svg(c, style, text);
    else
        write_cairo(c, style, text);
}

typedef struct png {
    FILE *to;
    size_t at;
} png;

static void put_png(const png *p, const void *data, size_t nbytes)
{
    fwrite(data, 1, nbytes, p->to);
}

/* The bytes of a PNG on their way to its file; the mark goes behind the first chunk. */
static cairo_status_t write_png(void *context, const unsigned char *data, unsigned int nbytes)
{
    png *p = context;
    size_t before = 0;
    if (p->at < CM_MARK_PNG_AT && p->at + nbytes >= CM_MARK_PNG_AT) {
        before = CM_MARK_PNG_AT - p->at;
        put_png(p, data, before);
        put_png(p, CM_MARK_PNG, CM_MARK_PNG_NBYTES);
    }
    put_png(p, data + before, nbytes - before);
    p->at += nbytes;
    return ferror(p->to) ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

int canvas_finish(canvas *c, cm_error *err)
{
    int rc = CM_OK;

    if (c->svg != NULL) {
        fputs("</svg>\n", c->svg);
        return release(c, rc);
    }
    png p = {.to = c->to};
    cairo_status_t status = cairo_surface_write_to_png_stream(c->surface, write_png, &p);
    if (status != CAIRO_STATUS_SUCCESS && status != CAIRO_STATUS_WRITE_ERROR)
        rc = cm_fail(err, CM_EIO, "%s: cannot be written: %s", c->path,
                     cairo_status_to_string(status));
    return release(c, rc);
}
