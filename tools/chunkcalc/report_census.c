/* Which chunks of a store are there: a strip for each array along its first dimension. */
#include "report_census.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "../common/print.h"
#include "../common/say.h"
#include "../common/wrap.h"
#include "base/number.h"

enum {
    COLUMNS_MOST = 200, /* as wrap.h counts them */
    INDENT = 4,
    LABEL_MOST = 28,
    SHOWN_NAMES = 3,
    SHOWN_KEYS = 8
};

/* How a hole is told behind "3 of 16 chunks are". */
static const char *const HOLE[CM_CENSUS_HOLES] = {
    [CM_CENSUS_ABSENT] = "absent, read as fill", [CM_CENSUS_LEFT_OUT] = "left out: all fill",
    [CM_CENSUS_EMPTY] = "empty: 0 bytes",        [CM_CENSUS_TRUNCATED] = "truncated",
    [CM_CENSUS_UNDECODABLE] = "undecodable",
};

static const char *name_of(const cm_census_array *a)
{
    return a->name[0] != '\0' ? a->name : "/";
}

static bool has_holes(const cm_census_array *a)
{
    for (int k = 0; k < CM_CENSUS_HOLES; k++)
        if (k != CM_CENSUS_LEFT_OUT && a->hole[k].n > 0)
            return true;
    return false;
}

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
    const cm_census_count *c = &a->hole[kind];
    char text[1024];
    int n = snprintf(text, sizeof(text), "%" PRIu64 " of %" PRIu64 " %s %s %s", c->n, a->nchunks,
                     cm_of_count(a->nchunks, "chunk", "chunks"), cm_of_count(c->n, "is", "are"),
                     kind == CM_CENSUS_ABSENT && a->no_fill ? "absent, read as zeros" : HOLE[kind]);
    for (size_t i = 0; i < c->nnames && i < SHOWN_NAMES && n > 0 && (size_t)n < sizeof(text); i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s", i == 0 ? " (" : ", ", c->name[i]);
    const bool more = c->nnames > SHOWN_NAMES || c->more;
    if (c->nnames > 0 && n > 0 && (size_t)n < sizeof(text))
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s)", more ? ", ..." : "");
    if (c->why != NULL && n > 0 && (size_t)n < sizeof(text))
        snprintf(text + n, sizeof(text) - (size_t)n, ": %s", c->why);
    cm_print_wrapped(stdout, cm_wrap_columns(STDOUT_FILENO), (unsigned)indent, (unsigned)indent + 2,
                     text);
}

static void print_array(const cm_census_array *a, int width, size_t columns)
{
    const int indent = INDENT + width + 2;
    char strip[COLUMNS_MOST + 1] = "";
    if (a->ncells > 0)
        fill_strip(a, columns < sizeof(strip) ? columns : sizeof(strip) - 1, strip);
    cm_print(stdout, "%*s%-*.*s  %s\n", INDENT, "", width, width, name_of(a), strip);
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
        const int n = (int)strnlen(name_of(&c->array[i]), LABEL_MOST);
        if ((all || has_holes(&c->array[i])) && n > width)
            width = n;
    }
    for (size_t i = 0; i < c->narrays; i++)
        if (all || has_holes(&c->array[i]) || c->array[i].unclear != NULL)
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

/* "All 345 chunks of 7 arrays are there, and were decoded; 12 were left out: all fill" */
static void print_sum(const cm_census *c, uint64_t present, uint64_t left_out)
{
    cm_print(stdout, "%s%" PRIu64 " %s of %zu %s %s there%s", present > 1 ? "All " : "", present,
             cm_of_count(present, "chunk", "chunks"), c->narrays,
             cm_of_count(c->narrays, "array", "arrays"), cm_of_count(present, "is", "are"),
             c->decoded ? ", and decoded" : "");
    if (left_out > 0)
        cm_print(stdout, "; %" PRIu64 " %s left out: all fill", left_out,
                 cm_of_count(left_out, "was", "were"));
    cm_print(stdout, ".\n");
}

/* Of a repository: chunks that are not in its files of chunks. */
static void print_places(const cm_census_places *p)
{
    if (p->ninline > 0)
        cm_print(stdout, "%" PRIu64 " %s in manifests.\n", p->ninline,
                 cm_of_count(p->ninline, "chunk is", "chunks are"));
    if (p->noutside > 0)
        cm_print(stdout, "%" PRIu64 " %s in files outside the repository (virtual).\n", p->noutside,
                 cm_of_count(p->noutside, "chunk is", "chunks are"));
}

void chunkcalc_print_census(const cm_census *c, bool all)
{
    uint64_t present = 0;
    bool holes = false;
    for (size_t i = 0; i < c->narrays; i++) {
        present += c->array[i].npresent;
        holes = holes || has_holes(&c->array[i]);
        all = all || c->array[i].unclear != NULL || c->array[i].undecoded != NULL;
    }
    if (c->unlisted != NULL) {
        cm_print(stdout, "Which chunks are there is not known: %s.\n", c->unlisted);
        return;
    }
    if (!holes)
        print_sum(c, present, cm_census_count_holes(c, CM_CENSUS_LEFT_OUT));
    if (holes || all)
        print_strips(c, all);
    print_places(&c->places);
    print_foreign(c);
}
