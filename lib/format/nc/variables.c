#include <inttypes.h>
#include <netcdf.h>
#include <stdlib.h>
#include <string.h>

#include "format/nc/file.h"
#include "format/nc/node.h"
#include "format/nc/types.h"

/* netCDF-C's prefix for a variable that is named like a dimension and is not its coordinate. */
static const char non_coordinate[] = "_nc4_non_coord_";

static int failed(const cm_nc_file *file, const char *name, const char *what, int rc, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: variable %s: %s cannot be read: %s", file->path, name,
                   what, nc_strerror(rc));
}

static int variables_failed(const cm_nc_file *file, size_t group, int rc, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: group /%s: its variables cannot be read: %s", file->path,
                   file->group[group].path, nc_strerror(rc));
}

static int set_unsupported(cm_nc_node *node, const char *text, cm_error *err)
{
    free(node->var.unsupported);
    node->var.unsupported = cm_strdup(text, err);
    return node->var.unsupported != NULL ? CM_OK : CM_ENOMEM;
}

/*
 * Sets the name and HDF5's path; netCDF-C gives the name with or without the prefix, depending on
 * its version.
 */
static int set_names(cm_nc_node *node, const char *group, const char *name, cm_error *err)
{
    cm_nc_file *file = node->file;
    const char *bare = name;
    if (file->h5 >= 0 && strncmp(name, non_coordinate, sizeof non_coordinate - 1) == 0)
        bare = name + sizeof non_coordinate - 1;
    const char *slash = *group ? "/" : "";
    node->var.array.name = cm_asprintf(err, "%s%s%s", group, slash, bare);
    node->var.array.place = node->file->path;
    if (node->var.array.name == NULL)
        return CM_ENOMEM;
    if (file->h5 < 0)
        return CM_OK;
    node->h5_path = cm_asprintf(err, "/%s%s%s%s", group, slash, non_coordinate, bare);
    if (node->h5_path == NULL)
        return CM_ENOMEM;
    if (H5Lexists(file->h5, node->h5_path, H5P_DEFAULT) > 0)
        return CM_OK;
    free(node->h5_path);
    node->h5_path = cm_asprintf(err, "/%s%s%s", group, slash, bare);
    return node->h5_path != NULL ? CM_OK : CM_ENOMEM;
}

static int set_shape(cm_nc_node *node, cm_error *err)
{
    int ndims = 0;
    int id[NC_MAX_VAR_DIMS];
    int rc = nc_inq_varndims(node->ncid, node->varid, &ndims);
    if (rc == CM_OK && ndims > CM_MAX_RANK) {
        char text[64];
        snprintf(text, sizeof text, "%d dimensions, more than %d", ndims, CM_MAX_RANK);
        return set_unsupported(node, text, err);
    }
    if (rc == CM_OK)
        rc = nc_inq_vardimid(node->ncid, node->varid, id);
    return rc != CM_OK ? failed(node->file, node->var.array.name, "its shape", rc, err)
                       : cm_nc_node_shape(node, id, ndims, err);
}

/*
 * Sets the value that netCDF-C gives for elements past the end of an HDF5 dataset, and for
 * unwritten elements of classic files.  nc_inq_var_fill gives it only for HDF5 datasets with a fill
 * value of their own: it leaves the value unset in no-fill mode, and in classic files copies
 * _FillValue whatever its type and length.
 */
static void set_nc_fill(cm_nc_node *node, nc_type type)
{
    const cm_nc_var *v = &node->var;
    const cm_dtype *t = &v->array.dtype;
    int no_fill = 1;
    if (t->nbytes == 0 || t->nbytes > 8)
        return;
    if (node->file->classic.version && v->has_fill_value) {
        memcpy(node->nc_fill, v->fill_value, t->nbytes);
        node->has_nc_fill = true;
    } else if (!node->file->classic.version) {
        node->has_nc_fill =
            nc_inq_var_fill(node->ncid, node->varid, &no_fill, node->nc_fill) == NC_NOERR &&
            !no_fill;
    }
    if (!node->has_nc_fill)
        node->has_nc_fill = cm_nc_default_fill(type, node->nc_fill);
}

/*
 * An enumeration in CF's attributes: flag_values and flag_meanings, with underscores for blanks in
 * names.
 */
static int add_flags(cm_nc_node *node, nc_type type, const cm_nc_type *t, cm_error *err)
{
    cm_json *attrs = node->var.array.attrs;
    if (cm_json_has(attrs, "flag_values") || cm_json_has(attrs, "flag_meanings"))
        return CM_OK;
    cm_json *values = cm_json_array();
    if (values == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for flag_values");
    cm_buf meanings;
    cm_buf_init(&meanings, 0);
    int rc = CM_OK;
    for (size_t i = 0; i < t->nmembers && rc == CM_OK; i++) {
        char name[NC_MAX_NAME + 1] = "";
        uint64_t bits = 0;
        rc = nc_inq_enum_member(node->ncid, type, (int)i, name, &bits);
        if (rc != CM_OK) {
            rc = failed(node->file, node->var.array.name, "its enumeration", rc, err);
            break;
        }
        for (char *c = name; *c; c++)
            if (*c == ' ' || *c == '\t')
                *c = '_';
        unsigned unused = 64 - 8 * t->dtype.nbytes;
        cm_json *value = t->dtype.kind == CM_KIND_INT
                             ? cm_json_i64((int64_t)(bits << unused) >> unused)
                             : cm_json_u64(bits);
        rc = cm_json_append(values, value, err);
        if (rc == CM_OK)
            rc = cm_buf_printf(&meanings, err, "%s%s", i ? " " : "", name);
    }
    if (rc != CM_OK) {
        cm_json_free(values);
    } else {
        rc = cm_json_set(attrs, "flag_values", values, err);
        if (rc == CM_OK)
            rc = cm_json_set(attrs, "flag_meanings",
                             cm_json_string_n((const char *)meanings.data, meanings.nbytes), err);
    }
    cm_buf_release(&meanings);
    return rc;
}

/* Describes the dataset; sets the type to read small floats as, which netCDF-C takes for text. */
static int describe_dataset(cm_nc_node *node, nc_type *base, cm_error *err)
{
    cm_nc_var *v = &node->var;
    if (node->file->h5 < 0 || v->unsupported != NULL)
        return CM_OK;
    int rc =
        cm_h5_dataset_describe(node->file->h5, node->h5_path, &v->array.dtype, &node->dataset, err);
    cm_h5_dataset *d = &node->dataset;
    if (rc == CM_OK && d->no_elements)
        return set_unsupported(node, "a dataspace without elements", err);
    if (d->known && d->small_float) {
        v->array.dtype = cm_dtype_make(CM_KIND_FLOAT, 4);
        *base = NC_FLOAT;
    }
    return rc;
}

static int read_variable(cm_nc_node *node, const char *group, cm_error *err)
{
    cm_nc_file *file = node->file;
    cm_nc_var *v = &node->var;
    char name[NC_MAX_NAME + 1] = "";
    nc_type type = NC_NAT;
    int rc = nc_inq_varname(node->ncid, node->varid, name);
    if (rc == CM_OK)
        rc = nc_inq_vartype(node->ncid, node->varid, &type);
    if (rc != CM_OK)
        return cm_fail(err, CM_EFORMAT, "%s: group /%s: variable %d cannot be read: %s", file->path,
                       group, node->varid, nc_strerror(rc));
    cm_nc_type t;
    if ((rc = set_names(node, group, name, err)) ||
        (rc = cm_nc_type_inquire(node->ncid, type, &t, err)))
        return rc;
    v->array.dtype = t.dtype;
    v->is_char = t.base == NC_CHAR;
    if (t.unsupported[0] && (rc = set_unsupported(node, t.unsupported, err)))
        return rc;
    if ((rc = describe_dataset(node, &t.base, err)) || (rc = set_shape(node, err)) ||
        (rc = cm_nc_node_match(node, err)))
        return rc;
    v->is_coordinate = cm_nc_node_is_coordinate(node);
    char *where = cm_asprintf(err, "variable %s", v->array.name);
    rc = where != NULL ? cm_nc_attributes_read(file, node->ncid, node->varid, node, where,
                                               node->h5_path, &v->array.attrs, err)
                       : CM_ENOMEM;
    free(where);
    if (rc == CM_OK && t.is_enum)
        rc = add_flags(node, type, &t, err);
    if (rc != CM_OK || v->unsupported != NULL)
        return rc;
    if (!cm_dtype_is_vlen(&v->array.dtype))
        set_nc_fill(node, t.base);
    return cm_nc_node_fill(node, err);
}

/* Adds a variable that netCDF-C must not be asked about: only its name is known. */
static int read_hazard(cm_nc_node *node, const char *group, const cm_nc_hazard *hazard,
                       cm_error *err)
{
    int rc = set_names(node, group, hazard->name, err);
    if (rc != CM_OK)
        return rc;
    node->var.array.dtype = cm_dtype_make(CM_KIND_STRING, 0);
    node->var.array.attrs = cm_json_object();
    if (node->var.array.attrs == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for attributes");
    return set_unsupported(node, hazard->reason, err);
}

/* Reads NODE, number VARID of NVARS, or finds out what of it netCDF-C does not read. */
static int read_or_explain(cm_nc_node *node, size_t group, int nvars, cm_nc_hazard *hazard,
                           cm_error *err)
{
    const char *path = node->file->group[group].path;
    cm_nc_hazard *h = &hazard[node->varid];
    cm_error why = {0};
    if (h->reason != NULL)
        return read_hazard(node, path, h, err);
    int rc = read_variable(node, path, &why);
    if (rc == CM_OK)
        return CM_OK;
    if (err != NULL)
        *err = why;
    if (node->var.array.name != NULL ||
        cm_h5_explain(node->file, group, nvars, node->varid, hazard, &why) != CM_OK ||
        h->reason == NULL)
        return rc;
    return read_hazard(node, path, h, err);
}

static int read_group_variables(cm_nc_file *file, size_t group, size_t most, cm_error *err)
{
    int nvars = 0;
    int rc = nc_inq_nvars(file->group_ncid[group], &nvars);
    if (rc != CM_OK)
        return variables_failed(file, group, rc, err);
    cm_nc_hazard *hazard = cm_calloc((size_t)nvars + 1, sizeof *hazard, err);
    if (hazard == NULL)
        return CM_ENOMEM;
    rc = cm_h5_find_hazards(file, group, nvars, hazard, err);
    for (int varid = 0; varid < nvars && file->nnodes < most && rc == CM_OK; varid++) {
        cm_nc_node *node = &file->node[file->nnodes++];
        node->file = file;
        node->ncid = file->group_ncid[group];
        node->varid = varid;
        node->locked_dataset = -1;
        rc = read_or_explain(node, group, nvars, hazard, err);
    }
    for (int varid = 0; varid < nvars; varid++)
        free(hazard[varid].name);
    free(hazard);
    return rc;
}

static int count_variables(const cm_nc_file *file, size_t *out, cm_error *err)
{
    *out = 0;
    for (size_t i = 0; i < file->ngroups; i++) {
        int n = 0;
        int rc = nc_inq_nvars(file->group_ncid[i], &n);
        if (rc != CM_OK)
            return variables_failed(file, i, rc, err);
        *out += (size_t)n;
    }
    return CM_OK;
}

int cm_nc_variables_read(cm_nc_file *file, cm_error *err)
{
    size_t n = 0;
    int rc = count_variables(file, &n, err);
    if (rc != CM_OK || n == 0)
        return rc;
    file->node = cm_calloc(n, sizeof *file->node, err);
    if (file->node == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < file->ngroups && rc == CM_OK; i++)
        rc = read_group_variables(file, i, n, err);
    return rc;
}
