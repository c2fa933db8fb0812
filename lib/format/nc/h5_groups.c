#include <stdlib.h>
#include <string.h>

#include "format/nc/file.h"

/*
 * Checks the groups before netCDF-C 4.9 reads them: it walks without end when a group contains
 * itself through a hard or soft link.
 */

enum {
    MAX_DEPTH = 100,
    MAX_GROUPS = 100000 /* visits; groups that share children can multiply */
};

typedef struct walker {
    struct {
        unsigned long fileno;
        haddr_t addr;
    } above[MAX_DEPTH]; /* the path from the root to the current group */
    unsigned depth;
    unsigned ngroups;
    int rc;
    cm_error *err;
} walker;

static herr_t walk_group(hid_t group, walker *w);

static herr_t stop(walker *w, int rc)
{
    w->rc = rc;
    return -1;
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *link, void *context)
{
    walker *w = context;
    H5O_info_t info;
    if (H5Oget_info_by_name2(group, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return stop(w, cm_fail(w->err, CM_EFORMAT,
                               link->type == H5L_TYPE_HARD
                                   ? "HDF5 cannot read the header of %s, which is damaged"
                                   : "the link %s leads nowhere, and netCDF-C opens no file with "
                                     "such a link",
                               name));
    if (info.type != H5O_TYPE_GROUP)
        return 0;
    for (unsigned i = 0; i < w->depth; i++)
        if (w->above[i].fileno == info.fileno && w->above[i].addr == info.addr)
            return stop(w, cm_fail(w->err, CM_EUNSUPPORTED,
                                   "group %s contains itself, which NetCDF cannot express", name));
    if (w->depth == MAX_DEPTH)
        return stop(w, cm_fail(w->err, CM_EUNSUPPORTED, "groups are nested more than %d deep at %s",
                               MAX_DEPTH, name));
    if (++w->ngroups > MAX_GROUPS)
        return stop(w, cm_fail(w->err, CM_EUNSUPPORTED, "more than %d groups", MAX_GROUPS));
    hid_t child = H5Gopen2(group, name, H5P_DEFAULT);
    if (child < 0)
        return stop(w, cm_fail(w->err, CM_EFORMAT, "group %s cannot be opened", name));
    w->above[w->depth].fileno = info.fileno;
    w->above[w->depth].addr = info.addr;
    w->depth++;
    herr_t rc = walk_group(child, w);
    w->depth--;
    H5Gclose(child);
    return rc;
}

static herr_t walk_group(hid_t group, walker *w)
{
    hsize_t at = 0;
    return H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &at, visit_link, w);
}

int cm_h5_check_groups(hid_t file, cm_error *err)
{
    walker w = {.err = err};
    H5O_info_t root;
    hid_t group = H5Gopen2(file, "/", H5P_DEFAULT);
    if (group < 0 || H5Oget_info2(group, &root, H5O_INFO_BASIC) < 0) {
        if (group >= 0)
            H5Gclose(group);
        return cm_fail(err, CM_EFORMAT, "the root group cannot be read");
    }
    w.above[0].fileno = root.fileno;
    w.above[0].addr = root.addr;
    w.depth = 1;
    herr_t rc = walk_group(group, &w);
    H5Gclose(group);
    if (rc < 0 && !w.rc)
        return cm_fail(err, CM_EFORMAT, "the groups cannot be read");
    return w.rc;
}

int cm_h5_walk_links(const cm_nc_file *file, size_t group, H5L_iterate_t visit, void *context,
                     cm_error *err)
{
    char *path = cm_asprintf(err, "/%s", file->group[group].path);
    if (path == NULL)
        return CM_ENOMEM;
    hsize_t at = 0;
    (void)H5Literate_by_name(file->h5, path, H5_INDEX_NAME, H5_ITER_NATIVE, &at, visit, context,
                             H5P_DEFAULT);
    free(path);
    return CM_OK;
}
