#include "store/open.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fileurl.h"
#include "store/references.h"

static int open_folder(const char *path, const cm_store_options *o, cm_store **out, cm_error *err)
{
    if (o->output)
        return cm_store_open_output(path, o->create, out, err);
    if (!o->create && cm_references_are(path))
        return cm_store_open_references(path, out, err);
    if (o->io != CM_IO_PREAD)
        return cm_store_open_dir_io(path, o->io, out, err);
    return cm_store_open_dir(path, o->create, out, err);
}

int cm_store_open(const char *url, const cm_store_options *options, cm_store **out, cm_error *err)
{
    static const cm_store_options defaults;
    char *path;
    *out = NULL;
    int rc = cm_fileurl_path(url, &path, err);
    if (rc != CM_OK)
        return rc;
    rc = open_folder(path, options == NULL ? &defaults : options, out, err);
    free(path);
    return rc;
}

int cm_store_look(const char *url, const cm_store_options *options, cm_place *out, cm_error *err)
{
    struct stat st;
    char *path;
    (void)options;
    *out = CM_PLACE_NOTHING;
    int rc = cm_fileurl_path(url, &path, err);
    if (rc != CM_OK)
        return rc;
    if (stat(path, &st) == 0)
        *out = S_ISDIR(st.st_mode) || cm_references_are(path) ? CM_PLACE_FOLDER : CM_PLACE_FILE;
    else if (errno != ENOENT && errno != ENOTDIR)
        rc = cm_fail_errno(err, errno, "%s", path);
    free(path);
    return rc;
}

char *cm_store_join(const char *url, const char *node, cm_error *err)
{
    return cm_asprintf(err, "%s%s%s", url, *node != '\0' ? "/" : "", node);
}
