/* --json: the report as one document, described by tools/schema/rechunk.json. */
#include <string.h>

#include "../common/census_json.h"
#include "../common/document.h"
#include "../common/growth.h"
#include "../common/part.h"
#include "../common/passport_run.h"
#include "../common/remote.h"
#include "../common/transformed.h"
#include "rechunk.h"

static cm_json *counts_json(cm_document *doc, const cm_plan_counts *c)
{
    cm_json *o = cm_json_object();
    cm_document_u64(doc, o, "chunk_reads", c->chunk_reads);
    cm_document_u64(doc, o, "chunk_decodes", c->chunk_decodes);
    cm_document_u64(doc, o, "chunk_writes", c->chunk_writes);
    cm_document_u64(doc, o, "element_nbytes_read", c->element_nbytes_read);
    cm_document_u64(doc, o, "element_nbytes_written", c->element_nbytes_written);
    cm_document_u64(doc, o, "scratch_nbytes", c->scratch_nbytes);
    return o;
}

static cm_json *layout_json(cm_document *doc, unsigned rank, const uint64_t *shortest,
                            const uint64_t *chunk, const uint64_t *shard, const char *codec,
                            uint64_t nchunks)
{
    cm_json *o = cm_json_object();
    cm_document_shape(doc, o, "chunks", rank, chunk, true);
    if (memcmp(shortest, chunk, rank * sizeof(chunk[0])) != 0)
        cm_document_shape(doc, o, "shortest_chunks", rank, shortest, true);
    cm_document_shape(doc, o, "shards", rank, shard, rechunk_sharded(rank, shard));
    cm_document_text(doc, o, "codec", codec);
    cm_document_u64(doc, o, "nchunks", nchunks);
    return o;
}

static cm_json *plan_json(cm_document *doc, const cm_transform_variable *a)
{
    cm_json *o = cm_json_object(), *order = cm_json_array();
    cm_document_text(doc, o, "kind", rechunk_plan_name(a->plan));
    cm_document_text(doc, o, "reason", a->plan_reason);
    for (unsigned d = 0; d < a->rank; d++)
        cm_document_append(doc, order, cm_json_u64(a->order[d]));
    cm_document_put(doc, o, "order", order);
    cm_document_u64(doc, o, "memory_nbytes", a->memory_nbytes);
    cm_document_u64(doc, o, "traffic_nbytes", a->planned_nbytes);
    cm_document_u64(doc, o, "bound_nbytes", a->bound_nbytes);
    double gap = a->bound_nbytes ? (double)a->planned_nbytes / (double)a->bound_nbytes - 1 : 0;
    cm_document_double(doc, o, "gap", gap, a->bound_nbytes != 0);
    cm_document_double(doc, o, "seconds", a->planned_seconds, true);
    return o;
}

static cm_json *array_json(cm_document *doc, const cm_transform_variable *a, bool written)
{
    cm_json *o = cm_json_object();
    cm_document_text(doc, o, "name", a->name);
    cm_document_text(doc, o, "type", a->type);
    cm_document_names(doc, o, "dimensions", a->rank, a->dim_name);
    cm_document_shape(doc, o, "shape", a->rank, a->shape, true);
    cm_json *before = layout_json(doc, a->rank, a->shortest_chunk_before, a->chunk_before,
                                  a->shard_before, a->codec_before, a->nchunks_before);
    cm_document_u64(doc, before, "missing", a->missing_before);
    cm_document_known_u64(doc, before, "stored_nbytes", a->source_nbytes, a->source_nbytes != 0);
    cm_document_put(doc, o, "before", before);
    cm_json *after =
        layout_json(doc, a->rank, a->shortest_chunk, a->chunk, a->shard, a->codec, a->nchunks);
    cm_document_u64(doc, after, "nobjects", a->nobjects);
    cm_document_u64(doc, after, "nskipped", a->nskipped);
    cm_document_known_u64(doc, after, "stored_nbytes", a->stored_nbytes, written);
    cm_document_put(doc, o, "after", after);
    cm_document_u64(doc, o, "decoded_nbytes", a->decoded_nbytes);
    cm_document_put(doc, o, "plan", plan_json(doc, a));
    cm_document_put(doc, o, "planned", counts_json(doc, &a->planned));
    if (written)
        cm_document_put(doc, o, "counted", counts_json(doc, &a->counted));
    else
        cm_document_null(doc, o, "counted");
    cm_document_text(doc, o, "digest", a->digest);
    return o;
}

static const char *outcome(const cm_transform_report *r, bool planned, const cm_error *failure)
{
    if (failure && failure->status == CM_EDIFFER)
        return "differs";
    if (failure)
        return failure->status == CM_ECANCELED ? "canceled" : "failed";
    if (r->part.on && !r->part.complete && !planned)
        return "part";
    return r->written ? "done" : r->finished ? "complete" : "planned";
}

static void put_ends(cm_document *doc, cm_json *o, const cm_transform_options *options,
                     const cm_transform_report *r)
{
    cm_json *source = cm_json_object(), *target = cm_json_object();
    cm_document_text(doc, source, "path", options->source);
    cm_document_known_u64(doc, source, "zarr_format", (uint64_t)r->zarr_format_before,
                          r->zarr_format_before != 0);
    cm_document_text(doc, target, "path", r->target ? r->target : options->target);
    cm_document_known_u64(doc, target, "zarr_format", (uint64_t)r->zarr_format_after,
                          r->zarr_format_after != 0);
    cm_document_bool(doc, target, "written", r->written);
    cm_document_bool(doc, target, "resumable", r->resumable);
    cm_document_u64(doc, target, "nobjects", r->nobjects);
    cm_transform_put_inodes(doc, target, r);
    cm_document_known_u64(doc, target, "stored_nbytes", r->stored_nbytes, r->written);
    cm_document_put(doc, o, "source", source);
    cm_document_put(doc, o, "target", target);
}

static void put_cost(cm_document *doc, cm_json *o, const cm_transform_report *r)
{
    cm_json *probe = cm_json_object();
    cm_document_double(doc, probe, "read_rate", r->probe_read_rate, r->probe_read_rate > 0);
    cm_document_double(doc, probe, "write_rate", r->probe_write_rate, r->probe_write_rate > 0);
    cm_document_double(doc, probe, "decode_rate", r->probe_decode_rate, r->probe_decode_rate > 0);
    cm_document_double(doc, probe, "encode_rate", r->probe_encode_rate, r->probe_encode_rate > 0);
    cm_document_u64(doc, o, "decoded_nbytes", r->decoded_nbytes);
    cm_document_u64(doc, o, "scratch_nbytes", r->scratch_needed);
    cm_document_u64(doc, o, "threads", r->nthreads);
    cm_document_double(doc, o, "seconds", r->seconds, true);
    cm_transform_put_memory(doc, o, r);
    cm_document_put(doc, o, "probe", probe);
    cm_transform_put_stages(doc, o, r);
}

int rechunk_print_json(const cm_transform_options *options, const cm_transform_report *report,
                       const cm_error *failure, cm_error *err)
{
    cm_document doc = {CM_OK, err};
    cm_json *o = cm_json_object(), *arrays = cm_json_array();
    cm_document_head(&doc, o, "rechunk/1", outcome(report, options->dry_run, failure), failure);
    put_ends(&doc, o, options, report);
    cm_part_document(&doc, o, &report->part);
    cm_growth_document(&doc, o, &report->append);
    for (size_t i = 0; i < report->nvariables; i++)
        cm_document_append(&doc, arrays, array_json(&doc, &report->variable[i], report->written));
    cm_document_put(&doc, o, "arrays", arrays);
    cm_document_census(&doc, o, "census", report->has_census ? &report->census : NULL);
    cm_document_texts(&doc, o, "warnings", report->warning, report->nwarnings);
    cm_document_texts(&doc, o, "notes", report->note, report->nnotes);
    cm_transform_put_verification(&doc, o, options, report);
    passport_document(&doc, o, options->report, report->passport);
    put_cost(&doc, o, report);
    cm_remote_document(&doc, o, options->net);
    return cm_document_print(&doc, o, stdout);
}
