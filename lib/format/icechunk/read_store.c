#include "format/icechunk/read_store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fileurl.h"
#include "format/icechunk/read_impl.h"
#include "format/icechunk/version.h"
#include "store/subtree.h"

/* Of manifests that are kept: an eighth of the memory, but not less, nor more than helps. */
#define LEAST_KEPT ((uint64_t)1 << 20)
#define MOST_KEPT  ((uint64_t)64 << 20)

/* Of the file "repo", whose size grows with the number of snapshots. */
#define MOST_REPO ((uint64_t)256 << 20)

enum {
    REF_NBYTES = 640,      /* of a reference with a chunk of 512 bytes, the most that we inline */
    MANIFEST_NBYTES = 4096 /* of a manifest besides */
};

static void free_store(cm_store *store)
{
    cm_ice_store *s = cm_ice_store_of(store);
    cm_ice_outside_free(s->outside);
    cm_ice_shelf_free(s->shelf);
    cm_ice_view_release(&s->view);
    cm_store_free(s->root);
    free(s->base.name);
    free(s);
}

static const cm_store_ops ice_ops = {.read_only = "a snapshot is only read from",
                                     .free = free_store,
                                     .stat = cm_ice_stat,
                                     .identity = cm_ice_identity,
                                     .list = cm_ice_list,
                                     .list_below = cm_ice_list_below,
                                     .walk = cm_ice_walk,
                                     .open = cm_ice_object_open,
                                     .read = cm_ice_object_read,
                                     .read_many = cm_ice_read_many,
                                     .count_requests = cm_ice_count_requests,
                                     .close = cm_ice_object_close};

/* The limit for manifests that are kept: no more than all of them need. */
static uint64_t most_kept(const cm_ice_view *view, const cm_store_options *options)
{
    const uint64_t all = view->nrefs < MOST_KEPT
                             ? view->nrefs * REF_NBYTES + view->nmanifests * MANIFEST_NBYTES
                             : UINT64_MAX;
    uint64_t part = options != NULL ? options->memory / 8 : 0;
    if (options != NULL && options->index_nbytes > 0)
        part = options->index_nbytes;
    else if (part == 0 || part > MOST_KEPT)
        part = MOST_KEPT;
    else if (part < LEAST_KEPT)
        part = LEAST_KEPT;
    return part < all ? part : all;
}

static int open_snapshot(cm_ice_store *s, const char *version, const cm_store_options *options,
                         cm_error *err)
{
    uint8_t id[CM_ICE_ID];
    int rc = cm_ice_version_find(s->root, version, id, err);
    if (rc == CM_OK)
        rc = cm_ice_view_read(s->root, id, &s->view, err);
    s->base.index_nbytes = most_kept(&s->view, options);
    if (rc == CM_OK)
        rc = cm_ice_shelf_create(s->root, s->base.index_nbytes, &s->shelf, err);
    return rc == CM_OK ? cm_ice_outside_create(s->root, options != NULL ? options->net : NULL,
                                               &s->outside, err)
                       : rc;
}

static int open_root(const char *place, const cm_store_options *options, cm_store **out,
                     cm_error *err)
{
    if (!cm_store_url_is_remote(place))
        return cm_store_open(place, options, out, err);
    if (options == NULL || options->net == NULL)
        return cm_fail(err, CM_EINVAL, "%s: only folders and files are read here", place);
    int rc = cm_store_open_remote(place, options->net, out, err);
    if (rc == CM_OK)
        cm_store_set_memory(*out, options->memory);
    return rc;
}

/* Whether virtual chunks behind a network are allowed. */
static bool allows_net(const cm_store_options *options)
{
    const cm_texts *allow =
        options != NULL && options->net != NULL ? cm_net_allow(options->net) : NULL;
    for (size_t i = 0; allow != NULL && i < allow->n; i++)
        if (cm_store_url_is_remote(allow->text[i]))
            return true;
    return false;
}

int cm_ice_store_over(cm_store *root, bool is_net, const char *name, const char *version,
                      const cm_store_options *options, cm_store **out, cm_error *err)
{
    cm_ice_store *s = cm_calloc(1, sizeof(*s), err);
    *out = NULL;
    if (s == NULL) {
        cm_store_free(root);
        return CM_ENOMEM;
    }
    s->root = root;
    s->is_net = is_net;
    s->ops = ice_ops;
    s->ops.remote = is_net || allows_net(options);
    s->ops.request_nbytes = s->ops.remote ? CM_HTTP_REQUEST_NBYTES : 0;
    s->ops.reading = s->ops.remote ? &cm_ice_reading_ops : NULL;
    s->base.ops = &s->ops;
    cm_store_set_memory(&s->base, options != NULL ? options->memory : 0);
    s->base.name = cm_strdup(name, err);
    int rc = s->base.name == NULL ? CM_ENOMEM : open_snapshot(s, version, options, err);
    if (rc != CM_OK) {
        free_store(&s->base);
        return rc;
    }
    *out = &s->base;
    return CM_OK;
}

/* ---- where repositories are ---- */

/*
 * Sets *VERSION to what stands behind the last '@' of PATH, and returns the length before it: all
 * of a path that exists as it is.
 */
static size_t split_version(const char *path, const char **version)
{
    struct stat st;
    const char *at = strrchr(path, '@');
    char *file = NULL;
    *version = "main";
    const bool exists = at != NULL && !cm_store_url_is_remote(path) &&
                        cm_fileurl_path(path, &file, NULL) == CM_OK && stat(file, &st) == 0;
    free(file);
    if (at == NULL || exists)
        return strlen(path);
    *version = at + 1;
    return (size_t)(at - path);
}

const uint8_t *cm_ice_store_snapshot(const cm_store *store)
{
    return cm_ice_store_is(store) ? cm_ice_store_of(store)->view.id : NULL;
}

int cm_ice_store_chunks(const cm_store *store, char **out, cm_error *err)
{
    const cm_ice_store *s = cm_ice_store_of(store);
    struct stat st;
    *out = s->is_net ? NULL : cm_asprintf(err, "%s/chunks", cm_store_name(s->root));
    if (*out == NULL)
        return s->is_net ? CM_OK : CM_ENOMEM;
    if (stat(*out, &st) != 0 || !S_ISDIR(st.st_mode)) { /* all are in manifests, or outside */
        free(*out);
        *out = NULL;
    }
    return CM_OK;
}

char *cm_ice_repository_at(int rc, const char *url, cm_store *store)
{
    uint64_t nrequests;
    cm_buf buf = {0};
    cm_store_read read[] = {
        {.key = "repo", .nbytes = UINT64_MAX, .max_nbytes = MOST_REPO},
        {.key = CM_ICECHUNK_MAIN, .nbytes = UINT64_MAX, .max_nbytes = MOST_REPO}};
    /* Nothing is there, or a web server cannot tell what is. */
    if ((rc != CM_EFORMAT && rc != CM_EUNSUPPORTED) || !cm_store_url_is_remote(url))
        return NULL;
    const bool is = cm_store_read_many(store, read, 2, &buf, &nrequests, NULL) == CM_OK &&
                    (!read[0].absent || !read[1].absent);
    cm_buf_release(&buf);
    return is ? cm_asprintf(NULL, "icechunk:%s@main", url) : NULL;
}

/* "icechunk:...::GROUP", of which MARK is the "::": what lies below that group. */
static int open_group(const char *url, const char *mark, const cm_store_options *options,
                      cm_store **out, cm_error *err)
{
    cm_store *whole = NULL;
    char *repository = cm_asprintf(err, "%.*s", (int)(mark - url), url);
    int rc = repository == NULL ? CM_ENOMEM : cm_ice_store_open(repository, options, &whole, err);
    free(repository);
    return rc == CM_OK ? cm_store_subtree(whole, mark + 2, out, err) : rc;
}

int cm_ice_store_open(const char *url, const cm_store_options *options, cm_store **out,
                      cm_error *err)
{
    const char *path = cm_icechunk_path(url), *version = "main";
    const char *mark = path != NULL ? strstr(path, "::") : NULL;
    *out = NULL;
    if (mark != NULL)
        return open_group(url, mark, options, out, err);
    if (path == NULL && (cm_store_url_is_remote(url) || !cm_icechunk_is_folder(url)))
        return cm_store_open(url, options, out, err);
    const size_t n = path != NULL ? split_version(path, &version) : strlen(url);
    cm_store *root = NULL;
    char *place = cm_asprintf(err, "%.*s", (int)n, path != NULL ? path : url);
    int rc = place == NULL ? CM_ENOMEM : open_root(place, options, &root, err);
    if (rc == CM_OK && (rc = cm_ice_store_over(root, cm_store_url_is_remote(place), url, version,
                                               options, out, err)) != CM_OK)
        cm_error_place(err, place);
    free(place);
    return rc;
}
