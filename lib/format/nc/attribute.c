#include "format/nc/attribute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/missing.h"
#include "format/nc/fill.h"
#include "format/packing.h"
#include "model/convert.h"

typedef cm_nc_attributes reader;
typedef cm_nc_attribute attribute;

/*
 * Attributes that netCDF-C and HDF5 use internally; newer versions of netCDF-C hide some of them.
 */
bool cm_nc_attribute_is_hidden(const char *name, bool is_scale)
{
    static const char *const always[] = {"_NCProperties", "_Netcdf4Dimid",  "_Netcdf4Coordinates",
                                         "_nc3_strict",   "DIMENSION_LIST", "REFERENCE_LIST"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (strcmp(name, always[i]) == 0)
            return true;
    return is_scale && (strcmp(name, "CLASS") == 0 || strcmp(name, "NAME") == 0);
}

/* The text at P without NULs; bad UTF-8 is left to the JSON writer. */
static cm_json *text_without_nuls(char *text, size_t nbytes)
{
    size_t kept = 0;
    for (size_t i = 0; i < nbytes; i++)
        if (text[i])
            text[kept++] = text[i];
    return cm_json_string_n(text, kept);
}

static cm_json *number(nc_type type, const void *values, size_t i)
{
    switch (type) {
    case NC_BYTE:
        return cm_json_i64(((const signed char *)values)[i]);
    case NC_SHORT:
        return cm_json_i64(((const int16_t *)values)[i]);
    case NC_INT:
        return cm_json_i64(((const int32_t *)values)[i]);
    case NC_INT64:
        return cm_json_i64(((const int64_t *)values)[i]);
    case NC_UBYTE:
        return cm_json_u64(((const uint8_t *)values)[i]);
    case NC_USHORT:
        return cm_json_u64(((const uint16_t *)values)[i]);
    case NC_UINT:
        return cm_json_u64(((const uint32_t *)values)[i]);
    case NC_UINT64:
        return cm_json_u64(((const uint64_t *)values)[i]);
    case NC_FLOAT:
        return cm_json_float(((const float *)values)[i]);
    default:
        return cm_json_double(((const double *)values)[i]);
    }
}

/* These attributes decide the type to which packed numbers are decoded. */
static void note_packing(const reader *r, const attribute *a)
{
    uint8_t nbytes = a->type.base == NC_FLOAT ? 4 : a->type.base == NC_DOUBLE ? 8 : 0;
    if (r->node != NULL && strcmp(a->name, "scale_factor") == 0)
        r->node->var.scale_nbytes = nbytes;
    if (r->node != NULL && strcmp(a->name, "add_offset") == 0)
        r->node->var.offset_nbytes = nbytes;
}

/* One value becomes a scalar; several, or none, a list. */
static int set_numbers(const reader *r, const attribute *a, const void *values)
{
    note_packing(r, a);
    if (a->nelem == 1)
        return cm_json_set(r->attrs, a->name, number(a->type.base, values, 0), r->err);
    cm_json *list = cm_json_array();
    int rc = CM_OK;
    for (size_t i = 0; i < a->nelem && list != NULL && rc == CM_OK; i++)
        rc = cm_json_append(list, number(a->type.base, values, i), r->err);
    if (rc != CM_OK) {
        cm_json_free(list);
        return rc;
    }
    return cm_json_set(r->attrs, a->name, list, r->err);
}

static int read_values(const reader *r, const attribute *a, void **out)
{
    *out = cm_calloc(a->nelem + 1, a->type.dtype.nbytes, r->err);
    if (*out == NULL)
        return CM_ENOMEM;
    int rc = a->nelem ? r->read(r->context, a, *out, r->err) : CM_OK;
    if (rc != CM_OK) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

static int read_strings(const reader *r, const attribute *a)
{
    char **text = cm_calloc(a->nelem + 1, sizeof *text, r->err);
    if (text == NULL)
        return CM_ENOMEM;
    int rc = a->nelem ? r->read(r->context, a, text, r->err) : CM_OK;
    if (rc != CM_OK) {
        free(text);
        return rc;
    }
    cm_json *value = a->nelem == 1 ? NULL : cm_json_array();
    for (size_t i = 0; i < a->nelem && rc == CM_OK; i++) {
        const char *s = text[i] != NULL ? text[i] : "";
        if (a->nelem == 1)
            value = cm_json_string(s);
        else
            rc = cm_json_append(value, cm_json_string(s), r->err);
    }
    if (rc != CM_OK)
        cm_json_free(value);
    else
        rc = cm_json_set(r->attrs, a->name, value, r->err);
    r->free_text(a->nelem, text);
    free(text);
    return rc;
}

/*
 * A NaN matches no integer.  xarray would take the text "NaN" of a missing_value for a fill value
 * and turn the variable into floats.
 */
static bool is_nan_for_integers(const reader *r, const attribute *a, const void *values)
{
    if (r->node == NULL || a->nelem == 0)
        return false;
    cm_kind kind = r->node->var.array.dtype.kind;
    if (kind != CM_KIND_INT && kind != CM_KIND_UINT)
        return false;
    return (a->type.base == NC_FLOAT && isnan(*(const float *)values)) ||
           (a->type.base == NC_DOUBLE && isnan(*(const double *)values));
}

static int leave_out_nan(const reader *r, const attribute *a)
{
    return cm_nc_warn(r->file, r->err, "%s: %s NaN is left out, an integer cannot be NaN", r->where,
                      a->name);
}

static double real_at(const attribute *a, const void *values, size_t i)
{
    return a->type.base == NC_FLOAT    ? (double)((const float *)values)[i]
           : a->type.base == NC_DOUBLE ? ((const double *)values)[i]
                                       : 0;
}

/*
 * The finite numbers of missing_value, where there are any.  JSON has no others, and beside the
 * text of one xarray masks nothing that the list says; NaN is missing anyway.
 */
static int set_missing_value(const reader *r, const attribute *a, uint8_t *values)
{
    const size_t size = a->type.dtype.nbytes;
    attribute finite = *a;
    bool infinite = false;
    int rc = CM_OK;
    if (a->nelem == 1 && is_nan_for_integers(r, a, values))
        return leave_out_nan(r, a);
    finite.nelem = 0;
    for (size_t i = 0; i < a->nelem; i++) {
        const double x = real_at(a, values, i);
        infinite = infinite || isinf(x);
        if (isfinite(x))
            memmove(values + finite.nelem++ * size, values + i * size, size);
    }
    if (infinite)
        rc = cm_nc_warn(r->file, r->err,
                        "%s: missing_value is infinite, which JSON cannot say: readers of the "
                        "result take elements equal to it for data",
                        r->where);
    return rc == CM_OK ? set_numbers(r, finite.nelem > 0 ? &finite : a, values) : rc;
}

static int read_plain(const reader *r, const attribute *a)
{
    if (a->type.base == NC_STRING)
        return read_strings(r, a);
    void *values = NULL;
    int rc = read_values(r, a, &values);
    if (rc != CM_OK)
        return rc;
    if (a->type.base == NC_CHAR)
        rc = cm_json_set(r->attrs, a->name, text_without_nuls(values, a->nelem), r->err);
    else if (r->node != NULL && strcmp(a->name, "missing_value") == 0)
        rc = set_missing_value(r, a, values);
    else
        rc = set_numbers(r, a, values);
    free(values);
    return rc;
}

static int warn_of_converted(const reader *r, const cm_dtype *from, const void *value)
{
    const cm_nc_var *v = &r->node->var;
    char own[32], other[32], text[48], as[48];
    return cm_nc_warn(r->file, r->err, "%s: _FillValue %s (%s) becomes %s (%s)", r->where,
                      cm_fill_text(from, value, text, sizeof text),
                      cm_dtype_name(from, other, sizeof other),
                      cm_fill_text(&v->array.dtype, v->fill_value, as, sizeof as),
                      cm_dtype_name(&v->array.dtype, own, sizeof own));
}

/* No element equals such a value, so that nothing is missing: to readers of the file as well. */
static int leave_out_fill(const reader *r, const cm_dtype *from, const void *value)
{
    char own[32], other[32], text[48];
    return cm_nc_warn(r->file, r->err, "%s: _FillValue %s (%s) is left out, no %s equals it",
                      r->where, cm_fill_text(from, value, text, sizeof text),
                      cm_dtype_name(from, other, sizeof other),
                      cm_dtype_name(&r->node->var.array.dtype, own, sizeof own));
}

/*
 * Converts a _FillValue of another number type than its variable.  One with the other sign may be
 * meant by _Unsigned, which comes later perhaps.
 */
static int convert_fill(const reader *r, const attribute *a, const void *value)
{
    cm_nc_var *v = &r->node->var;
    const cm_dtype *own = &v->array.dtype, *from = &a->type.dtype;
    if (cm_fill_convert(from, value, own, v->fill_value)) {
        v->has_fill_value = true;
        return warn_of_converted(r, from, value);
    }
    r->node->odd_fill_type = *from;
    memcpy(r->node->odd_fill, value, from->nbytes);
    return CM_OK;
}

static int settle_odd_fill(const reader *r)
{
    cm_nc_var *v = &r->node->var;
    const cm_dtype *from = &r->node->odd_fill_type;
    const cm_dtype read = cm_packing_type_read(r->attrs, &v->array.dtype);
    if (from->nbytes == 0)
        return CM_OK;
    if (!cm_fill_convert(from, r->node->odd_fill, &read, v->fill_value))
        return leave_out_fill(r, from, r->node->odd_fill);
    v->has_fill_value = true;
    return warn_of_converted(r, from, r->node->odd_fill);
}

static int read_fill_text(const reader *r, const attribute *a)
{
    cm_array *array = &r->node->var.array;
    char **text = cm_calloc(a->nelem, sizeof *text, r->err);
    if (text == NULL)
        return CM_ENOMEM;
    int rc = r->read(r->context, a, text, r->err);
    if (rc != CM_OK) {
        free(text);
        return rc;
    }
    array->fill_text = cm_strdup(text[0] != NULL ? text[0] : "", r->err);
    rc = array->fill_text != NULL ? CM_OK : CM_ENOMEM;
    /* xarray masks texts by this name in a store, and opens none whose _FillValue is one. */
    if (rc == CM_OK && !cm_json_has(r->attrs, "missing_value"))
        rc = cm_json_set(r->attrs, "missing_value", cm_json_string(array->fill_text), r->err);
    r->free_text(a->nelem, text);
    free(text);
    return rc;
}

/* _FillValue is stored with the variable, not with the attributes. */
static int read_fill(const reader *r, const attribute *a)
{
    cm_nc_var *v = &r->node->var;
    if (a->nelem == 0)
        return cm_nc_warn(r->file, r->err, "%s: _FillValue is empty and left out", r->where);
    if (v->array.dtype.kind == CM_KIND_STRING && a->type.base == NC_STRING)
        return read_fill_text(r, a);
    if (!cm_dtype_equal(&a->type.dtype, &v->array.dtype) &&
        (!cm_dtype_is_number(&v->array.dtype) || !cm_dtype_is_number(&a->type.dtype)))
        return cm_nc_warn(r->file, r->err,
                          "%s: _FillValue is left out, its type is not the variable's", r->where);
    void *values = NULL;
    int rc = read_values(r, a, &values);
    if (rc != CM_OK)
        return rc;
    if (a->nelem > 1)
        rc = cm_nc_warn(r->file, r->err, "%s: _FillValue has %zu values, the first is taken",
                        r->where, a->nelem);
    if (rc == CM_OK && cm_dtype_equal(&a->type.dtype, &v->array.dtype)) {
        memcpy(v->fill_value, values, a->type.dtype.nbytes);
        v->has_fill_value = true;
    } else if (rc == CM_OK) {
        rc = is_nan_for_integers(r, a, values) ? leave_out_nan(r, a) : convert_fill(r, a, values);
    }
    free(values);
    return rc;
}

/* xarray would let missing_value take the place of _FillValue, and netCDF's readers mask both. */
static int settle_text(const reader *r)
{
    const char *fill = r->node->var.array.fill_text;
    if (fill == NULL)
        return CM_OK;
    return cm_missing_name(r->attrs, cm_json_string(fill), r->err);
}

static bool is_nan(const cm_json *value)
{
    double x;
    return cm_json_get_double(value, &x) && isnan(x);
}

/* Whether missing_value is NaN, once or several times. */
static bool misses_nan(const cm_json *attrs)
{
    const cm_json *value = cm_json_member(attrs, "missing_value");
    size_t nan = 0;
    for (size_t i = 0; i < cm_json_length(value); i++)
        nan += is_nan(cm_json_at(value, i));
    return is_nan(value) || (nan > 0 && nan == cm_json_length(value));
}

/*
 * A missing_value NaN says that packed floats keep their type when they are decoded, and as JSON's
 * text it would not: xarray takes the text for a second fill value, decodes to another type, or
 * fails, and writes no file of what it opened.  A _FillValue NaN says the same and arrives.
 */
static void settle_nan(const reader *r)
{
    cm_nc_var *v = &r->node->var;
    const cm_dtype *type = &v->array.dtype;
    if (type->kind != CM_KIND_FLOAT || !misses_nan(r->attrs) ||
        !(cm_json_has(r->attrs, "scale_factor") || cm_json_has(r->attrs, "add_offset")))
        return;
    if (!v->has_fill_value)
        v->has_fill_value = cm_element_from_double(type, NAN, v->fill_value);
    if (v->has_fill_value && isnan(cm_element_to_double(type, v->fill_value)))
        cm_json_remove(r->attrs, "missing_value");
}

int cm_nc_attributes_settle(const cm_nc_attributes *r)
{
    if (r->node == NULL || r->node->var.unsupported != NULL)
        return CM_OK;
    int rc = settle_odd_fill(r);
    if (rc == CM_OK)
        rc = settle_text(r);
    if (rc == CM_OK)
        settle_nan(r);
    return rc;
}

int cm_nc_attribute_add(const cm_nc_attributes *r, const cm_nc_attribute *a)
{
    bool is_fill = r->node != NULL && strcmp(a->name, "_FillValue") == 0;
    if (is_fill && r->node->var.unsupported != NULL)
        return CM_OK;
    if (a->type.unsupported[0])
        return cm_nc_warn(r->file, r->err, "%s: attribute %s is left out, it has %s", r->where,
                          a->name, a->type.unsupported);
    return is_fill ? read_fill(r, a) : read_plain(r, a);
}
