/*
 * Chunks, shards, codecs and metadata of the target: the source's, but for what
 * was asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "job/layout_option.h"
#include "job/rechunk.h"
#include "plan/autochunk.h"

enum {
    DEFAULT_CHUNK = 4 << 20,
    DEFAULT_SHARD = 256 << 20,
    STRING_ESTIMATE = 64, /* bytes a variable-length element is taken for */
    MANY_OBJECTS = 10000
};

static const char *const chunk_keywords[] = {"auto", "source", NULL};
static const char *const shard_keywords[] = {"auto", "none", "source", NULL};
static const char *const codec_keywords[] = {"same", "none", "zstd", "gzip", "blosc", "keep", NULL};

typedef struct layout {
    cm_re_job *job;
    cm_varopts chunks, shards, codec;
} layout;

static uint32_t itemsize_of(const cm_re_array *a)
{
    return a->how == CM_RE_STRINGS ? STRING_ESTIMATE : a->node->meta.dtype.nbytes;
}

static bool is_word(const char *value, const char *word)
{
    return value != NULL && strcmp(value, word) == 0;
}

static cm_layout_array layout_of(const cm_re_array *a)
{
    const cm_zarr_meta *m = &a->node->meta;
    return (cm_layout_array){.noun = "array",
                             .name = a->node->path[0] != '\0' ? a->node->path : "/",
                             .rank = m->rank,
                             .shape = m->shape,
                             .dim_name = m->dim_name,
                             .itemsize = itemsize_of(a)};
}

static cm_layout_array layout_at(const void *job, size_t i)
{
    return layout_of(&((const cm_re_job *)job)->array[i]);
}

static void source_chunks(const cm_re_array *a, uint64_t *chunk)
{
    const cm_shard_spec *shard = cm_re_sharding(&a->node->meta);
    memcpy(chunk, shard != NULL ? shard->chunk : a->node->meta.chunk,
           CM_MAX_RANK * sizeof(chunk[0]));
}

static int choose_chunks(layout *l, cm_re_array *a, cm_error *err)
{
    const cm_zarr_meta *m = &a->node->meta;
    const cm_layout_array as = layout_of(a);
    bool named, fits = true;
    const char *value = cm_varopts_get(&l->chunks, a->node->path, m->rank >= 2, &named);
    uint64_t fixed[CM_MAX_RANK] = {0}, target = DEFAULT_CHUNK, source[CM_MAX_RANK];
    int rc = CM_OK;
    source_chunks(a, source);
    memcpy(a->chunk, source, sizeof(a->chunk));
    if (value == NULL || is_word(value, "source") || m->rank == 0)
        return CM_OK;
    if (cm_layout_kind_of(value) == CM_LAYOUT_AUTO)
        rc = cm_layout_auto("--chunks", value, &target, err);
    else
        rc = cm_layout_shape("--chunks", value, named, &as, fixed, &fits, err);
    if (rc != CM_OK || !fits)
        return rc;
    bool whole = true;
    for (unsigned j = 0; j < m->rank; j++)
        whole = whole && fixed[j] > 0;
    if (whole) {
        memcpy(a->chunk, fixed, sizeof(a->chunk));
        return CM_OK;
    }
    return cm_autochunk(m->rank, m->shape, itemsize_of(a), target, fixed, source, a->chunk, err);
}

static uint64_t count_chunks(const cm_re_array *a)
{
    uint64_t n = 1;
    for (unsigned j = 0; j < a->node->meta.rank; j++)
        n *= cm_div_ceil(a->node->meta.shape[j], a->chunk[j]);
    return n;
}

static bool chunks_stay(const cm_re_array *a)
{
    uint64_t source[CM_MAX_RANK];
    source_chunks(a, source);
    return memcmp(source, a->chunk, a->node->meta.rank * sizeof(source[0])) == 0;
}

static int choose_shards(layout *l, cm_re_array *a, bool many, cm_error *err)
{
    const cm_zarr_meta *m = &a->node->meta;
    const cm_layout_array as = layout_of(a);
    bool named;
    const char *value = cm_varopts_get(&l->shards, a->node->path, m->rank >= 2, &named);
    uint64_t target = DEFAULT_SHARD;
    const bool v3 = l->job->zarr_format == 3;
    if (value == NULL || is_word(value, "source")) {
        if (v3 && cm_re_sharding(m) != NULL && chunks_stay(a)) {
            a->sharded = true;
            memcpy(a->shard, m->chunk, sizeof(a->shard));
            return CM_OK;
        }
        if (!many || count_chunks(a) <= 1 || chunks_stay(a))
            return CM_OK;
    } else if (is_word(value, "none") || (m->rank == 0 && !named)) {
        return CM_OK;
    } else if (!v3) {
        return cm_fail(err, CM_EINVAL, "--shards: Zarr format 2 has no shards");
    } else if (cm_layout_kind_of(value) != CM_LAYOUT_AUTO) {
        return cm_layout_shards(value, named, &as, a->chunk, DEFAULT_SHARD, a->shard, &a->sharded,
                                err);
    } else if (cm_layout_auto("--shards", value, &target, err) != CM_OK) {
        return CM_EINVAL;
    }
    if (count_chunks(a) <= 1)
        return CM_OK;
    a->sharded = true;
    return cm_autoshard(m->rank, m->shape, itemsize_of(a), a->chunk, target, NULL, a->shard, err);
}

static int choose_codec(layout *l, cm_re_array *a, cm_error *err)
{
    const char *value = cm_varopts_get(&l->codec, a->node->path, true, NULL);
    a->same_codec = value == NULL || is_word(value, "same");
    if (a->same_codec)
        return CM_OK;
    int rc = cm_codec_choice_parse(value, &a->codec, err);
    if (rc == CM_OK && a->codec.keep)
        rc = cm_fail(err, CM_EINVAL, "codec %s: here it is \"same\"", value);
    if (rc != CM_OK)
        cm_error_prefix(err, "--codec");
    return rc;
}

/* ---- metadata ---- */

static bool has_sharding(const cm_codec_spec *spec, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (spec[i].id == CM_CODEC_SHARDING)
            return true;
    return false;
}

/* The codecs of a chunk: as they are, or as asked for. */
static int chunk_codecs(const cm_re_array *a, cm_codec_spec **out, size_t *n, cm_error *err)
{
    const cm_zarr_meta *m = &a->node->meta;
    const cm_shard_spec *shard = cm_re_sharding(m);
    const cm_codec_spec *spec = shard != NULL ? shard->codecs : m->codecs;
    *n = shard != NULL ? shard->ncodecs : m->ncodecs;
    if (!a->same_codec)
        return cm_codec_choice_specs(&a->codec, &m->dtype, out, n, err);
    if (has_sharding(spec, *n) && !chunks_stay(a))
        return cm_fail(err, CM_EUNSUPPORTED,
                       "its shards lie inside other codecs, which are not cut otherwise; name a "
                       "--codec for it");
    return cm_codec_specs_copy(spec, *n, out, err);
}

static int set_codecs(cm_re_array *a, cm_error *err)
{
    cm_zarr_meta *m = &a->meta;
    const cm_shard_spec *was = cm_re_sharding(&a->node->meta);
    cm_codec_spec *inner, index[2] = {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_CRC32C}};
    size_t ninner;
    int rc = chunk_codecs(a, &inner, &ninner, err);
    if (rc != CM_OK)
        return rc;
    cm_codec_specs_free(m->codecs, m->ncodecs);
    m->codecs = inner;
    m->ncodecs = ninner;
    memcpy(m->chunk, a->sharded ? a->shard : a->chunk, sizeof(m->chunk));
    if (!a->sharded)
        return CM_OK;
    cm_shard_spec shard = {.rank = m->rank,
                           .codecs = inner,
                           .ncodecs = ninner,
                           .index_codecs = was != NULL ? was->index_codecs : index,
                           .nindex_codecs = was != NULL ? was->nindex_codecs : 2,
                           .index_at_start = was != NULL && was->index_at_start};
    memcpy(shard.chunk, a->chunk, sizeof(shard.chunk));
    cm_codec_spec outer = {.id = CM_CODEC_SHARDING, .shard = &shard};
    m->codecs = NULL;
    m->ncodecs = 0;
    rc = cm_codec_specs_copy(&outer, 1, &m->codecs, err);
    m->ncodecs = rc == CM_OK ? 1 : 0;
    cm_codec_specs_free(inner, ninner);
    return rc;
}

/* v3 must have a fill value where v2 has none: zero, which is what readers give for absent chunks. */
static int set_fill(cm_re_array *a, cm_error *err)
{
    cm_zarr_meta *m = &a->meta;
    if (m->has_fill || m->zarr_format == 2)
        return CM_OK;
    m->has_fill = true;
    if (a->how == CM_RE_STRINGS && m->fill_text == NULL)
        m->fill_text = cm_strdup("", err);
    else if (a->how != CM_RE_STRINGS && m->fill == NULL)
        m->fill = cm_calloc(1, m->dtype.nbytes, err);
    return m->fill == NULL && m->fill_text == NULL ? CM_ENOMEM : CM_OK;
}

/* Shards of shards without their outer ones are written by the inner chunks of what is left. */
static bool same_grid(const cm_re_array *a)
{
    const cm_shard_spec *shard = cm_re_sharding(&a->meta);
    uint64_t source[CM_MAX_RANK];
    source_chunks(a, source);
    return memcmp(source, shard != NULL ? shard->chunk : a->meta.chunk,
                  a->meta.rank * sizeof(source[0])) == 0;
}

static int describe(cm_re_job *job, cm_re_array *a, cm_error *err)
{
    int rc = cm_zarr_meta_copy(&a->node->meta, &a->meta, err);
    if (rc != CM_OK || a->how == CM_RE_OBJECTS)
        return rc;
    /* A scalar has its empty list of names in v2 too: xarray asks for it. */
    if (job->zarr_format == 2 && a->meta.zarr_format == 3 && a->meta.rank == 0)
        a->meta.has_dim_names = true;
    rc = set_codecs(a, err);
    a->passes = rc == CM_OK && a->same_codec && same_grid(a);
    if (rc == CM_OK)
        rc = cm_zarr_meta_set_format(&a->meta, job->zarr_format, err);
    if (rc == CM_OK)
        rc = set_fill(a, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "array %s", a->node->path[0] ? a->node->path : "/");
    return rc;
}

/* What OPTS asks of A beyond what it has, *named by its name. */
static bool asks(cm_varopts *opts, const cm_re_array *a, bool general, const char *stays,
                 bool *named)
{
    bool by_name = false;
    const char *value = cm_varopts_get(opts, a->node->path, general, &by_name);
    if (value == NULL || is_word(value, stays))
        return false;
    *named = *named || by_name;
    return true;
}

/*
 * An array that is not understood can only stay as it is.  Chunks that are asked of
 * all are not asked of it; a codec is, since readers that lack this one are why.
 */
static int check_carried(layout *l, cm_re_array *a, cm_error *err)
{
    const cm_zarr_meta *m = &a->node->meta;
    const char *name = a->node->path[0] ? a->node->path : "/";
    const char *why = a->node->unsupported != NULL ? a->node->unsupported : "it is not understood";
    bool general = m->rank != 1, named = false;
    bool chunks = asks(&l->chunks, a, general, "source", &named);
    bool shards = asks(&l->shards, a, general, "source", &named);
    bool codec = asks(&l->codec, a, true, "same", &named);
    a->same_codec = true;
    memcpy(a->chunk, m->chunk, sizeof(a->chunk));
    if (m->zarr_format != l->job->zarr_format)
        return cm_fail(err, CM_EUNSUPPORTED, "array %s cannot become Zarr format %d: %s", name,
                       l->job->zarr_format, why);
    if (named || codec)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "array %s can only be carried over as it is: %s; name the arrays that are "
                       "to be changed, or leave it out of those that are chosen",
                       name, why);
    if (!chunks && !shards)
        return CM_OK;
    return cm_re_warn(l->job, err, "array %s keeps its chunks: %s", name, why);
}

static int choose_all(layout *l, cm_error *err)
{
    cm_re_job *job = l->job;
    uint64_t objects = 0;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->narrays; i++) {
        cm_re_array *a = &job->array[i];
        if (a->how == CM_RE_OBJECTS) {
            rc = check_carried(l, a, err);
            continue;
        }
        rc = choose_codec(l, a, err);
        if (rc == CM_OK)
            rc = choose_chunks(l, a, err);
        if (rc == CM_OK)
            objects += count_chunks(a);
    }
    bool many = objects > MANY_OBJECTS && job->zarr_format == 3;
    for (size_t i = 0; rc == CM_OK && i < job->narrays; i++) {
        cm_re_array *a = &job->array[i];
        if (a->how != CM_RE_OBJECTS)
            rc = choose_shards(l, a, many, err);
        if (rc == CM_OK)
            rc = describe(job, a, err);
    }
    return rc;
}

int cm_re_layout(cm_re_job *job, cm_error *err)
{
    const cm_rechunk_options *o = job->options;
    layout l = {.job = job};
    int rc = cm_varopts_parse("--chunks", &o->chunks, chunk_keywords, &l.chunks, err);
    if (rc == CM_OK)
        rc = cm_varopts_parse("--shards", &o->shards, shard_keywords, &l.shards, err);
    if (rc == CM_OK)
        rc = cm_varopts_parse("--codec", &o->codec, codec_keywords, &l.codec, err);
    if (rc == CM_OK)
        rc = cm_layout_check_general(&l.chunks, true, layout_at, job, job->narrays, err);
    if (rc == CM_OK)
        rc = cm_layout_check_general(&l.shards, true, layout_at, job, job->narrays, err);
    if (rc == CM_OK)
        rc = choose_all(&l, err);
    const cm_varopts *all[] = {&l.chunks, &l.shards, &l.codec};
    for (size_t i = 0; rc == CM_OK && i < 3; i++)
        rc = cm_varopts_check_used(all[i], err);
    cm_varopts_release(&l.chunks);
    cm_varopts_release(&l.shards);
    cm_varopts_release(&l.codec);
    return rc;
}
