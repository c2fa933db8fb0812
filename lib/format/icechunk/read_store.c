#include "format/icechunk/read_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "format/icechunk/read_impl.h"
#include "format/icechunk/version.h"

/* Of manifests that are kept: an eighth of the memory, but not less, nor more than helps. */
#define LEAST_KEPT ((uint64_t)1 << 20)
#define MOST_KEPT  ((uint64_t)64 << 20)

enum {
    REF_NBYTES = 640,      /* of a reference with a chunk of 512 bytes, the most that we inline */
    MANIFEST_NBYTES = 4096 /* of a manifest besides */
};

static void free_store(cm_store *store)
{
    cm_ice_store *s = cm_ice_store_of(store);
    cm_ice_shelf_free(s->shelf);
    cm_ice_view_release(&s->view);
    cm_store_free(s->root);
    free(s->base.name);
    free(s);
}

static const cm_store_ops ice_ops = {.read_only = "a snapshot is only read from",
                                     .free = free_store,
                                     .stat = cm_ice_stat,
                                     .list = cm_ice_list,
                                     .walk = cm_ice_walk,
                                     .open = cm_ice_object_open,
                                     .read = cm_ice_object_read,
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
    return rc == CM_OK ? cm_ice_shelf_create(s->root, s->base.index_nbytes, &s->shelf, err) : rc;
}

static int open_repository(const char *url, char *root, const char *version,
                           const cm_store_options *options, cm_store **out, cm_error *err)
{
    cm_ice_store *s = cm_calloc(1, sizeof(*s), err);
    if (s == NULL)
        return CM_ENOMEM;
    s->ops = ice_ops;
    s->base.ops = &s->ops;
    s->base.name = cm_strdup(url, err);
    int rc = s->base.name == NULL ? CM_ENOMEM : cm_store_open(root, options, &s->root, err);
    if (rc == CM_OK) {
        s->ops.remote = s->root->ops->remote;
        s->ops.request_nbytes = s->root->ops->request_nbytes;
        cm_store_set_memory(&s->base, options != NULL ? options->memory : 0);
        if ((rc = open_snapshot(s, version, options, err)) != CM_OK)
            cm_error_place(err, root);
    }
    if (rc != CM_OK) {
        free_store(&s->base);
        return rc;
    }
    *out = &s->base;
    return CM_OK;
}

/* True when the file NAME in the folder PATH begins with the N bytes of HEAD. */
static bool begins(const char *path, const char *name, const char *head, size_t n)
{
    char have[CM_ICE_MAGIC_NBYTES];
    size_t got = 0;
    char *file = cm_asprintf(NULL, "%s/%s", path, name);
    const bool is =
        file != NULL && cm_file_head(file, have, n, &got) && got == n && memcmp(have, head, n) == 0;
    free(file);
    return is;
}

/* True when the folder at PATH, not behind a network, is a repository. */
static bool is_repository(const char *path)
{
    return !cm_store_url_is_remote(path) &&
           (begins(path, "repo", CM_ICE_MAGIC, CM_ICE_MAGIC_NBYTES) ||
            begins(path, CM_ICE_REF_MAIN, "{", 1));
}

int cm_ice_store_open(const char *url, const cm_store_options *options, cm_store **out,
                      cm_error *err)
{
    const char *named = cm_icechunk_path(url), *path = named != NULL ? named : url;
    *out = NULL;
    if (named == NULL && !is_repository(path))
        return cm_store_open(url, options, out, err);
    const char *at = named != NULL ? strrchr(path, '@') : NULL;
    const size_t n = at != NULL ? (size_t)(at - path) : strlen(path);
    char *root = cm_asprintf(err, "%.*s", (int)n, path);
    int rc = root == NULL
                 ? CM_ENOMEM
                 : open_repository(url, root, at != NULL ? at + 1 : "main", options, out, err);
    free(root);
    return rc;
}
