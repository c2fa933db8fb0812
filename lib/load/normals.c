/* Mean and standard deviation of variables, from the statistics that nc2zarr writes beside a store. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/zarr/meta.h"
#include "load/run.h"
#include "store/open.h"

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

/* The document of the group: Zarr 3's, or the attributes of Zarr 2. */
static int read_document(cm_store *store, cm_json **out, const cm_json **attrs, cm_error *err)
{
    cm_buf text = {0};
    int rc = cm_store_get(store, "zarr.json", CM_ZARR_MAX_META_NBYTES, &text, err);
    const bool is_v3 = rc == CM_OK;
    if (rc == CM_ENOTFOUND)
        rc = cm_store_get(store, ".zattrs", CM_ZARR_MAX_META_NBYTES, &text, err);
    if (rc == CM_OK)
        rc = cm_json_parse((const char *)text.data, text.nbytes, out, err);
    if (rc == CM_OK)
        *attrs = is_v3 ? cm_json_member(*out, "attributes") : *out;
    cm_buf_release(&text);
    return rc;
}

int cm_load_normals_read(const char *path, cm_net *net, cm_load_normals *out, cm_error *err)
{
    cm_store *store = NULL;
    cm_json *document = NULL;
    const cm_json *attrs = NULL;
    *out = (cm_load_normals){0};
    int rc = cm_store_open(path, &(cm_store_options){.net = net}, &store, err);
    if (rc == CM_OK)
        rc = read_document(store, &document, &attrs, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "normalize: %s", path);
    else
        rc = take_all(attrs, path, out, err);
    cm_json_free(document);
    cm_store_free(store);
    return rc;
}

void cm_load_normals_release(cm_load_normals *n)
{
    for (size_t i = 0; i < n->n; i++)
        free((void *)n->of[i].variable);
    free(n->of);
    *n = (cm_load_normals){0};
}
