/*
 * Which chunks are there: a strip for each array that lacks some, and objects that belong to
 * nothing.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "canvas.h"
#include "census_text.h"
#include "page.h"
#include "palette.h"
#include "passport_page.h"

enum {
    WIDE = 860,
    NARROW = 340,
    STRIP = 22, /* heights */
    LABELS = 18,
    TEXT = 12,
    MOST_DRAWN = 40, /* arrays; of others there are sentences, */
    MOST_TOLD = 400  /* and of others again their number */
};

static bool is_told(const cm_census_array *a)
{
    return census_array_has_holes(a) || a->unclear != NULL || a->undecoded != NULL;
}

static uint64_t count_holes(const cm_census_array *a)
{
    uint64_t n = 0;
    for (int k = 0; k < CM_CENSUS_HOLES; k++)
        n += k == CM_CENSUS_LEFT_OUT ? 0 : a->hole[k].n;
    return n;
}

/* ---- the tile ---- */

void passport_census_tile(const passport_facts *facts, FILE *to)
{
    const cm_census *c = facts->census;
    char value[64], note[96];
    uint64_t nchunks = 0, holes = 0;
    bool all = true;
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->narrays; i++) {
        all = all && c->array[i].unclear == NULL;
        nchunks += c->array[i].unclear == NULL ? c->array[i].nchunks : 0;
        holes += count_holes(&c->array[i]);
    }
    const char *label = facts->converted != NULL ? "chunks of the source" : "chunks that are there";
    if (c->unlisted != NULL) {
        page_tile(label, "", "not known", "they were not listed", to);
        return;
    }
    if (holes == 0) {
        snprintf(note, sizeof note, "%" PRIu64 " %s%s", nchunks,
                 cm_of_count(nchunks, "chunk", "chunks"), all ? "" : ", some were not counted");
        page_tile(label, all ? " good" : "", "no holes", note, to);
        return;
    }
    snprintf(value, sizeof value, "%" PRIu64 " %s", holes, cm_of_count(holes, "hole", "holes"));
    snprintf(note, sizeof note, "of %" PRIu64 " %s", nchunks,
             cm_of_count(nchunks, "chunk", "chunks"));
    page_tile(label, " bad", value, note, to);
}

/* ---- a strip ---- */

/* An array, and its variable where the page describes the counted store. */
typedef struct shown {
    const cm_census_array *a;
    const cm_passport_variable *v; /* or NULL */
} shown;

/* The ends of the first dimension: by its coordinate where steps lie along it. */
static void end_label(const shown *s, bool last, char *text, size_t size)
{
    const cm_passport_variable *v = s->v;
    const bool stepped = v != NULL && v->is_counted && v->step_dim == 0;
    const char *label = !stepped ? NULL : last ? v->last_label : v->first_label;
    if (label != NULL)
        snprintf(text, size, "%.70s", label);
    else if (v != NULL && v->rank > 0 && v->shape[0] > 0)
        snprintf(text, size, "index %" PRIu64, last ? v->shape[0] - 1 : 0);
    else
        snprintf(text, size, "%s", last ? "last" : "first");
}

static void draw_ends(const canvas *c, const shown *s, double right, double y)
{
    char text[80];
    for (int last = 0; last < (s->a->ncells > 1 ? 2 : 1); last++) {
        end_label(s, last, text, sizeof text);
        canvas_write(c,
                     &(canvas_text){.x = last ? right : 0,
                                    .y = y,
                                    .size = TEXT,
                                    .anchor = last ? CANVAS_END : CANVAS_START,
                                    .colour = GREY},
                     text);
    }
}

/* As missing values are drawn: the height of a box is the share of holes. */
static void draw(const shown *s, unsigned width, const char *attributes, const char *label,
                 canvas_box *box, FILE *to)
{
    const cm_census_array *a = s->a;
    const double right = width, each = right / (double)a->ncells;
    size_t n = 0;
    const canvas c = canvas_begin_inline(to, width, STRIP + 4 + LABELS, attributes, label);
    canvas_boxes(&c, &(canvas_box){0, 2, right, STRIP}, 1, 0.5, PALE);
    for (size_t i = 0; i < a->ncells; i++) {
        if (a->cell[i].nholes == 0)
            continue;
        const double share = (double)a->cell[i].nholes / (double)a->cell[i].nchunks;
        const double height = fmax(2, share * STRIP);
        box[n++] = (canvas_box){(double)i * each, 2 + STRIP - height, fmax(each, 1.5), height};
    }
    canvas_boxes(&c, box, n, 1, VERMILION);
    draw_ends(&c, s, right, STRIP + 4 + LABELS - 4);
    canvas_end(&c);
}

static int put_strip(const shown *s, FILE *to, cm_error *err)
{
    char label[160];
    canvas_box *box = cm_calloc(s->a->ncells + 1, sizeof(box[0]), err);
    if (box == NULL)
        return CM_ENOMEM;
    snprintf(label, sizeof label, "%.80s: where along its first dimension chunks are not there",
             census_array_name(s->a));
    fputs("<figure>\n", to);
    draw(s, WIDE, "class=\"wide\"", label, box, to);
    draw(s, NARROW, "class=\"narrow\"", label, box, to);
    fputs("</figure>\n", to);
    free(box);
    return CM_OK;
}

/* ---- an array ---- */

static void put_reason(const char *what, const char *why, FILE *to)
{
    if (why == NULL)
        return;
    fprintf(to, "<p class=\"note\">Not %s: ", what);
    page_text(why, to);
    fputs("</p>\n", to);
}

static int put_array(const shown *s, bool drawn, FILE *to, cm_error *err)
{
    const cm_census_array *a = s->a;
    char text[CENSUS_TEXT];
    int rc = CM_OK;
    fputs("<section class=\"variable\"><h3>", to);
    page_text(census_array_name(a), to);
    fputs("</h3>\n", to);
    put_reason("counted", a->unclear, to);
    put_reason("decoded", a->undecoded, to);
    for (int k = 0; k < CM_CENSUS_HOLES; k++)
        if (a->hole[k].n > 0) {
            census_hole_text(a, (cm_census_hole)k, text, sizeof text);
            page_line(k == CM_CENSUS_LEFT_OUT ? "note" : "bad", text, to);
        }
    if (drawn && a->ncells > 0 && census_array_has_holes(a))
        rc = put_strip(s, to, err);
    fputs("</section>\n", to);
    return rc;
}

/* The variable of the page that A is; of a conversion A is an array of its source. */
static const cm_passport_variable *variable_of(const passport_facts *facts,
                                               const cm_census_array *a)
{
    const cm_passport *p = facts->passport;
    for (size_t i = 0; facts->converted == NULL && i < p->nvariables; i++)
        if (strcmp(p->variable[i].name, a->name) == 0)
            return &p->variable[i];
    return NULL;
}

static int put_arrays(const passport_facts *facts, FILE *to, cm_error *err)
{
    const cm_census *c = facts->census;
    uint64_t others = 0, chunks = 0, told = 0;
    int rc = CM_OK;
    for (size_t i = 0; i < c->narrays && rc == CM_OK; i++) {
        const cm_census_array *a = &c->array[i];
        if (!is_told(a)) {
            others++;
            chunks += a->npresent;
        } else if (told++ < MOST_TOLD) {
            rc = put_array(&(shown){a, variable_of(facts, a)}, told <= MOST_DRAWN, to, err);
        }
    }
    if (told > MOST_TOLD)
        fprintf(to, "<p>and %" PRIu64 " more %s with holes.</p>\n", told - MOST_TOLD,
                cm_of_count(told - MOST_TOLD, "array", "arrays"));
    if (others > 0)
        fprintf(to, "<p class=\"note\">The other %s: %" PRIu64 " %s there, none is missing.</p>\n",
                cm_of_count(others, "array is whole", "arrays are whole"), chunks,
                cm_of_count(chunks, "chunk is", "chunks are"));
    return rc;
}

/* ---- the section ---- */

static void put_foreign(const cm_census *c, FILE *to)
{
    if (c->nforeign == 0)
        return;
    fprintf(to, "<p>%" PRIu64 " %s to nothing in this store:</p>\n<ul class=\"findings\">\n",
            c->nforeign, cm_of_count(c->nforeign, "object belongs", "objects belong"));
    for (size_t i = 0; i < c->nnamed; i++) {
        fputs("<li><b>", to);
        page_text(c->foreign[i].key, to);
        fputs("</b>: ", to);
        page_text(c->foreign[i].why, to);
        fputs("</li>\n", to);
    }
    if (c->nforeign > c->nnamed)
        fprintf(to, "<li>and %" PRIu64 " more</li>\n", c->nforeign - c->nnamed);
    fputs("</ul>\n", to);
}

static int put_counted(const passport_facts *facts, FILE *to, cm_error *err)
{
    const cm_census *c = facts->census;
    char text[CENSUS_TEXT];
    bool holes = false, told = false;
    int rc = CM_OK;
    for (size_t i = 0; i < c->narrays; i++) {
        holes = holes || census_array_has_holes(&c->array[i]);
        told = told || is_told(&c->array[i]);
    }
    if (!holes) {
        census_sum_text(c, text, sizeof text);
        page_line("plain", text, to);
    } else {
        fputs("<p class=\"note\">Readers get the fill value where a chunk is not there. A strip "
              "shows the share of chunks that are not there, or not right, along the first "
              "dimension of an array.</p>\n",
              to);
    }
    if (told)
        rc = put_arrays(facts, to, err);
    for (int outside = 0; outside < 2; outside++)
        if (census_place_text(&c->places, outside, text, sizeof text))
            page_line("note", text, to);
    put_foreign(c, to);
    return rc;
}

int passport_census(const passport_facts *facts, FILE *to, cm_error *err)
{
    const cm_census *c = facts->census;
    int rc = CM_OK;
    if (c == NULL)
        return CM_OK;
    fprintf(to, "<section><h2>Which chunks %sare there</h2>\n",
            facts->converted != NULL ? "of the source " : "");
    if (c->unlisted != NULL) {
        fputs("<p>That is not known: ", to);
        page_text(c->unlisted, to);
        fputs(".</p>\n", to);
    } else {
        rc = put_counted(facts, to, err);
    }
    fputs("</section>\n", to);
    return rc;
}
