/* Joins the attributes of groups: those that files agree on stay. */
#include <stdlib.h>
#include <string.h>

#include "archive/emit.h"
#include "archive/tables/described.h"

/* A group, as the first file that has it says it. */
typedef struct seen_group {
    cm_json *first;
    cm_known known; /* digests of attributes -> whether they differ from those */
} seen_group;

typedef struct groups {
    const cm_join_input *in;
    cm_join_findings *findings;
    cm_emitted *emitted;
    seen_group *seen; /* beside those of cm_emitted */
    cm_json *names;   /* of attributes that differ: an object, name -> null */
    uint32_t file, last;
    size_t nfiles;
} groups;

/*
 * Notes names of A that B lacks or has with other values, and removes them from KEPT.  A store
 * keeps its attributes: those of a file that say something else are noted.
 */
static int note_differing(groups *g, const cm_json *a, const cm_json *b, cm_json *kept,
                          bool *differs, cm_error *err)
{
    int rc = CM_OK;
    for (cm_json_iter it = cm_json_begin(a); rc == CM_OK && cm_json_next(&it);) {
        if (cm_join_same_member(a, b, it.name) || (g->in->has_base && !cm_json_has(b, it.name)))
            continue;
        *differs = true;
        if (!g->in->options->first_attrs && !g->in->has_base)
            cm_json_remove(kept, it.name);
        if (!cm_json_has(g->names, it.name))
            rc = cm_json_set_null(g->names, it.name, err);
    }
    return rc;
}

/* Takes ATTRS. */
static int add_group(groups *g, const char *path, cm_json *attrs, cm_error *err)
{
    cm_emitted *e = g->emitted;
    char *copy = cm_strdup(path, err);
    cm_json *first = cm_json_copy(attrs);
    if (CM_GROW(e->group, e->ngroups, err) != CM_OK || CM_GROW(g->seen, e->ngroups, err) != CM_OK ||
        copy == NULL || (first == NULL && attrs != NULL)) {
        free(copy);
        cm_json_free(first);
        cm_json_free(attrs);
        return cm_fail(err, CM_ENOMEM, "no memory for groups");
    }
    g->seen[e->ngroups] = (seen_group){.first = first};
    e->group[e->ngroups++] = (cm_multi_group){copy, attrs};
    return CM_OK;
}

static size_t group_named(const cm_emitted *e, const char *path)
{
    size_t i = 0;
    while (i < e->ngroups && strcmp(e->group[i].path, path) != 0)
        i++;
    return i;
}

/* Attributes that were not seen before of group AT, against those of its first file. */
static int compare_group(groups *g, size_t at, cm_digest digest, bool *differs, cm_error *err)
{
    cm_json *attrs = NULL, *kept = (cm_json *)(uintptr_t)g->emitted->group[at].attrs;
    int rc = cm_survey_json(g->in->survey, digest, &attrs, err);
    if (rc == CM_OK)
        rc = note_differing(g, g->seen[at].first, attrs, kept, differs, err);
    if (rc == CM_OK)
        rc = note_differing(g, attrs, g->seen[at].first, kept, differs, err);
    cm_json_free(attrs);
    return rc == CM_OK ? cm_known_add(&g->seen[at].known, digest, *differs, err) : rc;
}

static int see_group(groups *g, uint32_t file, size_t i, bool *differs, cm_error *err)
{
    const char *path;
    cm_digest digest;
    cm_json *attrs = NULL;
    uint64_t before;
    bool own = false;
    int rc = cm_surveyed_group(g->in->survey, g->in->file[file], i, &path, &digest, err);
    if (rc != CM_OK)
        return rc;
    size_t at = group_named(g->emitted, path);
    if (at == g->emitted->ngroups) {
        rc = cm_survey_json(g->in->survey, digest, &attrs, err);
        if (rc == CM_OK)
            rc = add_group(g, path, attrs, err);
        return rc == CM_OK ? cm_known_add(&g->seen[at].known, digest, 0, err) : rc;
    }
    if (cm_known_find(&g->seen[at].known, digest, &before))
        own = before != 0;
    else
        rc = compare_group(g, at, digest, &own, err);
    *differs |= own;
    return rc;
}

static int see_file(groups *g, uint32_t file, cm_error *err)
{
    bool differs = false;
    int rc = CM_OK;
    size_t n = cm_surveyed_ngroups(g->in->file[file]);
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        rc = see_group(g, file, i, &differs, err);
    if (!differs)
        return rc;
    if (g->nfiles++ == 0)
        g->file = file;
    g->last = file;
    return rc;
}

static int say(const groups *g, cm_error *err)
{
    cm_buf names = {0};
    int rc = CM_OK;
    if (g->nfiles == 0)
        return CM_OK;
    for (cm_json_iter it = cm_json_begin(g->names); rc == CM_OK && cm_json_next(&it);)
        rc = cm_buf_printf(&names, err, "%s%s", names.nbytes > 0 ? ", " : "", it.name);
    const bool base = g->in->has_base, kept = base || g->in->options->first_attrs;
    cm_finding *f = rc != CM_OK ? NULL
                                : cm_join_find(g->findings, CM_FINDING_ATTRIBUTE, CM_WEIGHT_NOTE,
                                               kept && !base, NULL, g->file, err,
                                               "attributes that are not the same in %s: %.*s",
                                               base   ? "the store, which keeps its own"
                                               : kept ? "all files are those of the first file"
                                                      : "all files are left out",
                                               (int)names.nbytes, (const char *)names.data);
    cm_buf_release(&names);
    if (f == NULL)
        return rc == CM_OK ? CM_ENOMEM : rc;
    f->nfiles = g->nfiles - 1;
    return cm_join_found_in(g->findings, f, g->last, err);
}

/* Warnings of opening, each once, with the first file that gave it. */
static int collect_warnings(const cm_join_input *in, cm_join_findings *findings, cm_error *err)
{
    cm_known known = {0};
    int rc = CM_OK;
    uint64_t any;
    for (size_t i = 0; rc == CM_OK && i < in->nfiles; i++) {
        const cm_skeleton *k = cm_join_skeleton(in, (uint32_t)i);
        for (size_t w = 0; rc == CM_OK && w < k->nwarnings; w++) {
            cm_digest d = cm_wire_digest(k->warning[w], strlen(k->warning[w]));
            if (cm_known_find(&known, d, &any))
                continue;
            rc = cm_known_add(&known, d, 0, err);
            if (rc == CM_OK)
                rc = cm_join_warn(findings, err, "%s: %s", in->file[i]->path, k->warning[w]);
        }
    }
    cm_known_release(&known);
    return rc;
}

int cm_join_groups(const cm_join_input *in, cm_join_findings *findings, cm_emitted *emitted,
                   cm_error *err)
{
    groups g = {.in = in, .findings = findings, .emitted = emitted, .names = cm_json_object()};
    int rc = g.names == NULL ? cm_fail(err, CM_ENOMEM, "no memory for attributes") : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < in->nfiles; i++)
        rc = see_file(&g, (uint32_t)i, err);
    if (rc == CM_OK)
        rc = say(&g, err);
    for (size_t i = 0; g.seen != NULL && i < emitted->ngroups; i++) {
        cm_json_free(g.seen[i].first);
        cm_known_release(&g.seen[i].known);
    }
    free(g.seen);
    cm_json_free(g.names);
    return rc == CM_OK ? collect_warnings(in, findings, err) : rc;
}
