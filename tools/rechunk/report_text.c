/* The summary that ends a rechunk, for people. */
#include <string.h>

#include "../common/growth.h"
#include "../common/part.h"
#include "../common/print.h"
#include "../common/say.h"
#include "../common/summary.h"
#include "base/number.h"
#include "rechunk.h"

enum {
    SHAPE_TEXT = 96 /* bytes; a shape of 32 long dimensions is cut */
};

bool rechunk_sharded(unsigned rank, const uint64_t *shard)
{
    for (unsigned d = 0; d < rank; d++)
        if (shard[d] != 0)
            return true;
    return false;
}

static void size_cell(cm_table *t, uint64_t nbytes, bool known)
{
    char text[32];
    cm_table_cell(t, "%s", known ? cm_format_size(nbytes, text, sizeof(text)) : "-");
}

static char *shape_text(unsigned rank, const uint64_t *shape, bool known, char *text)
{
    if (!known || rank == 0)
        return strcpy(text, "-");
    return cm_format_shape(rank, shape, text, SHAPE_TEXT);
}

/* "BEFORE", or "BEFORE to AFTER" where they differ. */
static void change_cell(cm_table *t, const char *before, const char *after)
{
    if (strcmp(before, after) == 0)
        cm_table_cell(t, "%s", before);
    else
        cm_table_cell(t, "%s to %s", before, after);
}

static void shape_change_cell(cm_table *t, unsigned rank, const uint64_t *before,
                              const uint64_t *after, bool known_before, bool known_after)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    change_cell(t, shape_text(rank, before, known_before, a),
                shape_text(rank, after, known_after, b));
}

static void chunk_change_cell(cm_table *t, const cm_transform_variable *v)
{
    char a[SHAPE_TEXT] = "-", b[SHAPE_TEXT] = "-";
    if (v->rank > 0 && v->chunk_before[0] > 0)
        cm_format_shapes(v->rank, v->shortest_chunk_before, v->chunk_before, a, sizeof(a));
    if (v->rank > 0)
        cm_format_shapes(v->rank, v->shortest_chunk, v->chunk, b, sizeof(b));
    change_cell(t, a, b);
}

static bool any_sharded(const cm_transform_report *r)
{
    for (size_t i = 0; i < r->nvariables; i++) {
        const cm_transform_variable *a = &r->variable[i];
        if (rechunk_sharded(a->rank, a->shard_before) || rechunk_sharded(a->rank, a->shard))
            return true;
    }
    return false;
}

static void array_cells(cm_table *t, const cm_transform_variable *a, bool shards, bool plan)
{
    char text[SHAPE_TEXT];
    cm_table_cell(t, "%s", a->name[0] ? a->name : "/");
    cm_table_cell(t, "%s", a->type);
    cm_table_cell(t, "%s", cm_format_shape(a->rank, a->shape, text, sizeof(text)));
    chunk_change_cell(t, a);
    if (shards)
        shape_change_cell(t, a->rank, a->shard_before, a->shard,
                          rechunk_sharded(a->rank, a->shard_before),
                          rechunk_sharded(a->rank, a->shard));
    change_cell(t, a->codec_before ? a->codec_before : "-", a->codec ? a->codec : "unknown");
    cm_table_cell(t, "%s", rechunk_plan_name(a->plan));
    size_cell(t, a->decoded_nbytes, true);
    size_cell(t, a->source_nbytes, a->source_nbytes != 0);
    if (!plan)
        size_cell(t, a->stored_nbytes, true);
    cm_table_cell(t, "%s", cm_format_count(a->nobjects, text, sizeof(text)));
}

static void print_arrays(const cm_transform_report *r, bool plan)
{
    static const char *const NAMES[] = {"array", "type",    "shape",  "chunks", "shards", "codec",
                                        "plan",  "decoded", "before", "after",  "files"};
    bool shards = any_sharded(r);
    cm_table t = {0};
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        if ((strcmp(NAMES[i], "shards") == 0 && !shards) ||
            (strcmp(NAMES[i], "after") == 0 && plan))
            continue;
        t.right[t.ncolumns++] = i >= 7;
        cm_table_cell(&t, "%s", NAMES[i]);
    }
    for (size_t i = 0; i < r->nvariables; i++)
        array_cells(&t, &r->variable[i], shards, plan);
    if (!cm_table_print(&t, 2, stdout))
        cm_say(RECHUNK.name, "no memory for the table of arrays");
    cm_table_release(&t);
}

/* Not all readers open such grids. */
static void print_rectilinear(const cm_transform_report *r)
{
    const char *readers = NULL;
    for (size_t i = 0; i < r->nvariables; i++) {
        const cm_transform_variable *v = &r->variable[i];
        if (!v->rectilinear)
            continue;
        cm_print(stdout, readers == NULL ? "  Rectilinear chunk grid: " : ", ");
        cm_print_clean(v->name[0] != '\0' ? v->name : "/", stdout);
        readers = v->readers;
    }
    if (readers != NULL)
        cm_print(stdout, "\n  Readers: %s\n", readers);
}

static void print_verification(const cm_transform_options *options, const cm_transform_report *r)
{
    bool full = options->verify == CM_VERIFY_FULL;
    if (options->verify == CM_VERIFY_NONE)
        puts("  Not verified (--verify none)");
    else
        cm_print_verdict("Verified", full ? "the source (everything)" : "the source (a sample)", r);
}

/* Chunks that nobody stores, for they hold only the fill value: known from missing ones. */
static void print_empty(const cm_transform_report *r)
{
    uint64_t before = 0, after = 0;
    char count[32];
    for (size_t i = 0; i < r->nvariables; i++) {
        before += r->variable[i].missing_before;
        after += r->variable[i].nskipped;
    }
    if (before)
        cm_print(stdout, "  %s chunk%s of the source not stored: fill value\n",
                 cm_format_count(before, count, sizeof(count)), cm_of_count(before, "", "s"));
    if (after)
        cm_print(stdout, "  %s chunk%s of the target left out: fill value only\n",
                 cm_format_count(after, count, sizeof(count)), cm_of_count(after, "", "s"));
}

static void print_totals(const cm_transform_report *r, bool plan)
{
    char objects[32], stored[32], decoded[32];
    uint64_t nobjects = r->nobjects;
    for (size_t i = 0; plan && i < r->nvariables; i++)
        nobjects += r->variable[i].nobjects;
    cm_print(stdout, "  %s file%s%s, ", cm_format_count(nobjects, objects, sizeof(objects)),
             cm_of_count(nobjects, "", "s"), plan ? " and those of metadata" : "");
    if (!plan)
        cm_print(stdout, "%s stored, ", cm_format_size(r->stored_nbytes, stored, sizeof(stored)));
    cm_print(stdout, "%s decoded\n", cm_format_size(r->decoded_nbytes, decoded, sizeof(decoded)));
    cm_print_inodes(r);
    if (plan) {
        cm_print_planned_memory(r->memory_planned, r->memory_limit, r->nthreads);
        return;
    }
    cm_print_statistics(r->statistics, r->nstatistics, r->statistics_seconds, r->statistics_share);
    cm_print_cost(r->seconds, r->decoded_nbytes, r->nthreads, r->memory_peak);
}

/* After --verify full. */
static void print_digests(const cm_transform_report *r)
{
    for (size_t i = 0; i < r->nvariables; i++) {
        const cm_transform_variable *a = &r->variable[i];
        if (!a->digest)
            continue;
        cm_print(stdout, "  Digest of ");
        cm_print_clean(a->name[0] ? a->name : "/", stdout);
        cm_print(stdout, ": %s\n", a->digest);
    }
}

/* -v: remarks, counts, and where the threads spent their time. */
static void print_details(const cm_transform_report *r)
{
    for (size_t i = 0; i < r->nnotes; i++)
        cm_print_remark("Note", r->note[i]);
    if (!r->written)
        return;
    rechunk_print_counts(r);
    cm_print_stages(RECHUNK.name, r->stage, r->nstages);
}

/* Nobody should have to ask for it: a count that is not the plan's is a fault of ours. */
static void print_surprises(const cm_transform_report *r)
{
    for (size_t i = 0; i < r->nvariables; i++)
        if (!rechunk_as_planned(&r->variable[i]))
            cm_print_remark("Not as planned, see -v", r->variable[i].name);
}

void rechunk_print_summary(const cm_transform_options *options, const cm_transform_report *report,
                           const cm_common_options *common)
{
    bool plan = options->dry_run;
    cm_print_clean(report->target ? report->target : options->target, stdout);
    if (report->append.on)
        cm_growth_print(&report->append);
    else
        cm_print(stdout, ": Zarr %d from ", report->zarr_format_after);
    cm_print_clean(options->source, stdout);
    cm_print(stdout, " (%s)%s\n", report->source_format,
             plan ? ", planned: nothing is written" : "");
    if (report->append.on && report->nvariables == 0) {
        putchar('\n');
        cm_growth_print_nothing(&report->append);
        return;
    }
    if (report->part.was_done) {
        cm_part_print(&report->part);
        return;
    }
    if (report->nvariables > 0) {
        putchar('\n');
        print_arrays(report, plan);
    }
    if (plan && report->nvariables > 0)
        rechunk_print_plan(report);
    putchar('\n');
    if (!plan)
        print_verification(options, report);
    print_digests(report);
    print_rectilinear(report);
    print_empty(report);
    if (report->append.on)
        cm_growth_print_rest(&report->append);
    print_totals(report, plan);
    /* Of a run that goes on, and of a part, not everything is counted here. */
    if (!plan && !options->resume && !report->part.on)
        print_surprises(report);
    if (report->part.on)
        cm_part_print(&report->part);
    if (common->verbosity > 0)
        print_details(report);
}
