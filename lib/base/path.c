#include "base/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *cm_path_last(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool is_absence(int errnum)
{
    return errnum == ENOENT || errnum == ENOTDIR;
}

int cm_path_real(const char *path, char **out, cm_error *err)
{
    *out = realpath(path, NULL);
    return *out != NULL || is_absence(errno) ? CM_OK : cm_fail_errno(err, errno, "%s", path);
}

int cm_path_stat(const char *path, struct stat *out, bool *there, cm_error *err)
{
    *there = stat(path, out) == 0;
    return *there || is_absence(errno) ? CM_OK : cm_fail_errno(err, errno, "%s", path);
}

size_t cm_path_netcdf_ending(const char *name, size_t nbytes)
{
    static const char *const ENDINGS[] = {".nc", ".nc3", ".nc4",  ".cdf", ".netcdf",
                                          ".h5", ".he5", ".hdf5", ".hdf"};
    for (size_t i = 0; i < sizeof(ENDINGS) / sizeof(ENDINGS[0]); i++) {
        const size_t n = strlen(ENDINGS[i]);
        if (nbytes > n && strncasecmp(name + nbytes - n, ENDINGS[i], n) == 0)
            return n;
    }
    return 0;
}
