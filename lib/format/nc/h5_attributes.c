#include <stdlib.h>
#include <string.h>

#include "format/nc/file.h"

/*
 * Reads attributes that netCDF-C does not show through HDF5: numbers and text, by the rules of
 * nc.h.
 */

enum {
    MAX_NELEM = 65536 /* larger ones are left out: a damaged header may claim any size */
};

typedef struct reader {
    cm_nc_file *file;
    const char *where;
    cm_json *attrs;
    int rc;
    cm_error *err;
} reader;

static cm_json *integer_at(const void *values, bool is_signed, size_t i)
{
    return is_signed ? cm_json_i64(((const int64_t *)values)[i])
                     : cm_json_u64(((const uint64_t *)values)[i]);
}

static cm_json *float_at(const void *values, bool is_single, size_t i)
{
    double v = ((const double *)values)[i];
    return is_single ? cm_json_float((float)v) : cm_json_double(v);
}

static cm_json *text_at(const char *p, size_t nbytes)
{
    return cm_json_string_n(p, strnlen(p, nbytes));
}

/* VALUES as JSON; NULL: no memory. */
static cm_json *value_at(hid_t type, const void *values, size_t nbytes, bool varies, size_t i)
{
    if (H5Tget_class(type) == H5T_INTEGER)
        return integer_at(values, H5Tget_sign(type) == H5T_SGN_2, i);
    if (H5Tget_class(type) == H5T_FLOAT)
        return float_at(values, H5Tget_size(type) == sizeof(float), i);
    if (!varies)
        return text_at((const char *)values + i * nbytes, nbytes);
    const char *text = ((char *const *)values)[i];
    return cm_json_string(text != NULL ? text : "");
}

/* The type in memory, to be closed; -1: this type is not read. */
static hid_t memory_type(hid_t type)
{
    if (H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) <= 8)
        return H5Tcopy(H5Tget_sign(type) == H5T_SGN_2 ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64);
    if (H5Tget_class(type) == H5T_FLOAT && H5Tget_size(type) <= 8)
        return H5Tcopy(H5T_NATIVE_DOUBLE);
    return H5Tget_class(type) == H5T_STRING ? H5Tcopy(type) : -1;
}

/* The values of an attribute, in C order. */
typedef struct values {
    hid_t type;
    const void *data;
    size_t nbytes; /* of one; of texts of one length */
    bool varies;   /* texts of any length */
    size_t next;
    int rank;
    hsize_t shape[H5S_MAX_RANK];
} values;

/* The next values, those of dimension D and all behind it, as nested lists; NULL: no memory. */
static cm_json *list_from(values *v, int d, cm_error *err)
{
    if (d == v->rank)
        return value_at(v->type, v->data, v->nbytes, v->varies, v->next++);
    cm_json *list = cm_json_array();
    int rc = list != NULL ? CM_OK : CM_ENOMEM;
    for (hsize_t i = 0; rc == CM_OK && i < v->shape[d]; i++)
        rc = cm_json_append(list, list_from(v, d + 1, err), err);
    if (rc == CM_OK)
        return list;
    cm_json_free(list);
    return NULL;
}

/* A single value is no list, as netCDF-C has it, and no value an empty one. */
static int set(reader *r, const char *name, values *v, size_t nelem)
{
    if (nelem == 0) { /* lengths beside one of 0 may be anything */
        v->rank = 1;
        v->shape[0] = 0;
    }
    return cm_json_set(r->attrs, name, list_from(v, nelem == 1 ? v->rank : 0, r->err), r->err);
}

static int left_out(reader *r, const char *name)
{
    return cm_nc_warn(r->file, r->err, "%s: attribute %s is left out, its type is not read",
                      r->where, name);
}

static int read_one(reader *r, const char *name, hid_t a, hid_t type, hid_t space)
{
    hssize_t nelem = H5Sget_simple_extent_npoints(space);
    hid_t memory = memory_type(type);
    size_t nbytes = memory >= 0 ? H5Tget_size(memory) : 0;
    bool varies = memory >= 0 && H5Tis_variable_str(memory) > 0;
    int rc;
    if (memory < 0 || nelem < 0 || nelem > MAX_NELEM || nbytes == 0 || nbytes > MAX_NELEM) {
        rc = left_out(r, name);
    } else {
        void *data = cm_calloc((size_t)nelem + 1, nbytes, r->err);
        values v = {.type = type, .data = data, .nbytes = nbytes, .varies = varies};
        v.rank = H5Sget_simple_extent_dims(space, v.shape, NULL);
        rc = data == NULL ? CM_ENOMEM
             : v.rank < 0 || (nelem > 0 && H5Aread(a, memory, data) < 0)
                 ? left_out(r, name)
                 : set(r, name, &v, (size_t)nelem);
        if (data != NULL && varies && nelem > 0)
            H5Dvlen_reclaim(memory, space, H5P_DEFAULT, data);
        free(data);
    }
    if (memory >= 0)
        H5Tclose(memory);
    return rc;
}

static herr_t visit(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    reader *r = context;
    (void)info;
    if (cm_nc_attribute_is_hidden(name, true))
        return 0;
    hid_t a = H5Aopen(object, name, H5P_DEFAULT);
    hid_t type = a >= 0 ? H5Aget_type(a) : -1;
    hid_t space = a >= 0 ? H5Aget_space(a) : -1;
    /* Leave _FillValue out: in an enumeration it would have to be one of the members. */
    r->rc = type < 0 || space < 0 || strcmp(name, "_FillValue") == 0
                ? left_out(r, name)
                : read_one(r, name, a, type, space);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (a >= 0)
        H5Aclose(a);
    return r->rc != CM_OK ? -1 : 0;
}

int cm_h5_attributes_read(cm_nc_file *file, hid_t object, const char *where, cm_json *attrs,
                          cm_error *err)
{
    reader r = {.file = file, .where = where, .attrs = attrs, .err = err};
    hsize_t at = 0;
    /* In the order of creation, if the object tracks it. */
    if (H5Aiterate2(object, H5_INDEX_CRT_ORDER, H5_ITER_INC, &at, visit, &r) >= 0 || r.rc)
        return r.rc;
    at = 0;
    if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, visit, &r) < 0 && !r.rc)
        return cm_fail(err, CM_EFORMAT, "%s: %s: its attributes cannot be read", file->path, where);
    return r.rc;
}
