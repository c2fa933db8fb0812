/*
 * What comes out otherwise than a reader of the source might expect: nothing is
 * left behind, or seen with other eyes, silently.
 */
#include <math.h>
#include <string.h>

#include "job/rechunk.h"

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

/* ---- consolidated metadata ---- */

static bool same_shape(const cm_zarr_meta *a, const cm_zarr_meta *b)
{
    return a->is_group == b->is_group && a->rank == b->rank &&
           memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0])) == 0;
}

/* What the folders hold and consolidated metadata, by which readers go, do not. */
static int notice_unlisted(cm_re_job *job, cm_error *err)
{
    cm_zarr_tree there;
    finding missing = {0}, old = {0};
    int rc = CM_OK;
    if (!job->tree.consolidated || job->options->variable.n > 0 ||
        cm_zarr_open_folders(job->store, job->tree.zarr_format, &there, NULL) != CM_OK)
        return CM_OK;
    for (size_t i = 0; i < there.nnodes; i++) {
        const cm_zarr_node *node = &there.node[i];
        const cm_zarr_node *listed = cm_zarr_find(&job->tree, node->path);
        if (listed == NULL)
            find(&missing, node->path);
        else if (!same_shape(&listed->meta, &node->meta))
            find(&old, node->path);
    }
    if (missing.n > 0)
        rc = cm_re_warn(job, err,
                        "%llu arrays and groups (%s%s) are not in the source's consolidated "
                        "metadata and are left out; consolidate these again to have them",
                        (unsigned long long)missing.n, missing.first, missing.n > 1 ? ", ..." : "");
    if (rc == CM_OK && old.n > 0)
        rc = cm_re_warn(job, err,
                        "%llu arrays (%s%s) have another shape than the source's consolidated "
                        "metadata say, by which they are read; consolidate these again",
                        (unsigned long long)old.n, old.first, old.n > 1 ? ", ..." : "");
    cm_zarr_tree_release(&there);
    return rc;
}

int cm_re_notice(cm_re_job *job, cm_error *err)
{
    int rc = notice_attributes(job, err);
    if (rc == CM_OK)
        rc = notice_fill_values(job, err);
    return rc == CM_OK ? notice_unlisted(job, err) : rc;
}
