/* --json: the report as one document, described by tools/schema/nc2zarr.json. */
#include "suits.h"

#include <math.h>
#include <string.h>

#include "../common/census_json.h"
#include "../common/document.h"
#include "../common/growth.h"
#include "../common/part.h"
#include "../common/passport_run.h"
#include "../common/remote.h"
#include "../common/transformed.h"

static bool sharded(const cm_transform_variable *v)
{
    for (unsigned d = 0; d < v->rank; d++)
        if (v->shard[d] != 0)
            return true;
    return false;
}

static void put_dimensions(cm_document *doc, cm_json *object, const cm_transform_variable *v)
{
    cm_json *array = cm_json_array();
    for (unsigned d = 0; d < v->rank; d++) {
        cm_json *dim = cm_json_object();
        cm_document_text(doc, dim, "name", v->dim_name[d]);
        cm_document_u64(doc, dim, "length", v->shape[d]);
        cm_document_bool(doc, dim, "unlimited", v->unlimited[d]);
        cm_document_append(doc, array, dim);
    }
    cm_document_put(doc, object, "dimensions", array);
}

/* Of a replacement, what is other than before. */
static void put_changed(cm_document *doc, cm_json *o, const cm_transform_variable *v)
{
    cm_json *p = cm_document_object(doc, o, "changed", v->compared);
    if (p == NULL)
        return;
    cm_document_u64(doc, p, "nelements", v->nchanged);
    cm_document_double(doc, p, "largest", v->largest_change, !isnan(v->largest_change));
}

/* CHECKED: the store was there before, and its codecs and format are not the options'. */
static cm_json *variable_json(cm_document *doc, const cm_transform_variable *v, bool checked)
{
    cm_json *o = cm_json_object();
    cm_document_text(doc, o, "name", v->name);
    cm_document_text(doc, o, "source", v->source);
    cm_document_text(doc, o, "type", v->type);
    put_dimensions(doc, o, v);
    cm_document_shape(doc, o, "shape", v->rank, v->shape, true);
    cm_document_shape(doc, o, "chunks", v->rank, v->chunk, true);
    if (memcmp(v->shortest_chunk, v->chunk, v->rank * sizeof(v->chunk[0])) != 0)
        cm_document_shape(doc, o, "shortest_chunks", v->rank, v->shortest_chunk, true);
    cm_document_shape(doc, o, "shards", v->rank, v->shard, sharded(v));
    cm_document_text(doc, o, "codec", checked ? NULL : v->codec);
    cm_document_text(doc, o, "access", v->access);
    cm_document_u64(doc, o, "nchunks", v->nchunks);
    cm_document_u64(doc, o, "nobjects", v->nobjects);
    cm_document_u64(doc, o, "nskipped", v->nskipped);
    cm_document_known_u64(doc, o, "source_nbytes", v->source_nbytes, v->source_nbytes != 0);
    cm_document_u64(doc, o, "decoded_nbytes", v->decoded_nbytes);
    cm_document_u64(doc, o, "stored_nbytes", v->stored_nbytes);
    cm_document_u64(doc, o, "memory_nbytes", v->memory_nbytes);
    cm_document_double(doc, o, "decodes_per_chunk", v->decodes_per_chunk, true);
    cm_document_bool(doc, o, "passed_through", v->passed_through);
    put_changed(doc, o, v);
    cm_document_text(doc, o, "digest", v->digest);
    cm_document_text(doc, o, "readers", v->readers);
    return o;
}

static const char *outcome(const cm_transform_options *options, const cm_transform_report *r,
                           const cm_error *failure)
{
    if (failure && failure->status == CM_EDIFFER)
        return "differs";
    if (failure)
        return failure->status == CM_ECANCELED ? "canceled" : "failed";
    if (r->part.on && !r->part.complete && !options->dry_run)
        return "part";
    if (r->finished && !options->check)
        return "complete";
    return r->written ? "done" : options->check ? "same" : "planned";
}

static void put_ends(cm_document *doc, cm_json *o, const cm_transform_options *options,
                     const cm_transform_report *r)
{
    cm_json *in = cm_json_object(), *out = cm_json_object();
    cm_document_text(doc, in, "path", options->source);
    cm_document_text(doc, in, "format", r->source_format);
    cm_document_u64(doc, in, "nbytes", r->source_nbytes);
    cm_document_known_u64(doc, in, "files", r->nfiles, r->nfiles > 0);
    cm_document_known_u64(doc, in, "opened", r->nfiles_opened, r->nfiles > 0);
    cm_document_text(doc, out, "path", r->target ? r->target : options->target);
    cm_document_known_u64(doc, out, "zarr_format", (uint64_t)options->zarr_format, !options->check);
    cm_document_bool(doc, out, "written", r->written);
    cm_document_bool(doc, out, "resumable", r->resumable);
    cm_document_u64(doc, out, "nobjects", r->nobjects);
    cm_transform_put_inodes(doc, out, r);
    cm_document_known_u64(doc, out, "nreferences", r->nreferences, options->refer != NULL);
    cm_document_known_u64(doc, out, "ninline", r->ninline, options->refer != NULL);
    cm_document_u64(doc, out, "nbytes", r->stored_nbytes);
    cm_document_put(doc, o, "input", in);
    cm_document_put(doc, o, "output", out);
}

static void put_replace(cm_document *doc, cm_json *o, const cm_replace_report *r)
{
    cm_json *p = cm_document_object(doc, o, "replace", r->on);
    if (p == NULL)
        return;
    cm_document_text(doc, p, "dimension", r->dimension);
    cm_document_u64(doc, p, "start", r->first);
    cm_document_u64(doc, p, "stop", r->end);
}

static void put_cost(cm_document *doc, cm_json *o, const cm_transform_report *r)
{
    cm_document_u64(doc, o, "decoded_nbytes", r->decoded_nbytes);
    cm_document_u64(doc, o, "threads", r->nthreads);
    cm_document_double(doc, o, "seconds", r->seconds, true);
    cm_transform_put_memory(doc, o, r);
    cm_transform_put_stages(doc, o, r);
}

cm_json *nc2zarr_document(cm_document *doc, const cm_transform_options *options,
                          const cm_transform_report *report, const nc2zarr_of *of,
                          const nc2zarr_typed *typed, const cm_error *failure)
{
    nc2zarr_suits suits;
    cm_json *o = cm_json_object(), *variables = cm_json_array();
    cm_document_head(doc, o, "nc2zarr/1", outcome(options, report, failure), failure);
    put_ends(doc, o, options, report);
    cm_part_document(doc, o, &report->part);
    cm_growth_document(doc, o, &report->append);
    put_replace(doc, o, &report->replace);
    for (size_t i = 0; i < report->nvariables; i++)
        cm_document_append(doc, variables,
                           variable_json(doc, &report->variable[i], options->check));
    cm_document_put(doc, o, "variables", variables);
    nc2zarr_suits_find(options, report, typed, &suits);
    nc2zarr_suits_document(doc, o, &suits);
    nc2zarr_suits_release(&suits);
    cm_document_texts(doc, o, "skipped", report->skipped, report->nskipped);
    cm_document_census(doc, o, "census", report->has_census ? &report->census : NULL);
    cm_document_texts(doc, o, "warnings", report->warning, report->nwarnings);
    cm_document_texts(doc, o, "notes", report->note, report->nnotes);
    if (of != NULL)
        nc2zarr_put_left_out(doc, o, of->archive, of->store);
    cm_transform_put_verification(doc, o, options, report);
    passport_document(doc, o, options->report, report->passport);
    put_cost(doc, o, report);
    cm_remote_document(doc, o, options->net);
    return o;
}
