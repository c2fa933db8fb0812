/* A survey as text. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../common/say.h"
#include "../common/summary.h"
#include "../common/wrap.h"
#include "base/number.h"
#include "survey.h"

enum {
    NOTES = 8 /* of a summary, at most */
};

static const char *weight_name(const cm_finding *f)
{
    return f->weight == CM_WEIGHT_WARNING ? "warning" : "note";
}

/* "day1337.nc: tas: units is ...", and to which file it goes on. */
static void format_finding(const cm_finding *f, char *buf, size_t size)
{
    char option[700];
    int n = snprintf(buf, size, "%s%s%s%s%s", f->file ? f->file : "", f->file ? ": " : "",
                     f->variable ? f->variable : "", f->variable ? ": " : "", f->text);
    if (n > 0 && (size_t)n < size && f->nfiles > 1)
        n += snprintf(buf + n, size - (size_t)n, " (%zu files%s%s)", f->nfiles,
                      f->last ? ", to " : "", f->last ? f->last : "");
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
        if (common->verbosity < 0)
            continue;
        format_finding(f, text, sizeof(text));
        cm_say(NC2ZARR.name, "%s: %s", weight_name(f), text);
    }
}

void nc2zarr_print_notes(const cm_archive_report *r)
{
    char text[4096];
    size_t n = 0;
    for (size_t i = 0; i < r->nfindings; i++) {
        const cm_finding *f = &r->finding[i];
        /* How the files were stored is nothing that the store has. */
        if (f->weight != CM_WEIGHT_NOTE || f->kind == CM_FINDING_LAYOUT || n++ >= NOTES)
            continue;
        format_finding(f, text, sizeof(text));
        cm_print_remark("Note", text);
    }
    if (n > NOTES)
        cm_print(stdout, "  %zu more note%s; --survey prints all\n", n - NOTES,
                 cm_of_count(n - NOTES, "", "s"));
}

static void print_axis(const cm_archive_axis *a)
{
    cm_print(stdout, "  %s: %llu step%s", a->name, (unsigned long long)a->length,
             cm_of_count(a->length, "", "s"));
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
    if (v->nfiles > 0 && v->nfiles < nfiles) /* no file has what options make */
        cm_print(stdout, ", in %zu file%s", v->nfiles, cm_of_count(v->nfiles, "", "s"));
    putchar('\n');
}

static void print_report(const cm_archive_report *r)
{
    char size[32];
    if (r->store)
        cm_print(stdout, "%s:\n", r->store);
    cm_print(stdout, "%zu file%s, %s%s%s\n", r->nfiles, cm_of_count(r->nfiles, "", "s"),
             cm_format_size(r->nbytes, size, sizeof(size)), r->how ? ", " : "",
             r->how ? r->how : "");
    for (size_t i = 0; i < r->naxes; i++) {
        print_axis(&r->axis[i]);
        nc2zarr_draw_coverage(&r->axis[i]);
    }
    for (size_t i = 0; i < r->nvariables; i++)
        print_variable(&r->variable[i], r->nfiles);
}

/* Decisions stand at the end, near the prompt. */
static void print_all_findings(FILE *to, unsigned columns, const cm_archive_report *r,
                               const nc2zarr_decisions *d, cm_finding_weight least, bool all)
{
    nc2zarr_print_beginning(to, r, least);
    for (cm_finding_weight weight = least; weight <= CM_WEIGHT_DECISION; weight++)
        nc2zarr_print_findings(to, columns, r, d, weight, all);
}

void nc2zarr_print_survey(const archive_job *job, const nc2zarr_decisions *d)
{
    const unsigned columns = cm_wrap_columns(STDOUT_FILENO);
    const char *cache = job->asked.cache;
    const cm_archive_report *const *report = job->survey;
    for (size_t i = 0; i < job->nstores; i++) {
        if (i > 0)
            putchar('\n');
        print_report(report[i]);
        print_all_findings(stdout, columns, report[i], d, CM_WEIGHT_NOTE,
                           job->common->verbosity > 0);
    }
    if (cache && job->nstores == 1)
        cm_print(stdout, "%zu of %zu files opened, the others known from %s\n", report[0]->nopened,
                 report[0]->nfiles, cache);
    else if (cache && job->nstores > 1)
        cm_print(stdout, "%zu file%s opened, the others known from %s\n", report[0]->nlooked,
                 cm_of_count(report[0]->nlooked, "", "s"), cache);
    if (job->ndecisions == 0 && d->obstacle == NULL)
        cm_print(stdout, "can be converted as it is\n");
    else if (job->ndecisions > 0)
        cm_print(stdout, "%zu finding%s need%s a decision\n", job->ndecisions,
                 cm_of_count(job->ndecisions, "", "s"), cm_of_count(job->ndecisions, "s", ""));
    nc2zarr_print_decisions(stdout, columns, d);
}

void nc2zarr_say_refused(const archive_job *job, const nc2zarr_decisions *d)
{
    const unsigned columns = cm_wrap_columns(STDERR_FILENO);
    const int verbosity = job->common->verbosity;
    cm_say(NC2ZARR.name, "%zu finding%s need%s a decision; nothing was written", job->ndecisions,
           cm_of_count(job->ndecisions, "", "s"), cm_of_count(job->ndecisions, "s", ""));
    for (size_t i = 0; i < job->nstores; i++) {
        if (job->survey[i]->ndecisions == 0)
            continue;
        if (job->survey[i]->store)
            cm_print(stderr, "%s:\n", job->survey[i]->store);
        print_all_findings(stderr, columns, job->survey[i], d,
                           verbosity > 0    ? CM_WEIGHT_NOTE
                           : verbosity == 0 ? CM_WEIGHT_WARNING
                                            : CM_WEIGHT_DECISION,
                           verbosity > 0);
    }
    nc2zarr_print_decisions(stderr, columns, d);
}
