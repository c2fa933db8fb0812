/*
 * Compares the metadata of every array and group with what zarr_rules.c makes of the file: names,
 * types, shapes, dimensions, fill values, attributes.
 */
#include <stdlib.h>
#include <string.h>

#include "convert/job.h"
#include "format/counted.h"

/* The text of J for a message, on the heap; never NULL but without memory. */
static char *json_text(const cm_json *j, cm_error *err)
{
    cm_buf text = {0};
    if (cm_json_write(j, false, &text, err) != CM_OK || cm_buf_append(&text, "", 1, err) != CM_OK) {
        cm_buf_release(&text);
        return NULL;
    }
    char *copy = cm_asprintf(err, "%.60s%s", (char *)text.data, text.nbytes > 61 ? "..." : "");
    cm_buf_release(&text);
    return copy;
}

static int attribute_differs(cm_job *job, const char *where, const char *name, const cm_json *want,
                             const cm_json *got, cm_error *err)
{
    char *a = json_text(want, err), *b = json_text(got, err);
    int rc = a == NULL || b == NULL
                 ? CM_ENOMEM
                 : cm_job_differ(job, err, "%s: attribute %s: %s became %s", where, name, a, b);
    free(a);
    free(b);
    return rc;
}

/* WANT as it reads once it was written: bad UTF-8 repaired, NaN as text. */
static int as_written(const cm_json *want, cm_json **out, cm_error *err)
{
    cm_buf text = {0};
    int rc = cm_json_write(want, false, &text, err);
    if (rc == CM_OK)
        rc = cm_json_parse(text.data, text.nbytes, out, err);
    cm_buf_release(&text);
    return rc;
}

static bool same_order(const cm_json *a, const cm_json *b)
{
    cm_json_iter x = cm_json_begin(a), y = cm_json_begin(b);
    while (cm_json_next(&x) && cm_json_next(&y))
        if (strcmp(x.name, y.name) != 0)
            return false;
    return true;
}

/* A window of a store lacks attributes on which its other files disagree. */
static bool is_of_part(const cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (job->var[i].window.is_part)
            return true;
    return false;
}

static int compare_written(cm_job *job, const char *where, const cm_json *want, const cm_json *got,
                           cm_error *err)
{
    bool part = is_of_part(job);
    int rc = CM_OK;
    cm_json_iter it = cm_json_begin(want);
    while (rc == CM_OK && cm_json_next(&it)) {
        if (!cm_json_has(got, it.name) && part)
            continue;
        if (!cm_json_has(got, it.name))
            rc = cm_job_differ(job, err, "%s: attribute %s is missing", where, it.name);
        else if (!cm_json_equal(it.value, cm_json_member(got, it.name)))
            rc =
                attribute_differs(job, where, it.name, it.value, cm_json_member(got, it.name), err);
    }
    bool same_names = true;
    it = cm_json_begin(got);
    while (rc == CM_OK && !part && cm_json_next(&it))
        if (!cm_json_has(want, it.name)) {
            same_names = false;
            rc = cm_job_differ(job, err, "%s: attribute %s is not in the file", where, it.name);
        }
    if (rc == CM_OK && same_names && !part && cm_json_length(want) == cm_json_length(got) &&
        !same_order(want, got))
        rc = cm_job_differ(job, err, "%s: its attributes are in another order", where);
    return rc;
}

static int compare_attributes(cm_job *job, const char *where, const cm_json *attrs,
                              const cm_json *got, cm_error *err)
{
    cm_json *want = NULL;
    int rc = as_written(attrs, &want, err);
    if (rc == CM_OK)
        rc = compare_written(job, where, want, got, err);
    cm_json_free(want);
    return rc;
}

static bool same_dimensions(const cm_zarr_meta *a, const cm_zarr_meta *b)
{
    for (unsigned j = 0; j < a->rank; j++) {
        const char *x = a->dim_name[j], *y = b->dim_name[j];
        if ((x == NULL) != (y == NULL) || (x != NULL && strcmp(x, y) != 0))
            return false;
    }
    return true;
}

static bool same_shape(const cm_job_var *v, const cm_zarr_meta *want, const cm_zarr_meta *got)
{
    bool same = got->rank == want->rank;
    for (unsigned j = 0; same && j < got->rank; j++)
        same = v->window.is_part ? v->window.at[j] + want->shape[j] <= got->shape[j]
                                 : want->shape[j] == got->shape[j];
    return same;
}

static int compare_array(cm_job *job, const cm_job_var *v, const cm_zarr_node *node, cm_error *err)
{
    const cm_zarr_meta *want = &v->doc.meta, *got = &node->meta;
    char a[CM_MAX_RANK * 21], b[CM_MAX_RANK * 21];
    int rc = CM_OK;
    if (got->is_group)
        return cm_job_differ(job, err, "%s: is a group, not an array", v->name);
    if (!same_shape(v, want, got))
        return cm_job_differ(job, err, "%s: shape %s became %s", v->name,
                             cm_shape_text(want->rank, want->shape, a, sizeof(a)),
                             cm_shape_text(got->rank, got->shape, b, sizeof(b)));
    if (!cm_dtype_equal(&want->dtype, &got->dtype))
        return cm_job_differ(job, err, "%s: type %s became %s", v->name,
                             cm_dtype_name(&want->dtype, a, sizeof(a)),
                             cm_dtype_name(&got->dtype, b, sizeof(b)));
    if (!same_dimensions(want, got))
        rc = cm_job_differ(job, err, "%s: its dimensions have other names", v->name);
    bool same_format = got->zarr_format == want->zarr_format;
    bool same_fill = want->has_fill == got->has_fill &&
                     (!want->has_fill || want->fill == NULL || got->fill == NULL ||
                      memcmp(want->fill, got->fill, want->dtype.nbytes) == 0);
    if (rc == CM_OK && same_format && !same_fill)
        rc = cm_job_differ(job, err, "%s: the fill value is another", v->name);
    return rc == CM_OK ? compare_attributes(job, v->name, want->attrs, got->attrs, err) : rc;
}

static const char *path_in_store(const cm_job *job, const cm_dataset_group *g)
{
    size_t skip = strlen(job->from.group);
    return g->path + skip + (g->path[skip] == '/');
}

static int compare_groups(cm_job *job, const cm_zarr_tree *tree, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->source->ngroups; i++) {
        const cm_dataset_group *g = &job->source->group[i];
        if (!cm_job_wants_group(job, g->path))
            continue;
        const char *path = path_in_store(job, g);
        const cm_zarr_node *node = cm_zarr_find(tree, path);
        if (node == NULL || !node->meta.is_group)
            rc = cm_job_differ(job, err, "/%s: the group is missing", path);
        else
            rc = compare_attributes(job, *path == '\0' ? "/" : path, g->attrs, node->meta.attrs,
                                    err);
    }
    return rc;
}

static bool is_group_of_file(const cm_job *job, const char *path)
{
    bool found = false;
    for (size_t i = 0; i < job->source->ngroups && !found; i++) {
        const cm_dataset_group *g = &job->source->group[i];
        found = cm_job_wants_group(job, g->path) && strcmp(path_in_store(job, g), path) == 0;
    }
    /* A name may have been given with groups in it. */
    size_t n = strlen(path);
    for (size_t i = 0; i < job->nvars && !found; i++)
        found = strncmp(job->var[i].name, path, n) == 0 && job->var[i].name[n] == '/';
    return found;
}

static bool is_expected(const cm_job *job, const char *path)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (strcmp(job->var[i].name, path) == 0)
            return true;
    return false;
}

/* Statistics that a repository has beside what they are of. */
static bool is_of_statistics(const cm_zarr_tree *tree, const char *path)
{
    for (size_t i = 0; i < tree->nnodes; i++) {
        const cm_zarr_node *node = &tree->node[i];
        const size_t n = strlen(node->path);
        if (node->meta.is_group && n > 0 && strncmp(node->path, path, n) == 0 &&
            (path[n] == '/' || path[n] == '\0') && cm_group_is_counted(node->meta.attrs))
            return true;
    }
    return false;
}

int cm_job_compare_meta(cm_job *job, const cm_zarr_tree *tree, cm_error *err)
{
    int rc = compare_groups(job, tree, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        const cm_zarr_node *node = cm_zarr_find(tree, job->var[i].name);
        rc = node == NULL ? cm_job_differ(job, err, "%s: the array is missing", job->var[i].name)
                          : compare_array(job, &job->var[i], node, err);
    }
    for (size_t i = 0; rc == CM_OK && i < tree->nnodes; i++) {
        const cm_zarr_node *node = &tree->node[i];
        if (is_of_statistics(tree, node->path))
            continue;
        if (!node->meta.is_group && !is_expected(job, node->path))
            rc = cm_job_differ(job, err, "%s: the file has no such variable", node->path);
        else if (node->meta.is_group && !is_group_of_file(job, node->path))
            rc = cm_job_differ(job, err, "/%s: the file has no such group", node->path);
    }
    return rc;
}
