/*
 * What comes out otherwise than a reader of the source might expect: nothing is
 * left behind, or seen with other eyes, silently.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job/conflicts.h"
#include "job/rechunk.h"

enum {
    MAX_TOLD = 10 /* of the same kind */
};

/* The nodes that a warning is about. */
typedef struct finding {
    uint64_t n;
    const char *first;
} finding;

static void find(finding *f, const char *path)
{
    if (f->n++ == 0)
        f->first = path[0] != '\0' ? path : "/";
}

/* ---- attributes ---- */

static bool is_finite(const cm_json *j)
{
    double number;
    bool all = true;
    if (cm_json_is(j, CM_JSON_DOUBLE))
        return cm_json_get_double(j, &number) && isfinite(number);
    for (size_t i = 0; all && cm_json_is(j, CM_JSON_ARRAY) && i < cm_json_length(j); i++)
        all = is_finite(cm_json_at(j, i));
    for (cm_json_iter it = cm_json_begin(j); all && cm_json_next(&it);)
        all = is_finite(it.value);
    return all;
}

static int notice_attributes(cm_re_job *job, cm_error *err)
{
    finding f = {0};
    for (size_t i = 0; i < job->tree.nnodes; i++) {
        const cm_zarr_node *node = &job->tree.node[i];
        if (node->meta.is_group && cm_re_wants_group(job, node->path) &&
            !is_finite(node->meta.attrs))
            find(&f, node->path);
    }
    for (size_t i = 0; i < job->narrays; i++)
        if (!is_finite(job->array[i].node->meta.attrs))
            find(&f, job->array[i].node->path);
    if (f.n == 0)
        return CM_OK;
    return cm_re_warn(job, err,
                      "%llu arrays and groups (%s%s) have attributes that are NaN or infinite, for "
                      "which JSON has no numbers: they become text",
                      (unsigned long long)f.n, f.first, f.n > 1 ? ", ..." : "");
}

/* ---- fill values ---- */

/*
 * xarray takes every fill value of version 2 for missing data, in version 3 only
 * the attribute _FillValue (its option use_zarr_fill_value_as_mask).
 */
static int notice_fill_values(cm_re_job *job, cm_error *err)
{
    finding f = {0};
    if (job->zarr_format == job->tree.zarr_format)
        return CM_OK;
    for (size_t i = 0; i < job->narrays; i++) {
        const cm_zarr_node *node = job->array[i].node;
        if (node->meta.has_fill && !cm_json_has(node->meta.attrs, "_FillValue"))
            find(&f, node->path);
    }
    if (f.n == 0)
        return CM_OK;
    return cm_re_warn(job, err,
                      "xarray takes the fill value of Zarr format 2 for missing data, and that of "
                      "format 3 for a number: it will show that of %llu arrays (%s%s) as %s",
                      (unsigned long long)f.n, f.first, f.n > 1 ? ", ..." : "",
                      job->zarr_format == 2 ? "missing" : "a number");
}

/* ---- what is not in all metadata, or in none ---- */

/* True for what is meant: all, or the arrays that were chosen. */
static bool is_chosen(const cm_re_job *job, const char *path)
{
    bool found = job->options->variable.n == 0;
    for (size_t i = 0; i < job->narrays && !found; i++)
        found = strcmp(job->array[i].node->path, path) == 0;
    return found;
}

/* Nodes that only their folders tell of go over like the others; of what is said twice, one is taken. */
static int notice_conflicts(cm_re_job *job, cm_error *err)
{
    finding unlisted = {0};
    uint64_t told = 0;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->conflicts.n; i++) {
        const cm_zarr_conflict *c = &job->conflicts.item[i];
        if (c->kind == CM_ZARR_REORDERED || !is_chosen(job, c->path))
            continue;
        if (c->kind == CM_ZARR_UNLISTED) {
            find(&unlisted, c->path);
        } else if (told++ < MAX_TOLD) {
            char *text = cm_conflict_text(c, job->tree.zarr_format, err);
            rc = text == NULL ? CM_ENOMEM : cm_re_warn(job, err, "%s", text);
            free(text);
        }
    }
    if (rc == CM_OK && told > MAX_TOLD)
        rc = cm_re_warn(job, err,
                        "%llu more documents of the source do not agree with its consolidated "
                        "metadata, by which it is read",
                        (unsigned long long)(told - MAX_TOLD));
    if (rc == CM_OK && unlisted.n > 0)
        rc = cm_re_warn(job, err,
                        "%llu arrays and groups (%s%s) are not in the source's consolidated "
                        "metadata, by which xarray reads it: they are carried over all the same",
                        (unsigned long long)unlisted.n, unlisted.first,
                        unlisted.n > 1 ? ", ..." : "");
    return rc;
}

static int notice_foreign(cm_re_job *job, cm_error *err)
{
    const cm_zarr_tree *tree = &job->tree;
    if (tree->nforeign == 0 || job->options->variable.n > 0)
        return CM_OK;
    return cm_re_warn(job, err,
                      "%llu files of the source (%s%s) belong to no array or group and are left "
                      "behind",
                      (unsigned long long)tree->nforeign, tree->foreign,
                      tree->nforeign > 1 ? ", ..." : "");
}

int cm_re_notice(cm_re_job *job, cm_error *err)
{
    int rc = notice_attributes(job, err);
    if (rc == CM_OK)
        rc = notice_fill_values(job, err);
    if (rc == CM_OK)
        rc = notice_conflicts(job, err);
    return rc == CM_OK ? notice_foreign(job, err) : rc;
}
