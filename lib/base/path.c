#include "base/path.h"

#include <string.h>

const char *cm_path_last(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}
