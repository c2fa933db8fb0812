/* --json: the report as one document, described by tools/schema/chunkcalc.json. */
#include <chunkmill/version.h>

#include "../common/print.h"
#include "base/json.h"
#include "chunkcalc.h"

/* Remembers the first failure, so that a run of puts needs one check. */
typedef struct writer {
    int status;
    cm_error *err;
} writer;

static void put(writer *w, cm_json *object, const char *name, cm_json *value)
{
    int status = cm_json_set(object, name, value, w->err);
    if (w->status == CM_OK)
        w->status = status;
}

static void put_null(writer *w, cm_json *object, const char *name)
{
    int status = cm_json_set_null(object, name, w->err);
    if (w->status == CM_OK)
        w->status = status;
}

static void add(writer *w, cm_json *array, cm_json *value)
{
    int status = cm_json_append(array, value, w->err);
    if (w->status == CM_OK)
        w->status = status;
}

static void put_text(writer *w, cm_json *object, const char *name, const char *text)
{
    if (text != NULL)
        put(w, object, name, cm_json_string(text));
    else
        put_null(w, object, name);
}

static void put_u64(writer *w, cm_json *object, const char *name, uint64_t v)
{
    put(w, object, name, cm_json_u64(v));
}

/* X, or null where it was not computed. */
static void put_double(writer *w, cm_json *object, const char *name, double x, bool known)
{
    if (known)
        put(w, object, name, cm_json_double(x));
    else
        put_null(w, object, name);
}

static void put_shape(writer *w, cm_json *object, const char *name, unsigned rank,
                      const uint64_t *shape, bool known)
{
    if (!known) {
        put_null(w, object, name);
        return;
    }
    cm_json *array = cm_json_array();
    for (unsigned d = 0; d < rank; d++)
        add(w, array, cm_json_u64(shape[d]));
    put(w, object, name, array);
}

static void put_names(writer *w, cm_json *object, const char *name, unsigned rank,
                      char *const *dim_name)
{
    cm_json *array = cm_json_array();
    for (unsigned d = 0; d < rank; d++) {
        int status = dim_name[d] != NULL
                         ? cm_json_append(array, cm_json_string(dim_name[d]), w->err)
                         : cm_json_append_null(array, w->err);
        if (w->status == CM_OK)
            w->status = status;
    }
    put(w, object, name, array);
}

static void put_texts(writer *w, cm_json *object, const char *name, char *const *text, size_t n)
{
    cm_json *array = cm_json_array();
    for (size_t i = 0; i < n; i++)
        add(w, array, cm_json_string(text[i]));
    put(w, object, name, array);
}

static cm_json *stat_json(writer *w, const cm_chunkcalc_stat *s)
{
    cm_json *o = cm_json_object();
    put_u64(w, o, "min", s->min);
    put_double(w, o, "mean", s->mean, true);
    put_u64(w, o, "p50", s->p50);
    put_u64(w, o, "p95", s->p95);
    put_u64(w, o, "max", s->max);
    return o;
}

static cm_json *result_json(writer *w, const cm_chunkcalc_result *s)
{
    cm_json *o = cm_json_object();
    put(w, o, "chunks", stat_json(w, &s->chunks));
    put(w, o, "bytes", stat_json(w, &s->bytes));
    put(w, o, "requests", stat_json(w, &s->requests));
    put_double(w, o, "decoded_nbytes", s->decoded_nbytes, true);
    put_double(w, o, "amplification", s->amplification, true);
    put_double(w, o, "seconds", s->seconds, true);
    put_double(w, o, "pays", s->pays, s->pays > 0);
    return o;
}

static cm_json *array_footprint(writer *w, const cm_chunkcalc_layout *l)
{
    cm_json *o = cm_json_object();
    put_u64(w, o, "nchunks", l->nchunks);
    put_u64(w, o, "nobjects", l->nobjects);
    put_double(w, o, "stored_nbytes", l->stored_nbytes, true);
    put_u64(w, o, "padding_nbytes", l->padding_nbytes);
    put_u64(w, o, "index_nbytes", l->index_nbytes);
    return o;
}

static cm_json *batch_json(writer *w, const cm_chunkcalc_report *r, const cm_chunkcalc_layout *l)
{
    double decoded = l->batch_chunks * (double)l->chunk_nbytes, t = r->step_time;
    cm_json *o = cm_json_object();
    put_double(w, o, "distinct_chunks", l->batch_chunks, true);
    put(w, o, "exact", cm_json_bool(l->batch_exact));
    put_double(w, o, "requests", l->batch_requests, true);
    put_double(w, o, "bytes", decoded / r->ratio, true);
    put_double(w, o, "decoded_nbytes", decoded, true);
    put_double(w, o, "bytes_per_s", decoded / r->ratio / t, t > 0);
    put_double(w, o, "decoded_bytes_per_s", decoded / t, t > 0);
    put_double(w, o, "requests_per_s", l->batch_requests / t, t > 0);
    return o;
}

static cm_json *layout_json(writer *w, const cm_chunkcalc_report *r, const cm_chunkcalc_layout *l)
{
    cm_json *o = cm_json_object(), *reads = cm_json_array();
    put_text(w, o, "rule", l->rule);
    put_shape(w, o, "chunks", r->rank, l->chunk, true);
    put_shape(w, o, "shards", r->rank, l->shard, l->sharded);
    put_u64(w, o, "chunk_nbytes", l->chunk_nbytes);
    put_double(w, o, "seconds", l->seconds, true);
    put_double(w, o, "bytes", l->bytes, true);
    put_double(w, o, "requests", l->requests, true);
    put_double(w, o, "regret", l->regret, l->regret > 0);
    for (size_t i = 0; i < r->nreads; i++)
        add(w, reads, result_json(w, &l->result[i]));
    put(w, o, "reads", reads);
    if (l->has_footprint)
        put(w, o, "array", array_footprint(w, l));
    else
        put_null(w, o, "array");
    if (r->batch > 0)
        put(w, o, "batch", batch_json(w, r, l));
    else
        put_null(w, o, "batch");
    return o;
}

static cm_json *read_json(writer *w, const cm_chunkcalc_report *r, const cm_chunkcalc_read *read)
{
    cm_json *o = cm_json_object();
    bool own = read->own_seconds > 0;
    put_text(w, o, "text", read->text);
    put_double(w, o, "weight", read->weight, true);
    put_shape(w, o, "sample", r->rank, read->sample, true);
    put_shape(w, o, "step", r->rank, read->step, true);
    put_double(w, o, "nbytes", read->nbytes, true);
    put_shape(w, o, "own_chunks", r->rank, read->own_chunk, own);
    put_double(w, o, "own_seconds", read->own_seconds, own);
    return o;
}

static cm_json *cost_json(writer *w, const cm_chunkcalc_report *r)
{
    cm_json *o = cm_json_object();
    put_text(w, o, "storage", r->storage);
    put_double(w, o, "latency_s", r->latency, true);
    put_double(w, o, "range_latency_s", r->range, true);
    put_double(w, o, "chunk_s", r->chunk_seconds, true);
    put_double(w, o, "bandwidth_bytes_per_s", r->bandwidth, true);
    put_double(w, o, "decode_bytes_per_s", r->decode, true);
    put_double(w, o, "concurrency", r->concurrency, true);
    put_double(w, o, "ratio", r->ratio, true);
    put_u64(w, o, "measured_chunks", r->measured_chunks);
    put_text(w, o, "source", r->storage_source);
    put_text(w, o, "measured", !r->measured ? "no" : r->cold ? "cold" : "warm");
    return o;
}

static cm_json *recommendation_json(writer *w, const cm_chunkcalc_report *r)
{
    cm_json *o = cm_json_object(), *front = cm_json_array();
    put_text(w, o, "objective", r->objective);
    put_u64(w, o, "min_nbytes", r->min_nbytes);
    put_u64(w, o, "max_nbytes", r->max_nbytes);
    put_u64(w, o, "layout", r->recommended);
    put_text(w, o, "chunks_option", r->chunks_option);
    put_text(w, o, "shards_option", r->shards_option);
    put_u64(w, o, "sharded_objects", r->sharded_objects);
    put_text(w, o, "reason", r->reason);
    put_u64(w, o, "evaluated", r->nevaluated);
    for (size_t i = 0; i < r->nfront; i++) {
        cm_json *point = cm_json_object();
        put_shape(w, point, "chunks", r->rank, r->front[i].chunk, true);
        put_double(w, point, "bytes", r->front[i].bytes, true);
        put_double(w, point, "requests", r->front[i].requests, true);
        put_double(w, point, "seconds", r->front[i].seconds, true);
        add(w, front, point);
    }
    put(w, o, "front", front);
    return o;
}

static cm_json *stored_array_json(writer *w, const cm_chunkcalc_array *a)
{
    cm_json *o = cm_json_object();
    put_text(w, o, "name", a->name);
    put_text(w, o, "type", a->type);
    put_text(w, o, "codecs", a->codec);
    put_names(w, o, "dimensions", a->rank, a->dim_name);
    put_shape(w, o, "shape", a->rank, a->shape, true);
    put_shape(w, o, "chunks", a->rank, a->chunk, a->chunked);
    put_shape(w, o, "shards", a->rank, a->shard, a->sharded);
    put_u64(w, o, "chunk_nbytes", a->chunk_nbytes);
    put_u64(w, o, "nchunks", a->nchunks);
    put_u64(w, o, "nobjects", a->nobjects);
    put_u64(w, o, "decoded_nbytes", a->decoded_nbytes);
    put_u64(w, o, "padding_nbytes", a->padding_nbytes);
    put_u64(w, o, "measured_chunks", a->measured_chunks);
    put_double(w, o, "ratio", a->ratio, a->ratio > 0);
    put_double(w, o, "decode_bytes_per_s", a->decode, a->decode > 0);
    return o;
}

static void put_calculation(writer *w, cm_json *o, const cm_chunkcalc_report *r)
{
    cm_json *reads = cm_json_array(), *layouts = cm_json_array();
    put_names(w, o, "dimensions", r->rank, r->dim_name);
    put_shape(w, o, "shape", r->rank, r->shape, r->bounded);
    put_text(w, o, "variable", r->variable);
    put_text(w, o, "type", r->type);
    put_u64(w, o, "itemsize", r->itemsize);
    put(w, o, "itemsize_assumed", cm_json_bool(r->assumed_itemsize));
    put_text(w, o, "align", r->align);
    put(w, o, "cost", cost_json(w, r));
    for (size_t i = 0; i < r->nreads; i++)
        add(w, reads, read_json(w, r, &r->read[i]));
    put(w, o, "reads", reads);
    for (size_t i = 0; i < r->nlayouts; i++)
        add(w, layouts, layout_json(w, r, &r->layout[i]));
    put(w, o, "layouts", layouts);
    if (r->batch > 0) {
        cm_json *batch = cm_json_object();
        put_u64(w, batch, "samples", r->batch);
        put_double(w, batch, "step_s", r->step_time, r->step_time > 0);
        put(w, o, "batch", batch);
    }
    if (r->recommended != SIZE_MAX)
        put(w, o, "recommendation", recommendation_json(w, r));
    if (r->audit != NULL) {
        cm_json *audit = cm_json_object();
        put_text(w, audit, "verdict", r->verdict);
        put_text(w, audit, "sentence", r->audit);
        put_double(w, audit, "gain", r->gain, r->gain > 0);
        put(w, o, "audit", audit);
    }
}

int chunkcalc_print_json(const cm_chunkcalc_report *r, const cm_error *failure, cm_error *err)
{
    writer w = {CM_OK, err};
    cm_json *o = cm_json_object();
    char versions[256];

    put_text(&w, o, "schema", "chunkcalc/1");
    put_text(&w, o, "version", cm_version());
    put_text(&w, o, "libraries", cm_library_versions(versions, sizeof(versions)));
    if (failure != NULL) {
        cm_json *error = cm_json_object();
        put_text(&w, error, "status", cm_status_name(failure->status));
        put_text(&w, error, "message", failure->text);
        put(&w, o, "error", error);
    } else {
        put_null(&w, o, "error");
        if (r->nreads > 0)
            put_calculation(&w, o, r);
        if (r->narrays > 0) {
            cm_json *arrays = cm_json_array();
            for (size_t i = 0; i < r->narrays; i++)
                add(&w, arrays, stored_array_json(&w, &r->array[i]));
            put(&w, o, "arrays", arrays);
        }
        put_texts(&w, o, "warnings", r->warning, r->nwarnings);
        put_texts(&w, o, "notes", r->note, r->nnotes);
    }
    if (w.status == CM_OK)
        w.status = cm_print_json(o, stdout, err);
    cm_json_free(o);
    return w.status;
}
