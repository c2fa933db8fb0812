#include "format/nc/h5_virtual.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"

/*
 * The places that HDF5 tries (H5Pset_virtual_prefix): the name itself, then, in the file's folder,
 * the name or, of an absolute one, its last part.  HDF5_VDS_PREFIX is the program's affair.
 */
static int find_source(const char *folder, const char *name, bool *there, cm_error *err)
{
    *there = strcmp(name, ".") == 0 || strchr(name, '%') != NULL || access(name, F_OK) == 0;
    if (*there)
        return CM_OK;
    char *path = cm_asprintf(err, "%s/%s", folder, name[0] == '/' ? cm_path_last(name) : name);
    *there = path != NULL && access(path, F_OK) == 0;
    free(path);
    return path != NULL ? CM_OK : CM_ENOMEM;
}

static char *folder_of(hid_t file, cm_error *err)
{
    const ssize_t n = H5Fget_name(file, NULL, 0);
    char *path = cm_calloc(n > 0 ? (size_t)n + 3 : 3, 1, err);
    if (path == NULL)
        return NULL;
    memcpy(path, "./", 2);
    if (n <= 0 || H5Fget_name(file, path + 2, (size_t)n + 1) != n)
        return path;
    if (path[2] == '/')
        memmove(path, path + 2, (size_t)n + 1);
    *strrchr(path, '/') = '\0';
    return path;
}

int cm_h5_virtual_absent(hid_t file, hid_t dcpl, char **out, cm_error *err)
{
    size_t nsources = 0;
    int rc = CM_OK;
    *out = NULL;
    char *folder = folder_of(file, err);
    if (folder == NULL)
        return CM_ENOMEM;
    if (H5Pget_virtual_count(dcpl, &nsources) < 0)
        nsources = 0;
    for (size_t i = 0; rc == CM_OK && *out == NULL && i < nsources; i++) {
        const ssize_t n = H5Pget_virtual_filename(dcpl, i, NULL, 0);
        char *name = n > 0 ? cm_calloc((size_t)n + 1, 1, err) : NULL;
        bool there = true;
        if (n > 0 && name == NULL)
            rc = CM_ENOMEM;
        else if (n > 0 && H5Pget_virtual_filename(dcpl, i, name, (size_t)n + 1) == n)
            rc = find_source(folder, name, &there, err);
        if (rc == CM_OK && !there)
            *out = name;
        else
            free(name);
    }
    free(folder);
    return rc;
}
