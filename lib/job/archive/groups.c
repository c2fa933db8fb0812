/* The attributes of groups: what files agree on stays. */
#include <stdlib.h>
#include <string.h>

#include "job/archive/emit.h"

/* Names that were left out, each once. */
typedef struct left_out {
    cm_json *names;      /* an object: name -> null */
    uint32_t file, last; /* that differ from the first */
    size_t nfiles;
} left_out;

static int leave_out(cm_json *from, const char *name, left_out *out, uint32_t file, cm_error *err)
{
    int rc = CM_OK;
    if (cm_json_length(out->names) == 0)
        out->file = file;
    if (!cm_json_has(out->names, name))
        rc = cm_json_set_null(out->names, name, err);
    cm_json_remove(from, name);
    return rc;
}

/* Takes out of FROM what OTHER does not say alike. */
static int keep_common(cm_json *from, const cm_json *other, left_out *out, uint32_t file,
                       cm_error *err)
{
    int rc = CM_OK;
    for (bool more = true; more && rc == CM_OK;) {
        more = false;
        for (cm_json_iter it = cm_json_begin(from); cm_json_next(&it);) {
            const cm_json *theirs = cm_json_member(other, it.name);
            if (cm_json_has(other, it.name) && cm_json_equal(it.value, theirs))
                continue;
            rc = leave_out(from, it.name, out, file, err);
            more = true;
            break; /* what was iterated over has changed */
        }
    }
    /* Attributes that only later files have are left out too. */
    for (cm_json_iter it = cm_json_begin(other); rc == CM_OK && cm_json_next(&it);)
        if (!cm_json_has(from, it.name) && !cm_json_has(out->names, it.name)) {
            if (cm_json_length(out->names) == 0)
                out->file = file;
            rc = cm_json_set_null(out->names, it.name, err);
        }
    return rc;
}

static int add_group(cm_emitted *e, const char *path, cm_json *attrs, cm_error *err)
{
    cm_multi_group *more = realloc(e->group, (e->ngroups + 1) * sizeof(*more));
    char *copy = cm_strdup(path, err);
    if (more != NULL)
        e->group = more;
    if (more == NULL || copy == NULL) {
        free(copy);
        cm_json_free(attrs);
        return cm_fail(err, CM_ENOMEM, "no memory for groups");
    }
    e->group[e->ngroups++] = (cm_multi_group){copy, attrs};
    return CM_OK;
}

static cm_multi_group *group_named(cm_emitted *e, const char *path)
{
    for (size_t i = 0; i < e->ngroups; i++)
        if (strcmp(e->group[i].path, path) == 0)
            return &e->group[i];
    return NULL;
}

static int see_group(cm_join *j, uint32_t file, size_t i, left_out *out, cm_digest *last,
                     cm_error *err)
{
    const char *path;
    cm_digest digest;
    cm_json *attrs = NULL;
    cm_emitted *e = j->emitted;
    int rc = cm_surveyed_group(j->survey, j->file[file], i, &path, &digest, err);
    if (rc != CM_OK)
        return rc;
    cm_multi_group *g = group_named(e, path);
    if (g != NULL && (j->options->first_attrs || (i == 0 && cm_wire_same(*last, digest))))
        return CM_OK;
    if (i == 0)
        *last = digest;
    rc = cm_survey_json(j->survey, digest, &attrs, err);
    if (rc != CM_OK)
        return rc;
    if (g == NULL)
        return add_group(e, path, attrs, err);
    size_t before = cm_json_length(g->attrs);
    rc = keep_common((cm_json *)(uintptr_t)g->attrs, attrs, out, file, err);
    /* What the first has not, or has otherwise, is known once it was left out. */
    bool differs = cm_json_length(g->attrs) != before;
    for (cm_json_iter it = cm_json_begin(attrs); !differs && cm_json_next(&it);)
        differs = cm_json_has(out->names, it.name);
    if (differs) {
        out->nfiles++;
        out->last = file;
    }
    cm_json_free(attrs);
    return rc;
}

static int say(cm_join *j, const left_out *out, cm_error *err)
{
    cm_buf names = {0};
    int rc = CM_OK;
    if (cm_json_length(out->names) == 0)
        return CM_OK;
    for (cm_json_iter it = cm_json_begin(out->names); rc == CM_OK && cm_json_next(&it);)
        rc = cm_buf_printf(&names, err, "%s%s", names.nbytes > 0 ? ", " : "", it.name);
    cm_finding *f =
        rc != CM_OK
            ? NULL
            : cm_join_find(j, CM_FINDING_ATTRIBUTE, CM_WEIGHT_NOTE, false, NULL, out->last, err,
                           "attributes that are not the same in all files are left out: %.*s",
                           (int)names.nbytes, (const char *)names.data);
    if (f != NULL) {
        free(f->file);
        f->file = cm_strdup(j->file[out->file]->path, err);
        f->nfiles = out->nfiles;
    }
    if (rc == CM_OK && (f == NULL || f->file == NULL))
        rc = CM_ENOMEM;
    cm_buf_release(&names);
    return rc;
}

/* Warnings of opening, each once, with the first file that gave it. */
static int collect_warnings(cm_join *j, cm_error *err)
{
    cm_known known = {0};
    int rc = CM_OK;
    uint64_t any;
    for (size_t i = 0; rc == CM_OK && i < j->nfiles; i++) {
        const cm_skeleton *k = j->file[i]->skeleton;
        for (size_t w = 0; rc == CM_OK && w < k->nwarnings; w++) {
            cm_digest d = cm_wire_digest(k->warning[w], strlen(k->warning[w]));
            if (cm_known_find(&known, d, &any))
                continue;
            rc = cm_known_add(&known, d, 0, err);
            if (rc == CM_OK)
                rc = cm_join_warn(j, err, "%s: %s", j->file[i]->path, k->warning[w]);
        }
    }
    cm_known_release(&known);
    return rc;
}

int cm_join_groups(cm_join *j, cm_error *err)
{
    left_out out = {.names = cm_json_object()};
    cm_digest last = {0};
    int rc = out.names == NULL ? cm_fail(err, CM_ENOMEM, "no memory for attributes") : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < j->nfiles; i++)
        for (size_t g = 0; rc == CM_OK && g < cm_surveyed_ngroups(j->file[i]); g++)
            rc = see_group(j, (uint32_t)i, g, &out, &last, err);
    if (rc == CM_OK)
        rc = say(j, &out, err);
    cm_json_free(out.names);
    return rc == CM_OK ? collect_warnings(j, err) : rc;
}
