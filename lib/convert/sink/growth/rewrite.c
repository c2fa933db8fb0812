/*
 * Elements of a store that are written anew, by a replacement or by an append whose files win over
 * it.  Chunks change one after the other, so a run that is stopped leaves elements of both: its
 * note refuses everything else until a run has rewritten them all.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/sink/growth/append.h"
#include "model/digest.h"

/* ---- which elements the files give ---- */

unsigned cm_rewrite_axis(const cm_multi_var *v, const char *dimension)
{
    unsigned k = 0;
    while (k < v->naxes && strcmp(v->dim_name[v->axis[k]], dimension) != 0)
        k++;
    return k;
}

/* PART within FIRST to END of axis K; false: nothing of it. */
static bool clip(cm_multi_part *part, unsigned k, uint64_t first, uint64_t end)
{
    const uint64_t ends = part->origin[k] + part->count[k];
    if (part->origin[k] >= end || ends <= first)
        return false;
    part->origin[k] = part->origin[k] > first ? part->origin[k] : first;
    part->count[k] = (ends < end ? ends : end) - part->origin[k];
    return true;
}

cm_given cm_rewrite_given(const cm_multi_spec *spec, const cm_multi_var *v, unsigned k,
                          uint64_t first, uint64_t end)
{
    cm_given g = {UINT64_MAX, 0, 0};
    for (size_t p = 0; p < v->nparts; p++) {
        cm_multi_part part = v->part[p];
        if (spec->file[part.file].open != NULL || !clip(&part, k, first, end))
            continue;
        uint64_t nelem = 1, ends = part.origin[k] + part.count[k];
        for (unsigned i = 0; i < v->naxes; i++)
            nelem *= part.count[i];
        g.first = part.origin[k] < g.first ? part.origin[k] : g.first;
        g.end = ends > g.end ? ends : g.end;
        g.nelem += nelem;
    }
    return g;
}

/* Adds the boxes of array PATH that files give to D, in any order. */
static int digest_given(const cm_multi_spec *spec, const cm_multi_var *v, unsigned k,
                        const char *path, const cm_stopped *range, cm_digest *d, cm_error *err)
{
    cm_buf text = {0};
    int rc = CM_OK;
    for (size_t p = 0; rc == CM_OK && p < v->nparts; p++) {
        cm_multi_part part = v->part[p];
        if (spec->file[part.file].open != NULL || !clip(&part, k, range->first, range->end))
            continue;
        text.nbytes = 0;
        rc = cm_buf_printf(&text, err, "%s", path);
        for (unsigned i = 0; rc == CM_OK && i < v->naxes; i++)
            rc = cm_buf_printf(&text, err, " %" PRIu64 "+%" PRIu64, part.origin[i], part.count[i]);
        cm_digest_element(d, 0, text.data, text.nbytes);
    }
    cm_buf_release(&text);
    return rc;
}

static bool is_rewritten(const cm_stopped *was, const char *array)
{
    bool is = was->arrays.nbytes == 0;
    for (size_t at = 0; at < was->arrays.nbytes && !is;) {
        const char *name = (const char *)was->arrays.data + at;
        is = strcmp(name, array) == 0;
        at += strlen(name) + 1;
    }
    return is;
}

/* Whether they give all elements of V in RANGE; K: the dimension, v->naxes where none is joined. */
static bool gives_all(const cm_multi_spec *spec, const cm_multi_var *v, unsigned k,
                      const cm_stopped *range)
{
    uint64_t wanted = range->end - range->first;
    for (unsigned j = 0; j < v->naxes; j++)
        wanted *= j == k ? 1 : v->shape[v->axis[j]];
    return k < v->naxes && cm_rewrite_given(spec, v, k, range->first, range->end).nelem == wanted;
}

/* The elements of RANGE and its arrays that files give: whether ALL, and a digest of where. */
static int look_at_given(const cm_job *job, const cm_append_state *s, const cm_stopped *range,
                         bool *all, char digest[33], cm_error *err)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    cm_digest d = {0};
    int rc = CM_OK;
    *all = spec != NULL;
    for (size_t i = 0; spec != NULL && rc == CM_OK && i < s->ngrown; i++) {
        const cm_grown *g = &s->grown[i];
        const cm_multi_var *v = cm_multi_var_of(g->source);
        /* One without parts is computed of what the files say of others. */
        if (v == NULL || v->nparts == 0 || !is_rewritten(range, g->growth.path))
            continue;
        const unsigned k = cm_rewrite_axis(v, s->append->dimension);
        *all &= gives_all(spec, v, k, range);
        if (k < v->naxes)
            rc = digest_given(spec, v, k, g->growth.path, range, &d, err);
    }
    cm_digest_text(&d, digest);
    return rc;
}

int cm_rewrite_check_given(const cm_job *job, const cm_append_state *s, cm_error *err)
{
    const cm_stopped *was = &s->append->stopped;
    char digest[33];
    bool all;
    if (was->dimension == NULL)
        return CM_OK;
    int rc = look_at_given(job, s, was, &all, digest, err);
    const bool same = was->given != NULL && strcmp(was->given, digest) == 0;
    return rc == CM_OK && !all && !same ? cm_rewrite_refuse(s->append, err) : rc;
}

int cm_rewrite_leave(const cm_append *a, const char *array, cm_error *err)
{
    const cm_stopped *was = &a->stopped;
    return was->dimension != NULL && is_rewritten(was, array) ? cm_rewrite_refuse(a, err) : CM_OK;
}

int cm_rewrite_refuse(const cm_append *a, cm_error *err)
{
    const cm_stopped *was = &a->stopped;
    if (was->given == NULL)
        return cm_fail(err, CM_EEXIST,
                       "%s: a replacement of %s=%" PRIu64 ":%" PRIu64
                       " was stopped half-way; the same command again completes it",
                       a->root, was->dimension, was->first, was->end);
    return cm_fail(err, CM_EEXIST,
                   "%s: an append that rewrites %s=%" PRIu64 ":%" PRIu64
                   " was stopped half-way; the same command again completes it (`append` %s "
                   "`overlap` last, with the same files), or `replace` %s=%" PRIu64 ":%" PRIu64
                   " with files of all these steps",
                   a->root, was->dimension, was->first, was->end, was->dimension, was->dimension,
                   was->first, was->end);
}

/*
 * ---- the note: "FIRST END DIM", a newline, a NUL; names of arrays, each with a NUL; of an append
 * another NUL, and a digest of what its files gave, with a NUL ----
 */

enum {
    MAX_NOTE = 16 * 1024 * 1024
};

static int parse_line(char *text, cm_stopped *out, cm_error *err)
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
                       "the file %s, the note of a run that was stopped while it wrote steps anew, "
                       "is damaged; remove it, and do again what that run did",
                       CM_REWRITE_NOTE);
    out->dimension = cm_strdup(name + 1, err);
    return out->dimension == NULL ? CM_ENOMEM : CM_OK;
}

/* TEXT of NBYTES, behind the line and its NUL; none is of all arrays. */
static int parse_arrays(const char *text, size_t nbytes, cm_stopped *out, cm_error *err)
{
    size_t n = 0;
    while (n < nbytes && text[n] != '\0')
        n += strlen(text + n) + 1;
    int rc = n > 0 ? cm_buf_append(&out->arrays, text, n, err) : CM_OK;
    if (rc == CM_OK && n + 1 < nbytes && text[n + 1] != '\0' &&
        (out->given = cm_strdup(text + n + 1, err)) == NULL)
        rc = CM_ENOMEM;
    return rc;
}

int cm_rewrite_read_note(cm_append *a, cm_error *err)
{
    cm_buf text = {0};
    if (a->beside.in == NULL)
        return CM_OK;
    int rc = cm_store_get(a->beside.in, CM_REWRITE_NOTE, MAX_NOTE, &text, err);
    bool none = rc == CM_ENOTFOUND;
    if (rc == CM_OK)
        rc = cm_buf_append(&text, "", 1, err);
    const size_t line = rc == CM_OK ? strlen((char *)text.data) + 1 : 0;
    if (rc == CM_OK && (rc = parse_line((char *)text.data, &a->stopped, err)) != CM_OK)
        cm_error_place(err, a->beside.path);
    if (rc == CM_OK)
        rc = parse_arrays((char *)text.data + line, text.nbytes - line, &a->stopped, err);
    cm_buf_release(&text);
    return none ? CM_OK : rc;
}

static int append_given(const cm_job *job, const cm_append_state *s, cm_buf *text, cm_error *err)
{
    const cm_stopped range = {.first = s->first, .end = s->end};
    char digest[33];
    bool all;
    int rc = look_at_given(job, s, &range, &all, digest, err);
    if (rc == CM_OK)
        rc = cm_buf_append(text, "", 1, err);
    return rc == CM_OK ? cm_buf_append(text, digest, sizeof(digest), err) : rc;
}

int cm_rewrite_write_note(const cm_job *job, const cm_append_state *s, cm_error *err)
{
    cm_buf text = {0};
    if (s->first == s->end)
        return CM_OK;
    int rc = cm_buf_printf(&text, err, "%" PRIu64 " %" PRIu64 " %s\n", s->first, s->end,
                           s->append->dimension);
    if (rc == CM_OK)
        rc = cm_buf_append(&text, "", 1, err);
    for (size_t i = 0; rc == CM_OK && i < s->ngrown; i++)
        rc =
            cm_buf_append(&text, s->grown[i].growth.path, strlen(s->grown[i].growth.path) + 1, err);
    if (rc == CM_OK && s->append->replace == NULL)
        rc = append_given(job, s, &text, err);
    if (rc == CM_OK)
        rc = cm_store_put(s->append->beside.in, CM_REWRITE_NOTE, text.data, text.nbytes, err);
    cm_buf_release(&text);
    return rc;
}
