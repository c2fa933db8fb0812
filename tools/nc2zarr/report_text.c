/* The summary that ends a conversion, and the plan of --dry-run, for people. */
#include "report_open.h"
#include "suits.h"

#include <math.h>
#include <string.h>

#include "../common/growth.h"
#include "../common/part.h"
#include "../common/print.h"
#include "../common/repository.h"
#include "../common/say.h"
#include "../common/summary.h"
#include "base/number.h"
#include "convert/beside/beside.h"
#include "options/store_path.h"
#include "store/zip.h"

enum {
    SHAPE_TEXT = 96 /* bytes; a shape of 32 long dimensions is cut */
};

typedef enum mode {
    MADE,
    PLANNED,
    CHECKED
} mode;

static void size_cell(cm_table *t, uint64_t nbytes)
{
    char text[32];
    cm_table_cell(t, "%s", cm_format_size(nbytes, text, sizeof(text)));
}

static void shape_cell(cm_table *t, unsigned rank, const uint64_t *shape)
{
    char text[SHAPE_TEXT];
    cm_table_cell(t, "%s", cm_format_shape(rank, shape, text, sizeof(text)));
}

static void range_cell(cm_table *t, unsigned rank, const uint64_t *shortest,
                       const uint64_t *longest)
{
    char text[SHAPE_TEXT];
    cm_table_cell(t, "%s", cm_format_shapes(rank, shortest, longest, text, sizeof(text)));
}

static bool sharded(const cm_transform_variable *v)
{
    for (unsigned d = 0; d < v->rank; d++)
        if (v->shard[d] != 0)
            return true;
    return false;
}

static bool any_sharded(const cm_transform_report *r)
{
    for (size_t i = 0; i < r->nvariables; i++)
        if (sharded(&r->variable[i]))
            return true;
    return false;
}

/* Columns of one variable that the plan and the result share. */
static void layout_cells(cm_table *t, const cm_transform_variable *v, bool shards, mode m)
{
    cm_table_cell(t, "%s", v->name);
    cm_table_cell(t, "%s", v->type);
    shape_cell(t, v->rank, v->shape);
    if (v->rank == 0)
        cm_table_cell(t, "-");
    else
        range_cell(t, v->rank, v->shortest_chunk, v->chunk);
    if (shards && sharded(v))
        shape_cell(t, v->rank, v->shard);
    else if (shards)
        cm_table_cell(t, "-");
    if (m != CHECKED)
        cm_table_cell(t, "%s", v->codec ? v->codec : "-");
    if (v->source_nbytes)
        size_cell(t, v->source_nbytes);
    else
        cm_table_cell(t, "-");
    if (m != CHECKED)
        size_cell(t, v->stored_nbytes);
}

static void print_variables(const cm_transform_report *r, mode m)
{
    static const char *const NAMES[] = {"variable", "type", "shape", "chunks", "shards", "codec"};
    bool shards = any_sharded(r);
    cm_table t = {0};
    size_t words = (shards ? 6 : 5) - (m == CHECKED ? 1 : 0);
    t.ncolumns = words + (m == PLANNED ? 5 : m == MADE ? 2 : 1);
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
        if ((shards || strcmp(NAMES[i], "shards") != 0) &&
            (m != CHECKED || strcmp(NAMES[i], "codec") != 0))
            cm_table_cell(&t, "%s", NAMES[i]);
    cm_table_cell(&t, m == CHECKED ? "in the file" : "before");
    if (m != CHECKED)
        cm_table_cell(&t, m == PLANNED ? "expected" : "after");
    if (m == PLANNED) {
        cm_table_cell(&t, "objects");
        cm_table_cell(&t, "memory");
        cm_table_cell(&t, "decodes");
    }
    for (size_t c = words; c < t.ncolumns; c++)
        t.right[c] = true;
    for (size_t i = 0; i < r->nvariables; i++) {
        const cm_transform_variable *v = &r->variable[i];
        char count[32];
        layout_cells(&t, v, shards, m);
        if (m != PLANNED)
            continue;
        cm_table_cell(&t, "%s", cm_format_count(v->nobjects, count, sizeof(count)));
        size_cell(&t, v->memory_nbytes);
        if (v->decodes_per_chunk > 0)
            cm_table_cell(&t, "%.2f", v->decodes_per_chunk);
        else
            cm_table_cell(&t, "-");
    }
    if (!cm_table_print(&t, 2, stdout))
        cm_say(NC2ZARR.name, "no memory for the table of variables");
    cm_table_release(&t);
}

/* True when an earlier variable has dimension D of variable I, unlimited, under the same name. */
static bool dimension_seen(const cm_transform_report *r, size_t i, unsigned d)
{
    const cm_transform_variable *v = &r->variable[i];
    for (size_t k = 0; k <= i; k++) {
        const cm_transform_variable *u = &r->variable[k];
        for (unsigned e = 0; e < (k < i ? u->rank : d); e++)
            if (u->unlimited[e] && u->dim_name[e] && strcmp(u->dim_name[e], v->dim_name[d]) == 0 &&
                u->shape[e] == v->shape[d])
                return true;
    }
    return false;
}

static void print_unlimited(const cm_transform_report *r)
{
    for (size_t i = 0; i < r->nvariables; i++) {
        const cm_transform_variable *v = &r->variable[i];
        for (unsigned d = 0; d < v->rank; d++) {
            if (!v->unlimited[d] || !v->dim_name[d] || dimension_seen(r, i, d))
                continue;
            char count[32];
            fputs("  Unlimited in the file: ", stdout);
            cm_print_clean(v->dim_name[d], stdout);
            cm_print(stdout, ", %s now\n", cm_format_count(v->shape[d], count, sizeof(count)));
        }
    }
}

typedef const char *(*remark_of)(const cm_transform_variable *v);

static const char *readers_of(const cm_transform_variable *v)
{
    return v->readers;
}

static const char *access_of(const cm_transform_variable *v)
{
    return v->access;
}

static const char *digest_of(const cm_transform_variable *v)
{
    return v->digest;
}

static bool same_remark(const cm_transform_variable *a, const cm_transform_variable *b,
                        remark_of of)
{
    return of(a) && of(b) && strcmp(of(a), of(b)) == 0;
}

/*
 * One line for each distinct remark, with the variables that it is about: "  LABEL a, b:
 * REMARK".
 */
static void print_remarks(const cm_transform_report *r, const char *label, remark_of of)
{
    const cm_transform_variable *v = r->variable;
    for (size_t i = 0; i < r->nvariables; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen |= same_remark(&v[k], &v[i], of);
        if (!of(&v[i]) || seen)
            continue;
        cm_print(stdout, "  %s ", label);
        for (size_t k = i; k < r->nvariables; k++) {
            if (!same_remark(&v[k], &v[i], of))
                continue;
            fputs(k > i ? ", " : "", stdout);
            cm_print_clean(v[k].name, stdout);
        }
        fputs(": ", stdout);
        cm_print_clean(of(&v[i]), stdout);
        putchar('\n');
    }
}

static void print_verification(const cm_transform_options *options, const cm_transform_report *r)
{
    char with[64];
    bool full = options->check || options->verify == CM_VERIFY_FULL;
    if (!options->check && options->verify == CM_VERIFY_NONE) {
        puts("  Not verified (--verify none)");
        return;
    }
    snprintf(with, sizeof(with), "%s (%s)", r->zarr_format_before ? "the source" : "libnetcdf",
             full ? "everything" : "a sample");
    cm_print_verdict(options->check ? "Compared" : "Verified", with, r);
}

static void print_sizes(const cm_transform_report *r, mode m)
{
    char objects[32], stored[32], input[32], decoded[32];
    const bool zip = r->target != NULL && cm_zip_is_name(r->target);
    if (m != CHECKED)
        cm_print(
            stdout, "  %s %s%s%s, %s%s; ", cm_format_count(r->nobjects, objects, sizeof(objects)),
            zip ? "object" : "file", cm_of_count(r->nobjects, "", "s"), zip ? " in one file" : "",
            m == PLANNED ? "about " : "", cm_format_size(r->stored_nbytes, stored, sizeof(stored)));
    else
        fputs("  ", stdout);
    if (r->zarr_format_before != 0) {
        cm_print(stdout, "decoded %s\n",
                 cm_format_size(r->decoded_nbytes, decoded, sizeof(decoded)));
        return;
    }
    cm_print(stdout, "input %s, decoded %s\n",
             cm_format_size(r->source_nbytes, input, sizeof(input)),
             cm_format_size(r->decoded_nbytes, decoded, sizeof(decoded)));
}

static void print_cost(const cm_transform_report *r, mode m)
{
    if (m == PLANNED)
        cm_print_planned_memory(r->memory_planned, r->memory_limit, r->nthreads);
    if (m == MADE)
        cm_print_statistics(r->statistics, r->nstatistics, r->statistics_seconds,
                            r->statistics_share);
    if (m == MADE)
        cm_print_cost(r->seconds, r->decoded_nbytes, r->nthreads, r->memory_peak);
}

static void print_own_notes(const cm_transform_report *r)
{
    for (size_t i = 0; i < r->nnotes; i++)
        cm_print_remark("Note", r->note[i]);
}

/* -v: how each variable is read, remarks, and where the threads spent their time. */
static void print_details(const cm_transform_report *r)
{
    print_remarks(r, "Access to", access_of);
    print_remarks(r, "Digest of", digest_of);
    print_own_notes(r);
    if (r->written)
        cm_print_stages(NC2ZARR.name, r->stage, r->nstages);
}

/* Of --virtual: no store is made. */
static void print_references(const cm_transform_options *options, const cm_transform_report *r,
                             mode m)
{
    char refs[32], inside[32];
    if (m == PLANNED)
        return;
    cm_growth_print_rest(&r->append);
    cm_print(stdout, "  %s references, %s chunks that stand in the %s\n",
             cm_format_count(r->nreferences, refs, sizeof(refs)),
             cm_format_count(r->ninline, inside, sizeof(inside)),
             cm_is_repository(options->target) ? "repository" : "document");
    nc2zarr_print_opening(options, r);
}

/* ": time=20:30 anew from " */
static void print_replaced(const cm_replace_report *r)
{
    fputs(": ", stdout);
    cm_print_clean(r->dimension, stdout);
    cm_print(stdout, "=%llu:%llu anew from ", (unsigned long long)r->first,
             (unsigned long long)r->end);
}

/* Differences from the store before. */
static void print_changes(const cm_transform_report *r)
{
    char count[32];
    for (size_t i = 0; i < r->nvariables; i++) {
        const cm_transform_variable *v = &r->variable[i];
        if (!v->compared)
            continue;
        fputs("  Changed in ", stdout);
        cm_print_clean(v->name, stdout);
        cm_print(stdout, ": %s element%s", cm_format_count(v->nchanged, count, sizeof(count)),
                 cm_of_count(v->nchanged, "", "s"));
        if (!isnan(v->largest_change))
            cm_print(stdout, ", by %.6g at most", v->largest_change);
        putchar('\n');
    }
}

/*
 * The folder beside the store, where it is still there, with the ledger: it is not a part of the
 * store.  A bucket is not asked: every store of several files that lies in one has it.
 */
static void print_beside(const cm_transform_options *options)
{
    cm_beside b = {.fd = -1};
    cm_store_path at;
    if (cm_store_path_split(options->target, &at, NULL) != CM_OK)
        return;
    bool there = *at.node == '\0' && cm_beside_find(at.path, options->net, &b, NULL) == CM_OK;
    if (there && !b.remote)
        there = cm_beside_open(&b, false, NULL) == CM_OK && b.in != NULL;
    if (there)
        cm_print(stdout,
                 "  Beside the store: %s lists the input files, so that --append need not read "
                 "them again; it may be removed\n",
                 b.path);
    cm_beside_release(&b);
    cm_store_path_release(&at);
}

/* "OUT: Zarr 3 from IN (NetCDF-4)" */
static void print_heading(const cm_transform_options *options, const cm_transform_report *r, mode m)
{
    cm_print_clean(r->target ? r->target : options->target, stdout);
    if (m == CHECKED)
        fputs(": compared with ", stdout);
    else if (r->append.on)
        cm_growth_print(&r->append);
    else if (r->replace.on)
        print_replaced(&r->replace);
    else
        cm_print(stdout, ": %s%d from ", options->refer ? "references as Zarr " : "Zarr ",
                 cm_is_repository(options->target) ? 3
                 : options->refer                  ? 2
                                                   : options->zarr_format);
    cm_print_clean(options->source, stdout);
    cm_print(stdout, " (%s)%s\n\n", r->source_format ? r->source_format : "NetCDF",
             m == MADE      ? ""
             : m == PLANNED ? ", planned: nothing is written"
                            : ", nothing is written");
}

/* Of a run that had nothing to do; false: it had. */
static bool print_nothing(const cm_transform_report *r)
{
    const bool nothing = r->nvariables == 0 && !r->part.on;
    if (r->append.on && nothing)
        cm_growth_print_nothing(&r->append);
    else if (r->replace.on && nothing)
        puts("  Nothing is to be replaced: all of it is there already");
    else if (r->part.was_done)
        cm_part_print(&r->part);
    else
        return false;
    return true;
}

/* Of a run that made a store, or a part of one, or plans to. */
static void print_store(const cm_transform_options *options, const cm_transform_report *r,
                        bool archive, int verbosity, mode m)
{
    for (size_t i = 0; i < r->nskipped; i++)
        cm_print_remark("Left out", r->skipped[i]);
    print_changes(r);
    cm_growth_print_rest(&r->append);
    if (!r->append.on && !r->replace.on)
        print_unlimited(r);
    print_remarks(r, "Readers of", readers_of);
    if (m != PLANNED)
        print_verification(options, r);
    print_sizes(r, m);
    cm_print_inodes(r);
    print_cost(r, m);
    if (m == MADE && r->written && archive)
        print_beside(options);
    if (verbosity > 0)
        print_details(r);
    if (r->part.on)
        cm_part_print(&r->part);
}

void nc2zarr_print_summary(const cm_transform_options *options, const cm_transform_report *report,
                           const cm_archive_report *survey, const cm_common_options *common,
                           const nc2zarr_typed *typed)
{
    nc2zarr_suits suits;
    const mode m = options->check ? CHECKED : options->dry_run ? PLANNED : MADE;
    print_heading(options, report, m);
    if (print_nothing(report)) {
        if (survey != NULL && m == PLANNED && common->verbosity == 0)
            nc2zarr_print_notes(survey); /* of steps whose data nobody has compared yet */
        return;
    }
    print_variables(report, m);
    putchar('\n');
    /* -v says them on standard error, before. */
    if (survey != NULL && m != CHECKED && common->verbosity == 0)
        nc2zarr_print_notes(survey);
    if (options->refer) {
        if (common->verbosity > 0)
            print_own_notes(report);
        print_references(options, report, m);
        return;
    }
    print_store(options, report, survey != NULL, common->verbosity, m);
    if (nc2zarr_suits_find(options, report, typed, &suits))
        nc2zarr_suits_print(&suits);
    nc2zarr_suits_release(&suits);
    if (m == MADE && report->written)
        nc2zarr_print_opening(options, report);
}
