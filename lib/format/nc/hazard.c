#include <netcdf.h>
#include <stdlib.h>
#include <string.h>

#include "format/nc/file.h"

/* State of the walk over the links of a group. */
typedef struct walker {
    int ncid;
    int nvars;
    int only; /* a variable; -1: all */
    const char *(*find_reason)(hid_t dataset);
    cm_nc_hazard *hazard; /* by variable */
    int rc;
    cm_error *err;
} walker;

/* True for floats other than float and double, which netCDF-C takes for text. */
static bool is_other_float(hid_t type)
{
    hid_t native = H5Tget_native_type(type, H5T_DIR_DEFAULT);
    bool other = native >= 0 && H5Tequal(native, H5T_NATIVE_FLOAT) <= 0 &&
                 H5Tequal(native, H5T_NATIVE_DOUBLE) <= 0;
    if (native >= 0)
        H5Tclose(native);
    return other;
}

/* HDF5 copies all properties for this, so only few types are checked. */
static bool has_fill(hid_t dataset)
{
    hid_t dcpl = H5Dget_create_plist(dataset);
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    bool has = dcpl >= 0 && H5Pfill_value_defined(dcpl, &defined) >= 0 &&
               defined == H5D_FILL_VALUE_USER_DEFINED;
    if (dcpl >= 0)
        H5Pclose(dcpl);
    return has;
}

/*
 * For the fill value of a string netCDF-C (up to and including 4.10.1) allocates a pointer, lets
 * HDF5 write there, and frees what the pointer then points to.  For strings of fixed length HDF5
 * writes the characters, for floats that netCDF-C takes for text the number (get_fill_info in
 * hdf5open.c).
 */
static const char *reason_of(hid_t dataset, hid_t type)
{
    H5T_class_t class = H5Tget_class(type);
    if (class == H5T_STRING && H5Tget_size(type) > 1 && H5Tis_variable_str(type) == 0 &&
        has_fill(dataset))
        return "strings of one length with a fill value (netCDF-C crashes on it)";
    if (class != H5T_FLOAT || !is_other_float(type))
        return NULL;
    if (H5Tget_size(type) > CM_H5_SMALL_FLOAT_NBYTES)
        return "a floating-point type of more than 64 bits";
    return has_fill(dataset) ? "floats of 16 bits with a fill value (netCDF-C crashes on it)"
                             : NULL;
}

static const char *find_reason(hid_t dataset)
{
    hid_t type = H5Dget_type(dataset);
    const char *reason = type >= 0 ? reason_of(dataset, type) : NULL;
    if (type >= 0)
        H5Tclose(type);
    return reason;
}

static herr_t find_table(hid_t dataset, const char *name, const H5A_info_t *info, void *context)
{
    (void)info;
    hid_t attribute = H5Aopen(dataset, name, H5P_DEFAULT);
    hid_t space = attribute >= 0 ? H5Aget_space(attribute) : -1;
    *(bool *)context = space >= 0 && H5Sget_simple_extent_ndims(space) > 1;
    if (space >= 0)
        H5Sclose(space);
    if (attribute >= 0)
        H5Aclose(attribute);
    return *(bool *)context;
}

static const char *find_attribute(hid_t dataset)
{
    hsize_t at = 0;
    bool found = false;
    (void)H5Aiterate2(dataset, H5_INDEX_NAME, H5_ITER_NATIVE, &at, find_table, &found);
    return found ? "an attribute of more than one dimension (netCDF-C does not read it)" : NULL;
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *link, void *context)
{
    walker *w = context;
    int varid = 0;
    (void)link;
    /* nc_inq_varid only compares names; all other inquiries would read the fill value. */
    if (nc_inq_varid(w->ncid, name, &varid) != NC_NOERR || varid < 0 || varid >= w->nvars ||
        w->hazard[varid].reason != NULL || (w->only >= 0 && varid != w->only))
        return 0;
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
    if (dataset < 0)
        return 0;
    cm_nc_hazard *h = &w->hazard[varid];
    h->reason = w->find_reason(dataset);
    H5Dclose(dataset);
    if (h->reason != NULL && (h->name = cm_strdup(name, w->err)) == NULL)
        w->rc = CM_ENOMEM;
    return w->rc != CM_OK ? -1 : 0;
}

static int walk(const cm_nc_file *file, size_t group, walker *w, cm_error *err)
{
    if (file->h5 < 0 || w->nvars == 0)
        return CM_OK;
    w->ncid = file->group_ncid[group];
    w->err = err;
    /* If HDF5 cannot walk the group, it cannot read it either, and says so later. */
    int rc = cm_h5_walk_links(file, group, visit_link, w, err);
    return rc == CM_OK ? w->rc : rc;
}

int cm_h5_find_hazards(const cm_nc_file *file, size_t group, int nvars, cm_nc_hazard *hazard,
                       cm_error *err)
{
    walker w = {.nvars = nvars, .only = -1, .find_reason = find_reason, .hazard = hazard};
    return walk(file, group, &w, err);
}

int cm_h5_explain(const cm_nc_file *file, size_t group, int nvars, int varid, cm_nc_hazard *hazard,
                  cm_error *err)
{
    walker w = {.nvars = nvars, .only = varid, .find_reason = find_attribute, .hazard = hazard};
    return walk(file, group, &w, err);
}
