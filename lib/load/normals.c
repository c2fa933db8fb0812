/* Mean and standard deviation of variables, from statistics that nc2zarr writes beside a store. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "load/run.h"

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
    double n = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < cm_json_length(counts); i++)
        if (number_at(counts, i) > 0) {
            n += number_at(counts, i);
            sum += number_at(counts, i) * number_at(means, i);
        }
    out->mean = sum / n;
    for (size_t i = 0; i < cm_json_length(counts); i++)
        if (number_at(counts, i) > 0) {
            const double off = number_at(means, i) - out->mean, std = number_at(stds, i);
            squares += number_at(counts, i) * (std * std + off * off);
        }
    out->std = cm_json_length(counts) == 1 ? number_at(stds, 0) : sqrt(squares / n);
}

static int take_all(const cm_json *attrs, const char *path, cm_load_normals *out, cm_error *err)
{
    const char *mark = cm_json_text(cm_json_member(attrs, "chunkmill"), NULL);
    const cm_json *variables = cm_json_member(attrs, "variables");
    if (mark == NULL || strcmp(mark, "statistics") != 0 || !cm_json_is(variables, CM_JSON_OBJECT))
        return cm_fail(
            err, CM_EFORMAT,
            "normalize: %s: not a group of statistics; nc2zarr writes one beside a store", path);
    out->of = cm_calloc(cm_json_length(variables) + 1, sizeof *out->of, err);
    if (out->of == NULL)
        return CM_ENOMEM;
    cm_json_iter it = cm_json_begin(variables);
    while (cm_json_next(&it)) {
        if ((out->of[out->n].variable = cm_strdup(it.name, err)) == NULL)
            return CM_ENOMEM;
        join_levels(it.value, &out->of[out->n++]);
    }
    return CM_OK;
}

int cm_load_normals_read(const char *path, cm_net *net, cm_load_normals *out, cm_error *err)
{
    const cm_dataset_options options = {.net = net, .guard = CM_GUARD_ENDS, .quick = true};
    cm_dataset *ds = NULL;
    *out = (cm_load_normals){0};
    int rc = cm_dataset_open(path, "", &options, &ds, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "normalize");
    else
        rc = take_all(ds->group[0].attrs, path, out, err);
    cm_dataset_close(ds);
    return rc;
}

void cm_load_normals_release(cm_load_normals *n)
{
    for (size_t i = 0; i < n->n; i++)
        free((void *)n->of[i].variable);
    free(n->of);
    *n = (cm_load_normals){0};
}
