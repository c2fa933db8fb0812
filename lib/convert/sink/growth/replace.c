/* A part of a store that is written anew: which elements, and that the files give just these. */
#include <inttypes.h>
#include <string.h>

#include "convert/sink/growth/append.h"

static uint64_t length_in_files(const cm_job *job, const char *dimension)
{
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_variable *v = job->var[i].source;
        unsigned j = cm_variable_dim(v, dimension);
        if (j < v->rank)
            return v->shape[j];
    }
    return 0;
}

int cm_replace_find_range(cm_job *job, cm_append_state *s, cm_error *err)
{
    const cm_append *a = s->append;
    uint64_t length = length_in_files(job, a->dimension);
    if (length > s->was)
        return cm_fail(err, CM_EINVAL,
                       "the files have steps behind the end of the store, which has %" PRIu64
                       " along %s; `append` adds these",
                       s->was, a->dimension);
    int rc = cm_job_find_range(job, "`replace`", a->replace, &s->first, &s->end, err);
    if (rc != CM_OK)
        return rc;
    const cm_stopped *was = &a->stopped;
    return was->dimension != NULL && (was->first < s->first || was->end > s->end)
               ? cm_rewrite_refuse(a, err)
               : CM_OK;
}

static int refuse(const cm_append_state *s, const cm_multi_var *v, const cm_given *g, cm_error *err)
{
    const char *dim = s->append->dimension;
    if (g->nelem == 0)
        return cm_fail(
            err, CM_EINVAL,
            "variable %s: the files give none of its elements; `exclude` leaves it as it is",
            v->name);
    if (g->first == s->first && g->end == s->end)
        return cm_fail(err, CM_EINVAL,
                       "variable %s: the files lack elements of %s=%" PRIu64 ":%" PRIu64
                       ", which is to be replaced; name all files of this range",
                       v->name, dim, s->first, s->end);
    return cm_fail(err, CM_EINVAL,
                   "variable %s: the files give %s=%" PRIu64 ":%" PRIu64 ", and %s=%" PRIu64
                   ":%" PRIu64 " is to be replaced; name the files of this range and no others",
                   v->name, dim, g->first, g->end, dim, s->first, s->end);
}

int cm_replace_check_given(cm_job *job, const cm_append_state *s, const cm_variable *source,
                           cm_error *err)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    const cm_multi_var *v = spec != NULL ? cm_multi_var_of(source) : NULL;
    if (v == NULL || v->nparts == 0) /* computed of what the files say of others */
        return CM_OK;
    const unsigned k = cm_rewrite_axis(v, s->append->dimension);
    if (k == v->naxes)
        return CM_OK;
    uint64_t wanted = s->end - s->first;
    for (unsigned i = 0; i < v->naxes; i++)
        wanted *= i == k ? 1 : v->shape[v->axis[i]];
    const cm_given g = cm_rewrite_given(spec, v, k, 0, UINT64_MAX);
    return g.first != s->first || g.end != s->end || g.nelem != wanted ? refuse(s, v, &g, err)
                                                                       : CM_OK;
}
