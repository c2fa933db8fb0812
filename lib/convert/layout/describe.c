/*
 * The metadata of every array.  What a Zarr source says of an array whose
 * elements stay is kept in its own words; everything else follows from the
 * model, by the rules of zarr_rules.c.
 */
#include <stdlib.h>
#include <string.h>

#include "convert/layout/describe.h"
#include "convert/layout/keep.h"
#include "convert/layout/rectilinear.h"
#include "convert/layout/refer.h"
#include "convert/layout/translate.h"
#include "convert/select/rename.h"
#include "options/varopt.h"

/* ---- codecs ---- */

static bool has_sharding(const cm_codec_spec *spec, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (spec[i].id == CM_CODEC_SHARDING)
            return true;
    return false;
}

/* The source's codecs also serve elements of another type. */
static int refit(const cm_job_var *v, cm_codec_spec **out, size_t *n, cm_error *err)
{
    const cm_variable *s = v->source;
    cm_codec_spec *list = cm_calloc(s->ncodecs + 1, sizeof(list[0]), err);
    if (list == NULL)
        return CM_ENOMEM;
    *n = 0;
    list[(*n)++] = (cm_codec_spec){.id = v->view.as_strings ? CM_CODEC_VLEN_UTF8 : CM_CODEC_BYTES};
    for (size_t i = 0; i < s->ncodecs; i++) {
        if (cm_codec_class_of(s->codecs[i].id) != CM_CODEC_BYTES_BYTES)
            continue;
        list[*n] = s->codecs[i];
        if (list[*n].elementsize > 0)
            list[*n].elementsize = v->view.as_strings ? 1 : v->view.type.nbytes;
        ++*n;
    }
    int rc = cm_codec_specs_copy(list, *n, out, err);
    free(list);
    return rc;
}

/* The codecs of a chunk: as they are, or as asked for. */
static int chunk_codecs(const cm_job_var *v, bool keeps_words, cm_codec_spec **out, size_t *n,
                        cm_error *err)
{
    const cm_variable *s = v->source;
    if (v->layout.refer != NULL)
        return cm_job_refer_codecs(v, out, n, err);
    if (v->layout.pass != CM_PASS_NOTHING)
        return cm_job_kept_codecs(v, out, n, err);
    if (!v->layout.same_codec)
        return cm_codec_choice_specs(&v->layout.codec, &v->view.type, out, n, err);
    if (!keeps_words)
        return refit(v, out, n, err);
    if (has_sharding(s->codecs, s->ncodecs) && !cm_job_chunks_stay(v))
        return cm_fail(
            err, CM_EUNSUPPORTED,
            "its shards lie inside other codecs and cannot be cut; name a `codec` for it");
    *n = s->ncodecs;
    return cm_codec_specs_copy(s->codecs, s->ncodecs, out, err);
}

int cm_job_set_codecs(const cm_job_var *v, cm_array_doc *out, cm_error *err)
{
    cm_zarr_meta *m = &out->meta;
    const cm_shard_spec *was = out->keeps_words ? cm_zarr_sharding(v->source->words) : NULL;
    cm_codec_spec *inner, index[2] = {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_CRC32C}};
    size_t ninner;
    int rc = chunk_codecs(v, out->keeps_words, &inner, &ninner, err);
    if (rc != CM_OK)
        return rc;
    cm_codec_specs_free(m->codecs, m->ncodecs);
    m->codecs = inner;
    m->ncodecs = ninner;
    memcpy(m->chunk, v->layout.sharded ? v->layout.shard : v->layout.chunk, sizeof(m->chunk));
    cm_zarr_meta_drop_cuts(m);
    if (v->layout.rectilinear)
        return cm_job_set_cuts(v, m, err);
    if (!v->layout.sharded)
        return CM_OK;
    cm_shard_spec shard = {.rank = v->view.rank,
                           .codecs = inner,
                           .ncodecs = ninner,
                           .index_codecs = was != NULL ? was->index_codecs : index,
                           .nindex_codecs = was != NULL ? was->nindex_codecs : 2,
                           .index_at_start = was != NULL && was->index_at_start};
    memcpy(shard.chunk, v->layout.chunk, sizeof(shard.chunk));
    cm_codec_spec outer = {.id = CM_CODEC_SHARDING, .shard = &shard};
    m->codecs = NULL;
    m->ncodecs = 0;
    rc = cm_codec_specs_copy(&outer, 1, &m->codecs, err);
    m->ncodecs = rc == CM_OK ? 1 : 0;
    cm_codec_specs_free(inner, ninner);
    return rc;
}

/* ---- in the source's words ---- */

/*
 * v3 must have a fill value where v2 has none: zero, which is what readers give for absent
 * chunks.
 */
static int set_fill(bool as_strings, cm_zarr_meta *m, cm_error *err)
{
    if (m->has_fill || m->zarr_format == 2)
        return CM_OK;
    m->has_fill = true;
    if (as_strings && m->fill_text == NULL)
        m->fill_text = cm_strdup("", err);
    else if (!as_strings && m->fill == NULL)
        m->fill = cm_calloc(1, m->dtype.nbytes, err);
    return m->fill == NULL && m->fill_text == NULL ? CM_ENOMEM : CM_OK;
}

/* Shards of shards without their outer ones are written by the inner chunks of what is left. */
static bool same_grid(const cm_job_var *v, const cm_zarr_meta *m)
{
    const cm_shard_spec *shard = cm_zarr_sharding(m);
    const uint64_t *chunk = shard != NULL ? shard->chunk : m->chunk;
    if (cm_job_is_cut(v))
        return v->layout.rectilinear;
    return v->view.whole && memcmp(v->source->source_chunk, chunk, m->rank * sizeof(chunk[0])) == 0;
}

static bool words_fill_stays(const cm_job_var *v, const cm_zarr_meta *m)
{
    static const uint8_t zeros[64];
    const uint8_t *fill = v->source->fill;
    /* Without a fill value absent chunks are undefined, and stay so. */
    if (!m->has_fill || v->view.as_strings)
        return m->has_fill || !v->source->words->has_fill;
    if (fill == NULL)
        fill = m->dtype.nbytes <= sizeof(zeros) ? zeros : NULL;
    return fill != NULL && memcmp(fill, m->fill, m->dtype.nbytes) == 0;
}

static int rename_parts(const cm_job *job, const cm_job_var *v, cm_zarr_meta *m, cm_error *err)
{
    if (job->options->rename.n == 0)
        return CM_OK;
    for (unsigned j = 0; j < m->rank; j++) {
        const char *name = cm_job_dim_name(job, v->source, j);
        if (name == NULL || strcmp(name, m->dim_name[j]) == 0)
            continue;
        free(m->dim_name[j]);
        if ((m->dim_name[j] = cm_strdup(name, err)) == NULL)
            return CM_ENOMEM;
    }
    return cm_job_rename_words(job, v->source, m->attrs, err);
}

static int describe_in_words(cm_job *job, const cm_job_var *v, cm_array_doc *out, cm_error *err)
{
    cm_zarr_meta *m = &out->meta;
    int rc = cm_zarr_meta_copy(v->source->words, m, err);
    if (rc != CM_OK || v->stored.as_objects)
        return rc;
    memcpy(m->shape, v->view.shape, sizeof(m->shape));
    /* A scalar has its empty list of names in v2 too: xarray asks for it. */
    if (job->zarr_format == 2 && m->zarr_format == 3 && m->rank == 0)
        m->has_dim_names = true;
    rc = rename_parts(job, v, m, err);
    if (rc == CM_OK)
        rc = cm_job_set_codecs(v, out, err);
    if (rc == CM_OK && v->layout.same_codec && same_grid(v, m))
        out->pass = CM_PASS_BYTES;
    if (rc == CM_OK)
        rc = cm_zarr_meta_set_format(m, job->zarr_format, err);
    if (rc == CM_OK)
        rc = cm_job_translate_missing(job, v->source, m, err);
    if (rc == CM_OK)
        rc = set_fill(v->view.as_strings, m, err);
    if (rc == CM_OK && !v->view.as_strings)
        rc = cm_zarr_fill_survives(m, &out->fill_survives, err);
    /* v3 to v3: the fill value is stored in the same words, so that absent chunks read the same. */
    bool same_words = m->zarr_format == 3 && v->source->words->zarr_format == 3;
    bool survives = out->fill_survives || same_words || v->view.as_strings;
    out->fill_stays = rc == CM_OK && survives && words_fill_stays(v, m);
    if (rc != CM_OK)
        cm_error_prefix(err, "array %s", cm_job_name(v));
    return rc;
}

/* True when no option changes V's elements or their metadata. */
static bool may_keep_words(const cm_job_var *v, const char *fill)
{
    return v->source->words != NULL && !v->view.converts && !v->view.join && fill == NULL &&
           cm_dtype_equal(&v->view.type, &v->source->dtype);
}

/* ---- all ---- */

/* Zarr 2 has the names of dimensions in an attribute, and no room for another one of that name. */
static int drop_own_dimensions(cm_job *job, const cm_job_var *v, cm_error *err)
{
    const cm_zarr_meta *m = &v->doc.meta;
    if (job->zarr_format != 2 || !m->has_dim_names || !cm_json_has(m->attrs, CM_ZARR_V2_DIMENSIONS))
        return CM_OK;
    cm_json_remove(m->attrs, CM_ZARR_V2_DIMENSIONS);
    return cm_job_warn(job, err,
                       "%s: its attribute " CM_ZARR_V2_DIMENSIONS
                       " is left out: Zarr 2 has the names of dimensions there",
                       cm_job_name(v));
}

int cm_job_describe(cm_job *job, cm_error *err)
{
    cm_varopts fills;
    int rc = cm_varopts_parse("`fill_value`", &job->options->fill_value, NULL, &fills, err);
    for (size_t i = 0; rc == CM_OK && i < fills.n; i++)
        if (fills.item[i].pattern == NULL)
            rc = cm_fail(err, CM_EINVAL, "`fill_value` %s: not of the form VAR:VALUE",
                         fills.item[i].value);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        const char *fill = cm_varopts_get(&fills, v->name, false, NULL);
        v->doc.pass = v->layout.pass;
        v->doc.keeps_words = v->stored.as_objects || may_keep_words(v, fill);
        if (v->stored.as_objects && fill != NULL)
            rc = cm_fail(err, CM_EUNSUPPORTED, "array %s can only be carried over as it is: %s",
                         cm_job_name(v), v->source->unsupported);
        else
            rc = v->doc.keeps_words ? describe_in_words(job, v, &v->doc, err)
                                    : cm_job_describe_by_rules(job, v, fill, &v->doc, err);
        if (rc == CM_OK)
            rc = drop_own_dimensions(job, v, err);
    }
    cm_job_look_elsewhere(job, &fills);
    if (rc == CM_OK)
        rc = cm_varopts_check_used(&fills, err);
    cm_varopts_release(&fills);
    return rc == CM_OK ? cm_job_check_text(job, err) : rc;
}
