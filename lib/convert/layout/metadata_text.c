/*
 * Warns of text in metadata that is not UTF-8, before it is written.  NetCDF does not define the
 * encoding of its text; JSON is UTF-8, so its writer replaces invalid bytes by U+FFFD.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "convert/job.h"

/* True where all text of J, names of members and all, is UTF-8. */
static bool is_utf8(const cm_json *j)
{
    size_t nbytes;
    const char *text = cm_json_text(j, &nbytes);
    if (text != NULL)
        return cm_utf8_is_valid(text, nbytes);
    for (size_t i = 0; cm_json_is(j, CM_JSON_ARRAY) && i < cm_json_length(j); i++)
        if (!is_utf8(cm_json_at(j, i)))
            return false;
    return true;
}

/* OWNER is "variable tas", WHAT "attribute", NAME which one: no more UTF-8 than what it names. */
static int warn(cm_job *job, const char *owner, const char *what, const char *name, cm_error *err)
{
    char *good = cm_utf8_strdup(name, err);
    int rc = good == NULL
                 ? CM_ENOMEM
                 : cm_job_warn(job, err, "%s: %s %s: text that is not UTF-8 becomes U+FFFD", owner,
                               what, good);
    free(good);
    job->evidence.repaired = true;
    return rc;
}

static int check_attributes(cm_job *job, const char *owner, const cm_json *attrs, cm_error *err)
{
    int rc = CM_OK;
    cm_json_iter it = cm_json_begin(attrs);
    while (rc == CM_OK && cm_json_next(&it))
        if (!cm_utf8_is_valid(it.name, strlen(it.name)) || !is_utf8(it.value))
            rc = warn(job, owner, "attribute", it.name, err);
    return rc;
}

static int check_variable(cm_job *job, const cm_job_var *v, cm_error *err)
{
    const cm_zarr_meta *m = &v->doc.meta;
    char *owner = cm_asprintf(err, "variable %s", v->source->name);
    int rc = owner == NULL ? CM_ENOMEM : check_attributes(job, owner, m->attrs, err);
    for (unsigned j = 0; rc == CM_OK && j < m->rank; j++) {
        const char *dim = v->source->dim_name[j];
        if (dim != NULL && !cm_utf8_is_valid(dim, strlen(dim)))
            rc = warn(job, owner, "dimension", dim, err);
    }
    if (rc == CM_OK && m->fill_text != NULL &&
        !cm_utf8_is_valid(m->fill_text, strlen(m->fill_text)))
        rc = warn(job, owner, "fill value", m->fill_text, err);
    free(owner);
    return rc;
}

static int check_group(cm_job *job, const cm_dataset_group *group, cm_error *err)
{
    char *owner = cm_asprintf(err, "group /%s", group->path);
    int rc = owner == NULL ? CM_ENOMEM : check_attributes(job, owner, group->attrs, err);
    free(owner);
    return rc;
}

int cm_job_check_text(cm_job *job, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->source->ngroups; i++)
        if (cm_job_wants_group(job, job->source->group[i].path))
            rc = check_group(job, &job->source->group[i], err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = check_variable(job, &job->var[i], err);
    return rc;
}
