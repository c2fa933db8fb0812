/* Which chunks of a store are there: a strip for each array along its first dimension. */
#include "report_census.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "../common/census_text.h"
#include "../common/print.h"
#include "../common/say.h"
#include "../common/wrap.h"
#include "base/number.h"

enum {
    COLUMNS_MOST = 200, /* as wrap.h counts them */
    INDENT = 4,
    LABEL_MOST = 28,
    SHOWN_KEYS = 8
};

/* ---- strips ---------------------------------------------------------------------------------- */

/*
 * Marks of WIDTH columns at most into STRIP.  Where cells are fewer, each takes as many columns;
 * where they are more, a column stands for several.
 */
static void fill_strip(const cm_census_array *a, size_t width, char *strip)
{
    const size_t n = a->ncells < width ? width / a->ncells * a->ncells : width;
    for (size_t i = 0; i < n; i++) {
        size_t first = i * a->ncells / n, end = (i + 1) * a->ncells / n;
        uint64_t nchunks = 0, nholes = 0;
        for (size_t k = first; k < end || k == first; k++) {
            nchunks += a->cell[k].nchunks;
            nholes += a->cell[k].nholes;
        }
        strip[i] = nholes == 0 ? '=' : nholes < nchunks ? '-' : '.';
    }
    strip[n] = '\0';
}

static void print_hole(const cm_census_array *a, cm_census_hole kind, int indent)
{
    char text[CENSUS_TEXT];
    census_hole_text(a, kind, text, sizeof(text));
    cm_print_wrapped(stdout, cm_wrap_columns(STDOUT_FILENO), (unsigned)indent, (unsigned)indent + 2,
                     text);
}

static void print_array(const cm_census_array *a, int width, size_t columns)
{
    const int indent = INDENT + width + 2;
    char strip[COLUMNS_MOST + 1] = "";
    if (a->ncells > 0)
        fill_strip(a, columns < sizeof(strip) ? columns : sizeof(strip) - 1, strip);
    cm_print(stdout, "%*s%-*.*s  %s\n", INDENT, "", width, width, census_array_name(a), strip);
    if (a->unclear != NULL)
        cm_print(stdout, "%*snot counted: %s\n", indent, "", a->unclear);
    if (a->undecoded != NULL)
        cm_print(stdout, "%*snot decoded: %s\n", indent, "", a->undecoded);
    for (int k = 0; k < CM_CENSUS_HOLES; k++)
        if (a->hole[k].n > 0)
            print_hole(a, (cm_census_hole)k, indent);
}

static void print_strips(const cm_census *c, bool all)
{
    int width = 0;
    const size_t columns = cm_wrap_columns(STDOUT_FILENO);
    for (size_t i = 0; i < c->narrays; i++) {
        const int n = (int)strnlen(census_array_name(&c->array[i]), LABEL_MOST);
        if ((all || census_array_has_holes(&c->array[i])) && n > width)
            width = n;
    }
    for (size_t i = 0; i < c->narrays; i++)
        if (all || census_array_has_holes(&c->array[i]) || c->array[i].unclear != NULL)
            print_array(&c->array[i], width, columns - INDENT - (size_t)width - 2);
    cm_print(stdout, "%*s= all there, - some, . none\n", INDENT, "");
}

/* ---- objects that belong to nothing ---------------------------------------------------------- */

static void print_foreign(const cm_census *c)
{
    if (c->nforeign == 0)
        return;
    cm_print(stdout, "%" PRIu64 " %s to nothing in this store:\n", c->nforeign,
             cm_of_count(c->nforeign, "object belongs", "objects belong"));
    for (size_t i = 0; i < c->nnamed && i < SHOWN_KEYS; i++)
        cm_print(stdout, "%*s%s: %s\n", INDENT, "", c->foreign[i].key, c->foreign[i].why);
    if (c->nforeign > SHOWN_KEYS)
        cm_print(stdout, "%*s...\n", INDENT, "");
}

/* ---- all of it ------------------------------------------------------------------------------- */

void chunkcalc_print_census(const cm_census *c, bool all)
{
    char text[CENSUS_TEXT];
    bool holes = false;
    for (size_t i = 0; i < c->narrays; i++) {
        holes = holes || census_array_has_holes(&c->array[i]);
        all = all || c->array[i].unclear != NULL || c->array[i].undecoded != NULL;
    }
    if (c->unlisted != NULL) {
        cm_print(stdout, "Which chunks are there is not known: %s.\n", c->unlisted);
        return;
    }
    if (!holes) {
        census_sum_text(c, text, sizeof(text));
        cm_print(stdout, "%s\n", text);
    }
    if (holes || all)
        print_strips(c, all);
    for (int outside = 0; outside < 2; outside++)
        if (census_place_text(&c->places, outside, text, sizeof(text)))
            cm_print(stdout, "%s\n", text);
    print_foreign(c);
}
