#include "store/open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/fileurl.h"
#include "base/path.h"
#include "store/net/url.h"
#include "store/references.h"
#include "store/zip.h"

static const cm_store_options defaults;

bool cm_store_url_is_remote(const char *url)
{
    return cm_url_kind_of(url) != CM_URL_LOCAL;
}

/* ---- files that are stores ---- */

/* A file that is a store: a document of references, or a zip file. */
static bool is_store_file(const char *path)
{
    char head[CM_REFERENCES_HEAD];
    size_t n;
    return cm_file_head(path, head, sizeof(head), &n) &&
           (cm_zip_begins(path, head, n) || cm_references_begin(head, n));
}

/*
 * If PATH is a file that is a store, or a node in one, sets *DOCUMENT to the file's path and
 * *NODE into PATH; otherwise *DOCUMENT stays NULL.
 */
static int find_document(const char *path, char **document, const char **node, cm_error *err)
{
    struct stat st;
    *document = NULL;
    for (size_t n = strlen(path); n > 0;) {
        char *text = cm_asprintf(err, "%.*s", (int)n, path);
        if (text == NULL)
            return CM_ENOMEM;
        bool there = stat(text, &st) == 0;
        if (there && S_ISREG(st.st_mode) && is_store_file(text)) {
            *document = text;
            *node = path + n + strspn(path + n, "/");
            return CM_OK;
        }
        free(text);
        if (there || errno != ENOTDIR)
            return CM_OK;
        while (n > 0 && path[n - 1] != '/')
            n--;
        while (n > 0 && path[n - 1] == '/')
            n--;
    }
    return CM_OK;
}

/* find_document for a URL, by its name. */
static int find_remote_document(const char *url, char **document, const char **node, cm_error *err)
{
    static const char ending[] = ".json";
    const char *found = strstr(url, ".json/");
    size_t n = found != NULL ? (size_t)(found - url) + strlen(ending) : strlen(url);
    *document = NULL;
    *node = url + n + (url[n] == '/');
    if (n <= strlen(ending) || strncasecmp(url + n - strlen(ending), ending, strlen(ending)) != 0)
        return CM_OK;
    *document = cm_asprintf(err, "%.*s", (int)n, url);
    return *document == NULL ? CM_ENOMEM : CM_OK;
}

const char *cm_icechunk_path(const char *text)
{
    static const char PREFIX[] = "icechunk:";
    const size_t n = sizeof(PREFIX) - 1;
    return text != NULL && strncmp(text, PREFIX, n) == 0 ? text + n : NULL;
}

/* True when the file NAME in the folder PATH begins with HEAD. */
static bool begins(const char *path, const char *name, const char *head)
{
    char have[16];
    size_t got = 0;
    const size_t n = strlen(head);
    char *file = cm_asprintf(NULL, "%s/%s", path, name);
    const bool is =
        file != NULL && cm_file_head(file, have, n, &got) && got == n && memcmp(have, head, n) == 0;
    free(file);
    return is;
}

bool cm_icechunk_is_folder(const char *path)
{
    return begins(path, "repo", CM_ICECHUNK_MAGIC) || begins(path, CM_ICECHUNK_MAIN, "{");
}

int cm_icechunk_check_branch(const char *path, cm_error *err)
{
    const char *at = strrchr(path, '@');
    struct stat st;
    if (at == NULL || cm_store_url_is_remote(path) || stat(path, &st) == 0)
        return CM_OK;
    char *repository = cm_asprintf(err, "%.*s", (int)(at - path), path);
    if (repository == NULL)
        return CM_ENOMEM;
    int rc = CM_OK;
    if (cm_icechunk_is_folder(repository))
        rc = cm_fail(err, CM_EINVAL,
                     "icechunk:%s: @%s is for reading; write to icechunk:%s, and `branch` names "
                     "the branch",
                     path, at + 1, repository);
    free(repository);
    return rc;
}

bool cm_store_url_needs_net(const char *url)
{
    char *path = NULL;
    struct stat st;
    bool needs = cm_store_url_is_remote(url) || cm_icechunk_path(url) != NULL;
    if (!needs && cm_fileurl_path(url, &path, NULL) == CM_OK && stat(path, &st) == 0)
        needs = S_ISDIR(st.st_mode) ? cm_icechunk_is_folder(path) : cm_references_are(path);
    free(path);
    return needs;
}

/* ---- folders ---- */

static int open_zip(const char *path, const char *node, const cm_store_options *o, cm_store **out,
                    cm_error *err)
{
    if (o->io != CM_IO_PREAD)
        return cm_fail(err, CM_EINVAL, "%s: a zip file is read by pread alone", path);
    return cm_store_open_zip(path, node, out, err);
}

static int open_folder(const char *path, const cm_store_options *o, cm_store **out, cm_error *err)
{
    char *document = NULL;
    const char *node;
    if (o->output && cm_zip_is_name(path) && cm_zip_is(path))
        return cm_fail(err, CM_EINVAL, "%s: a zip file is written once, as a whole", path);
    if (o->output)
        return cm_store_open_output(path, o->create, out, err);
    int rc = o->create ? CM_OK : find_document(path, &document, &node, err);
    if (rc != CM_OK)
        return rc;
    if (document != NULL && cm_zip_is(document))
        rc = open_zip(document, node, o, out, err);
    else if (document != NULL)
        rc = cm_store_open_references(document, node, o, out, err);
    else if (o->io != CM_IO_PREAD)
        rc = cm_store_open_dir_io(path, o->io, out, err);
    else
        rc = cm_store_open_dir(path, o->create, out, err);
    free(document);
    return rc;
}

static int look_at_folder(const char *path, cm_place *out, cm_error *err)
{
    struct stat st;
    char *document;
    const char *node;
    int rc = CM_OK;
    if (stat(path, &st) == 0) {
        *out = S_ISDIR(st.st_mode) || is_store_file(path) ? CM_PLACE_FOLDER : CM_PLACE_FILE;
    } else if (errno == ENOTDIR) {
        rc = find_document(path, &document, &node, err);
        *out = document != NULL ? CM_PLACE_FOLDER : CM_PLACE_NOTHING;
        free(document);
    } else if (errno != ENOENT) {
        rc = cm_fail_errno(err, errno, "%s", path);
    }
    return rc;
}

/* ---- behind a network ---- */

static int check_net(const char *url, const cm_store_options *o, cm_error *err)
{
    if (o->net == NULL)
        return cm_fail(err, CM_EINVAL, "%s: only folders and files are read here", url);
    return CM_OK;
}

const char *cm_store_url_read_only(const char *url)
{
    if (cm_url_kind_of(url) == CM_URL_HTTP)
        return "nothing can be written over HTTP; a bucket is s3://BUCKET/PREFIX";
    return cm_store_url_is_remote(url) && cm_url_is_google(url) ? CM_URL_GOOGLE_READ_ONLY : NULL;
}

bool cm_store_url_is_file(const char *url)
{
    return cm_path_netcdf_ending(url, strlen(url)) > 0;
}

static int see_object(void *any, const char *below, const cm_object_stat *told, cm_error *err)
{
    (void)below, (void)told, (void)err;
    *(bool *)any = true;
    return CM_ECANCELED;
}

/*
 * Looks for an existing output.  Servers with folders list empty ones too, which count as absent.
 */
static int look_at_output(const char *url, const cm_store_options *o, cm_place *out, cm_error *err)
{
    cm_store *store;
    bool any = false;
    int rc = cm_store_open_remote(url, o->net, &store, err);
    if (rc == CM_OK)
        rc = cm_store_list_below(store, "", see_object, &any, err);
    if (rc == CM_EUNSUPPORTED)
        rc = cm_store_has_any(store, "", &any, err);
    if (rc == CM_OK || any)
        *out = any ? CM_PLACE_FOLDER : CM_PLACE_NOTHING;
    cm_store_free(store);
    return any ? CM_OK : rc;
}

static int open_remote(const char *url, const cm_store_options *o, cm_store **out, cm_error *err)
{
    char *document = NULL;
    const char *node;
    if (cm_zip_is_name(url))
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: zip files are read from this machine; copy it here first", url);
    int rc = o->output ? CM_OK : find_remote_document(url, &document, &node, err);
    if (rc == CM_OK && document != NULL)
        rc = cm_store_open_references(document, node, o, out, err);
    else if (rc == CM_OK)
        rc = cm_store_open_remote(url, o->net, out, err);
    free(document);
    return rc;
}

/* ---- both ---- */

int cm_store_open(const char *url, const cm_store_options *options, cm_store **out, cm_error *err)
{
    const cm_store_options *o = options == NULL ? &defaults : options;
    char *path = NULL;
    int rc;
    *out = NULL;
    if (cm_store_url_is_remote(url)) {
        rc = check_net(url, o, err);
        if (rc == CM_OK)
            rc = open_remote(url, o, out, err);
    } else {
        rc = cm_fileurl_path(url, &path, err);
        if (rc == CM_OK)
            rc = open_folder(path, o, out, err);
    }
    free(path);
    if (rc == CM_OK)
        cm_store_set_memory(*out, o->memory);
    return rc;
}

int cm_store_probe(const char *url, const cm_store_options *options, cm_place *out, cm_error *err)
{
    const cm_store_options *o = options == NULL ? &defaults : options;
    char *path;
    *out = CM_PLACE_NOTHING;
    if (!o->output && cm_icechunk_path(url) != NULL) { /* opening will show what is there */
        *out = CM_PLACE_FOLDER;
        return CM_OK;
    }
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
