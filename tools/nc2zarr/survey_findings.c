/* The findings of a survey, for people: by their cause, and in lines of a terminal's width. */
#include <stdlib.h>
#include <string.h>

#include "../common/say.h"
#include "../common/wrap.h"
#include "base/outstream.h"
#include "survey.h"

enum {
    VARIABLES_SHOWN = 6,
    ENTRIES_SHOWN = 5,
    BEGINNING_LONG = 16 /* of names: what is longer becomes "..." */
};

static const char *weight_name(cm_finding_weight weight)
{
    return weight == CM_WEIGHT_DECISION  ? "decision needed"
           : weight == CM_WEIGHT_WARNING ? "warning"
                                         : "note";
}

/* How much of BEGINS, with which all paths begin, is left out; *DOTS: three dots stand for it. */
static size_t cut_of(const char *begins, bool *dots)
{
    const char *slash = strrchr(begins, '/');
    const size_t folder = slash != NULL ? (size_t)(slash + 1 - begins) : 0;
    size_t n = strlen(begins);
    while (n > folder && strchr("_-.", begins[n - 1]) == NULL)
        n--;
    *dots = n - folder > BEGINNING_LONG;
    return *dots ? n : folder;
}

void nc2zarr_print_beginning(FILE *to, const cm_archive_report *r, cm_finding_weight least)
{
    bool dots = false, named = false;
    const size_t n = r->begins != NULL ? cut_of(r->begins, &dots) : 0;
    for (size_t i = 0; i < r->nfindings; i++)
        named |= r->finding[i].weight >= least && r->finding[i].file != NULL;
    if (n > 0 && named)
        cm_print(to, "%s %.*s\n", dots ? "... below stands for" : "files below are in", (int)n,
                 r->begins);
}

/* TEXT to F, in which paths are as short as CUT of BEGINS makes them. */
static void print_short(const char *text, const char *begins, FILE *f)
{
    bool dots = false;
    const size_t n = begins != NULL ? cut_of(begins, &dots) : 0;
    for (const char *p = text; *p != '\0';) {
        const bool word = p == text || strchr(" ('", p[-1]) != NULL;
        if (n > 0 && word && strncmp(p, begins, n) == 0) {
            fputs(dots ? "..." : "", f);
            p += n;
        } else {
            putc(*p++, f);
        }
    }
}

/* The same but for the variable. */
static bool is_like(const cm_finding *a, const cm_finding *b)
{
    char x[700], y[700];
    return a->kind == b->kind && a->weight == b->weight && a->variable && b->variable &&
           a->nfiles == b->nfiles && strcmp(a->text, b->text) == 0 &&
           strcmp(a->file ? a->file : "", b->file ? b->file : "") == 0 &&
           strcmp(a->last ? a->last : "", b->last ? b->last : "") == 0 &&
           strcmp(nc2zarr_option_for(a, x, sizeof(x)), nc2zarr_option_for(b, y, sizeof(y))) == 0;
}

/* "t2m, z and 3 more: " of finding I and those that are like it. */
static void print_variables(const cm_archive_report *r, size_t i, bool all, FILE *f)
{
    size_t n = 0;
    for (size_t k = i; k < r->nfindings; k++) {
        if (k != i && !is_like(&r->finding[i], &r->finding[k]))
            continue;
        if (all || n < VARIABLES_SHOWN)
            cm_print(f, "%s%s", n > 0 ? ", " : "", r->finding[k].variable);
        n++;
    }
    if (!all && n > VARIABLES_SHOWN)
        cm_print(f, " and %zu more", n - VARIABLES_SHOWN);
    fputs(": ", f);
}

/* " (5 files, a.nc to c.nc)". */
static void print_place(const cm_finding *q, const char *begins, FILE *f)
{
    const bool several = q->nfiles > 1 && q->kind != CM_FINDING_GAP;
    if (q->file == NULL || q->variable == NULL)
        return;
    fputs(" (", f);
    if (several)
        cm_print(f, "%zu files, ", q->nfiles);
    print_short(q->file, begins, f);
    if (several && q->last != NULL) {
        fputs(" to ", f);
        print_short(q->last, begins, f);
    }
    putc(')', f);
}

/* "; --packing unpack", whose words stay together. */
static void print_option(const cm_finding *q, const nc2zarr_decisions *d, FILE *f)
{
    char option[700];
    const bool keeps = q->kind == CM_FINDING_OVERLAP && q->value != NULL;
    if ((q->weight != CM_WEIGHT_DECISION && !keeps) || !nc2zarr_takes(d, q))
        return;
    const char *text = nc2zarr_option_for(q, option, sizeof(option));
    if (*text == '\0')
        return;
    fputs(keeps ? "; to keep all of them: " : "; ", f);
    for (; *text != '\0'; text++)
        putc(*text == ' ' ? CM_WRAP_TIE[0] : *text, f);
}

static void print_entry(FILE *to, unsigned columns, const cm_archive_report *r,
                        const nc2zarr_decisions *d, size_t i, bool all)
{
    const cm_finding *q = &r->finding[i];
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    if (f == NULL)
        return;
    if (q->variable != NULL) {
        print_variables(r, i, all, f);
    } else if (q->file != NULL) {
        print_short(q->file, r->begins, f);
        if (q->nfiles > 1) {
            cm_print(f, " (%zu files, to ", q->nfiles);
            print_short(q->last != NULL ? q->last : q->file, r->begins, f);
            putc(')', f);
        }
        fputs(": ", f);
    }
    print_short(q->text, r->begins, f);
    print_place(q, r->begins, f);
    print_option(q, d, f);
    char *text = cm_outtext_close(&t);
    if (text != NULL)
        cm_print_wrapped(to, columns, 2, 4, text);
    free(text);
}

/* Whether one before finding I is like it. */
static bool is_told(const cm_archive_report *r, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (is_like(&r->finding[k], &r->finding[i]))
            return true;
    return false;
}

static void print_kind(FILE *to, unsigned columns, const cm_archive_report *r,
                       const nc2zarr_decisions *d, cm_finding_weight weight, cm_finding_kind kind,
                       bool all)
{
    size_t n = 0;
    for (size_t i = 0; i < r->nfindings; i++) {
        if (r->finding[i].kind != kind || r->finding[i].weight != weight || is_told(r, i))
            continue;
        if (n == 0)
            cm_print(to, "%s: %s\n", weight_name(weight), cm_finding_name(kind));
        if (all || n < ENTRIES_SHOWN)
            print_entry(to, columns, r, d, i, all);
        n++;
    }
    if (!all && n > ENTRIES_SHOWN)
        cm_print(to, "  and %zu more; -v lists all\n", n - ENTRIES_SHOWN);
}

void nc2zarr_print_findings(FILE *to, unsigned columns, const cm_archive_report *r,
                            const nc2zarr_decisions *d, cm_finding_weight weight, bool all)
{
    bool told[CM_FINDING_KINDS] = {false};
    for (size_t i = 0; i < r->nfindings; i++) {
        const cm_finding_kind kind = r->finding[i].kind;
        if (r->finding[i].weight != weight || told[kind])
            continue;
        told[kind] = true;
        print_kind(to, columns, r, d, weight, kind, all);
    }
}
