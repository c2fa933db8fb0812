#include <netcdf.h>
#include <stdlib.h>
#include <string.h>

#include "format/nc/file.h"

static int failed(const cm_nc_file *file, const char *path, const char *what, int rc, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: group /%s: %s cannot be read: %s", file->path, path, what,
                   nc_strerror(rc));
}

static int add_group(cm_nc_file *file, int ncid, const char *parent, const char *name,
                     cm_error *err)
{
    const size_t n = file->ngroups;
    if (CM_GROW(file->group, n, err) != CM_OK || CM_GROW(file->group_ncid, n, err) != CM_OK)
        return CM_ENOMEM;
    file->group[n] =
        (cm_nc_group){.path = cm_asprintf(err, "%s%s%s", parent, *parent ? "/" : "", name)};
    if (file->group[n].path == NULL)
        return CM_ENOMEM;
    file->group_ncid[file->ngroups++] = ncid;
    return CM_OK;
}

/* Adds the group NCID and everything below it; the depth was bounded by cm_h5_check_groups. */
static int add_tree(cm_nc_file *file, int ncid, const char *parent, const char *name, cm_error *err)
{
    int rc = add_group(file, ncid, parent, name, err);
    if (rc != CM_OK)
        return rc;
    size_t own = file->ngroups - 1;
    int n = 0;
    rc = nc_inq_grps(ncid, &n, NULL);
    if (rc != CM_OK || n == 0)
        return rc != CM_OK ? failed(file, file->group[own].path, "its groups", rc, err) : CM_OK;
    int *child = cm_calloc((size_t)n, sizeof *child, err);
    if (child == NULL)
        return CM_ENOMEM;
    rc = nc_inq_grps(ncid, &n, child);
    if (rc != CM_OK)
        rc = failed(file, file->group[own].path, "its groups", rc, err);
    for (int i = 0; i < n && rc == CM_OK; i++) {
        char text[NC_MAX_NAME + 1] = "";
        rc = nc_inq_grpname(child[i], text);
        rc = rc != CM_OK ? failed(file, file->group[own].path, "a group's name", rc, err)
                         : add_tree(file, child[i], file->group[own].path, text, err);
    }
    free(child);
    return rc;
}

int cm_nc_dim_remember(cm_nc_file *file, int id, const cm_nc_dim *dim, cm_error *err)
{
    size_t need = (size_t)id + 1;
    if (need > file->ndims) {
        cm_nc_dim_info *more = realloc(file->dim, need * sizeof *more);
        if (more == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for %zu dimensions", need);
        memset(more + file->ndims, 0, (need - file->ndims) * sizeof *more);
        file->dim = more;
        file->ndims = need;
    }
    file->dim[id] = (cm_nc_dim_info){dim->name, dim->length, dim->unlimited};
    return CM_OK;
}

static int read_dim(cm_nc_file *file, int ncid, int id, const int *unlimited, int nunlimited,
                    cm_nc_group *group, cm_error *err)
{
    char name[NC_MAX_NAME + 1] = "";
    size_t length = 0;
    int rc = nc_inq_dim(ncid, id, name, &length);
    if (rc != CM_OK)
        return failed(file, group->path, "a dimension", rc, err);
    cm_nc_dim *dim = &group->dim[group->ndims];
    *dim = (cm_nc_dim){.name = cm_strdup(name, err), .length = length};
    if (dim->name == NULL)
        return CM_ENOMEM;
    group->ndims++;
    for (int i = 0; i < nunlimited; i++)
        dim->unlimited |= unlimited[i] == id;
    /*
     * If the file lacks the number of records, netCDF-C takes the marker of its absence for a
     * number.
     */
    if (dim->unlimited && file->classic.version)
        dim->length = file->classic.nrecords;
    return cm_nc_dim_remember(file, id, dim, err);
}

static int read_dims(cm_nc_file *file, size_t i, cm_error *err)
{
    cm_nc_group *group = &file->group[i];
    int ncid = file->group_ncid[i];
    int n = 0, nunlimited = 0;
    int rc = nc_inq_dimids(ncid, &n, NULL, 0);
    if (rc == CM_OK)
        rc = nc_inq_unlimdims(ncid, &nunlimited, NULL);
    if (rc != CM_OK)
        return failed(file, group->path, "its dimensions", rc, err);
    int *id = cm_calloc((size_t)n + (size_t)nunlimited + 1, sizeof *id, err);
    group->dim = cm_calloc((size_t)n + 1, sizeof *group->dim, err);
    if (id == NULL || group->dim == NULL) {
        free(id);
        return CM_ENOMEM;
    }
    int *unlimited = id + n;
    rc = nc_inq_dimids(ncid, &n, id, 0);
    if (rc == CM_OK && nunlimited)
        rc = nc_inq_unlimdims(ncid, &nunlimited, unlimited);
    if (rc != CM_OK)
        rc = failed(file, group->path, "its dimensions", rc, err);
    for (int k = 0; k < n && rc == CM_OK; k++)
        rc = read_dim(file, ncid, id[k], unlimited, nunlimited, group, err);
    free(id);
    return rc;
}

static int read_group_attributes(cm_nc_file *file, size_t i, cm_error *err)
{
    cm_nc_group *group = &file->group[i];
    char *where = cm_asprintf(err, "group /%s", group->path);
    char *h5_path = cm_asprintf(err, "/%s", group->path);
    int rc = where != NULL && h5_path != NULL
                 ? cm_nc_attributes_read(file, file->group_ncid[i], NC_GLOBAL, NULL, where, h5_path,
                                         &group->attrs, err)
                 : CM_ENOMEM;
    free(where);
    free(h5_path);
    return rc;
}

int cm_nc_groups_read(cm_nc_file *file, cm_error *err)
{
    int rc = add_tree(file, file->ncid, "", "", err);
    for (size_t i = 0; i < file->ngroups && rc == CM_OK; i++) {
        rc = read_dims(file, i, err);
        if (rc == CM_OK)
            rc = read_group_attributes(file, i, err);
    }
    return rc;
}
