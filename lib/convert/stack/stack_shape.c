/* Which variables a stack is made of, and which of their dimensions are its own. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/select/subset.h"
#include "convert/stack/stack.h"
#include "model/calendar.h"

/* ---- the variables ---- */

static int check_variable(const cm_stack *s, const cm_variable *v, cm_error *err)
{
    const char *why = v->unsupported != NULL                         ? v->unsupported
                      : v->is_coordinate                             ? "is a coordinate"
                      : !cm_dtype_is_number(&v->dtype) || v->is_char ? "holds no numbers"
                      : v->rank >= CM_MAX_RANK ? "has no room for one more dimension"
                                               : NULL;
    if (why == NULL)
        return CM_OK;
    return cm_fail(err, CM_EINVAL, "`stack` %s: %s %s", s->text.text, v->name, why);
}

int cm_stack_find_member(const cm_job *job, cm_stack *s, size_t i, cm_error *err)
{
    cm_stack_member *m = &s->member[i];
    m->item = &s->text.item[i];
    char *path = cm_stack_path(job, m->item->name, err);
    if (path == NULL)
        return CM_ENOMEM;
    m->var = cm_dataset_find(job->source, path);
    free(path);
    if (m->var == NULL)
        return cm_fail(err, CM_EINVAL, "`stack` %s: the %s has no %s %s", s->text.text,
                       job->source->kind == CM_DATASET_ZARR ? "store" : "file", cm_job_noun(job),
                       m->item->name);
    m->level = m->item->dim != NULL ? cm_variable_dim(m->var, m->item->dim) : m->var->rank;
    if (m->item->dim != NULL && m->level == m->var->rank)
        return cm_fail(err, CM_EINVAL, "`stack` %s: %s has no dimension %s", s->text.text,
                       m->var->name, m->item->dim);
    return check_variable(s, m->var, err);
}

/* ---- levels ---- */

/* 0.1 means the float32 that is nearest, too. */
static bool is_value(double x, double typed)
{
    return x == typed || x == (double)(float)typed;
}

static int find_values(const cm_stack *s, cm_stack_member *m, const double *all, cm_error *err)
{
    const uint64_t n = m->var->shape[m->level];
    char number[32];
    for (size_t k = 0; k < m->item->nvalues; k++) {
        uint64_t i = 0;
        while (i < n && !is_value(all[i], m->item->value[k]))
            i++;
        if (i == n)
            return cm_fail(err, CM_EINVAL, "`stack` %s: dimension %s has no value %s", s->text.text,
                           m->item->dim,
                           cm_format_double(m->item->value[k], number, sizeof(number)));
        m->index[k] = i;
    }
    return CM_OK;
}

int cm_stack_find_levels(cm_job *job, cm_stack *s, cm_stack_member *m, cm_error *err)
{
    double *all;
    m->nchannels = 1;
    if (m->item->dim == NULL)
        return CM_OK;
    const uint64_t n = m->var->shape[m->level];
    const bool chosen = m->item->value != NULL;
    if (n == 0 || n > CM_STACK_MOST_CHANNELS)
        return cm_fail(err, CM_EINVAL, "`stack` %s: dimension %s of %s has %llu elements",
                       s->text.text, m->item->dim, m->var->name, (unsigned long long)n);
    m->nchannels = chosen ? m->item->nvalues : (size_t)n;
    int rc = cm_coordinate_read(job->source, m->var, m->item->dim, n, &all, err);
    if (rc == CM_OK && all == NULL && chosen)
        rc = cm_fail(err, CM_EINVAL, "`stack` %s: dimension %s has no numeric coordinate variable",
                     s->text.text, m->item->dim);
    if (rc == CM_OK && (m->index = cm_calloc(m->nchannels, sizeof(uint64_t), err)) == NULL)
        rc = CM_ENOMEM;
    for (size_t k = 0; rc == CM_OK && !chosen && k < m->nchannels; k++)
        m->index[k] = k;
    if (rc == CM_OK && chosen)
        rc = find_values(s, m, all, err);
    if (rc == CM_OK && all != NULL &&
        (m->coordinate = cm_calloc(m->nchannels, sizeof(double), err)) == NULL)
        rc = CM_ENOMEM;
    for (size_t k = 0; rc == CM_OK && all != NULL && k < m->nchannels; k++)
        m->coordinate[k] = all[m->index[k]];
    free(all);
    return rc;
}

/* ---- dimensions ---- */

/* Channels come after the dimension that records are added along: time. */
static bool is_record(const cm_dataset *ds, const cm_variable *v, unsigned j)
{
    const cm_variable *c =
        v->dim_name[j] == NULL ? NULL : cm_coordinate_of(ds, v, v->dim_name[j], v->shape[j]);
    const char *units = c == NULL ? NULL : cm_json_text(cm_json_member(c->attrs, "units"), NULL);
    return v->unlimited[j] || (units != NULL && cm_time_axis_is(units)) ||
           (c != NULL && c->dtype.kind == CM_KIND_DATETIME);
}

/* Where a level's dimension stood, channels stand; else behind time, and first without it. */
static unsigned channel_of(const cm_dataset *ds, const cm_stack *s)
{
    const cm_variable *first = s->member[0].var;
    for (size_t i = 0; i < s->nmembers; i++)
        if (s->member[i].level < s->member[i].var->rank)
            return s->member[i].level;
    return first->rank > 0 && is_record(ds, first, 0) ? 1 : 0;
}

static int refuse_shape(const cm_stack *s, const cm_stack_member *m, cm_error *err)
{
    char a[CM_MAX_RANK * 21], b[CM_MAX_RANK * 21];
    const cm_variable *first = s->member[0].var;
    return cm_fail(
        err, CM_EINVAL, "`stack` %s: %s %s and %s %s do not have the same dimensions%s",
        s->text.text, first->name, cm_shape_text(first->rank, first->shape, a, sizeof(a)),
        m->var->name, cm_shape_text(m->var->rank, m->var->shape, b, sizeof(b)),
        m->var->rank == first->rank + 1 ? "; VAR@DIM makes channels of a dimension" : "");
}

/* Which dimension of M each of the array's is. */
static int match_dimensions(cm_stack *s, cm_multi_var *out, cm_stack_member *m, cm_error *err)
{
    const cm_variable *v = m->var;
    const bool has_level = m->level < v->rank;
    bool used[CM_MAX_RANK] = {false};
    unsigned next = 0;
    m->how.lacks_axis[0] = !has_level;
    if (v->rank - has_level + 1 != out->rank)
        return refuse_shape(s, m, err);
    for (unsigned j = 0; j < out->rank; j++) {
        unsigned i = 0;
        if (j == s->channel) {
            i = has_level ? m->level : 0;
        } else {
            while (i < v->rank && (used[i] || i == m->level || v->shape[i] != out->shape[j] ||
                                   !cm_stack_same_name(v->dim_name[i], out->dim_name[j])))
                i++;
            if (i == v->rank)
                return refuse_shape(s, m, err);
            used[i] = true;
        }
        m->how.order[j] = i;
        if (j != s->channel || has_level)
            m->how.transposed = m->how.transposed || i != next++;
    }
    return CM_OK;
}

int cm_stack_set_dimensions(cm_job *job, cm_stack *s, cm_multi_var *out, cm_error *err)
{
    const cm_stack_member *first = &s->member[0];
    const cm_variable *v = first->var;
    int rc = CM_OK;
    s->channel = channel_of(job->source, s);
    out->rank = v->rank + (first->level == v->rank);
    if (s->channel >= out->rank)
        return refuse_shape(s, first, err);
    for (unsigned j = 0, i = 0; j < out->rank; j++) {
        if (j == s->channel) {
            out->shape[j] = s->nchannels;
            out->dim_name[j] = s->dim;
            continue;
        }
        i += i == first->level;
        out->shape[j] = v->shape[i];
        out->dim_name[j] = v->dim_name[i];
        out->unlimited[j] = v->unlimited[i++];
    }
    out->naxes = 1;
    out->axis[0] = s->channel;
    for (size_t i = 0; rc == CM_OK && i < s->nmembers; i++)
        rc = match_dimensions(s, out, &s->member[i], err);
    return rc;
}
