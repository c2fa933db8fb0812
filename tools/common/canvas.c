#include "canvas.h"

#include "base/marks.h"

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

static void put_colour(const canvas *c, bool stroke, unsigned colour)
{
    if (c->inlined)
        fprintf(c->to, " class=\"%c%06x\"", stroke ? 's' : 'f', colour);
    else
        fprintf(c->to, stroke ? " fill=\"none\" stroke=\"#%06x\"" : " fill=\"#%06x\"", colour);
}

static void put_points(const canvas *c, const char *element, const canvas_point *p, size_t n)
{
    fprintf(c->to, "<%s points=\"", element);
    for (size_t i = 0; i < n; i++)
        fprintf(c->to, "%s%.2f,%.2f", i > 0 ? " " : "", p[i].x, p[i].y);
    fputs("\"", c->to);
}

canvas canvas_begin(FILE *to, unsigned width, unsigned height)
{
    fprintf(to,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" CM_MARK_SVG "\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
            "viewBox=\"0 0 %u %u\" font-family=\"Helvetica, Arial, sans-serif\">\n"
            "<rect width=\"%u\" height=\"%u\" fill=\"#ffffff\"/>\n",
            width, height, width, height, width, height);
    return (canvas){.to = to};
}

canvas canvas_begin_inline(FILE *to, unsigned width, unsigned height, const char *attributes,
                           const char *label)
{
    fprintf(to, "<svg viewBox=\"0 0 %u %u\" role=\"img\" %s aria-label=\"", width, height,
            attributes);
    escape_svg(label, to);
    fputs("\">\n", to);
    return (canvas){.to = to, .inlined = true};
}

void canvas_line(const canvas *c, const canvas_point *p, size_t n, double width, double dash,
                 unsigned colour)
{
    put_points(c, "polyline", p, n);
    put_colour(c, true, colour);
    fprintf(c->to, " stroke-width=\"%.4g\"", width);
    if (dash > 0)
        fprintf(c->to, " stroke-dasharray=\"%.4g\"", dash);
    fputs(" stroke-linejoin=\"round\"/>\n", c->to);
}

void canvas_area(const canvas *c, const canvas_point *p, size_t n, double opacity, unsigned colour)
{
    put_points(c, "polygon", p, n);
    put_colour(c, false, colour);
    fprintf(c->to, " fill-opacity=\"%.4g\"/>\n", opacity);
}

void canvas_boxes(const canvas *c, const canvas_box *box, size_t n, double opacity, unsigned colour)
{
    if (n == 0)
        return;
    fputs("<path d=\"", c->to);
    for (size_t i = 0; i < n; i++)
        fprintf(c->to, "M%.1f %.1fh%.1fv%.1fh%.1fz", box[i].x, box[i].y, box[i].width,
                box[i].height, -box[i].width);
    putc('"', c->to);
    put_colour(c, false, colour);
    if (opacity < 1)
        fprintf(c->to, " fill-opacity=\"%.4g\"", opacity);
    fputs("/>\n", c->to);
}

void canvas_write(const canvas *c, const canvas_text *s, const char *text)
{
    static const char *const ANCHORS[] = {"start", "middle", "end"};

    fprintf(c->to, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.4g\"", s->x, s->y, s->size);
    put_colour(c, false, s->colour);
    if (s->anchor != CANVAS_START)
        fprintf(c->to, " text-anchor=\"%s\"", ANCHORS[s->anchor]);
    if (s->bold)
        fputs(" font-weight=\"bold\"", c->to);
    if (s->angle != 0)
        fprintf(c->to, " transform=\"rotate(%.4g %.2f %.2f)\"", s->angle, s->x, s->y);
    putc('>', c->to);
    escape_svg(text, c->to);
    fputs("</text>\n", c->to);
}

void canvas_end(const canvas *c)
{
    fputs("</svg>\n", c->to);
}
