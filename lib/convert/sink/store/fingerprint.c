#include "convert/sink/store/fingerprint.h"

#include <stdlib.h>
#include <string.h>

#include <chunkmill/version.h>

#include "convert/source/inputs.h"
#include "model/digest.h"

static int add_texts(cm_json *j, const char *option, const cm_texts *texts, cm_error *err)
{
    cm_json *list = cm_json_array();
    for (size_t i = 0; i < texts->n; i++) {
        if (cm_json_append(list, cm_json_string(texts->text[i]), err) != CM_OK) {
            cm_json_free(list);
            return CM_ENOMEM;
        }
    }
    return cm_json_set(j, option, list, err);
}

static int add_path(cm_json *j, const char *name, const char *path, cm_error *err)
{
    char *full = realpath(path, NULL);
    int rc = cm_json_set(j, name, cm_json_string(full == NULL ? path : full), err);
    free(full);
    return rc;
}

/* Every option that changes what is stored, and no other. */
static int set_options(cm_json *j, const cm_job *job, cm_error *err)
{
    const cm_transform_options *o = job->options;
    const struct {
        const char *name;
        const cm_texts *texts;
    } list[] = {
        {"`chunks`", &o->chunks},     {"`shards`", &o->shards},         {"`codec`", &o->codec},
        {"`variable`", &o->variable}, {"`exclude`", &o->exclude},       {"`rename`", &o->rename},
        {"`subset`", &o->subset},     {"`dtype`", &o->dtype},           {"`unpack`", &o->unpack},
        {"`keepbits`", &o->keepbits}, {"`fill_value`", &o->fill_value},
    };
    int rc = cm_json_set(j, "`zarr_format`", cm_json_i64(job->zarr_format), err);
    for (size_t i = 0; rc == CM_OK && i < sizeof(list) / sizeof(list[0]); i++)
        rc = add_texts(j, list[i].name, list[i].texts, err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "defaults", cm_json_i64(o->defaults), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "`sample`", cm_json_string(o->sample == NULL ? "" : o->sample), err);
    if (rc == CM_OK && job->sample_chunks != NULL)
        rc = cm_json_set(j, CM_FINGERPRINT_CHUNKS, cm_json_copy(job->sample_chunks), err);
    if (rc == CM_OK && o->grid != CM_GRID_REGULAR)
        rc = cm_json_set(j, "`grid`", cm_json_i64(o->grid), err);
    if (rc == CM_OK && o->stack.n > 0)
        rc = add_texts(j, "`stack`", &o->stack, err);
    if (rc == CM_OK && o->merge_along.n > 0)
        rc = add_texts(j, "`merge_along`", &o->merge_along, err);
    if (rc == CM_OK && o->overflow != CM_OVERFLOW_ERROR)
        rc = cm_json_set(j, "`overflow`", cm_json_i64(o->overflow), err);
    /* A run that goes on counts what is there; parts count all together or not at all. */
    if (rc == CM_OK && o->statistics && job->terms.alike)
        rc = add_texts(j, "`statistics`", &o->statistics_range, err);
    if (rc == CM_OK && o->statistics_by != NULL && job->terms.alike)
        rc = cm_json_set(j, "`statistics_by`", cm_json_string(o->statistics_by), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "`char_mode`", cm_json_i64(o->char_mode), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "`skip_unsupported`", cm_json_bool(o->skip_unsupported), err);
    return rc;
}

static int add_document(cm_digest *digest, uint64_t number, const char *path,
                        const cm_zarr_meta *words, cm_error *err)
{
    cm_buf raw = {0};
    int rc = words->raw != NULL ? cm_json_write(words->raw, false, &raw, err) : CM_OK;
    cm_digest_element(digest, 2 * number, path, strlen(path));
    cm_digest_element(digest, 2 * number + 1, raw.data, raw.nbytes);
    cm_buf_release(&raw);
    return rc;
}

/* A store by its place and by what its metadata say. */
static int set_store(cm_json *j, const cm_dataset *ds, cm_error *err)
{
    cm_digest digest = {0};
    char text[33];
    int rc = add_path(j, "source", ds->path, err);
    for (size_t i = 0; rc == CM_OK && i < ds->ngroups; i++)
        rc = add_document(&digest, i, ds->group[i].path, ds->group[i].words, err);
    for (size_t i = 0; rc == CM_OK && i < ds->nvars; i++)
        if (ds->var[i].words != NULL)
            rc = add_document(&digest, ds->ngroups + i, ds->var[i].name, ds->var[i].words, err);
    if (rc == CM_OK)
        rc =
            cm_json_set(j, "source's metadata", cm_json_string(cm_digest_text(&digest, text)), err);
    return rc;
}

int cm_fingerprint(const cm_job *job, cm_json **out, cm_error *err)
{
    cm_json *j = cm_json_object();
    int rc = cm_json_set(j, "version", cm_json_string(cm_version()), err);
    if (rc == CM_OK)
        rc = job->source->kind == CM_DATASET_ZARR ? set_store(j, job->source, err)
                                                  : cm_job_inputs_fingerprint(j, job, err);
    if (rc == CM_OK)
        rc = set_options(j, job, err);
    if (rc == CM_OK)
        *out = j;
    else
        cm_json_free(j);
    return rc;
}
