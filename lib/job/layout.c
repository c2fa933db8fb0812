/*
 * Chunks, shards and codecs of every variable: what the user asked for, and
 * what is best where nothing was asked.
 */
#include <string.h>

#include "base/number.h"
#include "job/keep.h"
#include "job/layout_option.h"
#include "plan/autochunk.h"
#include "plan/optimise.h"

enum {
    DEFAULT_CHUNK = 4 << 20,
    DEFAULT_SHARD = 256 << 20,
    WHOLE_COORDINATE = 16 << 20, /* a longer coordinate is chunked like any variable */
    STRING_ESTIMATE = 64,        /* bytes a variable-length element is taken for */
    MANY_OBJECTS = 10000
};

#define MAX_CHUNKS (UINT64_C(1) << 32) /* of a variable, where --memory does not say */

static const char *const chunk_keywords[] = {"auto", "source", NULL};
static const char *const shard_keywords[] = {"auto", "none", NULL};

typedef struct layout {
    cm_job *job;
    cm_varopts chunks, shards, codec;
    cm_shape_option sample;
    bool has_sample;
} layout;

static uint32_t itemsize_of(const cm_job_var *v)
{
    return v->as_strings ? STRING_ESTIMATE : v->type.nbytes;
}

static cm_layout_array array_of(const cm_job_var *v)
{
    return (cm_layout_array){.noun = "variable",
                             .name = v->name,
                             .rank = v->rank,
                             .shape = v->shape,
                             .dim_name = v->source->dim_name,
                             .itemsize = itemsize_of(v)};
}

static cm_layout_array array_at(const void *job, size_t i)
{
    return array_of(&((const cm_job *)job)->var[i]);
}

static void keep_whole(cm_job_var *v)
{
    for (unsigned j = 0; j < v->rank; j++)
        v->chunk[j] = v->shape[j] > 0 ? v->shape[j] : 1;
}

static bool is_small_coordinate(const cm_job_var *v)
{
    return v->source->is_coordinate && v->rank == 1 &&
           v->shape[0] <= WHOLE_COORDINATE / itemsize_of(v);
}

/* The file's chunks in terms of the target: divided by the step of a subset. */
static const uint64_t *source_chunks(const cm_job_var *v, uint64_t *chunk)
{
    if (!v->source->has_source_chunks)
        return NULL;
    for (unsigned j = 0; j < v->rank; j++) {
        uint64_t whole = v->shape[j] > 0 ? v->shape[j] : 1;
        chunk[j] = v->source->source_chunk[j] / v->step[j];
        chunk[j] = chunk[j] == 0 ? 1 : chunk[j] > whole ? whole : chunk[j];
    }
    return chunk;
}

/* Stored bytes can go through only in the file's own chunks. */
static int keep_chunks(layout *l, cm_job_var *v, cm_error *err)
{
    const char *value = cm_varopts_get(&l->chunks, v->name, v->rank >= 2, NULL);
    if (cm_layout_kind_of(value) == CM_LAYOUT_SHAPE || cm_layout_kind_of(value) == CM_LAYOUT_AUTO)
        return cm_fail(err, CM_EINVAL,
                       "--chunks %s: --codec keep keeps the file's chunks as well, for variable %s "
                       "too",
                       value, v->name);
    if (v->source->has_source_chunks)
        memcpy(v->chunk, v->source->source_chunk, sizeof(v->chunk));
    return cm_job_keep(l->job, v, err);
}

static int choose_chunks(layout *l, cm_job_var *v, cm_error *err)
{
    bool named, fits;
    const cm_layout_array a = array_of(v);
    const char *value = cm_varopts_get(&l->chunks, v->name, v->rank >= 2, &named);
    cm_layout_kind kind = cm_layout_kind_of(value);
    uint64_t fixed[CM_MAX_RANK] = {0}, from_file[CM_MAX_RANK], target = 0;
    int rc = CM_OK;
    if (!named && (v->rank == 0 || is_small_coordinate(v))) {
        keep_whole(v);
        return CM_OK;
    }
    if (kind == CM_LAYOUT_NONE)
        return cm_fail(err, CM_EINVAL, "--chunks %s: there is auto, source or a shape", value);
    if (kind == CM_LAYOUT_AUTO)
        rc = cm_layout_auto("--chunks", value, &target, err);
    else if (kind == CM_LAYOUT_SHAPE)
        rc = cm_layout_shape("--chunks", value, named, &a, fixed, &fits, err);
    const uint64_t *source = source_chunks(v, from_file);
    if (kind == CM_LAYOUT_SOURCE && source != NULL) {
        memcpy(v->chunk, source, sizeof(v->chunk));
        return CM_OK;
    }
    if (rc != CM_OK)
        return rc;
    if (l->has_sample && kind != CM_LAYOUT_SOURCE &&
        cm_shape_option_fits(&l->sample, v->rank, v->source->dim_name)) {
        uint64_t sample[CM_MAX_RANK];
        cm_shape_option_apply(&l->sample, v->rank, v->shape, v->source->dim_name, sample);
        for (unsigned j = 0; j < v->rank; j++)
            sample[j] = sample[j] == 0 ? 1 : sample[j];
        return cm_optimise_chunks_for_sample(v->rank, v->shape, itemsize_of(v), sample, fixed, 0,
                                             target, v->chunk, err);
    }
    return cm_autochunk(v->rank, v->shape, itemsize_of(v), target > 0 ? target : DEFAULT_CHUNK,
                        fixed, source, v->chunk, err);
}

static int choose_codec(layout *l, cm_job_var *v, cm_error *err)
{
    const char *value = cm_varopts_get(&l->codec, v->name, true, NULL);
    v->codec = cm_codec_choice_default(&v->type);
    int rc = value == NULL ? CM_OK : cm_codec_choice_parse(value, &v->codec, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "--codec");
        return rc;
    }
    if (v->codec.compressor.id == CM_CODEC_BLOSC && v->type.nbytes == 1 &&
        v->codec.compressor.blosc.shuffle == CM_BLOSC_SHUFFLE)
        v->codec.compressor.blosc.shuffle = CM_BLOSC_NOSHUFFLE;
    return CM_OK;
}

static uint64_t count_chunks(const cm_job_var *v, const uint64_t *chunk)
{
    uint64_t n = 1;
    for (unsigned j = 0; j < v->rank; j++)
        n *= cm_div_ceil(v->shape[j], chunk[j]);
    return n;
}

static int choose_shards(layout *l, cm_job_var *v, bool many, cm_error *err)
{
    bool named;
    const char *value = cm_varopts_get(&l->shards, v->name, v->rank >= 2, &named);
    cm_layout_kind kind = cm_layout_kind_of(value);
    uint64_t target = DEFAULT_SHARD;
    if (kind == CM_LAYOUT_DEFAULT)
        kind = many ? CM_LAYOUT_AUTO : CM_LAYOUT_NONE;
    if (kind == CM_LAYOUT_NONE || (v->rank == 0 && !named))
        return CM_OK;
    if (l->job->options->zarr_format == 2)
        return cm_fail(err, CM_EINVAL, "--shards: Zarr format 2 has no shards");
    if (kind == CM_LAYOUT_SOURCE)
        return cm_fail(err, CM_EINVAL, "--shards %s: there is auto, none or a shape", value);
    const cm_layout_array a = array_of(v);
    if (kind == CM_LAYOUT_SHAPE)
        return cm_layout_shards(value, named, &a, v->chunk, DEFAULT_SHARD, v->shard, &v->sharded,
                                err);
    if (value != NULL && cm_layout_auto("--shards", value, &target, err) != CM_OK)
        return CM_EINVAL;
    if (count_chunks(v, v->chunk) <= 1)
        return CM_OK;
    v->sharded = true;
    return cm_autoshard(v->rank, v->shape, itemsize_of(v), v->chunk, target, NULL, v->shard, err);
}

static int choose_all(layout *l, cm_error *err)
{
    cm_job *job = l->job;
    /* Each chunk has a bit that says that it was written: an eighth of the memory at most. */
    uint64_t objects = 0, most = job->options->memory > 0 ? job->options->memory : MAX_CHUNKS;
    most = most > MANY_OBJECTS ? most : MANY_OBJECTS;
    for (size_t i = 0; i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        int rc = choose_codec(l, v, err);
        if (rc == CM_OK && v->codec.keep)
            rc = keep_chunks(l, v, err);
        if (rc == CM_OK && v->pass == CM_PASS_NOTHING)
            rc = choose_chunks(l, v, err);
        if (rc != CM_OK)
            return rc;
        uint64_t nchunks = count_chunks(v, v->chunk);
        if (nchunks > most)
            return cm_fail(err, CM_EBUDGET,
                           "variable %s: %llu chunks are more than the memory can keep account "
                           "of; choose larger --chunks",
                           v->name, (unsigned long long)nchunks);
        objects += nchunks;
    }
    bool many = objects > MANY_OBJECTS && job->options->zarr_format == 3;
    if (many && l->shards.n == 0) {
        int rc = cm_job_warn(job, err,
                             "%llu chunks: written into shards of about 256 MiB; --shards none "
                             "makes a file of each",
                             (unsigned long long)objects);
        if (rc != CM_OK)
            return rc;
    }
    for (size_t i = 0; i < job->nvars; i++) {
        int rc = choose_shards(l, &job->var[i], many, err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

int cm_job_layout(cm_job *job, cm_error *err)
{
    const cm_convert_options *o = job->options;
    layout l = {.job = job};
    int rc = cm_varopts_parse("--chunks", &o->chunks, chunk_keywords, &l.chunks, err);
    if (rc == CM_OK)
        rc = cm_varopts_parse("--shards", &o->shards, shard_keywords, &l.shards, err);
    if (rc == CM_OK)
        rc = cm_varopts_parse("--codec", &o->codec, cm_codec_keywords, &l.codec, err);
    if (rc == CM_OK && o->sample != NULL) {
        rc = cm_shape_option_parse(o->sample, &l.sample, err);
        l.has_sample = rc == CM_OK;
        if (rc != CM_OK)
            cm_error_prefix(err, "--sample");
    }
    cm_varopts sample = {
        .option = "--sample", .item = &(cm_varopt){.value = (char *)o->sample}, .n = l.has_sample};
    if (rc == CM_OK)
        rc = cm_layout_check_general(&sample, false, array_at, job, job->nvars, err);
    if (rc == CM_OK)
        rc = cm_layout_check_general(&l.chunks, true, array_at, job, job->nvars, err);
    if (rc == CM_OK)
        rc = cm_layout_check_general(&l.shards, true, array_at, job, job->nvars, err);
    if (rc == CM_OK)
        rc = choose_all(&l, err);
    const cm_varopts *all[] = {&l.chunks, &l.shards, &l.codec};
    for (size_t i = 0; rc == CM_OK && i < 3; i++)
        rc = cm_varopts_check_used(all[i], err);
    if (l.has_sample)
        cm_shape_option_release(&l.sample);
    cm_varopts_release(&l.chunks);
    cm_varopts_release(&l.shards);
    cm_varopts_release(&l.codec);
    return rc;
}
