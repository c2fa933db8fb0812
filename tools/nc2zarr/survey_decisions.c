/* The options of the command line with their costs and alternatives, and the line itself. */
#include <stdlib.h>
#include <string.h>

#include "../common/print.h"
#include "../common/say.h"
#include "../common/summary.h"
#include "../common/wrap.h"
#include "base/number.h"
#include "base/outstream.h"
#include "survey.h"

enum {
    VARIABLES_SHOWN = 4
};

static void print_variables(const nc2zarr_decision *d, FILE *f)
{
    /* Data that are dropped are named, however many variables have them. */
    const bool all = strcmp(d->option.name, "overlap") == 0;
    for (size_t i = 0; i < d->nvariables && (all || i < VARIABLES_SHOWN); i++)
        cm_print(f, "%s%s", i > 0 ? ", " : "", d->variable[i]);
    if (!all && d->nvariables > VARIABLES_SHOWN)
        cm_print(f, " and %zu more", d->nvariables - VARIABLES_SHOWN);
    if (d->nvariables > 0)
        fputs(": ", f);
}

/*
 * "; or --exclude a,b leaves them out"; all arrays of a store that have the dimension must grow,
 * and a stack needs all its variables.
 */
static void print_exclude(const nc2zarr_decision *d, FILE *f)
{
    if ((d->of_store && d->nfilled > 0) || d->of_stack)
        return;
    fputs("; or --exclude" CM_WRAP_TIE, f);
    for (size_t i = 0; i < d->nvariables; i++)
        cm_print(f, "%s%s", i > 0 ? "," : "", d->variable[i]);
    cm_print(f, " leaves %s out", cm_of_count(d->nvariables, "it", "them"));
}

static void print_growth(const nc2zarr_decision *d, uint64_t all, FILE *f)
{
    char size[32], percent[32];
    cm_print(f, "the store grows by %s%s", d->widens ? "up to " : "",
             cm_format_size(d->nadded, size, sizeof(size)));
    if (all > d->nadded)
        cm_print(f, " (%s)",
                 cm_format_percent((double)d->nadded, (double)(all - d->nadded), percent,
                                   sizeof(percent)));
    fputs(" before compression", f);
}

static void tell_packing(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f)
{
    fputs("plain numbers instead of packed ones", f);
    if (d->nvariables == 1 && d->type[0] != NULL && d->type[1] != NULL &&
        strcmp(d->type[0], d->type[1]) != 0)
        cm_print(f, ", %s instead of %s", d->type[1], d->type[0]);
    fputs(", as readers decode them; ", f);
    if (d->nadded > 0)
        print_growth(d, all->nbytes, f);
    else
        fputs("no element gets larger", f);
    print_exclude(d, f);
}

/* Before the most files of a variable. */
static const char *up_to(const nc2zarr_decision *d)
{
    for (size_t i = 0; i < d->nvariables; i++)
        if (d->share[i].nfiles != d->nfiles)
            return "up to ";
    return "";
}

static bool same_share(const nc2zarr_share *a, const nc2zarr_share *b)
{
    return a->nfiles == b->nfiles && a->nfilled == b->nfilled && a->nsteps == b->nsteps;
}

/* Variable I and those behind it that are missing as it is. */
static void name_alike(const nc2zarr_decision *d, size_t i, FILE *f)
{
    size_t n = 0;
    for (size_t k = i; k < d->nvariables; k++)
        if (same_share(&d->share[k], &d->share[i]) && n++ < VARIABLES_SHOWN)
            cm_print(f, "%s%s", n > 1 ? ", " : "", d->variable[k]);
    if (n > VARIABLES_SHOWN)
        cm_print(f, " and %zu more", n - VARIABLES_SHOWN);
    fputs(": ", f);
}

static bool is_first_share(const nc2zarr_decision *d, size_t i)
{
    size_t k = 0;
    while (k < i && !same_share(&d->share[k], &d->share[i]))
        k++;
    return k == i;
}

static void tell_share(const nc2zarr_share *s, const char *most, FILE *f)
{
    cm_print(f, "missing in %s%zu file%s; ", most, s->nfiles, cm_of_count(s->nfiles, "", "s"));
    if (s->nfilled > 0)
        cm_print(f, "%s%llu of %llu steps hold%s the fill value; ", most,
                 (unsigned long long)s->nfilled, (unsigned long long)s->nsteps,
                 cm_of_count(s->nfilled, "s", ""));
    else
        fputs("what other files have is taken, or the fill value; ", f);
}

/* "a: missing in 1 file; 1 of 5 steps holds the fill value; b, c: ..." */
static void tell_shares(const nc2zarr_decision *d, FILE *f)
{
    nc2zarr_share most = {0};
    size_t n = 0;
    for (size_t i = 0; i < d->nvariables; i++) {
        const nc2zarr_share *s = &d->share[i];
        most.nfiles = s->nfiles > most.nfiles ? s->nfiles : most.nfiles;
        most.nfilled = s->nfilled > most.nfilled ? s->nfilled : most.nfilled;
        most.nsteps = s->nsteps > most.nsteps ? s->nsteps : most.nsteps;
        if (!is_first_share(d, i) || n++ >= VARIABLES_SHOWN)
            continue;
        name_alike(d, i, f);
        tell_share(s, "", f);
    }
    if (n > VARIABLES_SHOWN) {
        fputs("others: ", f);
        tell_share(&most, "up to ", f);
    }
}

static void tell_missing(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f)
{
    (void)all;
    if (d->kind == CM_FINDING_HOLES) {
        print_variables(d, f);
        fputs("places that no file has hold the fill value; chunks of nothing else take no space; "
              "nothing is dropped",
              f);
        return;
    }
    tell_shares(d, f);
    fputs(d->nfilled > 0 ? "chunks of nothing else take no space" : "nothing is dropped", f);
    print_exclude(d, f);
}

static void tell_static(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f)
{
    (void)all;
    char number[40];
    cm_print(f, "the first file's values are kept, those of %zu other file%s dropped", d->nfiles,
             cm_of_count(d->nfiles, " are", "s are"));
    if (d->apart > 0)
        cm_print(f, " (largest difference %s)", cm_format_double(d->apart, number, sizeof(number)));
    if (d->nvariables == 1 && d->promotes)
        cm_print(f, "; or --promote" CM_WRAP_TIE "%s keeps those of each step", d->variable[0]);
}

static void tell_promote(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f)
{
    fputs("gets the dimension that it lacks; nothing is dropped", f);
    if (d->nadded > 0) {
        fputs(", ", f);
        print_growth(d, all->nbytes, f);
    }
    if (d->kind == CM_FINDING_DIMENSIONS && d->other != NULL)
        cm_print(f,
                 "; or --merge-along" CM_WRAP_TIE "%s makes one field of it without the dimension, "
                 "of the first values that are not missing",
                 d->other);
    if (d->nvariables != 1)
        return;
    if (d->kind == CM_FINDING_STATIC)
        cm_print(f, "; or --static" CM_WRAP_TIE "%s:first keeps the first file's alone",
                 d->variable[0]);
    else
        print_exclude(d, f);
}

/* Files that have the same steps lie side by side. */
static void print_overlap(const nc2zarr_decision *d, FILE *f)
{
    if (d->voluntary)
        cm_print(f, "; without it steps that several files have are taken once if their data are "
                    "the same, or --overlap" CM_WRAP_TIE "first drops those of all files but one");
}

static void tell_new_dim(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f)
{
    (void)all;
    const char *from = strchr(d->option.value, '=');
    const int n = from != NULL ? (int)(from - d->option.value) : 0;
    cm_print(f, "each file is one step of %.*s, whose value %s says; nothing is dropped", n,
             d->option.value,
             from != NULL && from[1] == '@' ? "an attribute or a scalar of the file"
                                            : "the name of the file");
    print_overlap(d, f);
}

/* Whether an option of ALL drops something, or data may stop the run. */
static bool any_drops(const nc2zarr_decisions *all)
{
    static const char *const KEEPING[] = {"along",   "new-dim", "promote", "rename",    "packing",
                                          "missing", "gaps",    "order",   "store-per", NULL};
    bool drops = all->nlater > 0;
    for (size_t i = 0; i < all->n; i++)
        drops |= !nc2zarr_is_one_of(&all->of[i].option, KEEPING);
    return drops;
}

static void tell_along(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f)
{
    const bool drops = any_drops(all);
    cm_print(f, "the files follow each other %s",
             all->ordered ? "by the values along it" : "in the order of their names");
    fputs(drops ? "" : "; nothing is dropped", f);
    if (all->instead)
        fputs("; without it more would be dropped or repeated", f);
    else if (!d->voluntary)
        fputs("; or --new-dim takes the order from names or attributes", f);
    print_overlap(d, f);
}

static void tell_store_per(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f)
{
    (void)all;
    cm_print(f,
             "%zu stores in the folder of the output, each of files that go together; nothing is "
             "dropped",
             d->nstores);
}

static void tell_tolerance(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f)
{
    (void)all;
    cm_print(f,
             "values that differ by at most this are the same; the first file's are kept, those "
             "of %s%zu other %s dropped",
             up_to(d), d->nfiles, cm_of_count(d->nfiles, "file are", "files are"));
}

static void tell_dtype(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f)
{
    (void)all;
    fputs("a type for all files; a number that it does not hold exactly stops the run", f);
    print_exclude(d, f);
}

static void tell_rename(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f)
{
    (void)all;
    cm_print(f,
             "the name in %zu %s becomes %s; nothing is dropped; or --rename" CM_WRAP_TIE
             "%s=%s, the other way round",
             d->nfiles, cm_of_count(d->nfiles, "file", "files"), d->other, d->other,
             d->variable[0]);
}

static void tell_attrs(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f)
{
    (void)all;
    cm_print(f, "all attributes are the first file's; what %s%zu other %s is dropped", up_to(d),
             d->nfiles, cm_of_count(d->nfiles, "file says", "files say"));
    if (d->limits)
        fputs(
            "; valid_min, valid_max and valid_range are left out where files differ: readers take "
            "what lies outside for missing",
            f);
}

static void tell_exclude(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f)
{
    (void)all;
    fputs(d->kind == CM_FINDING_TYPE         ? "left out, since Zarr has no type for it"
          : d->kind == CM_FINDING_LENGTH     ? "left out, since files differ in the length of a "
                                               "dimension that no option joins besides"
          : d->kind == CM_FINDING_TIME_UNITS ? "left out, since its times cannot be counted alike"
          : d->kind == CM_FINDING_INDEX ? "left out, since its places in one file are other places "
                                          "in the store"
                                        : "left out, since the store has no such variable",
          f);
}

/* For each option a function, or words that hold of all its uses. */
static const struct {
    const char *option;
    void (*tell)(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f);
    const char *words;
} COSTS[] = {
    {"packing", tell_packing, NULL},
    {"missing", tell_missing, NULL},
    {"static", tell_static, NULL},
    {"promote", tell_promote, NULL},
    {"new-dim", tell_new_dim, NULL},
    {"tolerance", tell_tolerance, NULL},
    {"dtype", tell_dtype, NULL},
    {"rename", tell_rename, NULL},
    {"attrs", tell_attrs, NULL},
    {"exclude", tell_exclude, NULL},
    {"along", tell_along, NULL},
    {"store-per", tell_store_per, NULL},
    {"merge-along", NULL,
     "one field without the dimension, of the first values that are not missing; other values are "
     "dropped"},
    {"order", NULL,
     "the files follow each other in the order of their names, whatever their times or labels; "
     "nothing is dropped"},
    {"gaps", NULL,
     "steps that are missing are added, with fill values; or --gaps" CM_WRAP_TIE "keep adds none"},
    {"overlap", NULL,
     "of a step in several files the first file's is kept, the others are dropped; or "
     "--overlap" CM_WRAP_TIE "last keeps the last file's"},
    {"bad-file", NULL, "files that cannot be read are left out; or repair them, and survey again"},
    {"offline", NULL,
     "files that a tape system has are left out; or recall them, and survey again"},
};

static void tell(const nc2zarr_decision *d, const nc2zarr_decisions *all, FILE *f)
{
    for (size_t i = 0; i < sizeof(COSTS) / sizeof(COSTS[0]); i++) {
        if (strcmp(COSTS[i].option, d->option.name) != 0)
            continue;
        if (COSTS[i].tell != tell_missing) /* which names those together that are alike */
            print_variables(d, f);
        if (COSTS[i].tell != NULL)
            COSTS[i].tell(d, all, f);
        else
            fputs(COSTS[i].words, f);
    }
}

static void print_decision(FILE *to, unsigned columns, const nc2zarr_decision *d,
                           const nc2zarr_decisions *all)
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
            cm_print(f, "%s: %s",
                     d->asks ? "these files cannot be added as they are"
                             : "no option joins these files",
                     d->obstacle);
        char *text = f != NULL ? cm_outtext_close(&t) : NULL;
        if (text != NULL)
            cm_print_wrapped(to, columns, 0, 2, text);
        free(text);
        return;
    }
    if (d->n > 0)
        cm_print(to, "the options of the command below, and what they cost:\n");
    for (size_t i = 0; i < d->n; i++)
        print_decision(to, columns, &d->of[i], d);
    if (d->compares)
        cm_print_wrapped(to, columns, 0, 2,
                         "steps that several files have are compared while data move; if they "
                         "differ the run stops, and --overlap" CM_WRAP_TIE "first or last decides");
    if (d->line != NULL)
        cm_print(to, "\n%s\n", d->line);
}
