#include "convert/select/merge_along.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/select/subset.h"
#include "format/prefer.h"
#include "options/varopt.h"

/* One dimension that is taken out. */
typedef struct merged {
    const char *text; /* as it was typed */
    char *dim, *access;
    double *value; /* of its coordinate, the preferred first */
    size_t nvalues;
    uint64_t *index; /* where they are */
    cm_preference what;
    cm_dataset *below; /* NULL: not laid over yet */
} merged;

struct cm_merges {
    merged *item;
    size_t n;
};

/* ---- the text ---- */

static int add_value(void *context, char *part, cm_error *err)
{
    merged *m = context;
    double *value = &m->value[m->nvalues];
    if (cm_parse_double(part, value, NULL) != CM_OK)
        return cm_fail(err, CM_EINVAL, "`merge_along` %s: \"%s\" is not a number", m->text, part);
    for (size_t i = 0; i < m->nvalues; i++)
        if (m->value[i] == *value)
            return cm_fail(err, CM_EINVAL, "`merge_along` %s: %s is named twice", m->text, part);
    m->nvalues++;
    return CM_OK;
}

static int parse(merged *m, cm_error *err)
{
    const char *equals = strchr(m->text, '=');
    if (equals == NULL || equals == m->text || equals[1] == '\0')
        return cm_fail(err, CM_EINVAL,
                       "`merge_along` %s: is not DIM=VALUE,VALUE (expver=1,5: the preferred first)",
                       m->text);
    m->dim = cm_asprintf(err, "%.*s", (int)(equals - m->text), m->text);
    m->access = cm_asprintf(err, "the first that is not missing, of %s", m->text);
    m->value = cm_calloc(strlen(equals), sizeof(m->value[0]), err);
    if (m->dim == NULL || m->access == NULL || m->value == NULL)
        return CM_ENOMEM;
    return cm_split(equals + 1, ',', add_value, m, err);
}

/* ---- the dimension ---- */

static bool has_dim(const cm_variable *v, const char *dim, uint64_t *length)
{
    unsigned j = cm_variable_dim(v, dim);
    if (j < v->rank)
        *length = v->shape[j];
    return j < v->rank;
}

/* The first variable with the dimension, which is not its coordinate; NULL: there is none. */
static int find_variable(const cm_job *job, const merged *m, const cm_variable **out,
                         uint64_t *length, cm_error *err)
{
    uint64_t own;
    *out = NULL;
    for (size_t i = 0; i < job->source->nvars; i++) {
        const cm_variable *v = &job->source->var[i];
        if (!has_dim(v, m->dim, &own) || v->is_coordinate)
            continue;
        if (*out != NULL && own != *length)
            return cm_fail(err, CM_EINVAL,
                           "`merge_along` %s: the dimension has %llu elements in %s, and %llu in "
                           "%s",
                           m->text, (unsigned long long)*length, (*out)->name,
                           (unsigned long long)own, v->name);
        if (*out == NULL)
            *out = v;
        *length = own;
    }
    return CM_OK;
}

static int find_value(const merged *m, const double *all, uint64_t n, size_t k, cm_error *err)
{
    char number[32];
    uint64_t i = 0;
    while (i < n && all[i] != m->value[k])
        i++;
    m->index[k] = i;
    return i < n ? CM_OK
                 : cm_fail(err, CM_EINVAL, "`merge_along` %s: %s has no value %s", m->text, m->dim,
                           cm_format_double(m->value[k], number, sizeof(number)));
}

static int find_indices(cm_job *job, merged *m, const cm_variable *v, uint64_t n, cm_error *err)
{
    double *all = NULL;
    int rc = cm_coordinate_read(job->source, v, m->dim, n, &all, err);
    if (rc == CM_OK && all == NULL)
        rc = cm_fail(err, CM_EINVAL,
                     "`merge_along` %s: dimension %s has no coordinate variable of numbers, so "
                     "nothing says which is which",
                     m->text, m->dim);
    if (rc == CM_OK && (m->index = cm_calloc(m->nvalues, sizeof(m->index[0]), err)) == NULL)
        rc = CM_ENOMEM;
    for (size_t k = 0; rc == CM_OK && k < m->nvalues; k++)
        rc = find_value(m, all, n, k, err);
    free(all);
    return rc;
}

static int lay_over(cm_job *job, merged *m, cm_error *err)
{
    const cm_variable *v = NULL;
    cm_dataset *over;
    uint64_t n = 0;
    int rc = parse(m, err);
    if (rc == CM_OK)
        rc = find_variable(job, m, &v, &n, err);
    /* The dimension is absent when all files are final, as they may be on any night. */
    if (rc == CM_OK && v == NULL && (job->terms.grows || cm_job_dim_elsewhere(job, m->dim)))
        return CM_OK;
    if (rc == CM_OK && v == NULL)
        rc = cm_fail(err, CM_EINVAL, "`merge_along` %s: no %s has a dimension %s", m->text,
                     cm_job_noun(job), m->dim);
    if (rc == CM_OK)
        rc = find_indices(job, m, v, n, err);
    m->what = (cm_preference){
        .dim = m->dim, .index = m->index, .nindices = m->nvalues, .access = m->access};
    if (rc == CM_OK)
        rc = cm_prefer_open(job->source, &m->what, &over, err);
    if (rc != CM_OK)
        return rc;
    m->below = job->source;
    job->source = over;
    return CM_OK;
}

int cm_job_merge_along(cm_job *job, cm_error *err)
{
    const cm_texts *texts = &job->options->merge_along;
    int rc = CM_OK;
    if (texts->n == 0)
        return CM_OK;
    if ((job->merges = cm_calloc(1, sizeof(*job->merges), err)) == NULL ||
        (job->merges->item = cm_calloc(texts->n, sizeof(merged), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < texts->n; i++) {
        merged *m = &job->merges->item[job->merges->n++];
        m->text = texts->text[i];
        rc = lay_over(job, m, err);
    }
    return rc;
}

void cm_job_unmerge(cm_job *job)
{
    if (job->merges == NULL)
        return;
    for (size_t i = job->merges->n; i-- > 0;) {
        merged *m = &job->merges->item[i];
        if (m->below != NULL) {
            cm_dataset_close(job->source);
            job->source = m->below;
        }
        free(m->dim);
        free(m->access);
        free(m->value);
        free(m->index);
    }
    free(job->merges->item);
    free(job->merges);
    job->merges = NULL;
}
