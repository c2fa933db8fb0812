/*
 * .zarray, .zgroup and .zattrs.
 *
 * "Zarr storage specification 2"; _ARRAY_DIMENSIONS is xarray's convention for
 * the names of dimensions.
 */
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"

#define DIMENSIONS CM_ZARR_V2_DIMENSIONS

/* ---- reading ---- */

/* Whether NAMES can be the names of RANK dimensions; otherwise they are an ordinary attribute. */
static bool are_dim_names(const cm_json *names, unsigned rank)
{
    if (!cm_json_is(names, CM_JSON_ARRAY) || cm_json_length(names) != rank)
        return false;
    for (unsigned i = 0; i < rank; i++) {
        const cm_json *name = cm_json_at(names, i);
        if (name != NULL && cm_json_text(name, NULL) == NULL)
            return false;
    }
    return true;
}

static int read_attrs(const cm_json *attrs, cm_zarr_meta *out, cm_error *err)
{
    if (attrs != NULL && !cm_json_is(attrs, CM_JSON_OBJECT))
        return cm_fail(err, CM_EFORMAT, "the attributes are not a JSON object");
    out->attrs = attrs != NULL ? cm_json_copy(attrs) : cm_json_object();
    if (out->attrs == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for attributes");
    if (out->is_group || !cm_json_has(attrs, DIMENSIONS))
        return CM_OK;
    const cm_json *names = cm_json_member(attrs, DIMENSIONS);
    if (!are_dim_names(names, out->rank))
        return CM_OK;
    cm_json_remove(out->attrs, DIMENSIONS);
    return cm_zarr_read_dim_names(names, out, err);
}

/* "|O": the type follows from the object codec, among the filters or the compressor. */
static int object_type(const cm_json *zarray, cm_dtype *out, cm_error *err)
{
    const cm_json *filters = cm_json_member(zarray, "filters");
    size_t n = cm_json_length(filters);
    const char *first = NULL;
    for (size_t i = 0; i <= n; i++) {
        const cm_json *j = i < n ? cm_json_at(filters, i) : cm_json_member(zarray, "compressor");
        const char *id = cm_json_text(cm_json_member(j, "id"), NULL);
        first = first != NULL ? first : id;
        if (id != NULL && strcmp(id, "vlen-utf8") == 0)
            *out = cm_dtype_make(CM_KIND_STRING, 0);
        else if (id != NULL && strcmp(id, "vlen-bytes") == 0)
            *out = cm_dtype_make(CM_KIND_VLEN_BYTES, 0);
        else
            continue;
        return CM_OK;
    }
    return cm_fail(err, CM_EUNSUPPORTED, "dtype '|O' with codec '%s' is not supported",
                   first != NULL ? first : "none");
}

static int read_type(const cm_json *j, cm_dtype *out, bool *big_endian, cm_error *err)
{
    const cm_json *dtype = cm_json_member(j, "dtype");
    *big_endian = false;
    if (cm_json_is(dtype, CM_JSON_ARRAY))
        return cm_fail(err, CM_EUNSUPPORTED, "a structured dtype is not supported");
    const char *text = cm_json_text(dtype, NULL);
    if (text == NULL)
        return cm_fail(err, CM_EFORMAT, "dtype is missing or no text");
    if (strcmp(text, "|O") == 0 || strcmp(text, "O") == 0)
        return object_type(j, out, err);
    return cm_zarr_dtype_from_v2(text, out, big_endian, err);
}

/* As zarr-python reads absent chunks of an array whose fill value is null. */
static int set_unsaid_fill(cm_zarr_meta *out, cm_error *err)
{
    const int64_t not_a_time = INT64_MIN;
    if ((out->fill = cm_calloc(out->dtype.nbytes, 1, err)) == NULL)
        return CM_ENOMEM;
    if (out->dtype.kind == CM_KIND_DATETIME || out->dtype.kind == CM_KIND_TIMEDELTA)
        memcpy(out->fill, &not_a_time, sizeof(not_a_time));
    return CM_OK;
}

static int read_type_and_codecs(const cm_json *j, cm_zarr_meta *out, cm_error *err)
{
    bool big_endian;
    int rc = read_type(j, &out->dtype, &big_endian, err);
    if (rc != CM_OK)
        return rc;
    const cm_json *fill = cm_json_member(j, "fill_value");
    out->has_fill = fill != NULL;
    if (fill != NULL)
        rc = cm_zarr_fill_from_json(fill, &out->dtype, &out->fill, &out->fill_text, err);
    else if (!cm_dtype_is_vlen(&out->dtype))
        rc = set_unsaid_fill(out, err);
    if (rc != CM_OK)
        return rc;
    return cm_zarr_codecs_from_v2(j, &out->dtype, big_endian, out->rank, &out->codecs,
                                  &out->ncodecs, err);
}

static int read_grid(const cm_json *j, cm_zarr_meta *out, cm_error *err)
{
    int rc =
        cm_zarr_read_lengths(cm_json_member(j, "shape"), "shape", 0, &out->rank, out->shape, err);
    if (rc != CM_OK)
        return rc;
    unsigned rank;
    rc = cm_zarr_read_lengths(cm_json_member(j, "chunks"), "chunks", 0, &rank, out->chunk, err);
    if (rc != CM_OK)
        return rc;
    const cm_json *member = cm_json_member(j, "dimension_separator");
    const char *separator = member != NULL ? cm_json_text(member, NULL) : ".";
    if (separator == NULL || (strcmp(separator, "/") != 0 && strcmp(separator, ".") != 0))
        return cm_fail(err, CM_EFORMAT, "dimension_separator is neither / nor .");
    out->separator = separator[0];
    return cm_zarr_check_grid(out, rank, "chunks", err);
}

static int read_node(const cm_json *j, const cm_json *attrs, cm_zarr_meta *out, cm_error *err)
{
    uint64_t format;
    if (!cm_json_is(j, CM_JSON_OBJECT))
        return cm_fail(err, CM_EFORMAT, "not an object");
    if (!cm_json_get_u64(cm_json_member(j, "zarr_format"), &format) || format != 2)
        return cm_fail(err, CM_EFORMAT, "zarr_format is not 2");
    out->zarr_format = 2;
    out->separator = '.';
    out->is_group = !cm_json_has(j, "shape") && !cm_json_has(j, "dtype");
    int rc = out->is_group ? CM_OK : read_grid(j, out, err);
    if (rc == CM_OK)
        rc = read_attrs(attrs, out, err);
    if (rc != CM_OK || out->is_group)
        return rc;
    return read_type_and_codecs(j, out, err);
}

int cm_zarr_meta_from_v2(const cm_json *j, const cm_json *attrs, cm_zarr_meta *out, cm_error *err)
{
    memset(out, 0, sizeof *out);
    return cm_zarr_keep_raw(read_node(j, attrs, out, err), j, out, err);
}

/* ---- writing ---- */

/* The attributes, the names of the dimensions first. */
static int attrs_to_json(const cm_zarr_meta *meta, cm_json **out, cm_error *err)
{
    *out = NULL;
    bool has_names = !meta->is_group && meta->has_dim_names;
    if (!has_names && cm_json_length(meta->attrs) == 0)
        return CM_OK;
    cm_json *j = cm_json_object();
    int rc = CM_OK;
    if (has_names) {
        cm_json *names;
        rc = cm_zarr_dim_names(meta, &names, err);
        if (rc == CM_OK)
            rc = cm_json_set(j, DIMENSIONS, names, err);
    }
    for (cm_json_iter it = cm_json_begin(meta->attrs); rc == CM_OK && cm_json_next(&it);) {
        if (has_names && strcmp(it.name, DIMENSIONS) == 0)
            continue;
        rc = it.value != NULL ? cm_json_set(j, it.name, cm_json_copy(it.value), err)
                              : cm_json_set_null(j, it.name, err);
    }
    if (rc != CM_OK) {
        cm_json_free(j);
        return rc;
    }
    *out = j;
    return CM_OK;
}

static int set_or_null(cm_json *j, const char *name, cm_json *value, cm_error *err)
{
    return value != NULL ? cm_json_set(j, name, value, err) : cm_json_set_null(j, name, err);
}

static int array_to_json(const cm_zarr_meta *meta, cm_json *j, cm_error *err)
{
    cm_v2_codecs codecs;
    char dtype[48];
    cm_json *fill = NULL;
    int rc =
        cm_zarr_codecs_to_v2(meta->codecs, meta->ncodecs, &meta->dtype, meta->rank, &codecs, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_zarr_dtype_to_v2(&meta->dtype, codecs.big_endian, dtype, sizeof dtype, err);
    if (rc == CM_OK && meta->has_fill)
        rc = cm_zarr_fill_to_json(&meta->dtype, meta->fill, meta->fill_text, 2, &fill, err);
    if (rc != CM_OK) {
        cm_json_free(codecs.filters);
        cm_json_free(codecs.compressor);
        return rc;
    }
    cm_zarr_set(&rc, j, "shape", cm_zarr_lengths(meta->rank, meta->shape), err);
    cm_zarr_set(&rc, j, "chunks", cm_zarr_lengths(meta->rank, meta->chunk), err);
    cm_zarr_set(&rc, j, "dtype", cm_json_string(dtype), err);
    cm_zarr_set(&rc, j, "order", cm_json_string(codecs.order_f ? "F" : "C"), err);
    cm_zarr_set(&rc, j, "dimension_separator", cm_json_string_n(&meta->separator, 1), err);
    /* These three may be null; set_or_null takes them in any case. */
    int rc1 = set_or_null(j, "fill_value", fill, err);
    int rc2 = set_or_null(j, "filters", codecs.filters, err);
    int rc3 = set_or_null(j, "compressor", codecs.compressor, err);
    return rc != CM_OK ? rc : rc1 ? rc1 : rc2 ? rc2 : rc3;
}

int cm_zarr_meta_to_v2(const cm_zarr_meta *meta, cm_json **out, cm_json **attrs, cm_error *err)
{
    *out = *attrs = NULL;
    if (meta->zarr_format != 2)
        return cm_fail(err, CM_EINTERNAL, "metadata of Zarr v%d written as v2", meta->zarr_format);
    cm_json *j = NULL;
    int rc = CM_OK;
    if (meta->verbatim) {
        j = cm_json_copy(meta->raw);
        rc = j != NULL ? CM_OK : cm_fail(err, CM_ENOMEM, "no memory for metadata");
    } else {
        j = cm_json_object();
        rc = cm_json_set(j, "zarr_format", cm_json_u64(2), err);
        if (rc == CM_OK && !meta->is_group)
            rc = array_to_json(meta, j, err);
    }
    if (rc == CM_OK)
        rc = attrs_to_json(meta, attrs, err);
    if (rc != CM_OK) {
        cm_json_free(j);
        return rc;
    }
    *out = j;
    return CM_OK;
}
