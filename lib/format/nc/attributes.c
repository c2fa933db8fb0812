#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/nc/file.h"
#include "format/nc/fill.h"
#include "format/nc/types.h"

/* Where an attribute belongs and what is known of it. */
typedef struct reader {
    cm_nc_file *file;
    int ncid;
    int varid;
    cm_nc_node *node; /* NULL: a group */
    const char *where;
    bool is_scale; /* the variable is an HDF5 dimension scale */
    cm_json *attrs;
    int rc; /* of a callback that HDF5 called */
    cm_error *err;
} reader;

typedef struct attribute {
    char name[NC_MAX_NAME + 1];
    size_t nelem;
    cm_nc_type type;
} attribute;

static int failed(const reader *r, const char *name, int rc)
{
    return cm_fail(r->err, CM_EFORMAT, "%s: %s: attribute %s cannot be read: %s", r->file->path,
                   r->where, name, nc_strerror(rc));
}

/* What netCDF-C and HDF5 keep among the attributes for themselves; newer
   versions of netCDF-C hide some of these on their own. */
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

/* The type that packed numbers are decoded to follows from those of these attributes. */
static void note_packing(reader *r, const attribute *a)
{
    uint8_t nbytes = a->type.base == NC_FLOAT ? 4 : a->type.base == NC_DOUBLE ? 8 : 0;
    if (r->node && strcmp(a->name, "scale_factor") == 0)
        r->node->var.scale_nbytes = nbytes;
    if (r->node && strcmp(a->name, "add_offset") == 0)
        r->node->var.offset_nbytes = nbytes;
}

/* One value as itself, several (or none) as a list. */
static int set_numbers(reader *r, const attribute *a, const void *values)
{
    note_packing(r, a);
    if (a->nelem == 1)
        return cm_json_set(r->attrs, a->name, number(a->type.base, values, 0), r->err);
    cm_json *list = cm_json_array();
    int rc = CM_OK;
    for (size_t i = 0; i < a->nelem && list && !rc; i++)
        rc = cm_json_append(list, number(a->type.base, values, i), r->err);
    if (rc) {
        cm_json_free(list);
        return rc;
    }
    return cm_json_set(r->attrs, a->name, list, r->err);
}

static int read_values(reader *r, const attribute *a, void **out)
{
    *out = cm_calloc(a->nelem + 1, a->type.dtype.nbytes, r->err);
    if (!*out)
        return CM_ENOMEM;
    int rc = a->nelem ? nc_get_att(r->ncid, r->varid, a->name, *out) : NC_NOERR;
    if (rc) {
        free(*out);
        *out = NULL;
        return failed(r, a->name, rc);
    }
    return CM_OK;
}

static int read_strings(reader *r, const attribute *a)
{
    char **text = cm_calloc(a->nelem + 1, sizeof *text, r->err);
    if (!text)
        return CM_ENOMEM;
    int rc = a->nelem ? nc_get_att_string(r->ncid, r->varid, a->name, text) : NC_NOERR;
    if (rc) {
        free(text);
        return failed(r, a->name, rc);
    }
    cm_json *value = a->nelem == 1 ? NULL : cm_json_array();
    for (size_t i = 0; i < a->nelem && !rc; i++) {
        const char *s = text[i] ? text[i] : "";
        if (a->nelem == 1)
            value = cm_json_string(s);
        else
            rc = cm_json_append(value, cm_json_string(s), r->err);
    }
    if (rc)
        cm_json_free(value);
    else
        rc = cm_json_set(r->attrs, a->name, value, r->err);
    nc_free_string(a->nelem, text);
    free(text);
    return rc;
}

/* A NaN stands for nothing in a variable of integers.  xarray would take the text
   "NaN" of a missing_value for a fill value and turn the variable into floats. */
static bool is_nan_for_integers(const reader *r, const attribute *a, const void *values)
{
    if (!r->node || a->nelem == 0)
        return false;
    cm_kind kind = r->node->var.array.dtype.kind;
    if (kind != CM_KIND_INT && kind != CM_KIND_UINT)
        return false;
    return (a->type.base == NC_FLOAT && isnan(*(const float *)values)) ||
           (a->type.base == NC_DOUBLE && isnan(*(const double *)values));
}

static int leave_out_nan(reader *r, const attribute *a)
{
    return cm_nc_warn(r->file, r->err, "%s: %s NaN is left out, an integer cannot be NaN", r->where,
                      a->name);
}

static int read_plain(reader *r, const attribute *a)
{
    if (a->type.base == NC_STRING)
        return read_strings(r, a);
    void *values = NULL;
    int rc = read_values(r, a, &values);
    if (rc)
        return rc;
    if (a->type.base == NC_CHAR)
        rc = cm_json_set(r->attrs, a->name, text_without_nuls(values, a->nelem), r->err);
    else if (strcmp(a->name, "missing_value") == 0 && a->nelem == 1 &&
             is_nan_for_integers(r, a, values))
        rc = leave_out_nan(r, a);
    else
        rc = set_numbers(r, a, values);
    free(values);
    return rc;
}

/* A _FillValue that has not the type of its variable. */
static int convert_fill(reader *r, const attribute *a, const void *value)
{
    cm_nc_var *v = &r->node->var;
    char own[32], other[32], text[48] = "that is text";
    cm_dtype_name(&v->array.dtype, own, sizeof own);
    cm_dtype_name(&a->type.dtype, other, sizeof other);
    if (cm_dtype_is_number(&a->type.dtype))
        cm_fill_text(&a->type.dtype, value, text, sizeof text);
    if (cm_fill_convert(&a->type.dtype, value, &v->array.dtype, v->fill_value)) {
        char as[48];
        v->has_fill_value = true;
        return cm_nc_warn(r->file, r->err, "%s: _FillValue %s (%s) becomes %s (%s)", r->where, text,
                          other, cm_fill_text(&v->array.dtype, v->fill_value, as, sizeof as), own);
    }
    r->node->refusal =
        cm_asprintf(r->err, "its _FillValue %s cannot be held by its type, %s", text, own);
    return r->node->refusal ? CM_OK : CM_ENOMEM;
}

static int read_fill_text(reader *r, const attribute *a)
{
    cm_array *array = &r->node->var.array;
    char **text = cm_calloc(a->nelem, sizeof *text, r->err);
    if (!text)
        return CM_ENOMEM;
    int rc = nc_get_att_string(r->ncid, r->varid, a->name, text);
    if (rc) {
        free(text);
        return failed(r, a->name, rc);
    }
    array->fill_text = cm_strdup(text[0] ? text[0] : "", r->err);
    rc = array->fill_text ? CM_OK : CM_ENOMEM;
    nc_free_string(a->nelem, text);
    free(text);
    return rc;
}

/* _FillValue is no attribute here: it goes to the variable. */
static int read_fill(reader *r, const attribute *a)
{
    cm_nc_var *v = &r->node->var;
    if (a->nelem == 0)
        return cm_nc_warn(r->file, r->err, "%s: _FillValue is empty and left out", r->where);
    if (v->array.dtype.kind == CM_KIND_STRING && a->type.base == NC_STRING)
        return read_fill_text(r, a);
    if (v->array.dtype.kind == CM_KIND_STRING || a->type.base == NC_STRING)
        return cm_nc_warn(r->file, r->err,
                          "%s: _FillValue is left out, its type is not the variable's", r->where);
    void *values = NULL;
    int rc = read_values(r, a, &values);
    if (rc)
        return rc;
    if (a->nelem > 1)
        rc = cm_nc_warn(r->file, r->err, "%s: _FillValue has %zu values, the first is taken",
                        r->where, a->nelem);
    if (!rc && cm_dtype_equal(&a->type.dtype, &v->array.dtype)) {
        memcpy(v->fill_value, values, a->type.dtype.nbytes);
        v->has_fill_value = true;
    } else if (!rc) {
        rc = is_nan_for_integers(r, a, values) ? leave_out_nan(r, a) : convert_fill(r, a, values);
    }
    free(values);
    return rc;
}

static int read_attribute(reader *r, int i)
{
    attribute a;
    nc_type type = NC_NAT;
    int rc = nc_inq_attname(r->ncid, r->varid, i, a.name);
    if (!rc)
        rc = nc_inq_att(r->ncid, r->varid, a.name, &type, &a.nelem);
    if (rc)
        return cm_fail(r->err, CM_EFORMAT, "%s: %s: attribute %d cannot be read: %s", r->file->path,
                       r->where, i, nc_strerror(rc));
    if (cm_nc_attribute_is_hidden(a.name, r->is_scale))
        return CM_OK;
    rc = cm_nc_type_inquire(r->ncid, type, &a.type, r->err);
    if (rc)
        return rc;
    bool is_fill = r->node && strcmp(a.name, "_FillValue") == 0;
    if (is_fill && r->node->var.unsupported)
        return CM_OK;
    if (a.type.unsupported[0])
        return cm_nc_warn(r->file, r->err, "%s: attribute %s is left out, it has %s", r->where,
                          a.name, a.type.unsupported);
    return is_fill ? read_fill(r, &a) : read_plain(r, &a);
}

/*
 * HDF5 marks a dimension scale by CLASS = "DIMENSION_SCALE" (HDF5 Dimension Scale
 * Specification).
 */
static bool find_scale(const reader *r)
{
    static const char class[] = "DIMENSION_SCALE";
    nc_type type = NC_NAT;
    size_t nbytes = 0;
    char text[sizeof class + 1] = "";
    if (r->file->h5 < 0 || nc_inq_att(r->ncid, r->varid, "CLASS", &type, &nbytes) ||
        type != NC_CHAR || nbytes > sizeof class ||
        nc_get_att_text(r->ncid, r->varid, "CLASS", text))
        return false;
    return strcmp(text, class) == 0;
}

/* HDF5 attributes that netCDF-C does not show because it cannot read their types. */
static herr_t warn_unseen(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    (void)object;
    (void)info;
    reader *r = context;
    int id = 0;
    bool reserved = strcmp(name, "CLASS") == 0 || strcmp(name, "NAME") == 0;
    if (reserved || cm_nc_attribute_is_hidden(name, r->is_scale) ||
        nc_inq_attid(r->ncid, r->varid, name, &id) == NC_NOERR)
        return 0;
    r->rc =
        cm_nc_warn(r->file, r->err, "%s: attribute %s is left out, netCDF-C does not read its type",
                   r->where, name);
    return r->rc ? -1 : 0;
}

static int look_for_unseen(reader *r, const char *h5_path)
{
    if (r->file->h5 < 0 || !h5_path)
        return CM_OK;
    hid_t object = H5Oopen(r->file->h5, h5_path, H5P_DEFAULT);
    if (object < 0)
        return CM_OK;
    hsize_t at = 0;
    r->rc = CM_OK;
    /* When HDF5 itself fails here, netCDF-C has already read all that it can. */
    (void)H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &at, warn_unseen, r);
    H5Oclose(object);
    return r->rc;
}

int cm_nc_attributes_read(cm_nc_file *file, int ncid, int varid, cm_nc_node *node,
                          const char *where, const char *h5_path, cm_json **out, cm_error *err)
{
    reader r = {.file = file,
                .ncid = ncid,
                .varid = varid,
                .node = node,
                .where = where,
                .attrs = cm_json_object(),
                .err = err};
    if (!r.attrs)
        return cm_fail(err, CM_ENOMEM, "no memory for attributes");
    r.is_scale = node && find_scale(&r);
    int n = 0;
    int rc = varid == NC_GLOBAL ? nc_inq_natts(ncid, &n) : nc_inq_varnatts(ncid, varid, &n);
    if (rc)
        rc = cm_fail(err, CM_EFORMAT, "%s: %s: the attributes cannot be read: %s", file->path,
                     where, nc_strerror(rc));
    for (int i = 0; i < n && !rc; i++)
        rc = read_attribute(&r, i);
    if (!rc)
        rc = look_for_unseen(&r, h5_path);
    if (rc) {
        cm_json_free(r.attrs);
        return rc;
    }
    *out = r.attrs;
    return CM_OK;
}
