#include "convert/layout/carry_over.h"

#include <string.h>

#include "convert/select/rename.h"

bool cm_job_takes_shapes(const cm_job *job, const cm_job_var *v)
{
    return v->view.rank >= 2 || (v->view.rank == 1 && job->nvars == 1);
}

/* Whether OPTS ask of V what it has not, *named by its name. */
static bool asks(cm_varopts *opts, const cm_job_var *v, bool general, const char *stays,
                 bool *named)
{
    bool by_name = false;
    const char *value = cm_varopts_get(opts, v->name, general, &by_name);
    if (value == NULL || strcmp(value, stays) == 0)
        return false;
    *named = *named || by_name;
    return true;
}

/* Whether OPTS, which name no array, ask another than V for what it has not. */
static bool others_take(const cm_job *job, const cm_job_var *v, cm_varopts *opts)
{
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *other = &job->var[i];
        bool named = false;
        if (other != v && !other->stored.as_objects && cm_job_takes_shapes(job, other) &&
            asks(opts, other, true, "source", &named) && !named)
            return true;
    }
    return false;
}

/* Chunks of the source are not chosen for a sample. */
static bool takes_sample(const cm_job *job, const cm_shape_option *sample, cm_varopts *chunks,
                         const cm_job_var *v)
{
    const char *value = cm_varopts_get(chunks, v->name, cm_job_takes_shapes(job, v), NULL);
    return sample != NULL && (value == NULL || strcmp(value, "source") != 0) &&
           cm_shape_option_fits(sample, v->view.rank, v->source->dim_name);
}

static bool others_take_sample(const cm_job *job, const cm_job_var *v, cm_varopts *chunks,
                               const cm_shape_option *sample)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (&job->var[i] != v && !job->var[i].stored.as_objects &&
            takes_sample(job, sample, chunks, &job->var[i]))
            return true;
    return false;
}

/* Whether a part of V is asked for, or a name that its document says becomes another. */
static int says_otherwise(const cm_job *job, const cm_job_var *v, bool *out, cm_error *err)
{
    *out = !v->view.whole;
    if (job->options->rename.n == 0)
        return CM_OK;
    for (unsigned j = 0; j < v->view.rank; j++) {
        const char *was = v->source->dim_name[j], *is = cm_job_dim_name(job, v->source, j);
        *out = *out || (was != NULL && strcmp(was, is) != 0);
    }
    cm_json *attrs = cm_json_copy(v->source->attrs);
    if (attrs == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for attributes");
    int rc = cm_job_rename_words(job, v->source, attrs, err);
    *out = *out || !cm_json_equal(attrs, v->source->attrs);
    cm_json_free(attrs);
    return rc;
}

int cm_job_carry_over(cm_job *job, const cm_job_var *v, cm_layout *out, cm_varopts *chunks,
                      cm_varopts *shards, cm_varopts *codec, const cm_shape_option *sample,
                      cm_error *err)
{
    const char *why = v->source->unsupported, *name = cm_job_name(v);
    const bool general = v->view.rank == 0 || cm_job_takes_shapes(job, v);
    bool named = false, otherwise;
    const bool cut = asks(chunks, v, general, "source", &named);
    const bool sharded = asks(shards, v, general, "source", &named);
    const bool sampled = takes_sample(job, sample, chunks, v);
    const bool coded = asks(codec, v, true, "same", &named);
    out->same_codec = true;
    memcpy(out->chunk, v->source->words->chunk, sizeof(out->chunk));
    if (v->source->words->zarr_format != job->zarr_format)
        return cm_fail(err, CM_EUNSUPPORTED, "array %s cannot become Zarr format %d: %s", name,
                       job->zarr_format, why);
    int rc = says_otherwise(job, v, &otherwise, err);
    if (rc != CM_OK)
        return rc;
    const bool in_vain = (cut && !others_take(job, v, chunks)) ||
                         (sharded && !others_take(job, v, shards)) ||
                         (sampled && !others_take_sample(job, v, chunks, sample));
    if (named || coded || otherwise || in_vain)
        return cm_fail(err, CM_EUNSUPPORTED, "array %s can only be carried over as it is: %s%s",
                       name, why,
                       job->nvars == 1 ? ""
                                       : "; name the arrays that are to be changed, or leave it "
                                         "out of those that are chosen");
    if (!cut && !sharded && !sampled)
        return CM_OK;
    return cm_job_warn(job, err, "array %s keeps its chunks: %s", name, why);
}
