#include <netcdf.h>
#include <stdlib.h>
#include <string.h>

#include "format/nc/file.h"

/* netCDF-C passes over datasets whose types it does not read (complex numbers,
   booleans as h5py writes them, references) without a word. */

typedef struct walker {
    cm_nc_file *file;
    const char *group; /* its path */
    int ncid;
    int rc;
    cm_error *err;
} walker;

/* A dataset that netCDF-C made for a dimension alone says so in its NAME. */
static bool is_bare_dimension(hid_t dataset)
{
    static const char text[] = "This is a netCDF dimension but not a netCDF variable";
    char found[128] = "";
    if (H5Aexists(dataset, "NAME") <= 0)
        return false;
    hid_t a = H5Aopen(dataset, "NAME", H5P_DEFAULT);
    hid_t type = a >= 0 ? H5Aget_type(a) : -1;
    /* Longer text, or text outside the attribute, is not netCDF-C's. */
    bool fits = type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
                H5Aget_storage_size(a) < sizeof found;
    bool bare = fits && H5Aread(a, type, found) >= 0 && strncmp(found, text, strlen(text)) == 0;
    if (type >= 0)
        H5Tclose(type);
    if (a >= 0)
        H5Aclose(a);
    return bare;
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *link, void *context)
{
    static const char non_coordinate[] = "_nc4_non_coord_";
    walker *w = context;
    H5O_info_t info;
    int id = 0;
    (void)link;
    bool prefixed = strncmp(name, non_coordinate, sizeof non_coordinate - 1) == 0;
    const char *bare = prefixed ? name + sizeof non_coordinate - 1 : name;
    if (nc_inq_varid(w->ncid, bare, &id) == NC_NOERR ||
        nc_inq_varid(w->ncid, name, &id) == NC_NOERR ||
        H5Oget_info_by_name2(group, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0 ||
        info.type != H5O_TYPE_DATASET)
        return 0;
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
    bool expected = dataset >= 0 && is_bare_dimension(dataset);
    if (dataset >= 0)
        H5Dclose(dataset);
    if (expected)
        return 0;
    w->rc =
        cm_nc_warn(w->file, w->err, "variable %s%s%s is left out, netCDF-C does not read its type",
                   w->group, *w->group ? "/" : "", name);
    return w->rc ? -1 : 0;
}

int cm_h5_warn_unseen(cm_nc_file *file, cm_error *err)
{
    for (size_t i = 0; i < file->ngroups && file->h5 >= 0; i++) {
        walker w = {
            .file = file, .group = file->group[i].path, .ncid = file->group_ncid[i], .err = err};
        char *path = cm_asprintf(err, "/%s", w.group);
        if (!path)
            return CM_ENOMEM;
        hsize_t at = 0;
        /* When HDF5 itself fails here, netCDF-C has already read all that it can. */
        (void)H5Literate_by_name(file->h5, path, H5_INDEX_NAME, H5_ITER_NATIVE, &at, visit_link, &w,
                                 H5P_DEFAULT);
        free(path);
        if (w.rc)
            return w.rc;
    }
    return CM_OK;
}
