/* A store or file: what is there, and what its chunks compress to. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/number.h"
#include "base/path.h"
#include "chunkcalc/chunkcalc.h"
#include "format/census.h"
#include "format/dataset.h"
#include "options/codec_option.h"
#include "options/store_path.h"
#include "options/varopt.h"
#include "plan/meetings.h"
#include "store/dir.h"
#include "store/open.h"
#include "store/references.h"

enum {
    MEASURED_CHUNKS = 24,
    INDEX_CACHE = 16 << 20
};

#define MEASURED_NBYTES (UINT64_C(256) << 20) /* decoded, in all */
#define MEASURED_CHUNK  (UINT64_C(512) << 20) /* a larger chunk is not decoded for this */
#define MEASURED_NS     UINT64_C(1000000000)

typedef struct cm_calc_input {
    cm_store_path at;
    cm_dataset *ds;
    bool *named;      /* of each variable: `variable` names it; NULL: it is not given */
    bool only;        /* a description keeps to these */
    cm_variable *var; /* prepared; or NULL */
} input;

uint64_t cm_calc_memory(const cm_chunkcalc_options *o)
{
    const unsigned nthreads = o->nthreads > 0 ? o->nthreads : cm_cpu_count();
    return cm_mul_sat(o->worker_memory, nthreads);
}

static void release(input *in)
{
    cm_dataset_close(in->ds);
    free(in->named);
    cm_store_path_release(&in->at);
}

/* True for the node that was named and what lies below it. */
static bool is_below(const input *in, const char *name)
{
    size_t n = strlen(in->at.node);
    return n == 0 || (strncmp(in->at.node, name, n) == 0 && (name[n] == '\0' || name[n] == '/'));
}

/* Sets NAMED by the patterns of `variable`. */
static int find_named(const cm_calc *c, input *in, cm_error *err)
{
    const size_t n = in->ds->nvars;
    const char **name = cm_calloc(n + 1, sizeof(*name), err);
    in->named = cm_calloc(n + 1, sizeof(*in->named), err);
    int rc = name != NULL && in->named != NULL ? CM_OK : CM_ENOMEM;
    for (size_t i = 0; i < n && rc == CM_OK; i++)
        name[i] = is_below(in, in->ds->var[i].name) ? in->ds->var[i].name : NULL;
    if (rc == CM_OK)
        rc = cm_names_choose("`variable`", c->options->variable, c->options->store, name, n,
                             in->named, err);
    free(name);
    return rc;
}

/* ---- describing ---------------------------------------------------------------------------- */

/* Chunks, or shards, of several lengths. */
static int describe_cut(const cm_variable *v, cm_chunkcalc_array *a, cm_footprint *f, cm_error *err)
{
    cm_grid chunks, objects;
    a->cut = true;
    for (unsigned j = 0; j < v->rank; j++) {
        const cm_cuts *cuts = v->words->cuts[j];
        a->shortest[j] = cuts != NULL ? cm_cuts_shortest(cuts) : v->words->chunk[j];
    }
    int rc = cm_zarr_meta_grid(v->words, &chunks, err);
    if (rc == CM_OK)
        rc = cm_zarr_meta_outer_grid(v->words, &objects, err);
    return rc == CM_OK ? cm_footprint_of_grid(&chunks, &objects, v->dtype.nbytes, 1, f, err) : rc;
}

static int describe(cm_calc *c, const cm_variable *v, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;
    cm_chunkcalc_array *a = &r->array[r->narrays];
    cm_footprint f;
    char text[32];

    r->narrays++; /* from here on it is released with the report */
    a->name = cm_strdup(v->name, err);
    a->type = cm_strdup(cm_dtype_name(&v->dtype, text, sizeof(text)), err);
    if (a->name == NULL || a->type == NULL)
        return CM_ENOMEM;
    a->rank = v->rank;
    a->chunked = v->has_source_chunks;
    a->sharded = v->is_sharded;
    for (unsigned j = 0; j < v->rank; j++) {
        const char *dim = v->dim_name[j];
        a->shape[j] = v->shape[j];
        a->chunk[j] = a->chunked ? v->source_chunk[j] : v->shape[j] > 0 ? v->shape[j] : 1;
        a->shard[j] = a->sharded ? v->source_shard[j] : 0;
        if (dim != NULL && (a->dim_name[j] = cm_strdup(dim, err)) == NULL)
            return CM_ENOMEM;
    }
    int rc = v->words != NULL && cm_zarr_meta_is_cut(v->words)
                 ? describe_cut(v, a, &f, err)
                 : cm_footprint_count(v->rank, v->shape, a->chunk, a->sharded ? a->shard : NULL,
                                      v->dtype.nbytes, 1, &f, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "%s", cm_calc_label(v->name));
        return rc;
    }
    a->chunk_nbytes = f.chunk_nbytes;
    a->nchunks = f.nchunks;
    a->nobjects = f.nobjects;
    a->decoded_nbytes = f.array_nbytes;
    a->padding_nbytes = a->chunked ? f.padding_nbytes : 0;
    return CM_OK;
}

/* Its grid is of a kind that nothing is known of. */
static bool has_unknown_chunks(const cm_variable *v)
{
    return v->unsupported != NULL && v->has_source_chunks && v->rank > 0 && v->source_chunk[0] == 0;
}

static int describe_all(cm_calc *c, const input *in, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;
    const bool is_file = in->ds->kind == CM_DATASET_NETCDF;
    const cm_variable *unknown = NULL;
    int rc = CM_OK;

    r->array = cm_calloc(in->ds->nvars + 1, sizeof(*r->array), err);
    if (r->array == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < in->ds->nvars && rc == CM_OK; i++) {
        const cm_variable *v = &in->ds->var[i];
        if (!is_below(in, v->name) || (in->only && !in->named[i]) ||
            (is_file && v->unsupported != NULL))
            continue;
        if (has_unknown_chunks(v)) {
            unknown = v;
            rc = cm_calc_warn(c, err, "array %s is left out: %s", cm_calc_label(v->name),
                              v->unsupported);
            continue;
        }
        rc = describe(c, v, err);
        if (rc == CM_OK && is_file)
            r->array[r->narrays - 1].nobjects = 1;
        else if (rc == CM_OK)
            rc = cm_codec_names(v->codecs, v->ncodecs, &r->array[r->narrays - 1].codec, err);
    }
    return rc == CM_OK && r->narrays == 0 && unknown != NULL
               ? cm_fail(err, CM_EUNSUPPORTED, "%s: array %s: %s", c->options->store,
                         cm_calc_label(unknown->name), unknown->unsupported)
               : rc;
}

/* ---- choosing ------------------------------------------------------------------------------ */

static bool is_named(const input *in, const char *name)
{
    const cm_variable *v = cm_dataset_find(in->ds, name);
    return v != NULL && in->named[v->index];
}

/* Places along a dimension come last, however many there are. */
static bool exceeds(const input *in, const cm_chunkcalc_array *a, const cm_chunkcalc_array *other)
{
    const cm_variable *v = cm_dataset_find(in->ds, a->name);
    const cm_variable *w = cm_dataset_find(in->ds, other->name);
    const bool is_places = v != NULL && v->is_coordinate,
               are_places = w != NULL && w->is_coordinate;
    return is_places != are_places ? are_places : a->decoded_nbytes > other->decoded_nbytes;
}

/* The array that --variable names, or the largest. */
static int choose(cm_calc *c, const input *in, cm_chunkcalc_array **out, cm_error *err)
{
    const cm_chunkcalc_report *r = c->report;
    const char *want = c->options->variable, *read = NULL; /* READ: what a log is about */
    cm_chunkcalc_array *best = NULL;
    size_t n = 0;

    if (c->options->access != NULL) {
        int rc = cm_calc_access_open(c, in->ds, &read, err);
        if (rc != CM_OK)
            return rc;
    }
    for (size_t i = 0; i < r->narrays; i++) {
        cm_chunkcalc_array *a = &r->array[i];
        if (read != NULL ? strcmp(read, a->name) != 0 : want != NULL && !is_named(in, a->name))
            continue;
        n++;
        if (best == NULL || exceeds(in, a, best))
            best = a;
    }
    if (best == NULL && want != NULL)
        return cm_fail(err, CM_EINVAL, "`variable` %s: %s has no such array", want,
                       c->options->store);
    if (best == NULL)
        return cm_fail(err, CM_EINVAL, "%s: no array lies at '%s'", c->options->store, in->at.node);
    *out = best;
    return n > 1 && want != NULL && !in->only
               ? cm_calc_note(c, err, "`variable` %s means %zu arrays; the largest, %s, is read",
                              want, n, best->name)
               : CM_OK;
}

/*
 * A name that means A alone in an option of nc2zarr and rechunk: "q" would mean "sub/q" too, and a
 * shape without a name leaves arrays of one dimension as they are.
 */
static char *pattern_of(const cm_dataset *ds, const cm_chunkcalc_array *a, cm_error *err)
{
    bool absolute = a->name[0] == '\0' && a->rank < 2;
    for (size_t i = 0; i < ds->nvars; i++) {
        const char *name = ds->var[i].name, *last = cm_path_last(name);
        absolute = absolute || (last != name && strcmp(last, a->name) == 0);
    }
    return cm_asprintf(err, "%s%s", absolute ? "/" : "", a->name);
}

/*
 * Whether each chunk, or shard, is an object: not in a NetCDF file, a zip file, a repository, or
 * where a document refers to.
 */
static bool has_objects(const input *in)
{
    const cm_store *store = cm_dataset_store(in->ds);
    return store != NULL && (cm_store_is_dir(store) ||
                             (cm_store_is_remote(store) && !cm_store_is_references(store) &&
                              cm_store_url_is_remote(in->at.path)));
}

static int take(cm_calc *c, const input *in, const cm_chunkcalc_array *a, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;

    r->variable = cm_strdup(a->name, err);
    r->pattern = pattern_of(in->ds, a, err);
    r->type = cm_strdup(a->type, err);
    if (r->variable == NULL || r->pattern == NULL || r->type == NULL)
        return CM_ENOMEM;
    r->rank = a->rank;
    r->bounded = true;
    c->has_present = a->chunked;
    c->present_apart = has_objects(in);
    c->present_sharded = a->sharded;
    for (unsigned j = 0; j < a->rank; j++) {
        if (a->shape[j] == 0)
            return cm_fail(err, CM_EINVAL, "%s: array %s is empty: nothing can be read",
                           c->options->store, cm_calc_label(a->name));
        r->shape[j] = a->shape[j];
        c->present_chunk[j] = a->chunk[j];
        c->present_shard[j] = a->shard[j];
        if (a->dim_name[j] != NULL && (r->dim_name[j] = cm_strdup(a->dim_name[j], err)) == NULL)
            return CM_ENOMEM;
    }
    if (a->chunk_nbytes == 0 && c->options->itemsize == 0)
        return cm_fail(err, CM_EINVAL, "%s: the elements of %s have no fixed size; say `itemsize`",
                       c->options->store, cm_calc_label(a->name));
    const cm_variable *v = a->cut ? cm_dataset_find(in->ds, a->name) : NULL;
    int rc = v != NULL ? cm_zarr_meta_copy(v->words, &c->present_words, err) : CM_OK;
    if (rc == CM_OK && v != NULL)
        rc = cm_calc_note(c, err,
                          "the %s of %s differ in length (a rectilinear chunk grid): the present "
                          "layout has the longest, and counts of it follow each",
                          a->sharded ? "shards" : "chunks", cm_calc_label(a->name));
    if (rc != CM_OK)
        return rc;
    r->itemsize = a->chunk_nbytes;
    for (unsigned j = 0; j < a->rank; j++)
        r->itemsize /= a->chunk[j];
    return CM_OK;
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* Chunks that cannot be read; the others are measured. */
typedef struct damage {
    bool remote;
    uint64_t looked, n;
    cm_error first;
} damage;

/* Whether RC tells of a chunk, and not of this process or of storage as a whole. */
static bool is_of_chunk(const damage *d, int rc)
{
    return rc == CM_EFORMAT || rc == CM_EUNSUPPORTED || (rc == CM_EIO && !d->remote);
}

/* Fetches chunk NUMBER and decodes it into DST; adds to STORED, DECODED and CPU nanoseconds. */
static int measure_chunk(cm_array *a, uint64_t number, cm_codec_ctx *ctx, cm_buf *buf, void *dst,
                         uint64_t sum[3], cm_error *err)
{
    cm_fetch fetch;
    int rc = a->ops->fetch(a, number, buf, &fetch, err);
    if (rc != CM_OK || !fetch.present)
        return rc;
    const cm_chain *chain = cm_array_chain(a, fetch.chain);
    const uint64_t from = cm_thread_cpu_ns();
    rc = cm_chain_decode(chain, ctx, buf->data, buf->nbytes, fetch.skip, dst, err);
    if (rc != CM_OK) {
        cm_grid_explain(&a->grid, number, "array", a->name, err);
        return rc;
    }
    sum[2] += cm_thread_cpu_ns() - from;
    sum[0] += buf->nbytes;
    sum[1] += cm_chain_decoded_nbytes(chain);
    return CM_OK;
}

static int measure_chunks(cm_array *a, cm_codec_ctx *ctx, void *dst, cm_chunkcalc_array *out,
                          damage *d, cm_error *err)
{
    uint64_t sum[3] = {0}; /* stored, decoded, CPU nanoseconds */
    uint64_t start = cm_now_ns(), n = a->grid.nchunks;
    uint64_t k = n < MEASURED_CHUNKS ? n : MEASURED_CHUNKS;
    cm_buf buf;
    int rc = CM_OK;

    cm_buf_init(&buf, 0);
    for (uint64_t i = 0; i < k && rc == CM_OK; i++) {
        cm_error inner = {0};
        uint64_t number = k == 1 ? 0 : (uint64_t)((unsigned __int128)i * (n - 1) / (k - 1));
        const uint64_t before = sum[1];
        if (sum[1] >= MEASURED_NBYTES || cm_now_ns() - start > MEASURED_NS)
            break;
        rc = measure_chunk(a, number, ctx, &buf, dst, sum, &inner);
        d->looked++;
        out->measured_chunks += sum[1] > before;
        if (rc != CM_OK && is_of_chunk(d, rc)) {
            d->first = d->n++ == 0 ? inner : d->first;
            rc = CM_OK;
        } else if (rc != CM_OK && err != NULL) {
            *err = inner;
        }
    }
    cm_buf_release(&buf);
    if (rc == CM_OK && sum[0] > 0)
        out->ratio = (double)sum[1] / (double)sum[0];
    if (rc == CM_OK && sum[2] > 0 && !cm_chain_is_raw(a->chain))
        out->decode = (double)sum[1] * 1e9 / (double)sum[2];
    return rc;
}

/* Bytes of memory that measuring chunks of A takes: one decoded, and one as it is stored. */
static uint64_t memory_to_measure(const cm_array *a)
{
    const uint64_t nbytes = cm_array_decoded_nbytes(a);
    return cm_add_sat(cm_mul_sat(nbytes, 2), cm_chain_decode_memory(a->chain));
}

static int measure_array(cm_calc *c, cm_array *a, cm_chunkcalc_array *out, damage *d, cm_error *err)
{
    cm_codec_ctx *ctx = NULL;
    void *dst = NULL;
    int rc = CM_ENOMEM;
    char size[32];

    if (!a->chunked || a->grid.nchunks == 0)
        return CM_OK;
    uint64_t nbytes = cm_array_decoded_nbytes(a);
    if (nbytes == 0 || nbytes > MEASURED_CHUNK)
        return CM_OK;
    const uint64_t needs = memory_to_measure(a);
    if (needs > cm_calc_memory(c->options))
        return cm_calc_note(c, err,
                            "%s: chunks are not measured, which takes %s: more than `memory`",
                            cm_calc_label(out->name), cm_format_size(needs, size, sizeof(size)));
    ctx = cm_codec_ctx_create(err);
    if (ctx != NULL)
        dst = cm_calloc(1, nbytes, err);
    if (dst != NULL)
        rc = measure_chunks(a, ctx, dst, out, d, err);
    cm_codec_ctx_free(ctx);
    free(dst);
    return rc;
}

static int measure(cm_calc *c, const input *in, cm_chunkcalc_array *out, cm_error *err)
{
    int rc = CM_OK;
    const cm_store *store = cm_dataset_store(in->ds);
    damage d = {.remote = store != NULL && cm_store_is_remote(store)};
    cm_variable *v = out->chunked ? cm_dataset_find(in->ds, out->name) : NULL;

    if (v != NULL) {
        rc = cm_dataset_prepare(in->ds, v, err);
        if (rc == CM_OK)
            rc = measure_array(c, v->array, out, &d, err);
        cm_dataset_unprepare(in->ds, v);
    }
    if (rc != CM_OK)
        cm_error_prefix(err, "%s: %s", in->at.path, cm_calc_label(out->name));
    if (rc == CM_OK && d.n > 0 && d.n == d.looked)
        rc = cm_fail(err, CM_EFORMAT, "%s: no chunk of a sample can be read: %s", c->report->path,
                     d.first.text);
    else if (rc == CM_OK && d.n > 0)
        rc = cm_calc_warn(
            c, err, "%s: %" PRIu64 " of %" PRIu64 " %s of a sample cannot be read: %s",
            c->report->path, d.n, d.looked, cm_of_count(d.looked, "chunk", "chunks"), d.first.text);
    return rc;
}

/* A description is worth having also where chunks cannot be read: that becomes a warning. */
static int measure_all(cm_calc *c, const input *in, cm_error *err)
{
    cm_chunkcalc_report *r = c->report;
    uint64_t start = cm_now_ns();

    for (size_t i = 0; i < r->narrays && cm_now_ns() - start < MEASURED_NS; i++) {
        cm_error inner = {0};
        int rc = measure(c, in, &r->array[i], &inner);
        if (rc == CM_ENOMEM)
            return cm_fail(err, CM_ENOMEM, "%s", inner.text);
        if (rc != CM_OK)
            rc = cm_calc_warn(c, err, "%s", inner.text);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int open_input(cm_calc *c, input *in, cm_error *err)
{
    const cm_dataset_options options = {.index_cache_nbytes = INDEX_CACHE,
                                        .net = c->options->net,
                                        .memory = cm_calc_memory(c->options),
                                        .reads_only = true};
    int rc = cm_store_path_find(c->options->store, c->options->net, &in->at, err);

    if (rc == CM_OK)
        rc = cm_dataset_open(in->at.path, "", &options, &in->ds, err);
    if (rc != CM_OK)
        return rc;
    c->report->is_netcdf = in->ds->kind == CM_DATASET_NETCDF;
    /* Of a log, `variable` is one of those that it names. */
    if (c->options->variable != NULL && c->options->access == NULL &&
        (rc = find_named(c, in, err)) != CM_OK)
        return rc;
    c->report->zarr_format = in->ds->zarr_format;
    c->report->path = cm_strdup(in->at.url != NULL ? in->at.url : in->at.path, err);
    return c->report->path != NULL ? describe_all(c, in, err) : CM_ENOMEM;
}

static void choose_preset(cm_calc *c, const input *in)
{
    const cm_store *store = cm_dataset_store(in->ds);
    if (c->options->storage == NULL &&
        (cm_store_url_is_remote(in->at.path) || (store != NULL && cm_store_is_remote(store))))
        c->storage = "s3";
}

/* Measures the costs of chunks with their codec: a store's own, or nc2zarr's for a file. */
static int measure_costs(cm_calc *c, const input *in, const cm_chunkcalc_array *a, cm_error *err)
{
    const bool given = c->options->storage != NULL;
    cm_store *store = cm_dataset_store(in->ds);
    cm_codec_spec *made = NULL;
    size_t n = 0;
    int rc = CM_OK;

    for (size_t i = 0; i < in->ds->nvars; i++) {
        cm_variable *v = &in->ds->var[i];
        if (strcmp(v->name, a->name) != 0 || cm_dtype_is_vlen(&v->dtype) ||
            v->unsupported != NULL || cm_dataset_prepare(in->ds, v, NULL) != CM_OK)
            continue;
        cm_codec_choice choice = cm_codec_choice_default(&v->dtype);
        if (v->words == NULL)
            rc = cm_codec_choice_specs(&choice, &v->dtype, &made, &n, err);
        const cm_suit_source source = {.array = v->array,
                                       .path = given ? NULL : in->at.path,
                                       .store = given ? NULL : store,
                                       .objects = v,
                                       .any_size = c->access != NULL, /* rates are compared */
                                       .codecs = v->words == NULL ? made : v->codecs,
                                       .ncodecs = v->words == NULL ? n : v->ncodecs};
        if (rc == CM_OK)
            rc = cm_suit_measure(&c->run, &source, c->storage, &c->costs, err);
        cm_codec_specs_free(made, n);
        cm_dataset_unprepare(in->ds, v);
        break;
    }
    return rc;
}

/* The census of a store, or of the arrays that are named. */
static int count_chunks(cm_calc *c, const input *in, cm_error *err)
{
    const cm_chunkcalc_options *o = c->options;
    const cm_census_options options = {
        .depth = o->audit == CM_CHUNKCALC_AUDIT_FULL ? CM_CENSUS_DECODE : CM_CENSUS_SIZES,
        .nthreads = o->nthreads > 0 ? o->nthreads : cm_cpu_count(),
        .memory = cm_calc_memory(o)};
    cm_chunkcalc_report *r = c->report;
    if (in->ds->kind != CM_DATASET_ZARR)
        return CM_OK;
    r->has_census = true;
    if (in->named == NULL || (o->census && !in->only)) /* a page is of all */
        return cm_census_of_store(in->ds, in->at.node, &options, &r->census, err);
    cm_variable **var = cm_calloc(r->narrays, sizeof(cm_variable *), err);
    if (var == NULL)
        return CM_ENOMEM;
    size_t n = 0;
    for (size_t i = 0; i < r->narrays; i++) {
        cm_variable *v = cm_dataset_find(in->ds, r->array[i].name);
        if (v != NULL && in->named[v->index])
            var[n++] = v;
    }
    int rc = cm_census_of_arrays(in->ds, var, n, &options, &r->census, err);
    free(var);
    return rc;
}

/* Takes IN over, for measurements of the array NAME. */
static int keep_open(cm_calc *c, input *in, const char *name, cm_error *err)
{
    c->input = cm_calloc(1, sizeof *c->input, err);
    if (c->input == NULL) {
        release(in);
        return CM_ENOMEM;
    }
    *c->input = *in;
    cm_variable *v = cm_dataset_find(in->ds, name);
    int rc = v != NULL ? cm_dataset_prepare(in->ds, v, err) : CM_OK;
    c->input->var = rc == CM_OK ? v : NULL;
    return rc;
}

int cm_calc_open(cm_calc *c, bool choose_one, cm_error *err)
{
    input in = {.only = !choose_one && c->options->variable != NULL};
    cm_chunkcalc_array *a = NULL;
    int rc = open_input(c, &in, err);

    if (rc == CM_OK)
        rc = choose(c, &in, &a, err);
    if (rc == CM_OK && choose_one) {
        rc = take(c, &in, a, err);
        if (rc == CM_OK)
            rc = measure(c, &in, a, err);
        choose_preset(c, &in);
        const cm_chunkcalc_options *o = c->options;
        if (rc == CM_OK && (o->recommend || o->audit || o->seconds))
            rc = measure_costs(c, &in, a, err);
        if (rc == CM_OK && c->costs.refused[0] != '\0')
            rc = cm_calc_warn(c, err, "decoding is not measured: %s", c->costs.refused);
        c->stored_ratio = a->ratio;
        c->report->measured_chunks = c->costs.decode ? c->costs.nchunks : a->measured_chunks;
    } else if (rc == CM_OK) {
        rc = measure_all(c, &in, err);
        if (rc == CM_OK)
            rc = cm_calc_note_files(c, cm_dataset_store(in.ds), err);
    }
    if (rc == CM_OK && (!choose_one || c->options->audit || c->options->census))
        rc = count_chunks(c, &in, err);
    if (rc == CM_OK && c->access != NULL)
        return keep_open(c, &in, a->name, err);
    if (rc != CM_OK)
        cm_store_path_name(&in.at, err);
    release(&in);
    return rc;
}

int cm_calc_shape_costs(cm_calc *c, const uint64_t *chunk, cm_shape_costs *out, cm_error *err)
{
    *out = (cm_shape_costs){.nchunks = 0};
    /* Otherwise the model as it is: with what was given, or by a preset. */
    if (c->input == NULL || c->input->var == NULL || !c->costs.decode || c->costs.remote ||
        c->options->decode >= 0 || c->options->ratio >= 0)
        return CM_OK;
    const cm_variable *v = c->input->var;
    return cm_cost_probe_shape(v->array, v->codecs, v->ncodecs, chunk, c->run.memory / 8, out, err);
}

void cm_calc_close(cm_calc *c)
{
    if (c->input == NULL)
        return;
    if (c->input->var != NULL)
        cm_dataset_unprepare(c->input->ds, c->input->var);
    release(c->input);
    free(c->input);
    c->input = NULL;
}
