/* Mean and standard deviation of variables, from statistics that nc2zarr writes beside a store. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/counted.h"
#include "load/run.h"
#include "options/store_path.h"

static double number_at(const cm_json *list, size_t i)
{
    double number;
    return cm_json_get_double(cm_json_at(list, i), &number) ? number : NAN;
}

/*
 * All levels as one: of so many values COUNT with MEAN and STD each.  Levels without a value have
 * null in place of numbers.
 */
static void join_levels(const cm_json *of, cm_load_normal *out)
{
    const cm_json *counts = cm_json_member(of, "count");
    const cm_json *means = cm_json_member(of, "mean"), *stds = cm_json_member(of, "std");
    cm_feed_normal *all = &out->all;
    double n = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < cm_json_length(counts); i++)
        if (number_at(counts, i) > 0) {
            n += number_at(counts, i);
            sum += number_at(counts, i) * number_at(means, i);
        }
    all->mean = sum / n;
    for (size_t i = 0; i < cm_json_length(counts); i++)
        if (number_at(counts, i) > 0) {
            const double off = number_at(means, i) - all->mean, std = number_at(stds, i);
            squares += number_at(counts, i) * (std * std + off * off);
        }
    all->std = cm_json_length(counts) == 1 ? number_at(stds, 0) : sqrt(squares / n);
}

static bool has_texts(const cm_json *list)
{
    for (size_t i = 0; i < cm_json_length(list); i++)
        if (cm_json_text(cm_json_at(list, i), NULL) != NULL)
            return true;
    return false;
}

static int take_labels(const cm_json *list, cm_load_normal *out, cm_error *err)
{
    const size_t n = cm_json_length(list);
    out->label = cm_calloc(n + 1, sizeof *out->label, err);
    if (out->label == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        size_t nbytes;
        const char *text = cm_json_text(cm_json_at(list, i), &nbytes);
        if (text != NULL && strlen(text) == nbytes &&
            (out->label[i] = cm_strdup(text, err)) == NULL)
            return CM_ENOMEM;
    }
    return CM_OK;
}

static int take_coordinates(const cm_json *list, cm_load_normal *out, cm_error *err)
{
    const size_t n = cm_json_length(list);
    out->coordinate = cm_calloc(n + 1, sizeof *out->coordinate, err);
    for (size_t i = 0; out->coordinate != NULL && i < n; i++)
        out->coordinate[i] = number_at(list, i);
    return out->coordinate != NULL ? CM_OK : CM_ENOMEM;
}

/* Of each level by itself, where there are any. */
static int take_levels(const cm_json *of, cm_load_normal *out, cm_error *err)
{
    const cm_json *means = cm_json_member(of, "mean"), *stds = cm_json_member(of, "std");
    const cm_json *coordinates = cm_json_member(of, "coordinates");
    const char *dim = cm_json_text(cm_json_member(of, "dimension"), NULL);
    const char *units = cm_json_text(cm_json_member(of, "units"), NULL);
    const size_t n = cm_json_length(means);
    if (dim == NULL)
        return CM_OK;
    out->dim = cm_strdup(dim, err);
    out->level = cm_calloc(n + 1, sizeof *out->level, err);
    if (out->dim == NULL || out->level == NULL)
        return CM_ENOMEM;
    if (units != NULL && (out->units = cm_strdup(units, err)) == NULL)
        return CM_ENOMEM;
    for (; out->nlevels < n; out->nlevels++)
        out->level[out->nlevels] =
            (cm_feed_normal){number_at(means, out->nlevels), number_at(stds, out->nlevels)};
    if (n == 0 || cm_json_length(coordinates) != n)
        return CM_OK;
    return has_texts(coordinates) ? take_labels(coordinates, out, err)
                                  : take_coordinates(coordinates, out, err);
}

static int take_all(const cm_json *attrs, const char *path, cm_load_normals *out, cm_error *err)
{
    const cm_json *variables = cm_json_member(attrs, "variables");
    if (!cm_group_is_counted(attrs) || !cm_json_is(variables, CM_JSON_OBJECT))
        return cm_fail(
            err, CM_EFORMAT,
            "normalize: %s: not a group of statistics; nc2zarr writes one beside a store", path);
    out->of = cm_calloc(cm_json_length(variables) + 1, sizeof *out->of, err);
    if (out->of == NULL)
        return CM_ENOMEM;
    cm_json_iter it = cm_json_begin(variables);
    int rc = CM_OK;
    while (rc == CM_OK && cm_json_next(&it)) {
        cm_load_normal *one = &out->of[out->n++];
        if ((one->variable = cm_strdup(it.name, err)) == NULL)
            return CM_ENOMEM;
        join_levels(it.value, one);
        rc = take_levels(it.value, one, err);
    }
    return rc;
}

/* Of the group NODE, "" for the root; NULL: there is none. */
static const cm_json *attrs_of(const cm_dataset *ds, const char *node)
{
    for (size_t i = 0; i < ds->ngroups; i++)
        if (strcmp(ds->group[i].path, node) == 0)
            return ds->group[i].attrs;
    return NULL;
}

int cm_load_normals_read(const char *path, cm_net *net, cm_load_normals *out, cm_error *err)
{
    const cm_dataset_options options = {.net = net, .guard = CM_GUARD_ENDS, .quick = true};
    cm_dataset *ds = NULL;
    cm_store_path at = {0};
    *out = (cm_load_normals){0};
    int rc = cm_store_path_split(path, &at, err);
    if (rc == CM_OK)
        rc = cm_dataset_open(at.path, "", &options, &ds, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "normalize");
    else
        rc = take_all(attrs_of(ds, at.node), path, out, err);
    cm_dataset_close(ds);
    cm_store_path_release(&at);
    return rc;
}

void cm_load_normals_release(cm_load_normals *n)
{
    for (size_t i = 0; i < n->n; i++) {
        free((void *)n->of[i].variable);
        free((void *)n->of[i].dim);
        free(n->of[i].level);
        free(n->of[i].coordinate);
        for (size_t k = 0; n->of[i].label != NULL && k < n->of[i].nlevels; k++)
            free(n->of[i].label[k]);
        free(n->of[i].label);
        free((void *)n->of[i].units);
    }
    free(n->of);
    *n = (cm_load_normals){0};
}
