/*
 * The reads that default chunks suit, and the command that makes chunks for others.
 *
 * Chunks chosen without a sample balance reads along the first dimension and across it.  Training
 * mostly reads neither: it reads small windows at random places.  The window named here is a usual
 * one, by the dimensions' own names, to be changed to what the training reads.
 */
#include "suits.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../common/again.h"
#include "../common/print.h"
#include "../common/repository.h"
#include "../common/say.h"
#include "base/outstream.h"
#include "plan/meetings.h"
#include "survey.h"

enum {
    STEPS = 4,   /* of a window along time, */
    SIDE = 32,   /* and along each dimension of a map, */
    RUN = 1024,  /* or along the only one: stations, cells, observations */
    FEW = 64,    /* levels, channels: read together; members are not */
    NO_TIME = 32 /* in place of a dimension */
};

/* ---- the variable, and the meaning of its dimensions ---- */

static uint64_t nelements(const cm_transform_variable *v)
{
    uint64_t n = 1;
    for (unsigned d = 0; d < v->rank; d++)
        n = cm_mul_sat(n, v->shape[d]);
    return n;
}

static bool is_axis(const cm_transform_variable *v)
{
    const char *slash = strrchr(v->name, '/');
    return v->rank == 1 && v->dim_name[0] != NULL &&
           strcmp(slash != NULL ? slash + 1 : v->name, v->dim_name[0]) == 0;
}

/* That with most elements; NULL: there are only scalars and axes. */
static const cm_transform_variable *variable_of(const cm_transform_report *r)
{
    const cm_transform_variable *largest = NULL;
    for (size_t i = 0; i < r->nvariables; i++) {
        const cm_transform_variable *v = &r->variable[i];
        if (v->rank > 0 && !is_axis(v) && v->nchunks > 0 && !v->passed_through && !v->rectilinear &&
            (largest == NULL || nelements(v) > nelements(largest)))
            largest = v;
    }
    return largest;
}

/* By name, or as it is unlimited; else the first of three and more. */
static unsigned time_of(const cm_transform_variable *v)
{
    for (unsigned d = 0; d < v->rank; d++)
        if (v->dim_name[d] != NULL && strcasestr(v->dim_name[d], "time"))
            return d;
    for (unsigned d = 0; d < v->rank; d++)
        if (v->unlimited[d])
            return d;
    return v->rank > 2 ? 0 : NO_TIME;
}

static bool is_whole(const cm_transform_variable *v, unsigned d)
{
    return v->chunk[d] >= v->shape[d];
}

/* All but TIME are whole; those in front of the last two may be single steps. */
static bool has_maps(const cm_transform_variable *v, unsigned time)
{
    unsigned nseen = 0;
    for (unsigned d = v->rank; d-- > 0;) {
        if (d == time)
            continue;
        const bool of_map = nseen++ < 2;
        if (!is_whole(v, d) && (of_map || v->chunk[d] != 1))
            return false;
    }
    return true;
}

static void print_reads(const cm_transform_variable *v, FILE *f)
{
    const unsigned time = time_of(v);
    unsigned other = time == 0 && v->rank > 1 ? 1 : 0, ncut = 0;
    for (unsigned d = 0; d < v->rank; d++)
        ncut += !is_whole(v, d);
    if (ncut == 0) {
        fputs("reading all of it", f);
    } else if (v->rank == 1 || (time < v->rank && is_whole(v, time))) {
        fputs(v->rank == 1 ? "runs" : "series", f);
        other = v->rank == 1 ? 0 : time;
        cm_print(f, " along %s", v->dim_name[other] != NULL ? v->dim_name[other] : "it");
    } else if (time == NO_TIME) {
        fputs("tiles of maps", f);
    } else if (has_maps(v, time) && v->rank == 2) {
        cm_print(f, "all of %s at once", v->dim_name[other] != NULL ? v->dim_name[other] : "it");
    } else if (has_maps(v, time)) {
        fputs(v->chunk[time] == 1 ? "whole maps" : "runs of whole maps", f);
    } else {
        fputs(v->rank == 2 ? "reads along both dimensions alike" : "maps and series alike", f);
    }
}

/* ---- a window ---- */

static uint64_t window_length(const cm_transform_variable *v, unsigned d, uint64_t usual)
{
    const uint64_t half = v->shape[d] / 2;
    return half >= usual ? usual : half > 0 ? half : 1;
}

/* Whether each dimension has a name of its own, by which a sample can be asked for. */
static bool has_names(const cm_transform_variable *v)
{
    for (unsigned d = 0; d < v->rank; d++) {
        if (v->dim_name[d] == NULL)
            return false;
        for (unsigned e = 0; e < d; e++)
            if (strcmp(v->dim_name[e], v->dim_name[d]) == 0)
                return false;
    }
    return true;
}

static void print_escaped(const char *name, FILE *f)
{
    for (; *name != '\0'; name++) {
        if (strchr("\\:,=*", *name) != NULL)
            putc('\\', f);
        putc(*name, f);
    }
}

/*
 * "time=4,level=2,lat=32,lon=32", to be freed; "4x2x32x32" where not all dimensions have names, or
 * some were RENAMED: a sample is asked for by those of the input.
 */
static char *sample_of(const cm_transform_variable *v, bool renamed)
{
    const unsigned time = time_of(v);
    const unsigned nspace = v->rank - (time < v->rank);
    const bool named = !renamed && has_names(v);
    unsigned left = nspace, nprinted = 0;
    cm_outtext t;
    FILE *f = cm_outtext_open(&t);
    if (f == NULL)
        return NULL;
    for (unsigned d = 0; d < v->rank; d++) {
        const bool in_map = d != time && left <= 2;
        uint64_t length = v->shape[d] <= FEW && !v->unlimited[d] ? v->shape[d] : 1;
        if (d == time || in_map)
            length = window_length(v, d, d == time && nspace > 0 ? STEPS : nspace < 2 ? RUN : SIDE);
        left -= d != time;
        fputs(nprinted++ == 0 ? "" : named ? "," : "x", f);
        if (named) {
            print_escaped(v->dim_name[d], f);
            putc('=', f);
        }
        cm_print(f, "%llu", (unsigned long long)length);
    }
    return cm_outtext_close(&t);
}

/* ---- the command ---- */

/* That of the run, with SAMPLE, into an output that is not there; NULL: no memory. */
static char *command_of(const nc2zarr_typed *typed, const char *sample, bool made)
{
    /* Options of one run, and files that it wrote. */
    static const char *const WITHOUT[] = {"dry-run", "overwrite",  "resume",   "json",
                                          "quiet",   "verbose",    "progress", "certificate",
                                          "trace",   "break-lock", NULL};
    char *options = cm_again_options(&NC2ZARR, typed->argc, typed->argv, WITHOUT);
    char *output = nc2zarr_free_output(typed->output, made ? 2 : 1);
    cm_outtext t;
    FILE *f = options != NULL && output != NULL ? cm_outtext_open(&t) : NULL;
    char *line = NULL;
    if (f != NULL) {
        cm_print_shell_word(typed->argv[0], f);
        cm_print(f, "%s --sample ", options);
        cm_print_shell_word(sample, f);
        nc2zarr_print_inputs(&typed->inputs, typed->ordered, f);
        fputs(output[0] == '-' ? " ./" : " ", f);
        cm_print_shell_word(output, f);
        line = cm_outtext_close(&t);
    }
    free(options);
    free(output);
    return line;
}

/* --codec keep for all variables: their chunks stay, too. */
static bool keeps_bytes(const cm_texts *codec)
{
    for (size_t i = 0; i < codec->n; i++)
        if (strcmp(codec->text[i], "keep") == 0 || strncmp(codec->text[i], "keep:", 5) == 0)
            return true;
    return false;
}

static bool is_default(const cm_transform_options *o, const cm_transform_report *r)
{
    return o->chunks.n == 0 && o->sample == NULL && o->refer == NULL && !o->check &&
           !cm_is_repository(o->target) && !keeps_bytes(&o->codec) && !r->append.on &&
           !r->replace.on && !r->part.on;
}

bool nc2zarr_suits_find(const cm_transform_options *options, const cm_transform_report *r,
                        const nc2zarr_typed *typed, nc2zarr_suits *out)
{
    *out = (nc2zarr_suits){0};
    const cm_transform_variable *v = is_default(options, r) ? variable_of(r) : NULL;
    cm_outtext t;
    FILE *f = v != NULL && (r->written || options->dry_run) ? cm_outtext_open(&t) : NULL;
    if (f == NULL)
        return false;
    print_reads(v, f);
    out->variable = v;
    out->reads = cm_outtext_close(&t);
    out->sample = sample_of(v, options->rename.n > 0);
    /* The command that was typed makes all stores. */
    const bool alone = options->nothers == 0;
    if (out->sample != NULL && alone)
        out->command = command_of(typed, out->sample, !options->dry_run);
    if (out->reads != NULL && out->sample != NULL && (out->command != NULL || !alone))
        return true;
    nc2zarr_suits_release(out);
    return false;
}

void nc2zarr_suits_print(const nc2zarr_suits *s)
{
    char chunk[96];
    const cm_transform_variable *v = s->variable;
    cm_print(stdout, "  Chunks %s of ", cm_format_shape(v->rank, v->chunk, chunk, sizeof(chunk)));
    cm_print_clean(v->name, stdout);
    fputs(" suit ", stdout);
    cm_print_clean(s->reads, stdout);
    fputs("; for random windows: ", stdout);
    if (s->command != NULL) {
        cm_print(stdout, "%s\n", s->command);
        return;
    }
    fputs("--sample ", stdout);
    cm_print_shell_word(s->sample, stdout);
    putchar('\n');
}

void nc2zarr_suits_document(cm_document *doc, cm_json *o, const nc2zarr_suits *s)
{
    const cm_transform_variable *v = s->variable;
    cm_json *p = cm_document_object(doc, o, "chunks_suit", v != NULL);
    if (p == NULL)
        return;
    cm_document_text(doc, p, "variable", v->name);
    cm_document_shape(doc, p, "chunks", v->rank, v->chunk, true);
    cm_document_text(doc, p, "reads", s->reads);
    cm_document_text(doc, p, "sample", s->sample);
    cm_document_text(doc, p, "command", s->command);
}

void nc2zarr_suits_release(nc2zarr_suits *s)
{
    free(s->reads);
    free(s->sample);
    free(s->command);
    *s = (nc2zarr_suits){0};
}
