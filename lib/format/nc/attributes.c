#include <stdlib.h>
#include <string.h>

#include "format/nc/attribute.h"
#include "model/copy.h"

/* Reads the attributes of one object. */
typedef struct reader {
    cm_nc_attributes to; /* its context points to this reader */
    int ncid;
    int varid;
    const cm_classic_attribute *odd; /* read from its place; NULL: netCDF-C finds it by its name */
    bool is_scale;                   /* the variable is an HDF5 dimension scale */
    int rc;                          /* status of an HDF5 callback */
} reader;

static int read_odd(const reader *r, const cm_nc_attribute *a, void *out, cm_error *err)
{
    const uint32_t size = a->type.dtype.nbytes;
    int rc = cm_source_read(&r->to.file->source, r->odd->begin, out, a->nelem * size, err);
    if (rc == CM_OK && cm_dtype_swap_nbytes(&a->type.dtype) > 1)
        cm_swap_bytes(out, out, a->nelem, size);
    return rc;
}

static int read_values(void *context, const cm_nc_attribute *a, void *out, cm_error *err)
{
    const reader *r = context;
    if (r->odd != NULL)
        return read_odd(r, a, out, err);
    int rc = a->type.base == NC_STRING ? nc_get_att_string(r->ncid, r->varid, a->name, out)
                                       : nc_get_att(r->ncid, r->varid, a->name, out);
    return rc == NC_NOERR ? CM_OK
                          : cm_fail(err, CM_EFORMAT, "%s: %s: attribute %s cannot be read: %s",
                                    r->to.file->path, r->to.where, a->name, nc_strerror(rc));
}

static void free_text(size_t n, char **text)
{
    (void)nc_free_string(n, text);
}

static int compare_owners(const void *key, const void *of)
{
    const cm_classic_attribute *a = key, *b = of;
    return a->var != b->var ? (a->var > b->var) - (a->var < b->var)
                            : (a->number > b->number) - (a->number < b->number);
}

/* Attribute I, where netCDF-C cannot find it: its name, of a classic file, is not UTF-8. */
static const cm_classic_attribute *find_odd(const reader *r, int i)
{
    const cm_classic_header *h = &r->to.file->classic;
    const cm_classic_attribute key = {.var = r->varid == NC_GLOBAL ? -1 : r->varid, .number = i};
    return h->nodd > 0 ? bsearch(&key, h->odd, h->nodd, sizeof *h->odd, compare_owners) : NULL;
}

static int read_attribute(reader *r, int i)
{
    char name[NC_MAX_NAME + 1];
    cm_nc_attribute a = {.name = name};
    nc_type type = NC_NAT;
    int rc = nc_inq_attname(r->ncid, r->varid, i, name);
    r->odd = find_odd(r, i);
    if (rc == CM_OK && r->odd != NULL) {
        type = r->odd->type;
        a.nelem = r->odd->nelem;
    } else if (rc == CM_OK) {
        rc = nc_inq_att(r->ncid, r->varid, name, &type, &a.nelem);
    }
    if (rc != CM_OK)
        return cm_fail(r->to.err, CM_EFORMAT, "%s: %s: attribute %d cannot be read: %s",
                       r->to.file->path, r->to.where, i, nc_strerror(rc));
    if (cm_nc_attribute_is_hidden(name, r->is_scale))
        return CM_OK;
    rc = cm_nc_type_inquire(r->ncid, type, &a.type, r->to.err);
    return rc != CM_OK ? rc : cm_nc_attribute_add(&r->to, &a);
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
    if (r->to.file->h5 < 0 || nc_inq_att(r->ncid, r->varid, "CLASS", &type, &nbytes) ||
        type != NC_CHAR || nbytes > sizeof class ||
        nc_get_att_text(r->ncid, r->varid, "CLASS", text))
        return false;
    return strcmp(text, class) == 0;
}

/* Warns of HDF5 attributes that netCDF-C does not show because it cannot read their types. */
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
    r->rc = cm_nc_warn(r->to.file, r->to.err,
                       "%s: attribute %s is left out, netCDF-C does not read its type", r->to.where,
                       name);
    return r->rc != CM_OK ? -1 : 0;
}

static int look_for_unseen(reader *r, const char *h5_path)
{
    if (r->to.file->h5 < 0 || h5_path == NULL)
        return CM_OK;
    hid_t object = H5Oopen(r->to.file->h5, h5_path, H5P_DEFAULT);
    if (object < 0)
        return CM_OK;
    hsize_t at = 0;
    r->rc = CM_OK;
    /* If HDF5 fails here, netCDF-C has still read all that it can. */
    (void)H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &at, warn_unseen, r);
    H5Oclose(object);
    return r->rc;
}

/* All of a group of which netCDF-C reads none, since one has several dimensions. */
static int read_by_hdf5(reader *r, const char *h5_path)
{
    hid_t object = H5Oopen(r->to.file->h5, h5_path, H5P_DEFAULT);
    if (object < 0)
        return cm_fail(r->to.err, CM_EFORMAT, "%s: %s: the attributes cannot be read",
                       r->to.file->path, r->to.where);
    int rc = cm_h5_attributes_read(r->to.file, object, r->to.where, r->to.attrs, r->to.err);
    H5Oclose(object);
    return rc;
}

int cm_nc_attributes_read(cm_nc_file *file, int ncid, int varid, cm_nc_node *node,
                          const char *where, const char *h5_path, cm_json **out, cm_error *err)
{
    reader r = {.to = {.file = file,
                       .node = node,
                       .where = where,
                       .attrs = cm_json_object(),
                       .read = read_values,
                       .free_text = free_text,
                       .err = err},
                .ncid = ncid,
                .varid = varid};
    r.to.context = &r;
    if (r.to.attrs == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for attributes");
    r.is_scale = node != NULL && find_scale(&r);
    int n = 0;
    int rc = varid == NC_GLOBAL ? nc_inq_natts(ncid, &n) : nc_inq_varnatts(ncid, varid, &n);
    if (rc == NC_EATTMETA && varid == NC_GLOBAL && file->h5 >= 0 && h5_path != NULL) {
        rc = read_by_hdf5(&r, h5_path);
    } else if (rc != CM_OK) {
        rc = cm_fail(err, CM_EFORMAT, "%s: %s: the attributes cannot be read: %s", file->path,
                     where, nc_strerror(rc));
    } else {
        for (int i = 0; i < n && rc == CM_OK; i++)
            rc = read_attribute(&r, i);
        if (rc == CM_OK)
            rc = look_for_unseen(&r, h5_path);
        if (rc == CM_OK)
            rc = cm_nc_attributes_settle(&r.to);
    }
    if (rc != CM_OK) {
        cm_json_free(r.to.attrs);
        return rc;
    }
    *out = r.to.attrs;
    return CM_OK;
}
