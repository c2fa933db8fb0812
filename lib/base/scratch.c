#include "base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

int cm_scratch_open(const char *folder, int *fd, cm_error *err)
{
    *fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*fd >= 0)
        return CM_OK;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
        return cm_fail_errno(err, errno, "%s: cannot make a scratch file", folder);
    char *path = cm_asprintf(err, "%s/.chunkmill-scratch-XXXXXX", folder);
    if (path == NULL)
        return CM_ENOMEM;
    *fd = mkostemp(path, O_CLOEXEC);
    int rc = *fd >= 0 ? CM_OK : cm_fail_errno(err, errno, "%s: cannot make a scratch file", folder);
    if (rc == CM_OK)
        unlink(path);
    free(path);
    return rc;
}
