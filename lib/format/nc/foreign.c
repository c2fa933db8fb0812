#include <netcdf.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "format/nc/file.h"

/*
 * Datasets that netCDF-C silently skips, because it does not read unnamed types (4.9) or these
 * types at all.  Booleans and enumerations as h5py writes them become variables, read through HDF5;
 * all others are listed, and refused if they are selected.
 */

static const char non_coordinate[] = "_nc4_non_coord_";

typedef struct walker {
    cm_nc_file *file;
    size_t group;
    int rc;
    cm_error *err;
} walker;

/* True for a dataset that netCDF-C made only as a dimension: its NAME says so. */
static bool is_bare_dimension(hid_t dataset)
{
    static const char text[] = "This is a netCDF dimension but not a netCDF variable";
    char found[128] = "";
    if (H5Aexists(dataset, "NAME") <= 0)
        return false;
    hid_t a = H5Aopen(dataset, "NAME", H5P_DEFAULT);
    hid_t type = a >= 0 ? H5Aget_type(a) : -1;
    /* netCDF-C's own text is short, and of fixed length. */
    bool fits = type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
                H5Aget_storage_size(a) < sizeof found;
    bool bare = fits && H5Aread(a, type, found) >= 0 && strncmp(found, text, strlen(text)) == 0;
    if (type >= 0)
        H5Tclose(type);
    if (a >= 0)
        H5Aclose(a);
    return bare;
}

/*
 * ---- types
 * ------------------------------------------------------------------------------------
 */

static const char *name_of_class(H5T_class_t class)
{
    switch (class) {
    case H5T_COMPOUND:
        return "a compound type";
    case H5T_VLEN:
        return "sequences of variable length";
    case H5T_REFERENCE:
        return "references";
    case H5T_OPAQUE:
        return "an opaque type";
    case H5T_ARRAY:
        return "an array type";
    case H5T_BITFIELD:
        return "bit fields";
    case H5T_TIME:
        return "HDF5 times";
    case H5T_ENUM:
        return "an enumeration of no plain integers";
    default:
        return "a type that netCDF-C does not read";
    }
}

/* The integer type of an enumeration; false: it has none. */
static bool integers_of(hid_t type, cm_dtype *out)
{
    hid_t base = H5Tget_class(type) == H5T_ENUM ? H5Tget_super(type) : -1;
    size_t nbytes = base >= 0 ? H5Tget_size(base) : 0;
    if (base < 0)
        return false;
    cm_kind kind = H5Tget_sign(base) == H5T_SGN_2 ? CM_KIND_INT : CM_KIND_UINT;
    H5Tclose(base);
    if (nbytes != 1 && nbytes != 2 && nbytes != 4 && nbytes != 8)
        return false;
    *out = cm_dtype_make(kind, (uint32_t)nbytes);
    return true;
}

/*
 * Member I of an enumeration: its value in *BITS, little-endian, and its name, which HDF5 must
 * free.
 */
static char *member_of(hid_t native, unsigned i, uint64_t *bits)
{
    *bits = 0; /* the host is little-endian */
    if (H5Tget_member_value(native, i, bits) < 0)
        return NULL;
    return H5Tget_member_name(native, i);
}

/* FALSE = 0 and TRUE = 1 in a byte: h5py's form of numpy's booleans. */
static bool is_boolean(hid_t native)
{
    bool found[2] = {false, false};
    if (H5Tget_nmembers(native) != 2 || H5Tget_size(native) != 1)
        return false;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t bits;
        char *name = member_of(native, i, &bits);
        if (name != NULL && bits < 2)
            found[bits] = strcmp(name, bits ? "TRUE" : "FALSE") == 0;
        H5free_memory(name);
    }
    return found[0] && found[1];
}

static int add_flags(cm_nc_node *node, hid_t native, cm_error *err)
{
    cm_json *attrs = node->var.array.attrs;
    const cm_dtype *t = &node->var.array.dtype;
    if (cm_json_has(attrs, "flag_values") || cm_json_has(attrs, "flag_meanings"))
        return CM_OK;
    int n = H5Tget_nmembers(native), rc = CM_OK;
    cm_json *values = cm_json_array();
    cm_buf meanings;
    cm_buf_init(&meanings, 0);
    for (int i = 0; i < n && rc == CM_OK && values != NULL; i++) {
        uint64_t bits;
        char *name = member_of(native, (unsigned)i, &bits);
        unsigned unused = 64 - 8 * t->nbytes;
        for (char *c = name; c != NULL && *c; c++)
            if (*c == ' ' || *c == '\t')
                *c = '_';
        rc =
            cm_json_append(values,
                           t->kind == CM_KIND_INT ? cm_json_i64((int64_t)(bits << unused) >> unused)
                                                  : cm_json_u64(bits),
                           err);
        if (rc == CM_OK)
            rc = cm_buf_printf(&meanings, err, "%s%s", i ? " " : "",
                               name != NULL ? name : "unnamed");
        H5free_memory(name);
    }
    if (rc == CM_OK)
        rc = cm_json_set(attrs, "flag_values", values, err);
    else
        cm_json_free(values);
    if (rc == CM_OK)
        rc = cm_json_set(attrs, "flag_meanings",
                         cm_json_string_n((const char *)meanings.data, meanings.nbytes), err);
    cm_buf_release(&meanings);
    return rc;
}

/*
 * ---- dimensions
 * -------------------------------------------------------------------------------
 */

/*
 * The name of the scale that is attached to dimension J (HDF5 Dimension Scale Specification);
 * NULL: none.
 */
static char *scale_name(hid_t dataset, unsigned rank, unsigned j, cm_error *err)
{
    hvl_t list[CM_MAX_RANK];
    char path[NC_MAX_NAME + 256] = "", *out = NULL;
    if (rank == 0 || H5Aexists(dataset, "DIMENSION_LIST") <= 0)
        return NULL;
    hid_t a = H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT);
    hid_t space = a >= 0 ? H5Aget_space(a) : -1;
    hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ);
    bool good = space >= 0 && type >= 0 && H5Sget_simple_extent_npoints(space) == (hssize_t)rank &&
                H5Aread(a, type, list) >= 0;
    if (good && list[j].len > 0) {
        hid_t scale = H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, list[j].p);
        if (scale >= 0 && H5Iget_name(scale, path, sizeof path) > 0) {
            const char *last = cm_path_last(path);
            size_t n = sizeof non_coordinate - 1;
            out = cm_strdup(strncmp(last, non_coordinate, n) == 0 ? last + n : last, err);
        }
        if (scale >= 0)
            H5Oclose(scale);
    }
    if (good)
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, list);
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    if (a >= 0)
        H5Aclose(a);
    return out;
}

/*
 * Without a scale: a dimension of that length that netCDF-C made up for this group, or a new one in
 * its manner, so that equal lengths have equal names.
 */
static char *made_up_name(const walker *w, const cm_array *a, unsigned j, cm_error *err)
{
    const cm_nc_group *g = &w->file->group[w->group];
    for (size_t k = 0; k < g->ndims; k++) {
        bool used =
            strncmp(g->dim[k].name, "phony_dim_", 10) != 0 || g->dim[k].length != a->shape[j];
        for (unsigned i = 0; i < j && !used; i++)
            used = strcmp(a->dim_name[i], g->dim[k].name) == 0;
        if (!used)
            return cm_strdup(g->dim[k].name, err);
    }
    unsigned before = 0; /* dimensions of the same length before this one */
    for (unsigned i = 0; i < j; i++)
        before += a->shape[i] == a->shape[j];
    return before
               ? cm_asprintf(err, "phony_dim_of_%llu_%u", (unsigned long long)a->shape[j], before)
               : cm_asprintf(err, "phony_dim_of_%llu", (unsigned long long)a->shape[j]);
}

static int set_dimensions(const walker *w, cm_nc_node *node, hid_t dataset, cm_error *err)
{
    cm_array *a = &node->var.array;
    uint64_t nbytes = a->dtype.nbytes;
    a->rank = node->dataset.rank;
    for (unsigned j = 0; j < a->rank; j++) {
        a->shape[j] = node->dataset.extent[j];
        a->dim_name[j] = scale_name(dataset, a->rank, j, err);
        if (a->dim_name[j] == NULL)
            a->dim_name[j] = made_up_name(w, a, j, err);
        if (a->dim_name[j] == NULL)
            return CM_ENOMEM;
        if (!cm_mul_u64(nbytes, a->shape[j] ? a->shape[j] : 1, &nbytes) || nbytes > INT64_MAX)
            return cm_fail(err, CM_EFORMAT, "%s: variable %s: its size does not fit 64 bits",
                           w->file->path, a->name);
    }
    return CM_OK;
}

/*
 * ---- variables
 * --------------------------------------------------------------------------------
 */

static int set_fill(cm_nc_node *node, cm_error *err)
{
    cm_array *a = &node->var.array;
    const cm_h5_dataset *d = &node->dataset;
    if (d->fill == CM_H5_FILL_UNDEFINED)
        return CM_OK;
    a->fill = cm_calloc(a->dtype.nbytes, 1, err);
    if (a->fill != NULL && d->fill == CM_H5_FILL_VALUE)
        memcpy(a->fill, d->fill_value, a->dtype.nbytes);
    return a->fill != NULL ? CM_OK : CM_ENOMEM;
}

static int refuse(cm_nc_node *node, const char *why, cm_error *err)
{
    node->var.array.dtype = cm_dtype_make(CM_KIND_RAW, 1);
    node->var.unsupported = cm_strdup(why, err);
    return node->var.unsupported != NULL ? CM_OK : CM_ENOMEM;
}

/* netCDF-C pads a dataset up to the length of its unlimited dimension; here nothing does. */
static bool is_short(const walker *w, const cm_array *a)
{
    for (unsigned j = 0; j < a->rank; j++) {
        int id;
        size_t length;
        if (nc_inq_dimid(w->file->group_ncid[w->group], a->dim_name[j], &id) == NC_NOERR &&
            nc_inq_dimlen(w->file->group_ncid[w->group], id, &length) == NC_NOERR &&
            length > a->shape[j])
            return true;
    }
    return false;
}

static int read_enumeration(const walker *w, cm_nc_node *node, hid_t dataset, hid_t type,
                            cm_error *err)
{
    cm_nc_var *v = &node->var;
    hid_t native = H5Tget_native_type(type, H5T_DIR_ASCEND);
    int rc = native < 0 ? refuse(node, "a type that HDF5 cannot convert", err)
                        : cm_h5_dataset_describe(w->file->h5, node->h5_path, &v->array.dtype,
                                                 &node->dataset, err);
    if (rc == CM_OK && native >= 0 && (!node->dataset.known || node->dataset.no_elements))
        rc = refuse(node, "a dataset that HDF5 cannot describe", err);
    if (rc == CM_OK && v->unsupported == NULL)
        rc = set_dimensions(w, node, dataset, err);
    if (rc == CM_OK && v->unsupported == NULL && is_short(w, &v->array))
        rc = refuse(node, "its dataset is shorter than its unlimited dimension", err);
    char *where = rc == CM_OK ? cm_asprintf(err, "variable %s", v->array.name) : NULL;
    if (rc == CM_OK)
        rc = where != NULL ? cm_h5_attributes_read(w->file, dataset, where, v->array.attrs, err)
                           : CM_ENOMEM;
    free(where);
    if (rc == CM_OK && v->unsupported == NULL && is_boolean(native))
        v->array.dtype = cm_dtype_make(CM_KIND_BOOL, 1);
    else if (rc == CM_OK && v->unsupported == NULL)
        rc = add_flags(node, native, err);
    if (rc == CM_OK && v->unsupported == NULL)
        rc = set_fill(node, err);
    v->has_source_chunks = node->dataset.known && node->dataset.layout == H5D_CHUNKED;
    if (v->has_source_chunks)
        memcpy(v->source_chunk, node->dataset.chunk, sizeof v->source_chunk);
    if (native >= 0)
        H5Tclose(native);
    return rc;
}

static int add_node(cm_nc_file *file, cm_nc_node **out, cm_error *err)
{
    cm_nc_node *more = realloc(file->node, (file->nnodes + 1) * sizeof *more);
    if (more == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for %zu variables", file->nnodes + 1);
    file->node = more;
    *out = &more[file->nnodes++];
    **out = (cm_nc_node){.file = file, .ncid = -1, .varid = -1, .locked_dataset = -1};
    (*out)->hdf5_only = true;
    (*out)->var.array.attrs = cm_json_object();
    return (*out)->var.array.attrs != NULL ? CM_OK
                                           : cm_fail(err, CM_ENOMEM, "no memory for attributes");
}

static int add_dataset(walker *w, hid_t dataset, const char *name)
{
    cm_nc_file *file = w->file;
    cm_nc_node *node = NULL;
    const char *group = file->group[w->group].path, *slash = *group ? "/" : "";
    size_t prefix = sizeof non_coordinate - 1;
    const char *bare = strncmp(name, non_coordinate, prefix) == 0 ? name + prefix : name;
    int rc = add_node(file, &node, w->err);
    if (rc != CM_OK)
        return rc;
    node->var.array.name = cm_asprintf(w->err, "%s%s%s", group, slash, bare);
    node->h5_path = cm_asprintf(w->err, "/%s%s%s", group, slash, name);
    hid_t type = H5Dget_type(dataset);
    if (node->var.array.name == NULL || node->h5_path == NULL)
        rc = CM_ENOMEM;
    else if (type >= 0 && integers_of(type, &node->var.array.dtype))
        rc = read_enumeration(w, node, dataset, type, w->err);
    else
        rc = refuse(node, name_of_class(type >= 0 ? H5Tget_class(type) : H5T_NO_CLASS), w->err);
    if (type >= 0)
        H5Tclose(type);
    return rc;
}

/* netCDF-C lists variables whose names are too long for an inquiry, and truncates them. */
static bool is_listed(const walker *w, const char *name)
{
    const char *group = w->file->group[w->group].path;
    size_t n = strlen(group);
    for (size_t i = 0; strlen(name) >= NC_MAX_NAME && i < cm_nc_nvars(w->file); i++) {
        const char *other = cm_nc_var_at(w->file, i)->array.name;
        if (strncmp(other, group, n) == 0 &&
            strncmp(other + n + (n > 0), name, NC_MAX_NAME - 1) == 0)
            return true;
    }
    return false;
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *link, void *context)
{
    walker *w = context;
    H5O_info_t info;
    int id = 0, ncid = w->file->group_ncid[w->group];
    (void)link;
    bool prefixed = strncmp(name, non_coordinate, sizeof non_coordinate - 1) == 0;
    const char *bare = prefixed ? name + sizeof non_coordinate - 1 : name;
    if (nc_inq_varid(ncid, bare, &id) == NC_NOERR || nc_inq_varid(ncid, name, &id) == NC_NOERR ||
        is_listed(w, bare) ||
        H5Oget_info_by_name2(group, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0 ||
        info.type != H5O_TYPE_DATASET)
        return 0;
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
    if (dataset < 0)
        w->rc = cm_nc_warn(w->file, w->err, "variable %s is left out, HDF5 cannot open it", name);
    else if (!is_bare_dimension(dataset))
        w->rc = add_dataset(w, dataset, name);
    if (dataset >= 0)
        H5Dclose(dataset);
    return w->rc != CM_OK ? -1 : 0;
}

int cm_h5_add_unseen(cm_nc_file *file, cm_error *err)
{
    for (size_t i = 0; i < file->ngroups && file->h5 >= 0; i++) {
        walker w = {.file = file, .group = i, .err = err};
        /* If HDF5 fails here, netCDF-C has still read all that it can. */
        int rc = cm_h5_walk_links(file, i, visit_link, &w, err);
        if (rc != CM_OK || w.rc != CM_OK)
            return rc != CM_OK ? rc : w.rc;
    }
    return CM_OK;
}
