/* --json: the report as one document, described by tools/schema/nc2zarr.json. */
#include "nc2zarr.h"

#include <chunkmill/version.h>

#include "../common/print.h"
#include "base/json.h"

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

/* TEXT, or null where there is none. */
static void put_text(writer *w, cm_json *object, const char *name, const char *text)
{
    if (text)
        put(w, object, name, cm_json_string(text));
    else
        put_null(w, object, name);
}

static void put_u64(writer *w, cm_json *object, const char *name, uint64_t v)
{
    put(w, object, name, cm_json_u64(v));
}

static void put_texts(writer *w, cm_json *object, const char *name, char *const *text, size_t n)
{
    cm_json *array = cm_json_array();
    for (size_t i = 0; i < n; i++)
        add(w, array, cm_json_string(text[i]));
    put(w, object, name, array);
}

static void put_shape(writer *w, cm_json *object, const char *name, unsigned rank,
                      const uint64_t *shape)
{
    cm_json *array = cm_json_array();
    for (unsigned d = 0; d < rank; d++)
        add(w, array, cm_json_u64(shape[d]));
    put(w, object, name, array);
}

static bool sharded(const cm_convert_variable *v)
{
    for (unsigned d = 0; d < v->rank; d++)
        if (v->shard[d] != 0)
            return true;
    return false;
}

static void put_dimensions(writer *w, cm_json *object, const cm_convert_variable *v)
{
    cm_json *array = cm_json_array();
    for (unsigned d = 0; d < v->rank; d++) {
        cm_json *dim = cm_json_object();
        put_text(w, dim, "name", v->dim_name[d]);
        put_u64(w, dim, "length", v->shape[d]);
        put(w, dim, "unlimited", cm_json_bool(v->unlimited[d]));
        add(w, array, dim);
    }
    put(w, object, "dimensions", array);
}

/* CHECKED: the store was there before, and its codecs and format are not the options'. */
static cm_json *variable_json(writer *w, const cm_convert_variable *v, bool checked)
{
    cm_json *o = cm_json_object();
    put_text(w, o, "name", v->name);
    put_text(w, o, "source", v->source);
    put_text(w, o, "type", v->type);
    put_dimensions(w, o, v);
    put_shape(w, o, "shape", v->rank, v->shape);
    put_shape(w, o, "chunks", v->rank, v->chunk);
    if (sharded(v))
        put_shape(w, o, "shards", v->rank, v->shard);
    else
        put_null(w, o, "shards");
    put_text(w, o, "codec", checked ? NULL : v->codec);
    put_text(w, o, "access", v->access);
    put_u64(w, o, "nchunks", v->nchunks);
    put_u64(w, o, "nobjects", v->nobjects);
    put_u64(w, o, "nskipped", v->nskipped);
    if (v->source_nbytes)
        put_u64(w, o, "source_nbytes", v->source_nbytes);
    else
        put_null(w, o, "source_nbytes");
    put_u64(w, o, "decoded_nbytes", v->decoded_nbytes);
    put_u64(w, o, "stored_nbytes", v->stored_nbytes);
    put_u64(w, o, "memory_nbytes", v->memory_nbytes);
    put(w, o, "decodes_per_chunk", cm_json_double(v->decodes_per_chunk));
    put(w, o, "passed_through", cm_json_bool(v->passed_through));
    put_text(w, o, "digest", v->digest);
    put_text(w, o, "readers", v->readers);
    return o;
}

static const char *outcome(const cm_convert_options *options, const cm_convert_report *r,
                           const cm_error *failure)
{
    if (failure && failure->status == CM_EDIFFER)
        return "differs";
    if (failure)
        return failure->status == CM_ECANCELED ? "canceled" : "failed";
    return r->written ? "done" : options->check ? "same" : "planned";
}

static void put_head(writer *w, cm_json *o, const cm_convert_options *options,
                     const cm_convert_report *r, const cm_error *failure)
{
    char libraries[512];
    put_text(w, o, "schema", "nc2zarr/1");
    put_text(w, o, "version", cm_version());
    put_text(w, o, "libraries", cm_library_versions(libraries, sizeof(libraries)));
    put_text(w, o, "outcome", outcome(options, r, failure));
    if (failure) {
        cm_json *e = cm_json_object();
        put_text(w, e, "status", cm_status_name(failure->status));
        put_text(w, e, "message", failure->text);
        put(w, o, "error", e);
    } else {
        put_null(w, o, "error");
    }
}

static void put_ends(writer *w, cm_json *o, const cm_convert_options *options,
                     const cm_convert_report *r)
{
    cm_json *in = cm_json_object(), *out = cm_json_object();
    put_text(w, in, "path", options->input);
    put_text(w, in, "format", r->input_format);
    put_u64(w, in, "nbytes", r->input_nbytes);
    put_text(w, out, "path", r->output ? r->output : options->output);
    if (options->check)
        put_null(w, out, "zarr_format");
    else
        put_u64(w, out, "zarr_format", (uint64_t)options->zarr_format);
    put(w, out, "written", cm_json_bool(r->written));
    put(w, out, "resumable", cm_json_bool(r->resumable));
    put_u64(w, out, "nobjects", r->nobjects);
    put_u64(w, out, "nbytes", r->stored_nbytes);
    put(w, o, "input", in);
    put(w, o, "output", out);
}

static void put_verification(writer *w, cm_json *o, const cm_convert_options *options,
                             const cm_convert_report *r)
{
    static const char *const MODE[] = {"none", "sample", "full"};
    cm_json *v = cm_json_object();
    cm_verify mode = options->check ? CM_VERIFY_FULL : options->verify;
    put_text(w, v, "mode", MODE[options->dry_run ? CM_VERIFY_NONE : mode]);
    put_u64(w, v, "nelements", r->nverified);
    put(w, v, "seconds", cm_json_double(r->verify_seconds));
    put_texts(w, v, "differences", r->difference, r->ndifferences);
    put(w, o, "verification", v);
}

static void put_cost(writer *w, cm_json *o, const cm_convert_report *r)
{
    cm_json *memory = cm_json_object(), *stages = cm_json_array();
    put_u64(w, memory, "limit_nbytes", r->memory_limit);
    put_u64(w, memory, "planned_nbytes", r->memory_planned);
    put_u64(w, memory, "peak_nbytes", r->memory_peak);
    for (size_t i = 0; i < r->nstages; i++) {
        cm_json *s = cm_json_object();
        put_text(w, s, "name", r->stage[i].name);
        put(w, s, "seconds", cm_json_double(r->stage[i].seconds));
        put_u64(w, s, "calls", r->stage[i].calls);
        add(w, stages, s);
    }
    put_u64(w, o, "decoded_nbytes", r->decoded_nbytes);
    put_u64(w, o, "threads", r->nthreads);
    put(w, o, "seconds", cm_json_double(r->seconds));
    put(w, o, "memory", memory);
    put(w, o, "stages", stages);
}

int nc2zarr_print_json(const cm_convert_options *options, const cm_convert_report *report,
                       const cm_error *failure, cm_error *err)
{
    writer w = {CM_OK, err};
    cm_json *o = cm_json_object(), *variables = cm_json_array();
    put_head(&w, o, options, report, failure);
    put_ends(&w, o, options, report);
    for (size_t i = 0; i < report->nvariables; i++)
        add(&w, variables, variable_json(&w, &report->variable[i], options->check));
    put(&w, o, "variables", variables);
    put_texts(&w, o, "skipped", report->skipped, report->nskipped);
    put_texts(&w, o, "warnings", report->warning, report->nwarnings);
    put_texts(&w, o, "notes", report->note, report->nnotes);
    put_verification(&w, o, options, report);
    put_cost(&w, o, report);
    int status = w.status == CM_OK ? cm_print_json(o, stdout, err) : w.status;
    cm_json_free(o);
    return status;
}
