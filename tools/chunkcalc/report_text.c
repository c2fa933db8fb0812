/* Tables, CSV and Markdown: the answer, where one was asked for, and the numbers behind it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../common/print.h"
#include "../common/say.h"
#include "answer.h"
#include "base/number.h"
#include "grid.h"
#include "report_census.h"

enum {
    SHAPE_TEXT = 704 /* 32 lengths of 20 digits and the signs between them */
};

typedef struct printer {
    const cm_chunkcalc_report *r;
    const chunkcalc_values *v;
    chunkcalc_format format;
    bool details; /* all tables, not only those that were asked for */
    bool rules;   /* a column says where a layout comes from */
    bool shards;  /* some layout has shards */
} printer;

static void shape_cell(grid *g, unsigned rank, const uint64_t *shape)
{
    char text[SHAPE_TEXT];
    grid_cell(g, "%s", cm_format_shape(rank, shape, text, sizeof(text)));
}

static void range_cell(grid *g, unsigned rank, const uint64_t *shortest, const uint64_t *longest)
{
    char text[SHAPE_TEXT];
    grid_cell(g, "%s", cm_format_shapes(rank, shortest, longest, text, sizeof(text)));
}

static void size_cell(grid *g, double nbytes)
{
    char text[32];
    grid_cell(g, "%s", cm_format_mean_size(nbytes, text, sizeof(text)));
}

static void time_cell(grid *g, double seconds)
{
    char text[32];
    grid_cell(g, "%s", cm_format_time(seconds, text, sizeof(text)));
}

/* ---- the table of layouts ------------------------------------------------------------------ */

static void header(const printer *p, grid *g)
{
    static const char *const BASE[] = {"minimal_chunks", "maximal_chunks", "minimal_bytes",
                                       "maximal_bytes", NULL};
    static const char *const STATS[] = {"mean_chunks",      "p50_chunks",
                                        "p95_chunks",       "mean_bytes",
                                        "p50_bytes",        "p95_bytes",
                                        "minimal_requests", "mean_requests",
                                        "p50_requests",     "p95_requests",
                                        "maximal_requests", "amplification",
                                        "seconds",          NULL};
    static const char *const ARRAY[] = {"objects", "stored_bytes", "padding_bytes", "index_bytes",
                                        NULL};
    if (p->rules)
        grid_column(g, "rule", true);
    if (p->r->nreads > 1)
        grid_column(g, "read", true);
    grid_column(g, "chunk_size", true);
    if (p->shards)
        grid_column(g, "shard_size", true);
    for (size_t i = 0; BASE[i] != NULL; i++)
        grid_column(g, BASE[i], false);
    for (size_t i = 0; p->v->stats && STATS[i] != NULL; i++)
        grid_column(g, STATS[i], false);
    for (size_t i = 0; p->v->stats && p->r->bounded && ARRAY[i] != NULL; i++)
        grid_column(g, ARRAY[i], false);
}

static void stats_cells(const cm_chunkcalc_result *s, grid *g)
{
    grid_cell(g, "%.6g", s->chunks.mean);
    grid_cell(g, "%" PRIu64, s->chunks.p50);
    grid_cell(g, "%" PRIu64, s->chunks.p95);
    grid_cell(g, "%.0f", s->bytes.mean);
    grid_cell(g, "%" PRIu64, s->bytes.p50);
    grid_cell(g, "%" PRIu64, s->bytes.p95);
    grid_cell(g, "%" PRIu64, s->requests.min);
    grid_cell(g, "%.6g", s->requests.mean);
    grid_cell(g, "%" PRIu64, s->requests.p50);
    grid_cell(g, "%" PRIu64, s->requests.p95);
    grid_cell(g, "%" PRIu64, s->requests.max);
    grid_cell(g, "%.4g", s->amplification);
    grid_cell(g, "%.4g", s->seconds);
}

static void row(const printer *p, const cm_chunkcalc_layout *l, size_t read, grid *g)
{
    const cm_chunkcalc_result *s = &l->result[read];

    if (p->rules)
        grid_cell(g, "%s", l->rule);
    if (p->r->nreads > 1)
        grid_cell(g, "%s", p->r->read[read].text);
    shape_cell(g, p->r->rank, l->chunk);
    if (p->shards && l->sharded)
        shape_cell(g, p->r->rank, l->shard);
    else if (p->shards)
        grid_cell(g, "-");
    grid_cell(g, "%" PRIu64, s->chunks.min);
    grid_cell(g, "%" PRIu64, s->chunks.max);
    grid_cell(g, "%" PRIu64, s->bytes.min);
    grid_cell(g, "%" PRIu64, s->bytes.max);
    if (p->v->stats)
        stats_cells(s, g);
    if (p->v->stats && p->r->bounded) {
        grid_cell(g, "%" PRIu64, l->nobjects);
        grid_cell(g, "%.0f", l->stored_nbytes);
        grid_cell(g, "%" PRIu64, l->padding_nbytes);
        grid_cell(g, "%" PRIu64, l->index_nbytes);
    }
}

static int print_layouts(const printer *p, cm_error *err)
{
    grid g = {.ncolumns = 0};

    header(p, &g);
    for (size_t i = 0; i < p->r->nlayouts; i++)
        for (size_t k = 0; k < p->r->nreads; k++)
            row(p, &p->r->layout[i], k, &g);
    int rc = grid_print(&g, p->format, stdout, err);
    grid_release(&g);
    return rc;
}

/* ---- the advice ---------------------------------------------------------------------------- */

static void heading(const printer *p, const char *text)
{
    cm_print(stdout, p->format == FORMAT_MARKDOWN ? "\n## %s\n\n" : "\n%s\n", text);
}

static int print_grid(const printer *p, const char *title, grid *g, cm_error *err)
{
    heading(p, title);
    int rc = grid_print(g, p->format, stdout, err);
    grid_release(g);
    return rc;
}

static int print_comparison(const printer *p, cm_error *err)
{
    grid g = {.ncolumns = 0};

    grid_column(&g, "rule", true);
    grid_column(&g, "chunks", true);
    grid_column(&g, "a chunk", false);
    grid_column(&g, "time a read", false);
    grid_column(&g, "bytes", false);
    grid_column(&g, "requests", false);
    grid_column(&g, "worst read pays", false);
    for (size_t i = 0; i < p->r->nlayouts; i++) {
        const cm_chunkcalc_layout *l = &p->r->layout[i];
        grid_cell(&g, "%s", l->rule);
        shape_cell(&g, p->r->rank, l->chunk);
        size_cell(&g, (double)l->chunk_nbytes);
        time_cell(&g, l->seconds);
        size_cell(&g, l->bytes);
        grid_cell(&g, "%.4g", l->requests);
        grid_cell(&g, "%.3g x", l->regret);
    }
    return print_grid(p, "Compared, on average over the reads", &g, err);
}

static int print_reads(const printer *p, cm_error *err)
{
    const cm_chunkcalc_layout *best = &p->r->layout[p->r->recommended];
    grid g = {.ncolumns = 0};

    grid_column(&g, "read", true);
    grid_column(&g, "weight", false);
    grid_column(&g, "time", false);
    grid_column(&g, "requests", false);
    grid_column(&g, "amplification", false);
    grid_column(&g, "pays", false);
    grid_column(&g, "its own best", true);
    for (size_t i = 0; i < p->r->nreads; i++) {
        const cm_chunkcalc_read *read = &p->r->read[i];
        grid_cell(&g, "%s", read->text);
        grid_cell(&g, "%.4g", read->weight);
        time_cell(&g, best->result[i].seconds);
        grid_cell(&g, "%.4g", best->result[i].requests.mean);
        grid_cell(&g, "%.4g", best->result[i].amplification);
        grid_cell(&g, "%.3g x", best->result[i].pays);
        shape_cell(&g, p->r->rank, read->own_chunk);
    }
    return print_grid(p, "What each way of reading pays with the recommendation", &g, err);
}

static int print_front(const printer *p, cm_error *err)
{
    grid g = {.ncolumns = 0};

    grid_column(&g, "chunks", true);
    grid_column(&g, "bytes", false);
    grid_column(&g, "requests", false);
    grid_column(&g, "time", false);
    for (size_t i = 0; i < p->r->nfront; i++) {
        shape_cell(&g, p->r->rank, p->r->front[i].chunk);
        size_cell(&g, p->r->front[i].bytes);
        grid_cell(&g, "%.4g", p->r->front[i].requests);
        time_cell(&g, p->r->front[i].seconds);
    }
    return print_grid(p, "Fewer bytes or fewer requests: the shapes that no other beats in both",
                      &g, err);
}

static void print_model(const printer *p)
{
    const cm_chunkcalc_report *r = p->r;
    char latency[32], bandwidth[32], decode[32];

    heading(p, "The cost model");
    cm_print(stdout,
             "%s: %s a request, %s, decoding at %s, %.3g at a time, compressed %.3g times.\n",
             r->storage, cm_format_time(r->latency, latency, sizeof(latency)),
             r->cached ? "from the page cache"
                       : cm_format_rate(r->bandwidth, bandwidth, sizeof(bandwidth)),
             cm_format_rate(r->decode, decode, sizeof(decode)), r->concurrency, r->ratio);
    cm_print(stdout, "Source: %s.\n", r->storage_source);
}

static int print_batches(const printer *p, cm_error *err)
{
    const cm_chunkcalc_report *r = p->r;
    grid g = {.ncolumns = 0};
    char title[160], step[32], rate[32];

    grid_column(&g, "chunks", true);
    grid_column(&g, "distinct chunks", false);
    grid_column(&g, "requests", false);
    grid_column(&g, "bytes", false);
    if (r->step_time > 0) {
        grid_column(&g, "needs", false);
        grid_column(&g, "decoded", false);
        grid_column(&g, "requests/s", false);
    }
    for (size_t i = 0; i < r->nlayouts; i++) {
        const cm_chunkcalc_layout *l = &r->layout[i];
        const double decoded = l->batch_nbytes;
        shape_cell(&g, r->rank, l->chunk);
        grid_cell(&g, "%s%.6g", l->batch_exact ? "" : "<= ", l->batch_chunks);
        grid_cell(&g, "%.6g", l->batch_requests);
        size_cell(&g, decoded / r->ratio);
        if (r->step_time > 0) {
            grid_cell(&g, "%s",
                      cm_format_rate(decoded / r->ratio / r->step_time, rate, sizeof(rate)));
            grid_cell(&g, "%s", cm_format_rate(decoded / r->step_time, rate, sizeof(rate)));
            grid_cell(&g, "%.4g", l->batch_requests / r->step_time);
        }
    }
    snprintf(title, sizeof(title), "A batch of %" PRIu64 " %s%s%s", r->batch,
             cm_of_count(r->batch, "sample", "samples"), r->step_time > 0 ? " every " : "",
             r->step_time > 0 ? cm_format_time(r->step_time, step, sizeof(step)) : "");
    return print_grid(p, title, &g, err);
}

/* ---- the layout of a store ----------------------------------------------------------------- */

/*
 * Cells measured on a sample of the chunks.  Where nothing was measured they are empty in CSV, and
 * "-" elsewhere.
 */
static void measured_cells(const printer *p, const cm_chunkcalc_array *a, grid *g)
{
    const char *none = p->format == FORMAT_CSV ? "" : "-";
    char rate[32];

    if (a->ratio > 0)
        grid_cell(g, "%.3g", a->ratio);
    else
        grid_cell(g, "%s", none);
    if (a->decode > 0 && p->format == FORMAT_CSV)
        grid_cell(g, "%.0f", a->decode);
    else
        grid_cell(g, "%s", a->decode > 0 ? cm_format_rate(a->decode, rate, sizeof(rate)) : none);
}

static void census_cells(const printer *p, const cm_chunkcalc_array *a, grid *g)
{
    const cm_census *c = &p->r->census;
    const cm_census_array *found = NULL;
    for (size_t i = 0; i < c->narrays; i++)
        if (strcmp(c->array[i].name, a->name) == 0 && c->array[i].unclear == NULL)
            found = &c->array[i];
    if (found != NULL)
        grid_cell(g, "%" PRIu64, found->npresent);
    else
        grid_cell(g, "%s", "");
    for (int k = 0; k < CM_CENSUS_HOLES; k++)
        if (found != NULL)
            grid_cell(g, "%" PRIu64, found->hole[k].n);
        else
            grid_cell(g, "%s", "");
}

/* In tables for programs; people get strips. */
static void census_columns(grid *g)
{
    static const char *const NAME[] = {"present", "absent",    "left_out",
                                       "empty",   "truncated", "undecodable"};
    for (size_t i = 0; i < sizeof(NAME) / sizeof(*NAME); i++)
        grid_column(g, NAME[i], false);
}

static int print_arrays(const printer *p, cm_error *err)
{
    const bool counted = p->format == FORMAT_CSV && p->r->has_census;
    grid g = {.ncolumns = 0};

    grid_column(&g, "array", true);
    grid_column(&g, "type", true);
    grid_column(&g, "shape", true);
    grid_column(&g, "chunks", true);
    grid_column(&g, "shards", true);
    grid_column(&g, "codecs", true);
    grid_column(&g, p->format == FORMAT_CSV ? "chunk_bytes" : "a chunk", false);
    grid_column(&g, p->format == FORMAT_CSV ? "chunk_count" : "chunks", false);
    grid_column(&g, "objects", false);
    grid_column(&g, p->format == FORMAT_CSV ? "array_bytes" : "decoded", false);
    grid_column(&g, p->format == FORMAT_CSV ? "padding_bytes" : "padding", false);
    grid_column(&g, "ratio", false);
    grid_column(&g, p->format == FORMAT_CSV ? "decode_bytes_per_s" : "decodes at", false);
    if (counted)
        census_columns(&g);
    for (size_t i = 0; i < p->r->narrays; i++) {
        const cm_chunkcalc_array *a = &p->r->array[i];
        grid_cell(&g, "%s", a->name[0] != '\0' ? a->name : "/");
        grid_cell(&g, "%s", a->type);
        shape_cell(&g, a->rank, a->shape);
        if (a->chunked)
            range_cell(&g, a->rank, a->cut && !a->sharded ? a->shortest : a->chunk, a->chunk);
        else
            grid_cell(&g, "contiguous");
        if (a->sharded)
            range_cell(&g, a->rank, a->cut ? a->shortest : a->shard, a->shard);
        else
            grid_cell(&g, "-");
        grid_cell(&g, "%s", a->codec != NULL ? a->codec : "-");
        if (p->format == FORMAT_CSV) {
            grid_cell(&g, "%" PRIu64, a->chunk_nbytes);
            grid_cell(&g, "%" PRIu64, a->nchunks);
            grid_cell(&g, "%" PRIu64, a->nobjects);
            grid_cell(&g, "%" PRIu64, a->decoded_nbytes);
            grid_cell(&g, "%" PRIu64, a->padding_nbytes);
        } else {
            size_cell(&g, (double)a->chunk_nbytes);
            grid_cell(&g, "%" PRIu64, a->nchunks);
            grid_cell(&g, "%" PRIu64, a->nobjects);
            size_cell(&g, (double)a->decoded_nbytes);
            size_cell(&g, (double)a->padding_nbytes);
        }
        measured_cells(p, a, &g);
        if (counted)
            census_cells(p, a, &g);
    }
    int rc = grid_print(&g, p->format, stdout, err);
    grid_release(&g);
    return rc;
}

/* Rates of the reads of a log: with chunks that were asked for, those there, and the best. */
static int print_rates(const printer *p, cm_error *err)
{
    const cm_chunkcalc_report *r = p->r;
    const double now = r->present != SIZE_MAX ? r->layout[r->present].rate : 0;
    grid g = {.ncolumns = 0};
    char title[128];

    grid_column(&g, "chunks", true);
    grid_column(&g, "", true);
    grid_column(&g, "a chunk", false);
    grid_column(&g, "chunks a read", false);
    grid_column(&g, "decoded", false);
    grid_column(&g, "time a read", false);
    grid_column(&g, "reads/s", false);
    grid_column(&g, "of the present", false);
    for (size_t i = 0; i < r->nlayouts; i++) {
        const cm_chunkcalc_layout *l = &r->layout[i];
        double chunks = 0, weight = 0;
        if (strcmp(l->rule, "against") != 0 && i != r->present && i != r->recommended)
            continue;
        for (size_t k = 0; k < r->nreads; k++) {
            chunks += r->read[k].weight * l->result[k].chunks.mean;
            weight += r->read[k].weight;
        }
        shape_cell(&g, r->rank, l->chunk);
        grid_cell(&g, "%s", strcmp(l->rule, "against") != 0 ? l->rule : "");
        size_cell(&g, (double)l->chunk_nbytes);
        grid_cell(&g, "%.4g", chunks / weight);
        size_cell(&g, chunks / weight * (double)l->chunk_nbytes);
        time_cell(&g, r->access.streams / l->rate);
        grid_cell(&g, "%.4g", l->rate);
        if (now > 0)
            grid_cell(&g, "%.3g x", l->rate / now);
        else
            grid_cell(&g, "-");
    }
    snprintf(title, sizeof title, "Predicted: %" PRIu64 " %s, %u at a time%s", r->access.reads,
             cm_of_count(r->access.reads, "read", "reads"), r->access.streams,
             r->access.measured_rate > 0 ? "; measured with the present chunks" : "");
    return print_grid(p, title, &g, err);
}

/* The tables behind a recommendation: those that an option asked for, or all. */
static int print_reasons(const printer *p, cm_error *err)
{
    int rc = CM_OK;

    if (p->r->access.reads > 0)
        rc = print_rates(p, err);
    if (rc == CM_OK && (p->details || p->v->o.chunks.n > 0))
        rc = print_comparison(p, err);
    if (rc == CM_OK && p->details)
        rc = print_reads(p, err);
    if (rc == CM_OK && p->details)
        rc = print_front(p, err);
    return rc;
}

static int print_answer(const printer *p, cm_error *err)
{
    int rc = chunkcalc_print_answer(p->r, p->v, err);

    if (rc == CM_OK && (p->details || p->v->stats)) {
        heading(p, "What a read touches");
        rc = print_layouts(p, err);
    }
    return rc == CM_OK ? print_reasons(p, err) : rc;
}

static void print_census(const printer *p)
{
    if (!p->r->has_census || p->format == FORMAT_CSV)
        return;
    cm_print(stdout, p->format == FORMAT_MARKDOWN ? "\n## Which chunks are there\n\n" : "\n");
    chunkcalc_print_census(&p->r->census, p->details || p->v->o.audit);
}

static int print_calculation(const printer *p, bool recommends, cm_error *err)
{
    int rc = recommends ? print_answer(p, err) : print_layouts(p, err);
    if (rc == CM_OK && p->r->batch > 0)
        rc = print_batches(p, err);
    if (rc == CM_OK && (p->v->stats || (recommends && p->details)))
        print_model(p);
    return rc;
}

int chunkcalc_print(const cm_chunkcalc_report *r, const chunkcalc_values *v,
                    const cm_common_options *common, cm_error *err)
{
    const bool recommends = r->recommended != SIZE_MAX;
    printer p = {.r = r,
                 .v = v,
                 .format = (chunkcalc_format)v->format,
                 .details = common->verbosity > 0,
                 .rules = recommends};

    for (size_t i = 0; i < r->nlayouts; i++)
        p.shards = p.shards || r->layout[i].sharded;
    int rc = r->nreads == 0           ? print_arrays(&p, err)
             : p.format == FORMAT_CSV ? print_layouts(&p, err)
                                      : print_calculation(&p, recommends, err);
    if (rc == CM_OK)
        print_census(&p);
    return rc;
}
