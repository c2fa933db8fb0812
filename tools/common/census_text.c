#include "census_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/number.h"

enum {
    SHOWN_NAMES = 3
};

/* How a hole is told behind "3 of 16 chunks are". */
static const char *const HOLE[CM_CENSUS_HOLES] = {
    [CM_CENSUS_ABSENT] = "absent, read as fill", [CM_CENSUS_LEFT_OUT] = "left out: all fill",
    [CM_CENSUS_EMPTY] = "empty: 0 bytes",        [CM_CENSUS_TRUNCATED] = "truncated",
    [CM_CENSUS_UNDECODABLE] = "undecodable",
};

const char *census_array_name(const cm_census_array *a)
{
    return a->name[0] != '\0' ? a->name : "/";
}

bool census_array_has_holes(const cm_census_array *a)
{
    for (int k = 0; k < CM_CENSUS_HOLES; k++)
        if (k != CM_CENSUS_LEFT_OUT && a->hole[k].n > 0)
            return true;
    return false;
}

/* A text that is cut off at the end of its room. */
typedef struct writing {
    char *text;
    size_t size, used;
} writing;

static void add(writing *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(writing *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(w->text + w->used, w->size - w->used, format, args);
    va_end(args);
    if (n > 0)
        w->used = w->used + (size_t)n < w->size ? w->used + (size_t)n : w->size - 1;
}

void census_hole_text(const cm_census_array *a, cm_census_hole kind, char *text, size_t size)
{
    const cm_census_count *c = &a->hole[kind];
    writing w = {.text = text, .size = size};
    add(&w, "%" PRIu64 " of %" PRIu64 " %s %s %s", c->n, a->nchunks,
        cm_of_count(a->nchunks, "chunk", "chunks"), cm_of_count(c->n, "is", "are"),
        kind == CM_CENSUS_ABSENT && a->no_fill ? "absent, read as zeros" : HOLE[kind]);
    for (size_t i = 0; i < c->nnames && i < SHOWN_NAMES; i++)
        add(&w, "%s%s", i == 0 ? " (" : ", ", c->name[i]);
    if (c->nnames > 0)
        add(&w, "%s)", c->nnames > SHOWN_NAMES || c->more ? ", ..." : "");
    if (c->why != NULL)
        add(&w, ": %s", c->why);
}

void census_sum_text(const cm_census *c, char *text, size_t size)
{
    uint64_t present = 0;
    size_t counted = 0, undecoded = 0;
    const uint64_t left_out = cm_census_count_holes(c, CM_CENSUS_LEFT_OUT);
    writing w = {.text = text, .size = size};
    for (size_t i = 0; i < c->narrays; i++) {
        const cm_census_array *a = &c->array[i];
        if (a->unclear != NULL)
            continue;
        counted++;
        undecoded += a->undecoded != NULL;
        present += a->npresent;
    }
    const size_t others = c->narrays - counted;
    add(&w, "%s%" PRIu64 " %s of %zu %s %s there%s", present > 1 ? "All " : "", present,
        cm_of_count(present, "chunk", "chunks"), counted, cm_of_count(counted, "array", "arrays"),
        cm_of_count(present, "is", "are"),
        c->decoded && undecoded < counted ? ", and decoded" : "");
    if (undecoded > 0)
        add(&w,
            c->decoded && undecoded < counted ? ", but for those of %zu %s"
                                              : "; those of %zu %s were not decoded",
            undecoded, cm_of_count(undecoded, "array", "arrays"));
    if (left_out > 0)
        add(&w, "; %" PRIu64 " %s left out: all fill", left_out,
            cm_of_count(left_out, "was", "were"));
    if (others > 0)
        add(&w, "; %zu %s not counted", others, cm_of_count(others, "array was", "arrays were"));
    add(&w, ".");
}

bool census_place_text(const cm_census_places *p, bool outside, char *text, size_t size)
{
    const uint64_t n = outside ? p->noutside : p->ninline;
    writing w = {.text = text, .size = size};
    add(&w, "%" PRIu64 " %s in %s.", n, cm_of_count(n, "chunk is", "chunks are"),
        outside ? "files outside the repository (virtual)" : "manifests");
    return n > 0;
}
