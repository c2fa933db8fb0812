/*
 * Chunks, shards and codecs of every variable: what the user asked for; where
 * nothing was asked, what is best (nc2zarr) or what the source has (rechunk).
 */
#include <string.h>

#include "base/number.h"
#include "chunkcalc/recommend.h"
#include "convert/layout/carry_over.h"
#include "convert/layout/keep.h"
#include "convert/layout/rectilinear.h"
#include "format/multi/multi.h"
#include "options/layout_option.h"
#include "plan/autochunk.h"
#include "plan/meetings.h"
#include "store/open.h"

enum {
    DEFAULT_CHUNK = 4 << 20,
    SMALL_CHUNK = 1 << 20, /* up to here the optimiser's least size may be too much */
    DEFAULT_SHARD = 256 << 20,
    STRING_ESTIMATE = 64, /* bytes a variable-length element is taken for */
    MANY_OBJECTS = CM_MANY_OBJECTS
};

#define MAX_CHUNKS (UINT64_C(1) << 32) /* of a variable, where --memory does not say */

static const char *const chunk_keywords[] = {"auto", "source", NULL};
static const char *const shard_keywords[] = {"auto", "none", "source", NULL};
static const char *const codec_keywords[] = {"same", "none", "zstd", "gzip", "blosc", "keep", NULL};

typedef struct layout {
    cm_job *job;
    bool keeps; /* what is not named stays as the source has it */
    cm_varopts chunks, shards, codec;
    cm_shape_option sample;
    bool has_sample;
    bool sampled; /* chose the chunks of some array */
    cm_suit_run run;
    size_t nunmeasured;     /* variables that take more memory to measure than this may take; */
    const char *unmeasured; /* the one that takes most, */
    uint64_t needs;         /* and how much */
} layout;

static bool is_word(const char *value, const char *word)
{
    return value != NULL && strcmp(value, word) == 0;
}

static uint32_t itemsize_of(const cm_job_var *v)
{
    return v->view.as_strings ? STRING_ESTIMATE : v->view.type.nbytes;
}

/*
 * A Zarr source's chunks as they are, which may reach past the array; others in terms of the
 * target.
 */
static bool source_chunks(const cm_job_var *v, uint64_t *chunk)
{
    if (!v->source->has_source_chunks)
        return false;
    for (unsigned j = 0; j < v->view.rank; j++) {
        uint64_t length = v->view.shape[j] > 0 ? v->view.shape[j] : 1;
        chunk[j] = v->source->source_chunk[j];
        if (v->view.whole && v->source->words != NULL)
            continue;
        chunk[j] /= v->view.step[j];
        chunk[j] = chunk[j] == 0 ? 1 : chunk[j] > length ? length : chunk[j];
    }
    return true;
}

static cm_layout_array array_of(const cm_job *job, const cm_job_var *v)
{
    cm_layout_array a = {.noun = cm_job_noun(job),
                         .name = cm_job_name(v),
                         .rank = v->view.rank,
                         .shape = v->view.shape,
                         .dim_name = v->source->dim_name,
                         .itemsize = itemsize_of(v)};
    a.has_source = source_chunks(v, a.source);
    a.grows = v->source->unlimited;
    return a;
}

static cm_layout_array array_at(const void *context, size_t i)
{
    const cm_job *job = context;
    if (i < job->nvars)
        return array_of(job, &job->var[i]);
    const cm_other_variable *other = &job->options->other[i - job->nvars];
    return (cm_layout_array){.name = other->name, .rank = other->rank, .dim_name = other->dim_name};
}

static const char *option_of(const layout *l, cm_varopts *opts, const cm_job_var *v, bool *named)
{
    return cm_varopts_get(opts, v->name, cm_job_takes_shapes(l->job, v), named);
}

static bool suits_sample(const layout *l, const cm_job_var *v)
{
    return l->has_sample && cm_shape_option_fits(&l->sample, v->view.rank, v->source->dim_name);
}

static uint64_t count_chunks(const cm_job_var *v)
{
    uint64_t n = 1;
    if (v->layout.rectilinear)
        return v->source->array->grid.nchunks;
    for (unsigned j = 0; j < v->view.rank; j++)
        n = cm_mul_sat(n, cm_div_ceil(v->view.shape[j], v->layout.chunk[j]));
    return n;
}

bool cm_job_chunks_stay(const cm_job_var *v)
{
    uint64_t source[CM_MAX_RANK];
    if (cm_job_is_cut(v))
        return v->layout.rectilinear;
    return v->view.whole && source_chunks(v, source) &&
           memcmp(source, v->layout.chunk, v->view.rank * sizeof(source[0])) == 0;
}

/* ---- codecs ---- */

/* Stacked elements come from chunks of several variables and are encoded anew. */
static int choose_codec_of_stack(const cm_job_var *v, cm_layout *out, const char *value,
                                 cm_error *err)
{
    out->codec = cm_codec_choice_default(&v->view.type);
    int rc = value == NULL || is_word(value, "same")
                 ? CM_OK
                 : cm_codec_choice_parse(value, &out->codec, err);
    if (rc == CM_OK && (is_word(value, "same") || out->codec.keep))
        rc = cm_fail(err, CM_EINVAL,
                     "`codec` %s: %s is made of several variables, whose stored bytes cannot stay "
                     "as they are; choose another codec for it",
                     value, cm_job_name(v));
    return rc;
}

static int choose_codec(layout *l, const cm_job_var *v, cm_layout *out, cm_error *err)
{
    const char *value = cm_varopts_get(&l->codec, v->name, true, NULL);
    bool zarr = v->source->words != NULL;
    if (v->source->is_made)
        return choose_codec_of_stack(v, out, value, err);
    if (value == NULL && l->keeps)
        value = "same";
    out->codec = cm_codec_choice_default(&v->view.type);
    if (is_word(value, "same") || (zarr && !l->keeps && is_word(value, "keep"))) {
        out->same_codec = zarr;
        /* A file's filters stay only with its own chunks. */
        const char *chunks = option_of(l, &l->chunks, v, NULL);
        out->codec.keep =
            !zarr && (chunks == NULL ? !suits_sample(l, v) : is_word(chunks, "source"));
        return CM_OK;
    }
    int rc = value == NULL ? CM_OK : cm_codec_choice_parse(value, &out->codec, err);
    if (rc == CM_OK && out->codec.keep && zarr)
        rc = cm_fail(err, CM_EINVAL,
                     "`codec` %s: is for NetCDF sources; same keeps the stored bytes of a Zarr "
                     "source",
                     value);
    if (rc != CM_OK)
        return rc;
    if (out->codec.compressor.id == CM_CODEC_BLOSC && v->view.type.nbytes == 1 &&
        out->codec.compressor.blosc.shuffle == CM_BLOSC_SHUFFLE)
        out->codec.compressor.blosc.shuffle = CM_BLOSC_NOSHUFFLE;
    return CM_OK;
}

/* Stored bytes pass unchanged only in the file's own chunks. */
static int keep_chunks(layout *l, const cm_job_var *v, cm_layout *out, cm_error *err)
{
    const char *value = option_of(l, &l->chunks, v, NULL);
    if (cm_layout_kind_of(value) == CM_LAYOUT_SHAPE || cm_layout_kind_of(value) == CM_LAYOUT_AUTO)
        return cm_fail(err, CM_EINVAL,
                       "`chunks` %s: variable %s has `codec` keep, which keeps the file's chunks; "
                       "leave out one of the two",
                       value, v->name);
    if (v->source->has_source_chunks && !out->rectilinear)
        memcpy(out->chunk, v->source->source_chunk, sizeof(out->chunk));
    return cm_job_keep(l->job, v, out, err);
}

static int choose_grid(layout *l, const cm_job_var *v, cm_layout *out, cm_error *err)
{
    bool named;
    const char *value = option_of(l, &l->chunks, v, &named);
    if (l->job->options->grid != CM_GRID_RECTILINEAR || !cm_job_is_cut(v) || v->source->is_made)
        return CM_OK;
    return cm_job_choose_rectilinear(l->job, v, value, named, out, err);
}

/* ---- chunks ---- */

static void keep_whole(const cm_job_var *v, cm_layout *out)
{
    for (unsigned j = 0; j < v->view.rank; j++)
        out->chunk[j] = v->view.shape[j] > 0 ? v->view.shape[j] : 1;
}

/* An archive grows: its coordinates get one chunk with room for years, all that appends change. */
static void keep_room(const cm_job *job, const cm_job_var *v, cm_layout *out)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    keep_whole(v, out);
    if (spec == NULL || spec->nfiles < 2 || v->view.rank != 1 || !v->source->unlimited[0])
        return;
    uint64_t room = cm_layout_room(v->view.shape[0], itemsize_of(v));
    if (room > 0)
        out->chunk[0] = room;
}

static bool is_small_coordinate(const cm_job_var *v)
{
    return v->source->is_coordinate && v->view.rank == 1 &&
           v->view.shape[0] <= CM_WHOLE_COORDINATE / itemsize_of(v);
}

/* The cost of V's chunks, read SAMPLE at a time, on this machine. */
static int measure_costs(layout *l, const cm_job_var *v, cm_suit_costs *out, cm_error *err)
{
    const cm_job *job = l->job;
    cm_array *a = v->source->array;
    cm_codec_spec *made = NULL;
    size_t n = 0;
    int rc = CM_OK;
    /* Parts must choose alike without talking to each other: each uses the preset. */
    const bool measures = !job->terms.alike && a != NULL && !v->view.as_strings && !v->view.join;
    if (measures && !v->layout.same_codec)
        rc = cm_codec_choice_specs(&v->layout.codec, &a->dtype, &made, &n, err);
    const char *target = job->options->target;
    const bool remote = target != NULL && cm_store_url_is_remote(target);
    const cm_suit_source source = {.array = a,
                                   .path = job->from.path,
                                   .store = remote ? cm_dataset_store(job->source) : NULL,
                                   .objects = v->source,
                                   .codecs = v->layout.same_codec ? v->source->codecs : made,
                                   .ncodecs = v->layout.same_codec ? v->source->ncodecs : n};
    if (rc == CM_OK)
        rc = cm_suit_measure(&l->run, measures ? &source : NULL, remote ? "s3" : "local", out, err);
    cm_codec_specs_free(made, n);
    if (rc == CM_OK && out->refused[0] != '\0')
        rc = cm_job_warn(l->job, err, "chunks for `sample` of %s follow preset costs: %s",
                         cm_job_name(v), out->refused);
    if (rc != CM_OK || out->needs == 0)
        return rc;
    l->nunmeasured++;
    if (out->needs > l->needs) {
        l->unmeasured = cm_job_name(v);
        l->needs = out->needs;
    }
    return CM_OK;
}

/* Of a chunk along dimension J: past the end only where it was asked for. */
static uint64_t most_length(const cm_job_var *v, const uint64_t *fixed, unsigned j)
{
    uint64_t length = v->view.shape[j] > 0 ? v->view.shape[j] : 1;
    return fixed[j] > length ? fixed[j] : length;
}

/* The chunks that an interrupted run chose; false: it chose none that fit. */
static bool chosen_before(const cm_job *job, const cm_job_var *v, cm_layout *out,
                          const uint64_t *fixed)
{
    const cm_json *list = cm_json_member(job->sample_chunks, cm_job_name(v));
    if (!cm_json_is(list, CM_JSON_ARRAY) || cm_json_length(list) != v->view.rank)
        return false;
    for (unsigned j = 0; j < v->view.rank; j++)
        if (!cm_json_get_u64(cm_json_at(list, j), &out->chunk[j]) || out->chunk[j] == 0 ||
            out->chunk[j] > most_length(v, fixed, j))
            return false;
    return true;
}

static int keep_choice(cm_job *job, const cm_job_var *v, cm_error *err)
{
    cm_json *list = cm_json_array();
    int rc = CM_OK;
    if (job->sample_chunks == NULL)
        job->sample_chunks = cm_json_object();
    for (unsigned j = 0; j < v->view.rank && rc == CM_OK; j++)
        rc = cm_json_append(list, cm_json_u64(v->layout.chunk[j]), err);
    if (rc == CM_OK)
        return cm_json_set(job->sample_chunks, cm_job_name(v), list, err);
    cm_json_free(list);
    return rc;
}

/* Where shards are asked for, or make themselves needed, a chunk is a part of an object. */
static uint64_t most_objects(layout *l, const cm_job_var *v)
{
    const cm_layout_kind kind = cm_layout_kind_of(option_of(l, &l->shards, v, NULL));
    if (l->job->zarr_format != 3 || kind == CM_LAYOUT_NONE)
        return 0;
    return kind == CM_LAYOUT_DEFAULT || kind == CM_LAYOUT_SOURCE ? MANY_OBJECTS : 1;
}

static int chunks_for_sample(layout *l, const cm_job_var *v, cm_layout *out, const uint64_t *fixed,
                             uint64_t target, cm_error *err)
{
    cm_read read = {.weight = 1};
    cm_optimise_spec spec = {.rank = v->view.rank,
                             .itemsize = itemsize_of(v),
                             .read = &read,
                             .nreads = 1,
                             .max_nbytes = target};
    uint64_t source[CM_MAX_RANK];
    cm_suit_costs costs;
    cm_optimum optimum = {.nfront = 0};
    if (chosen_before(l->job, v, out, fixed))
        return CM_OK;
    int rc = measure_costs(l, v, &costs, err);
    if (rc != CM_OK)
        return rc;
    spec.cost = costs.cost;
    /* Small chunks that were asked for stay small. */
    spec.min_nbytes = target > 0 && target < SMALL_CHUNK ? cm_div_ceil(target, 4) : 0;
    cm_shape_option_apply(&l->sample, v->view.rank, v->view.shape, v->source->dim_name, NULL,
                          read.sample);
    for (unsigned j = 0; j < v->view.rank; j++) {
        const uint64_t n = most_length(v, fixed, j);
        spec.shape[j] = n;
        spec.fixed[j] = fixed[j];
        read.sample[j] = read.sample[j] == 0 ? 1 : read.sample[j] > n ? n : read.sample[j];
    }
    spec.most_objects = most_objects(l, v);
    rc = cm_suit_optimise(&spec, cm_suit_measured(&costs), source_chunks(v, source) ? source : NULL,
                          &optimum, err);
    if (rc == CM_OK)
        memcpy(out->chunk, optimum.best.chunk, v->view.rank * sizeof out->chunk[0]);
    cm_optimum_release(&optimum);
    /* A choice by measuring, or without for want of memory, may differ the next time. */
    const bool may_differ = cm_suit_measured(&costs) || costs.needs > 0 || costs.refused[0];
    return rc == CM_OK && may_differ ? keep_choice(l->job, v, err) : rc;
}

static int choose_chunks_of(layout *l, const cm_job_var *v, cm_layout *out,
                            const cm_layout_array *array, cm_error *err)
{
    bool named, fits = true, whole = true;
    const cm_layout_array a = *array;
    const char *value = option_of(l, &l->chunks, v, &named);
    cm_layout_kind kind = cm_layout_kind_of(value);
    uint64_t fixed[CM_MAX_RANK] = {0}, target = 0;
    int rc = CM_OK;
    if (kind == CM_LAYOUT_DEFAULT && l->keeps && !suits_sample(l, v) && !v->source->is_made)
        kind = CM_LAYOUT_SOURCE;
    if (!named && (!l->keeps || v->source->is_made) &&
        (v->view.rank == 0 || is_small_coordinate(v))) {
        keep_room(l->job, v, out);
        return CM_OK;
    }
    out->asked_chunk = kind == CM_LAYOUT_SHAPE || (kind == CM_LAYOUT_SOURCE && value != NULL);
    if (kind == CM_LAYOUT_NONE)
        return cm_fail(err, CM_EINVAL, "`chunks` %s: there is auto, source or a shape", value);
    if (kind == CM_LAYOUT_AUTO)
        rc = cm_layout_auto("`chunks`", value, &target, err);
    else if (kind == CM_LAYOUT_SHAPE)
        rc = cm_layout_shape("`chunks`", value, named, &a, fixed, &fits, err);
    if (rc != CM_OK)
        return rc;
    if ((kind == CM_LAYOUT_SOURCE || (l->keeps && (!fits || v->view.rank == 0))) && a.has_source) {
        memcpy(out->chunk, a.source, sizeof(out->chunk));
        return CM_OK;
    }
    /* A sample of a stack is one read: it has all channels. */
    if (v->source->is_stack && fixed[v->source->channel] == 0 &&
        v->view.shape[v->source->channel] > 0)
        fixed[v->source->channel] = v->view.shape[v->source->channel];
    for (unsigned j = 0; j < v->view.rank; j++)
        whole = whole && fixed[j] > 0;
    if (l->keeps && kind == CM_LAYOUT_SHAPE && whole) {
        memcpy(out->chunk, fixed, sizeof(out->chunk));
        return CM_OK;
    }
    if (kind != CM_LAYOUT_SOURCE && suits_sample(l, v)) {
        l->sampled = l->sampled || !whole;
        return chunks_for_sample(l, v, out, fixed, target, err);
    }
    return cm_autochunk(v->view.rank, v->view.shape, itemsize_of(v),
                        target > 0 ? target : DEFAULT_CHUNK, fixed, a.has_source ? a.source : NULL,
                        out->chunk, err);
}

/* Where V grows, chunks may be longer than it is. */
static int choose_chunks(layout *l, const cm_job_var *v, cm_layout *out, cm_error *err)
{
    cm_layout_array a = array_of(l->job, v);
    uint64_t padded;
    unsigned past;
    char size[32];
    int rc = choose_chunks_of(l, v, out, &a, err);
    if (rc != CM_OK || !cm_layout_reaches_too_far(&a, out->chunk, &past, &padded))
        return rc;
    a.grows = NULL;
    rc = cm_job_warn(l->job, err,
                     "%s %s: chunks of %llu along %s, which has %llu element%s, would make it %s; "
                     "they are as long as the dimension is now",
                     cm_job_noun(l->job), cm_job_name(v), (unsigned long long)out->chunk[past],
                     v->source->dim_name[past], (unsigned long long)v->view.shape[past],
                     cm_of_count(v->view.shape[past], "", "s"),
                     cm_format_size(padded, size, sizeof(size)));
    return rc == CM_OK ? choose_chunks_of(l, v, out, &a, err) : rc;
}

/* ---- shards ---- */

/* Shards of the source stay with its chunks. */
static bool keep_shards(const layout *l, const cm_job_var *v, cm_layout *out)
{
    if (l->job->zarr_format != 3 || !v->source->is_sharded || !cm_job_chunks_stay(v))
        return false;
    out->sharded = true;
    memcpy(out->shard, v->source->source_shard, sizeof(out->shard));
    return true;
}

static int choose_shards(layout *l, const cm_job_var *v, cm_layout *out, bool many, cm_error *err)
{
    bool named;
    const char *value = option_of(l, &l->shards, v, &named);
    cm_layout_kind kind = cm_layout_kind_of(value);
    uint64_t target = DEFAULT_SHARD;
    out->asked_shard = kind != CM_LAYOUT_DEFAULT && kind != CM_LAYOUT_AUTO;
    if (out->rectilinear)
        return cm_job_check_unsharded(l->job, v, value, err);
    if (kind == CM_LAYOUT_SOURCE || (kind == CM_LAYOUT_DEFAULT && l->keeps)) {
        if (keep_shards(l, v, out))
            return CM_OK;
        many = many && !(l->keeps && cm_job_chunks_stay(v));
        kind = CM_LAYOUT_DEFAULT;
    }
    if (kind == CM_LAYOUT_DEFAULT)
        kind = many ? CM_LAYOUT_AUTO : CM_LAYOUT_NONE;
    if (kind == CM_LAYOUT_NONE || (v->view.rank == 0 && !named))
        return CM_OK;
    if (l->job->zarr_format == 2)
        return cm_fail(err, CM_EINVAL, "`shards`: Zarr format 2 has no shards");
    const cm_layout_array a = array_of(l->job, v);
    if (kind == CM_LAYOUT_SHAPE)
        return cm_layout_shards(value, named, &a, out->chunk, DEFAULT_SHARD, out->shard,
                                &out->sharded, err);
    if (cm_layout_kind_of(value) == CM_LAYOUT_AUTO &&
        cm_layout_auto("`shards`", value, &target, err) != CM_OK)
        return CM_EINVAL;
    if (count_chunks(v) <= 1)
        return CM_OK;
    out->sharded = true;
    return cm_autoshard(v->view.rank, v->view.shape, itemsize_of(v), out->chunk, target, NULL,
                        out->shard, err);
}

/* ---- all ---- */

static int choose_layout(layout *l, const cm_job_var *v, cm_layout *out, uint64_t most,
                         uint64_t *objects, cm_error *err)
{
    if (v->stored.as_objects)
        return cm_job_carry_over(l->job, v, out, &l->chunks, &l->shards, &l->codec,
                                 l->has_sample ? &l->sample : NULL, err);
    int rc = choose_codec(l, v, out, err);
    if (rc == CM_OK)
        rc = choose_grid(l, v, out, err);
    if (rc == CM_OK && out->codec.keep)
        rc = keep_chunks(l, v, out, err);
    if (rc == CM_OK && out->pass == CM_PASS_NOTHING && !out->rectilinear)
        rc = choose_chunks(l, v, out, err);
    if (rc != CM_OK)
        return rc;
    uint64_t nchunks = count_chunks(v);
    if (nchunks > most && !l->keeps)
        return cm_fail(err, CM_EBUDGET,
                       "%s %s: %llu chunks are more than the memory can keep account of; choose "
                       "larger `chunks`",
                       cm_job_noun(l->job), cm_job_name(v), (unsigned long long)nchunks);
    *objects = cm_add_sat(*objects, nchunks);
    return CM_OK;
}

static int choose_all(layout *l, cm_error *err)
{
    cm_job *job = l->job;
    /* Each chunk has a bit that says that it was written: an eighth of the memory at most. */
    uint64_t objects = 0, most = job->options->memory > 0 ? job->options->memory : MAX_CHUNKS;
    int rc = CM_OK;
    most = most > MANY_OBJECTS ? most : MANY_OBJECTS;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = choose_layout(l, &job->var[i], &job->var[i].layout, most, &objects, err);
    bool many = objects > MANY_OBJECTS && job->zarr_format == 3;
    bool commits = cm_icechunk_path(job->report->target) != NULL;
    if (rc == CM_OK && many && l->shards.n == 0 && !l->keeps)
        rc = cm_job_warn(job, err,
                         "%llu chunks: written into shards of about 256 MiB; `shards` none %s",
                         (unsigned long long)objects,
                         commits ? "lists each in manifests" : "makes a file of each");
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        if (!job->var[i].stored.as_objects)
            rc = choose_shards(l, &job->var[i], &job->var[i].layout, many, err);
    return rc;
}

static int parse_options(layout *l, cm_error *err)
{
    const cm_transform_options *o = l->job->options;
    int rc = cm_varopts_parse("`chunks`", &o->chunks, chunk_keywords, &l->chunks, err);
    if (rc == CM_OK)
        rc = cm_varopts_parse("`shards`", &o->shards, shard_keywords, &l->shards, err);
    if (rc == CM_OK)
        rc = cm_varopts_parse("`codec`", &o->codec, codec_keywords, &l->codec, err);
    if (rc == CM_OK && o->sample != NULL) {
        rc = cm_shape_option_parse(o->sample, &l->sample, err);
        l->has_sample = rc == CM_OK;
        if (rc != CM_OK)
            cm_error_prefix(err, "`sample`");
    }
    return rc;
}

static int check_options(layout *l, cm_error *err)
{
    const cm_job *job = l->job;
    cm_varopts sample = {.option = "`sample`",
                         .item = &(cm_varopt){.value = (char *)job->options->sample},
                         .n = l->has_sample};
    size_t n = job->nvars + job->options->nothers;
    int rc = cm_layout_check_general(&sample, false, array_at, job, n, err);
    if (rc == CM_OK)
        rc = cm_layout_check_general(&l->chunks, true, array_at, job, n, err);
    if (rc == CM_OK)
        rc = cm_layout_check_general(&l->shards, true, array_at, job, n, err);
    return rc;
}

/*
 * Other options may say all chunks that the sample is for.  Where there are other stores, it may be
 * for one of those.
 */
static int check_sample(layout *l, cm_error *err)
{
    const cm_job *job = l->job;
    if (l->sampled || job->options->nothers > 0)
        return CM_OK;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        const char *by = option_of(l, &l->chunks, v, NULL) != NULL ? "`chunks`"
                         : v->layout.rectilinear                   ? "`grid`"
                         : v->layout.pass != CM_PASS_NOTHING       ? "`codec`"
                                                                   : NULL;
        if (by != NULL && suits_sample(l, v) && !v->stored.as_objects && !is_small_coordinate(v))
            return cm_fail(err, CM_EINVAL,
                           "`sample` has no effect: %s says the chunks of %s, and none are left to "
                           "be chosen",
                           by, cm_job_name(v));
    }
    return CM_OK;
}

static int say_unmeasured(layout *l, cm_error *err)
{
    char needs[32];
    return cm_job_note(l->job, err,
                       "chunks for `sample` of %zu %s%s follow preset costs: measuring them takes "
                       "up to %s (%s), more than an eighth of the memory",
                       l->nunmeasured, cm_job_noun(l->job), cm_of_count(l->nunmeasured, "", "s"),
                       cm_format_size(l->needs, needs, sizeof needs), l->unmeasured);
}

int cm_job_layout(cm_job *job, cm_error *err)
{
    layout l = {.job = job, .keeps = job->options->defaults == CM_DEFAULTS_KEEP};
    cm_suit_run_init(&l.run, job->options->memory);
    int rc = parse_options(&l, err);
    if (rc == CM_OK)
        rc = check_options(&l, err);
    if (rc == CM_OK)
        rc = choose_all(&l, err);
    if (rc == CM_OK)
        rc = check_sample(&l, err);
    if (rc == CM_OK && job->options->grid == CM_GRID_RECTILINEAR)
        rc = cm_job_note_regular(job, err);
    if (rc == CM_OK && l.nunmeasured > 0)
        rc = say_unmeasured(&l, err);
    cm_suit_run_release(&l.run);
    cm_varopts *all[] = {&l.chunks, &l.shards, &l.codec};
    for (size_t i = 0; rc == CM_OK && i < 3; i++) {
        cm_job_look_elsewhere(job, all[i]);
        rc = cm_varopts_check_used(all[i], err);
    }
    if (l.has_sample)
        cm_shape_option_release(&l.sample);
    cm_varopts_release(&l.chunks);
    cm_varopts_release(&l.shards);
    cm_varopts_release(&l.codec);
    return rc;
}
