/* What the options of a command line cost and which others there are, and the line itself. */
#include <stdlib.h>
#include <string.h>

#include "../common/print.h"
#include "../common/say.h"
#include "../common/wrap.h"
#include "base/number.h"
#include "base/outstream.h"
#include "survey.h"

enum {
    VARIABLES_SHOWN = 4
};

static void print_variables(const nc2zarr_decision *d, FILE *f)
{
    for (size_t i = 0; i < d->nvariables && i < VARIABLES_SHOWN; i++)
        fprintf(f, "%s%s", i > 0 ? ", " : "", d->variable[i]);
    if (d->nvariables > VARIABLES_SHOWN)
        fprintf(f, " and %zu more", d->nvariables - VARIABLES_SHOWN);
    if (d->nvariables > 0)
        fputs(": ", f);
}

/* "; or --exclude a,b leaves them out". */
static void print_exclude(const nc2zarr_decision *d, FILE *f)
{
    fprintf(f, "; or --exclude%c", CM_WRAP_TIE);
    for (size_t i = 0; i < d->nvariables; i++)
        fprintf(f, "%s%s", i > 0 ? "," : "", d->variable[i]);
    fprintf(f, " leaves %s out", d->nvariables == 1 ? "it" : "them");
}

static void print_growth(const nc2zarr_decision *d, uint64_t all, FILE *f)
{
    char size[32], percent[32];
    fprintf(f, "the store grows by %s", cm_format_size(d->nadded, size, sizeof(size)));
    if (all > d->nadded)
        fprintf(f, " (%s)",
                cm_format_percent((double)d->nadded, (double)(all - d->nadded), percent,
                                  sizeof(percent)));
    fputs(" before compression", f);
}

static void tell_packing(const nc2zarr_decision *d, uint64_t all, FILE *f)
{
    fputs("plain numbers instead of packed ones", f);
    if (d->nvariables == 1 && d->type[0] != NULL && d->type[1] != NULL)
        fprintf(f, ", %s instead of %s", d->type[1], d->type[0]);
    fputs(", as readers decode them; ", f);
    if (d->nadded > 0)
        print_growth(d, all, f);
    else
        fputs("no element gets larger", f);
    print_exclude(d, f);
}

static void tell_missing(const nc2zarr_decision *d, FILE *f)
{
    fprintf(f, "missing in %zu file%s; ", d->nfiles, d->nfiles == 1 ? "" : "s");
    if (d->nfilled > 0)
        fprintf(f, "%llu of %llu steps hold the fill value; chunks of nothing else take no space",
                (unsigned long long)d->nfilled, (unsigned long long)d->nsteps);
    else
        fputs("what other files have is taken, or the fill value; nothing is dropped", f);
    print_exclude(d, f);
}

static void tell_static(const nc2zarr_decision *d, FILE *f)
{
    char number[40];
    fprintf(f, "the first file's values are kept, those of %zu other file%s dropped", d->nfiles,
            d->nfiles == 1 ? " are" : "s are");
    if (d->apart > 0)
        fprintf(f, " (largest difference %s)", cm_format_double(d->apart, number, sizeof(number)));
    if (d->nvariables == 1)
        fprintf(f, "; or --promote%c%s keeps those of each step", CM_WRAP_TIE, d->variable[0]);
}

static void tell_promote(const nc2zarr_decision *d, uint64_t all, FILE *f)
{
    fputs("gets the dimension that it lacks; nothing is dropped", f);
    if (d->nadded > 0) {
        fputs(", ", f);
        print_growth(d, all, f);
    }
    if (d->nvariables != 1)
        return;
    if (d->kind == CM_FINDING_STATIC)
        fprintf(f, "; or --static%c%s:first keeps the first file's alone", CM_WRAP_TIE,
                d->variable[0]);
    else
        print_exclude(d, f);
}

static void tell_new_dim(const nc2zarr_decision *d, FILE *f)
{
    const char *from = strchr(d->option.value, '=');
    const int n = from != NULL ? (int)(from - d->option.value) : 0;
    fprintf(f, "each file is one step of %.*s, whose value %s says; nothing is dropped", n,
            d->option.value,
            from != NULL && from[1] == '@' ? "an attribute or a scalar of the file"
                                           : "the name of the file");
    if (d->voluntary)
        fprintf(f,
                "; without it steps that several files have are taken once if their data are "
                "the same, or --overlap%cfirst drops those of all files but one",
                CM_WRAP_TIE);
}

static void tell(const nc2zarr_decision *d, uint64_t all, FILE *f)
{
    const char *name = d->option.name;
    const char *files = d->nfiles == 1 ? "file" : "files";
    print_variables(d, f);
    if (strcmp(name, "packing") == 0)
        tell_packing(d, all, f);
    else if (strcmp(name, "missing") == 0)
        tell_missing(d, f);
    else if (strcmp(name, "static") == 0)
        tell_static(d, f);
    else if (strcmp(name, "promote") == 0)
        tell_promote(d, all, f);
    else if (strcmp(name, "new-dim") == 0)
        tell_new_dim(d, f);
    else if (strcmp(name, "tolerance") == 0)
        fprintf(f,
                "values that differ by at most this are the same; the first file's are kept, "
                "those of %zu other %s dropped",
                d->nfiles, files);
    else if (strcmp(name, "dtype") == 0) {
        fputs("a type for all files; a number that it does not hold exactly stops the run", f);
        print_exclude(d, f);
    } else if (strcmp(name, "rename") == 0)
        fprintf(f,
                "the name in %zu %s becomes %s; nothing is dropped; or "
                "--rename%c%s=%s, the other way round",
                d->nfiles, files, d->other, CM_WRAP_TIE, d->other, d->variable[0]);
    else if (strcmp(name, "along") == 0)
        fputs("the files follow each other in the order of their names; nothing is dropped; or "
              "--new-dim takes the order from names or attributes",
              f);
    else if (strcmp(name, "attrs") == 0)
        fprintf(f, "all attributes are the first file's; what %zu other %s say is dropped",
                d->nfiles, files);
    else if (strcmp(name, "gaps") == 0)
        fprintf(f, "steps that are missing are added, with fill values; or --gaps%ckeep adds none",
                CM_WRAP_TIE);
    else if (strcmp(name, "overlap") == 0)
        fprintf(f,
                "of a step in several files the first file's is kept, the others are dropped; or "
                "--overlap%clast keeps the last file's",
                CM_WRAP_TIE);
    else if (strcmp(name, "bad-file") == 0)
        fputs("files that cannot be read are left out; or repair them, and survey again", f);
    else if (strcmp(name, "offline") == 0)
        fputs("files that a tape system has are left out; or recall them, and survey again", f);
    else if (strcmp(name, "exclude") == 0 && d->kind == CM_FINDING_TYPE)
        fputs("left out, since Zarr has no type for it", f);
    else if (strcmp(name, "exclude") == 0)
        fputs("left out, since the store has no such variable", f);
}

static void print_decision(FILE *to, unsigned columns, const nc2zarr_decision *d, uint64_t all)
{
    cm_outtext option, text;
    FILE *f = cm_outtext_open(&option);
    if (f == NULL)
        return;
    nc2zarr_print_option(&d->option, f);
    char *head = cm_outtext_close(&option);
    if (head != NULL)
        cm_print(to, "  %s\n", head);
    free(head);
    if ((f = cm_outtext_open(&text)) == NULL)
        return;
    tell(d, all, f);
    char *body = cm_outtext_close(&text);
    if (body != NULL)
        cm_print_wrapped(to, columns, 6, 6, body);
    free(body);
}

void nc2zarr_print_decisions(FILE *to, unsigned columns, const nc2zarr_decisions *d)
{
    if (d->obstacle != NULL) {
        cm_outtext t;
        FILE *f = cm_outtext_open(&t);
        if (f != NULL)
            fprintf(f, "no option joins these files: %s", d->obstacle);
        char *text = f != NULL ? cm_outtext_close(&t) : NULL;
        if (text != NULL)
            cm_print_wrapped(to, columns, 0, 2, text);
        free(text);
        return;
    }
    if (d->n > 0)
        cm_print(to, "the options of the command below, and what they cost:\n");
    for (size_t i = 0; i < d->n; i++)
        print_decision(to, columns, &d->of[i], d->nbytes);
    if (d->compares)
        cm_print_wrapped(to, columns, 0, 2,
                         "steps that several files have are compared while data move; if they "
                         "differ the run stops, and --overlap\x1f"
                         "first or last decides");
    if (d->line != NULL)
        cm_print(to, "\n%s\n", d->line);
}
