/* What a survey found, for people. */
#include <stdio.h>
#include <string.h>

#include "../common/say.h"
#include "../common/summary.h"
#include "base/number.h"
#include "nc2zarr.h"

/* What only options decide that a store does not take which is added to. */
static bool is_settled_by_store(const cm_finding *f)
{
    switch (f->kind) {
    case CM_FINDING_PACKING:
    case CM_FINDING_TYPE:
    case CM_FINDING_TIME_UNITS:
    case CM_FINDING_ALONG:
    case CM_FINDING_NEW_DIMENSION:
        return f->of_store;
    default:
        return false;
    }
}

/* OPTION with a value, quoted where a shell would take it apart. */
static const char *with_value(const char *option, const char *value, char *buf, size_t size)
{
    bool plain = value[strcspn(value, " \t\n*?[]'\"\\$&;|<>()`!#~")] == '\0';
    snprintf(buf, size, plain ? "%s %s" : "%s '%s'", option, value);
    return buf;
}

/* What the finding itself proposes. */
static const char *proposed(const cm_finding *f, char *buf, size_t size)
{
    static const char *const OPTION[] = {
        [CM_DECIDER_ALONG] = "--along",         [CM_DECIDER_NEW_DIM] = "--new-dim",
        [CM_DECIDER_PROMOTE] = "--promote",     [CM_DECIDER_DTYPE] = "--dtype",
        [CM_DECIDER_TOLERANCE] = "--tolerance", [CM_DECIDER_CHAR] = "--char"};
    /* A quote within quotes: no file name of an archive has one. */
    if (f->value == NULL || strchr(f->value, '\'') != NULL)
        return "";
    return with_value(OPTION[f->by], f->value, buf, size);
}

const char *nc2zarr_option_for(const cm_finding *f, char *buf, size_t size)
{
    if (is_settled_by_store(f))
        return "";
    if (f->by != CM_DECIDER_OF_KIND)
        return proposed(f, buf, size);
    switch (f->kind) {
    case CM_FINDING_UNREADABLE:
        return "--bad-file skip";
    case CM_FINDING_OFFLINE:
        return "--offline skip";
    case CM_FINDING_PACKING:
        return "--packing unpack";
    case CM_FINDING_TYPE: /* numbers and text: no type decides */
        return f->weight == CM_WEIGHT_DECISION ? "" : "--dtype";
    case CM_FINDING_FILL:
        return "--fill-value";
    case CM_FINDING_MISSING:
        return "--missing fill";
    case CM_FINDING_STATIC:
        snprintf(buf, size, "--static %s:first", f->variable);
        return buf;
    case CM_FINDING_OVERLAP:
        return "--overlap first";
    case CM_FINDING_GAP:
        return "--gaps fill";
    case CM_FINDING_MEANING:
        return "--attrs first";
    case CM_FINDING_TIME_UNITS:
        return f->weight == CM_WEIGHT_DECISION ? "" : "--time-units UNITS";
    case CM_FINDING_NEW_VARIABLE:
        snprintf(buf, size, "--exclude %s", f->variable);
        return buf;
    case CM_FINDING_NAME:
        snprintf(buf, size, "--rename %s=%s", f->variable, f->other);
        return buf;
    case CM_FINDING_COORDINATE:
        if (f->apart > 0) {
            char number[40];
            snprintf(buf, size, "--tolerance %s",
                     cm_format_double(f->apart, number, sizeof(number)));
            return buf;
        }
        return "";
    default:
        return "";
    }
}

static const char *weight_name(const cm_finding *f)
{
    return f->weight == CM_WEIGHT_DECISION  ? "decision needed"
           : f->weight == CM_WEIGHT_WARNING ? "warning"
                                            : "note";
}

/* "day1337.nc: tas: units is ...", and to which file it goes on. */
static void format_finding(const cm_finding *f, char *buf, size_t size)
{
    char option[600];
    const char *decides =
        f->weight == CM_WEIGHT_DECISION ? nc2zarr_option_for(f, option, sizeof(option)) : "";
    int n = snprintf(buf, size, "%s%s%s%s%s", f->file ? f->file : "", f->file ? ": " : "",
                     f->variable ? f->variable : "", f->variable ? ": " : "", f->text);
    if (n > 0 && (size_t)n < size && f->nfiles > 1)
        n += snprintf(buf + n, size - (size_t)n, " (%zu files%s%s)", f->nfiles,
                      f->last ? ", to " : "", f->last ? f->last : "");
    if (n > 0 && (size_t)n < size && *decides)
        n += snprintf(buf + n, size - (size_t)n, "; %s", decides);
    if (n > 0 && (size_t)n < size && f->kind == CM_FINDING_OVERLAP && f->value)
        snprintf(buf + n, size - (size_t)n, "; to keep all of them: %s",
                 nc2zarr_option_for(f, option, sizeof(option)));
}

void nc2zarr_say_findings(const cm_archive_report *r, const cm_common_options *common)
{
    char text[4096];
    for (size_t i = 0; i < r->nfindings; i++) {
        const cm_finding *f = &r->finding[i];
        if (f->weight == CM_WEIGHT_NOTE && common->verbosity < 1)
            continue;
        if (f->weight != CM_WEIGHT_DECISION && common->verbosity < 0)
            continue;
        format_finding(f, text, sizeof(text));
        cm_say(NC2ZARR.name, "%s: %s", weight_name(f), text);
    }
}

static void print_axis(const cm_archive_axis *a)
{
    cm_print(stdout, "  %s: %llu step%s", a->name, (unsigned long long)a->length,
             cm_plural(a->length));
    if (a->step)
        cm_print(stdout, " of %s", a->step);
    if (a->first && a->last)
        cm_print(stdout, ", %s to %s", a->first, a->last);
    if (a->nmissing > 0)
        cm_print(stdout, ", %llu missing", (unsigned long long)a->nmissing);
    if (a->nrepeated > 0)
        cm_print(stdout, ", %llu in more than one file", (unsigned long long)a->nrepeated);
    putchar('\n');
}

static void print_variable(const cm_archive_variable *v, size_t nfiles)
{
    cm_print(stdout, "  %s: %s", v->name, v->type);
    for (unsigned k = 0; k < v->rank; k++)
        cm_print(stdout, "%s%s=%llu", k == 0 ? " (" : ", ", v->dim_name[k],
                 (unsigned long long)v->shape[k]);
    cm_print(stdout, "%s", v->rank > 0 ? ")" : "");
    if (v->nfiles < nfiles)
        cm_print(stdout, ", in %zu file%s", v->nfiles, cm_plural(v->nfiles));
    putchar('\n');
}

static void print_report(const cm_archive_report *r)
{
    char size[32], text[4096];
    if (r->store)
        cm_print(stdout, "%s:\n", r->store);
    cm_print(stdout, "%zu file%s, %s%s%s\n", r->nfiles, r->nfiles == 1 ? "" : "s",
             cm_format_size(r->nbytes, size, sizeof(size)), r->how ? ", " : "",
             r->how ? r->how : "");
    for (size_t i = 0; i < r->naxes; i++) {
        print_axis(&r->axis[i]);
        nc2zarr_draw_coverage(&r->axis[i]);
    }
    for (size_t i = 0; i < r->nvariables; i++)
        print_variable(&r->variable[i], r->nfiles);
    for (int weight = CM_WEIGHT_DECISION; weight >= CM_WEIGHT_NOTE; weight--)
        for (size_t i = 0; i < r->nfindings; i++) {
            if ((int)r->finding[i].weight != weight)
                continue;
            format_finding(&r->finding[i], text, sizeof(text));
            cm_print(stdout, "%s: %s\n", weight_name(&r->finding[i]), text);
        }
}

void nc2zarr_print_survey(const cm_archive_report *const *report, size_t n, const char *cache)
{
    size_t ndecisions = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            putchar('\n');
        print_report(report[i]);
        ndecisions += report[i]->ndecisions;
    }
    if (cache && n == 1)
        cm_print(stdout, "%zu of %zu files opened, the others known from %s\n", report[0]->nopened,
                 report[0]->nfiles, cache);
    else if (cache && n > 1)
        cm_print(stdout, "%zu file%s opened, the others known from %s\n", report[0]->nlooked,
                 report[0]->nlooked == 1 ? "" : "s", cache);
    if (ndecisions == 0)
        cm_print(stdout, "can be converted as it is\n");
    else
        cm_print(stdout, "%zu finding%s need%s a decision\n", ndecisions,
                 ndecisions == 1 ? "" : "s", ndecisions == 1 ? "s" : "");
}
