/*
 * Chunks, shards and codecs of every variable: what the user asked for, and
 * what is best where nothing was asked.
 */
#include <string.h>

#include "base/number.h"
#include "job/keep.h"
#include "job/shape_option.h"
#include "job/varopt.h"
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

/* One way of cutting: the value of --chunks or --shards. */
typedef enum cut_kind {
    CUT_DEFAULT,
    CUT_AUTO,
    CUT_SOURCE,
    CUT_NONE,
    CUT_SHAPE
} cut_kind;

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

/* "auto:SIZE" or "auto"; the size in *nbytes. */
static int parse_auto(const char *option, const char *value, uint64_t *nbytes, cm_error *err)
{
    if (value[4] == '\0')
        return CM_OK;
    int rc = cm_parse_size(value + 5, nbytes, err);
    if (rc == CM_OK && *nbytes == 0)
        rc = cm_fail(err, CM_EINVAL, "the size is 0");
    if (rc != CM_OK)
        cm_error_prefix(err, "%s %s", option, value);
    return rc;
}

static cut_kind kind_of(const char *value)
{
    if (value == NULL)
        return CUT_DEFAULT;
    if (strcmp(value, "auto") == 0 || strncmp(value, "auto:", 5) == 0)
        return CUT_AUTO;
    if (strcmp(value, "source") == 0)
        return CUT_SOURCE;
    if (strcmp(value, "none") == 0)
        return CUT_NONE;
    return CUT_SHAPE;
}

/*
 * A shape from the command line for V: lengths, 0 where it says nothing.  A
 * shape for all variables that does not fit this one is passed over; one meant
 * for it by name is refused.
 */
static int shape_for(const char *option, const char *value, bool named, const cm_job_var *v,
                     uint64_t *length, cm_error *err)
{
    cm_shape_option shape;
    int rc = cm_shape_option_parse(value, &shape, err);
    memset(length, 0, CM_MAX_RANK * sizeof(length[0]));
    if (rc != CM_OK) {
        cm_error_prefix(err, "%s", option);
        return rc;
    }
    if (cm_shape_option_fits(&shape, v->rank, v->source->array.dim_name)) {
        cm_shape_option_apply(&shape, v->rank, v->shape, v->source->array.dim_name, length);
    } else if (named) {
        rc = cm_fail(err, CM_EINVAL, "%s %s: variable %s has %u dimensions and none that fit",
                     option, value, v->name, v->rank);
    }
    for (unsigned i = 0; rc == CM_OK && named && shape.by_name && i < shape.n; i++) {
        bool found = false;
        for (unsigned j = 0; j < v->rank && !found; j++)
            found = v->source->array.dim_name[j] != NULL &&
                    strcmp(v->source->array.dim_name[j], shape.item[i].name) == 0;
        if (!found)
            rc = cm_fail(err, CM_EINVAL, "%s %s: variable %s has no dimension %s", option, value,
                         v->name, shape.item[i].name);
    }
    cm_shape_option_release(&shape);
    return rc;
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
    if (kind_of(value) == CUT_SHAPE || kind_of(value) == CUT_AUTO)
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
    bool named, general = v->rank >= 2;
    const char *value = cm_varopts_get(&l->chunks, v->name, general, &named);
    cut_kind kind = kind_of(value);
    uint64_t fixed[CM_MAX_RANK] = {0}, from_file[CM_MAX_RANK], target = 0;
    int rc = CM_OK;
    if (!named && (v->rank == 0 || is_small_coordinate(v))) {
        keep_whole(v);
        return CM_OK;
    }
    if (kind == CUT_NONE)
        return cm_fail(err, CM_EINVAL, "--chunks %s: there is auto, source or a shape", value);
    if (kind == CUT_AUTO)
        rc = parse_auto("--chunks", value, &target, err);
    else if (kind == CUT_SHAPE)
        rc = shape_for("--chunks", value, named, v, fixed, err);
    const uint64_t *source = source_chunks(v, from_file);
    if (kind == CUT_SOURCE && source != NULL) {
        memcpy(v->chunk, source, sizeof(v->chunk));
        return CM_OK;
    }
    if (rc != CM_OK)
        return rc;
    if (l->has_sample && kind != CUT_SOURCE &&
        cm_shape_option_fits(&l->sample, v->rank, v->source->array.dim_name)) {
        uint64_t sample[CM_MAX_RANK];
        cm_shape_option_apply(&l->sample, v->rank, v->shape, v->source->array.dim_name, sample);
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

static int shard_by_shape(cm_job_var *v, const char *value, bool named, cm_error *err)
{
    uint64_t fixed[CM_MAX_RANK];
    int rc = shape_for("--shards", value, named, v, fixed, err);
    bool any = false;
    for (unsigned j = 0; j < v->rank; j++)
        any |= fixed[j] > 0;
    if (rc != CM_OK || !any)
        return rc;
    for (unsigned j = 0; j < v->rank; j++) {
        /* "full", or a length past the end: whole chunks that cover the dimension. */
        if (fixed[j] == v->shape[j])
            fixed[j] = cm_div_ceil(fixed[j], v->chunk[j]) * v->chunk[j];
        if (fixed[j] % v->chunk[j] != 0)
            return cm_fail(err, CM_EINVAL,
                           "--shards %s: variable %s: %llu along dimension %u is no multiple of "
                           "the chunk's %llu",
                           value, v->name, (unsigned long long)fixed[j], j,
                           (unsigned long long)v->chunk[j]);
    }
    v->sharded = true;
    return cm_autoshard(v->rank, v->shape, itemsize_of(v), v->chunk, DEFAULT_SHARD, fixed, v->shard,
                        err);
}

static int choose_shards(layout *l, cm_job_var *v, bool many, cm_error *err)
{
    bool named;
    const char *value = cm_varopts_get(&l->shards, v->name, v->rank >= 2, &named);
    cut_kind kind = kind_of(value);
    uint64_t target = DEFAULT_SHARD;
    if (kind == CUT_DEFAULT)
        kind = many ? CUT_AUTO : CUT_NONE;
    if (kind == CUT_NONE || (v->rank == 0 && !named))
        return CM_OK;
    if (l->job->options->zarr_format == 2)
        return cm_fail(err, CM_EINVAL, "--shards: Zarr format 2 has no shards");
    if (kind == CUT_SOURCE)
        return cm_fail(err, CM_EINVAL, "--shards %s: there is auto, none or a shape", value);
    if (kind == CUT_SHAPE)
        return shard_by_shape(v, value, named, err);
    if (value != NULL && parse_auto("--shards", value, &target, err) != CM_OK)
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

/* A name in a shape for all variables that none of them has, or a rank that none has, is a mistake. */
static int check_general(layout *l, const char *option, const cm_varopts *opts, bool has_words,
                         cm_error *err)
{
    for (size_t k = 0; k < opts->n; k++) {
        const char *value = opts->item[k].value;
        cm_shape_option shape;
        if (opts->item[k].pattern != NULL || (has_words && kind_of(value) != CUT_SHAPE))
            continue;
        int rc = cm_shape_option_parse(value, &shape, err);
        if (rc != CM_OK) {
            cm_error_prefix(err, "%s", option);
            return rc;
        }
        for (unsigned i = 0; rc == CM_OK && i < (shape.by_name ? shape.n : 1); i++) {
            cm_shape_option one = {.by_name = shape.by_name, .n = shape.by_name ? 1 : shape.n};
            one.item[0] = shape.item[i];
            bool found = false;
            for (size_t v = 0; v < l->job->nvars && !found; v++)
                found = cm_shape_option_fits(&one, l->job->var[v].rank,
                                             l->job->var[v].source->array.dim_name);
            if (!found && shape.by_name)
                rc = cm_fail(err, CM_EINVAL, "%s %s: no chosen variable has a dimension %s", option,
                             value, shape.item[i].name);
            else if (!found)
                rc = cm_fail(err, CM_EINVAL, "%s %s: no chosen variable has %u dimensions", option,
                             value, shape.n);
        }
        cm_shape_option_release(&shape);
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
    cm_varopts sample = {.item = &(cm_varopt){.value = (char *)o->sample}, .n = l.has_sample};
    if (rc == CM_OK)
        rc = check_general(&l, "--sample", &sample, false, err);
    if (rc == CM_OK)
        rc = check_general(&l, "--chunks", &l.chunks, true, err);
    if (rc == CM_OK)
        rc = check_general(&l, "--shards", &l.shards, true, err);
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
