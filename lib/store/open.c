#include "store/open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fileurl.h"
#include "store/net/url.h"
#include "store/references.h"

static const cm_store_options defaults;

bool cm_store_url_is_remote(const char *url)
{
    return cm_url_kind_of(url) != CM_URL_LOCAL;
}

/* ---- folders ---- */

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

static int look_at_folder(const char *path, cm_place *out, cm_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0)
        *out = S_ISDIR(st.st_mode) || cm_references_are(path) ? CM_PLACE_FOLDER : CM_PLACE_FILE;
    else if (errno != ENOENT && errno != ENOTDIR)
        return cm_fail_errno(err, errno, "%s", path);
    return CM_OK;
}

/* ---- behind a network ---- */

static int check_net(const char *url, const cm_store_options *o, cm_error *err)
{
    if (o->net == NULL)
        return cm_fail(err, CM_EINVAL, "%s: only folders and files are read here", url);
    return CM_OK;
}

bool cm_store_url_is_file(const char *url)
{
    static const char *const ENDINGS[] = {".nc", ".nc3", ".nc4",  ".cdf", ".netcdf",
                                          ".h5", ".he5", ".hdf5", ".hdf"};
    size_t n = strlen(url);
    for (size_t i = 0; i < sizeof(ENDINGS) / sizeof(ENDINGS[0]); i++) {
        size_t k = strlen(ENDINGS[i]);
        if (n > k && strcasecmp(url + n - k, ENDINGS[i]) == 0)
            return true;
    }
    return false;
}

static int see_one(void *context, const char *name, bool is_prefix, cm_error *err)
{
    (void)name, (void)is_prefix, (void)err;
    *(bool *)context = true;
    return CM_ECANCELED;
}

/* An output that is there. */
static int look_at_output(const char *url, const cm_store_options *o, cm_place *out, cm_error *err)
{
    cm_store *store;
    bool any = false;
    int rc = cm_store_open_remote(url, o->net, &store, err);
    if (rc == CM_OK)
        rc = cm_store_list(store, "", see_one, &any, err);
    if (rc == CM_OK || any)
        *out = any ? CM_PLACE_FOLDER : CM_PLACE_NOTHING;
    cm_store_free(store);
    return any ? CM_OK : rc;
}

/* ---- both ---- */

int cm_store_open(const char *url, const cm_store_options *options, cm_store **out, cm_error *err)
{
    const cm_store_options *o = options == NULL ? &defaults : options;
    char *path;
    *out = NULL;
    if (cm_store_url_is_remote(url)) {
        int rc = check_net(url, o, err);
        return rc == CM_OK ? cm_store_open_remote(url, o->net, out, err) : rc;
    }
    int rc = cm_fileurl_path(url, &path, err);
    if (rc != CM_OK)
        return rc;
    rc = open_folder(path, o, out, err);
    free(path);
    return rc;
}

int cm_store_look(const char *url, const cm_store_options *options, cm_place *out, cm_error *err)
{
    const cm_store_options *o = options == NULL ? &defaults : options;
    char *path;
    *out = CM_PLACE_NOTHING;
    if (cm_store_url_is_remote(url)) {
        *out = cm_store_url_is_file(url) ? CM_PLACE_FILE : CM_PLACE_FOLDER;
        int rc = check_net(url, o, err);
        return rc == CM_OK && o->output ? look_at_output(url, o, out, err) : rc;
    }
    int rc = cm_fileurl_path(url, &path, err);
    if (rc != CM_OK)
        return rc;
    rc = look_at_folder(path, out, err);
    free(path);
    return rc;
}

char *cm_store_join(const char *url, const char *node, cm_error *err)
{
    cm_buf text = {0};
    if (cm_url_kind_of(url) != CM_URL_HTTP || *node == '\0')
        return cm_asprintf(err, "%s%s%s", url, *node != '\0' ? "/" : "", node);
    int rc = cm_buf_printf(&text, err, "%s/", url);
    if (rc == CM_OK)
        rc = cm_url_encode(&text, node, true, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&text, "", 1, err);
    if (rc == CM_OK)
        return (char *)text.data;
    cm_buf_release(&text);
    return NULL;
}
