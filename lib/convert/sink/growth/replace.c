/* A part of a store that is written anew: which elements, and that the files give just these. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/sink/growth/append.h"
#include "format/multi/multi.h"

/* ---- the note: "FIRST END DIM", a newline, a NUL; then names of arrays, each with a NUL ---- */

enum {
    MAX_NOTE = 16 * 1024 * 1024
};

static int parse_note(char *text, cm_stopped *out, cm_error *err)
{
    char *end = strchr(text, ' '), *name = end != NULL ? strchr(end + 1, ' ') : NULL;
    /* The name of a dimension may have newlines. */
    char *newline = name != NULL ? strrchr(name, '\n') : NULL;
    bool good = newline != NULL && newline[1] == '\0';
    if (good) {
        *end = *name = *newline = '\0';
        good = cm_parse_u64(text, &out->first, NULL) == CM_OK &&
               cm_parse_u64(end + 1, &out->end, NULL) == CM_OK;
    }
    if (!good)
        return cm_fail(err, CM_EFORMAT,
                       "the file %s, the note of a replacement that was stopped, is damaged; "
                       "remove it, and replace that range again",
                       CM_REPLACE_NOTE);
    out->dimension = cm_strdup(name + 1, err);
    return out->dimension == NULL ? CM_ENOMEM : CM_OK;
}

int cm_replace_read_note(cm_append *a, cm_error *err)
{
    cm_buf text = {0};
    if (a->beside.in == NULL)
        return CM_OK;
    int rc = cm_store_get(a->beside.in, CM_REPLACE_NOTE, MAX_NOTE, &text, err);
    bool none = rc == CM_ENOTFOUND;
    if (rc == CM_OK)
        rc = cm_buf_append(&text, "", 1, err);
    const size_t line = rc == CM_OK ? strlen((char *)text.data) + 1 : 0;
    if (rc == CM_OK && (rc = parse_note((char *)text.data, &a->stopped, err)) != CM_OK)
        cm_error_place(err, a->beside.path);
    /* A note that ends with the line is of all arrays. */
    if (rc == CM_OK && text.nbytes > line)
        rc = cm_buf_append(&a->stopped.arrays, (char *)text.data + line, text.nbytes - line, err);
    cm_buf_release(&text);
    return none ? CM_OK : rc;
}

int cm_replace_write_note(const cm_append_state *s, cm_error *err)
{
    cm_buf text = {0};
    int rc = cm_buf_printf(&text, err, "%" PRIu64 " %" PRIu64 " %s\n", s->first, s->end,
                           s->append->dimension);
    if (rc == CM_OK)
        rc = cm_buf_append(&text, "", 1, err);
    for (size_t i = 0; rc == CM_OK && i < s->ngrown; i++)
        rc =
            cm_buf_append(&text, s->grown[i].growth.path, strlen(s->grown[i].growth.path) + 1, err);
    if (rc == CM_OK)
        rc = cm_store_put(s->append->beside.in, CM_REPLACE_NOTE, text.data, text.nbytes, err);
    cm_buf_release(&text);
    return rc;
}

int cm_replace_remove_note(cm_append *a, cm_error *err)
{
    int rc = cm_store_delete(a->beside.in, CM_REPLACE_NOTE, err);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

/* ---- the range ---- */

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

static int refuse_stopped(const cm_append *a, cm_error *err)
{
    return cm_fail(err, CM_EEXIST,
                   "%s: a replacement of %s=%" PRIu64 ":%" PRIu64
                   " was stopped half-way; the same command again completes it",
                   a->root, a->stopped.dimension, a->stopped.first, a->stopped.end);
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
               ? refuse_stopped(a, err)
               : CM_OK;
}

int cm_replace_leave(const cm_append *a, const char *array, cm_error *err)
{
    const cm_stopped *was = &a->stopped;
    bool begun = was->dimension != NULL && was->arrays.nbytes == 0;
    for (size_t at = 0; at < was->arrays.nbytes && !begun;) {
        const char *name = (const char *)was->arrays.data + at;
        begun = strcmp(name, array) == 0;
        at += strlen(name) + 1;
    }
    return begun ? refuse_stopped(a, err) : CM_OK;
}

/* The range that the files give of V, whose joined axis K the dimension is. */
typedef struct given {
    uint64_t first, end; /* from the first element to the last */
    uint64_t nelem;      /* of these, in all joined axes; no two parts overlap */
} given;

static given given_by_files(const cm_multi_spec *spec, const cm_multi_var *v, unsigned k)
{
    given g = {UINT64_MAX, 0, 0};
    for (size_t p = 0; p < v->nparts; p++) {
        const cm_multi_part *part = &v->part[p];
        uint64_t end = part->origin[k] + part->count[k], nelem = 1;
        if (spec->file[part->file].open != NULL)
            continue;
        for (unsigned i = 0; i < v->naxes; i++)
            nelem *= part->count[i];
        g.first = part->origin[k] < g.first ? part->origin[k] : g.first;
        g.end = end > g.end ? end : g.end;
        g.nelem += nelem;
    }
    return g;
}

static int refuse(const cm_append_state *s, const cm_multi_var *v, const given *g, cm_error *err)
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
    for (unsigned k = 0; k < v->naxes; k++) {
        if (strcmp(v->dim_name[v->axis[k]], s->append->dimension) != 0)
            continue;
        uint64_t wanted = s->end - s->first;
        for (unsigned i = 0; i < v->naxes; i++)
            wanted *= i == k ? 1 : v->shape[v->axis[i]];
        const given g = given_by_files(spec, v, k);
        if (g.first != s->first || g.end != s->end || g.nelem != wanted)
            return refuse(s, v, &g, err);
    }
    return CM_OK;
}
