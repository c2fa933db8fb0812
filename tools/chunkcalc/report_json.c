/* --json: the report as one document, described by tools/schema/chunkcalc.json. */
#include "../common/census_json.h"
#include "../common/document.h"
#include "../common/passport_run.h"
#include "chunkcalc.h"

static cm_json *stat_json(cm_document *doc, const cm_chunkcalc_stat *s)
{
    cm_json *o = cm_json_object();
    cm_document_u64(doc, o, "min", s->min);
    cm_document_double(doc, o, "mean", s->mean, true);
    cm_document_u64(doc, o, "p50", s->p50);
    cm_document_u64(doc, o, "p95", s->p95);
    cm_document_u64(doc, o, "max", s->max);
    return o;
}

static cm_json *result_json(cm_document *doc, const cm_chunkcalc_result *s)
{
    cm_json *o = cm_json_object();
    cm_document_put(doc, o, "chunks", stat_json(doc, &s->chunks));
    cm_document_put(doc, o, "bytes", stat_json(doc, &s->bytes));
    cm_document_put(doc, o, "requests", stat_json(doc, &s->requests));
    cm_document_double(doc, o, "decoded_nbytes", s->decoded_nbytes, true);
    cm_document_double(doc, o, "amplification", s->amplification, true);
    cm_document_double(doc, o, "seconds", s->seconds, true);
    cm_document_double(doc, o, "pays", s->pays, s->pays > 0);
    return o;
}

static cm_json *array_footprint(cm_document *doc, const cm_chunkcalc_layout *l)
{
    cm_json *o = cm_json_object();
    cm_document_u64(doc, o, "nchunks", l->nchunks);
    cm_document_u64(doc, o, "nobjects", l->nobjects);
    cm_document_double(doc, o, "stored_nbytes", l->stored_nbytes, true);
    cm_document_u64(doc, o, "padding_nbytes", l->padding_nbytes);
    cm_document_u64(doc, o, "index_nbytes", l->index_nbytes);
    return o;
}

static cm_json *batch_json(cm_document *doc, const cm_chunkcalc_report *r,
                           const cm_chunkcalc_layout *l)
{
    const double decoded = l->batch_nbytes, t = r->step_time;
    cm_json *o = cm_json_object();
    cm_document_double(doc, o, "distinct_chunks", l->batch_chunks, true);
    cm_document_bool(doc, o, "exact", l->batch_exact);
    cm_document_double(doc, o, "requests", l->batch_requests, true);
    cm_document_double(doc, o, "bytes", decoded / r->ratio, true);
    cm_document_double(doc, o, "decoded_nbytes", decoded, true);
    cm_document_double(doc, o, "bytes_per_s", decoded / r->ratio / t, t > 0);
    cm_document_double(doc, o, "decoded_bytes_per_s", decoded / t, t > 0);
    cm_document_double(doc, o, "requests_per_s", l->batch_requests / t, t > 0);
    return o;
}

static cm_json *layout_json(cm_document *doc, const cm_chunkcalc_report *r,
                            const cm_chunkcalc_layout *l)
{
    cm_json *o = cm_json_object(), *reads = cm_json_array();
    cm_document_text(doc, o, "rule", l->rule);
    cm_document_shape(doc, o, "chunks", r->rank, l->chunk, true);
    cm_document_shape(doc, o, "shards", r->rank, l->shard, l->sharded);
    cm_document_u64(doc, o, "chunk_nbytes", l->chunk_nbytes);
    cm_document_double(doc, o, "seconds", l->seconds, true);
    cm_document_double(doc, o, "bytes", l->bytes, true);
    cm_document_double(doc, o, "requests", l->requests, true);
    cm_document_double(doc, o, "regret", l->regret, l->regret > 0);
    cm_document_double(doc, o, "reads_per_second", l->rate, l->rate > 0);
    for (size_t i = 0; i < r->nreads; i++)
        cm_document_append(doc, reads, result_json(doc, &l->result[i]));
    cm_document_put(doc, o, "reads", reads);
    if (l->has_footprint)
        cm_document_put(doc, o, "array", array_footprint(doc, l));
    else
        cm_document_null(doc, o, "array");
    if (r->batch > 0)
        cm_document_put(doc, o, "batch", batch_json(doc, r, l));
    else
        cm_document_null(doc, o, "batch");
    return o;
}

static cm_json *read_json(cm_document *doc, const cm_chunkcalc_report *r,
                          const cm_chunkcalc_read *read)
{
    cm_json *o = cm_json_object();
    bool own = read->own_seconds > 0;
    cm_document_text(doc, o, "text", read->text);
    cm_document_double(doc, o, "weight", read->weight, true);
    cm_document_shape(doc, o, "sample", r->rank, read->sample, true);
    cm_document_shape(doc, o, "step", r->rank, read->step, true);
    cm_document_double(doc, o, "nbytes", read->nbytes, true);
    cm_document_shape(doc, o, "own_chunks", r->rank, read->own_chunk, own);
    cm_document_double(doc, o, "own_seconds", read->own_seconds, own);
    return o;
}

static cm_json *cost_json(cm_document *doc, const cm_chunkcalc_report *r)
{
    cm_json *o = cm_json_object();
    cm_document_text(doc, o, "storage", r->storage);
    cm_document_double(doc, o, "latency_s", r->latency, true);
    cm_document_double(doc, o, "range_latency_s", r->range, true);
    cm_document_double(doc, o, "chunk_s", r->chunk_seconds, true);
    cm_document_double(doc, o, "bandwidth_bytes_per_s", r->bandwidth, true);
    cm_document_double(doc, o, "decode_bytes_per_s", r->decode, true);
    cm_document_double(doc, o, "concurrency", r->concurrency, true);
    cm_document_double(doc, o, "ratio", r->ratio, true);
    cm_document_u64(doc, o, "measured_chunks", r->measured_chunks);
    cm_document_text(doc, o, "source", r->storage_source);
    cm_document_text(doc, o, "measured", !r->measured ? "no" : r->cold ? "cold" : "warm");
    return o;
}

static cm_json *recommendation_json(cm_document *doc, const cm_chunkcalc_report *r)
{
    cm_json *o = cm_json_object(), *front = cm_json_array();
    cm_document_text(doc, o, "objective", r->objective);
    cm_document_u64(doc, o, "min_nbytes", r->min_nbytes);
    cm_document_u64(doc, o, "max_nbytes", r->max_nbytes);
    cm_document_u64(doc, o, "layout", r->recommended);
    cm_document_text(doc, o, "chunks_option", r->chunks_option);
    cm_document_text(doc, o, "shards_option", r->shards_option);
    cm_document_u64(doc, o, "sharded_objects", r->sharded_objects);
    cm_document_text(doc, o, "reason", r->reason);
    cm_document_u64(doc, o, "evaluated", r->nevaluated);
    for (size_t i = 0; i < r->nfront; i++) {
        cm_json *point = cm_json_object();
        cm_document_shape(doc, point, "chunks", r->rank, r->front[i].chunk, true);
        cm_document_double(doc, point, "bytes", r->front[i].bytes, true);
        cm_document_double(doc, point, "requests", r->front[i].requests, true);
        cm_document_double(doc, point, "seconds", r->front[i].seconds, true);
        cm_document_append(doc, front, point);
    }
    cm_document_put(doc, o, "front", front);
    return o;
}

static cm_json *stored_array_json(cm_document *doc, const cm_chunkcalc_array *a)
{
    cm_json *o = cm_json_object();
    cm_document_text(doc, o, "name", a->name);
    cm_document_text(doc, o, "type", a->type);
    cm_document_text(doc, o, "codecs", a->codec);
    cm_document_names(doc, o, "dimensions", a->rank, a->dim_name);
    cm_document_shape(doc, o, "shape", a->rank, a->shape, true);
    cm_document_shape(doc, o, "chunks", a->rank, a->chunk, a->chunked);
    cm_document_shape(doc, o, "shards", a->rank, a->shard, a->sharded);
    if (a->cut)
        cm_document_shape(doc, o, a->sharded ? "shortest_shards" : "shortest_chunks", a->rank,
                          a->shortest, true);
    cm_document_u64(doc, o, "chunk_nbytes", a->chunk_nbytes);
    cm_document_u64(doc, o, "nchunks", a->nchunks);
    cm_document_u64(doc, o, "nobjects", a->nobjects);
    cm_document_u64(doc, o, "decoded_nbytes", a->decoded_nbytes);
    cm_document_u64(doc, o, "padding_nbytes", a->padding_nbytes);
    cm_document_u64(doc, o, "measured_chunks", a->measured_chunks);
    cm_document_double(doc, o, "ratio", a->ratio, a->ratio > 0);
    cm_document_double(doc, o, "decode_bytes_per_s", a->decode, a->decode > 0);
    return o;
}

static cm_json *access_json(cm_document *doc, const cm_chunkcalc_access *a)
{
    cm_json *o = cm_json_object();
    cm_document_u64(doc, o, "reads", a->reads);
    cm_document_u64(doc, o, "together", a->together);
    cm_document_u64(doc, o, "streams", a->streams);
    cm_document_u64(doc, o, "processes", a->processes);
    cm_document_double(doc, o, "seconds", a->seconds, true);
    cm_document_u64(doc, o, "requests", a->requests);
    cm_document_u64(doc, o, "stored_nbytes", a->stored_nbytes);
    cm_document_bool(doc, o, "wanted", a->wanted);
    cm_document_double(doc, o, "measured_reads_per_second", a->measured_rate, a->measured_rate > 0);
    return o;
}

static void put_calculation(cm_document *doc, cm_json *o, const cm_chunkcalc_report *r)
{
    cm_json *reads = cm_json_array(), *layouts = cm_json_array();
    cm_document_names(doc, o, "dimensions", r->rank, r->dim_name);
    cm_document_shape(doc, o, "shape", r->rank, r->shape, r->bounded);
    cm_document_text(doc, o, "variable", r->variable);
    cm_document_text(doc, o, "type", r->type);
    cm_document_u64(doc, o, "itemsize", r->itemsize);
    cm_document_bool(doc, o, "itemsize_assumed", r->assumed_itemsize);
    cm_document_text(doc, o, "align", r->align);
    cm_document_put(doc, o, "cost", cost_json(doc, r));
    if (r->access.reads > 0)
        cm_document_put(doc, o, "access", access_json(doc, &r->access));
    for (size_t i = 0; i < r->nreads; i++)
        cm_document_append(doc, reads, read_json(doc, r, &r->read[i]));
    cm_document_put(doc, o, "reads", reads);
    for (size_t i = 0; i < r->nlayouts; i++)
        cm_document_append(doc, layouts, layout_json(doc, r, &r->layout[i]));
    cm_document_put(doc, o, "layouts", layouts);
    if (r->batch > 0) {
        cm_json *batch = cm_json_object();
        cm_document_u64(doc, batch, "samples", r->batch);
        cm_document_double(doc, batch, "step_s", r->step_time, r->step_time > 0);
        cm_document_put(doc, o, "batch", batch);
    }
    if (r->recommended != SIZE_MAX)
        cm_document_put(doc, o, "recommendation", recommendation_json(doc, r));
    if (r->audit != NULL) {
        cm_json *audit = cm_json_object();
        cm_document_text(doc, audit, "verdict", r->verdict);
        cm_document_text(doc, audit, "sentence", r->audit);
        cm_document_double(doc, audit, "gain", r->gain, r->gain > 0);
        cm_document_put(doc, o, "audit", audit);
    }
}

int chunkcalc_print_json(const cm_chunkcalc_report *r, const char *path,
                         const cm_passport *passport, const cm_error *failure, cm_error *err)
{
    cm_document doc = {CM_OK, err};
    cm_json *o = cm_json_object();
    cm_document_head(&doc, o, "chunkcalc/1", NULL, failure);
    if (failure == NULL) {
        if (r->nreads > 0)
            put_calculation(&doc, o, r);
        if (r->narrays > 0) {
            cm_json *arrays = cm_json_array();
            for (size_t i = 0; i < r->narrays; i++)
                cm_document_append(&doc, arrays, stored_array_json(&doc, &r->array[i]));
            cm_document_put(&doc, o, "arrays", arrays);
        }
        if (r->has_census)
            cm_document_census(&doc, o, "census", &r->census);
        if (passport != NULL)
            passport_document(&doc, o, path, passport);
        cm_document_texts(&doc, o, "warnings", r->warning, r->nwarnings);
        cm_document_texts(&doc, o, "notes", r->note, r->nnotes);
    }
    return cm_document_print(&doc, o, stdout);
}
