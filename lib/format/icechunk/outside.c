#include "format/icechunk/outside.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fileurl.h"
#include "format/icechunk/containers.h"
#include "store/allow.h"
#include "store/net/url.h"

enum {
    MAX_ORIGINS = 256 /* servers and buckets */
};

typedef struct origin {
    char *name; /* "s3://bucket" */
    cm_store *store;
} origin;

struct cm_ice_outside {
    cm_store *root;
    cm_net *net;
    pthread_mutex_t lock; /* guards the rest */
    cm_store *files;      /* all of this machine; NULL: not open yet */
    origin *origin;
    size_t norigins;
    cm_buf config; /* of the repository, where HAS_CONFIG; fixed then */
    bool has_config;
};

int cm_ice_outside_create(cm_store *root, cm_net *net, cm_ice_outside **out, cm_error *err)
{
    cm_ice_outside *o = *out = cm_calloc(1, sizeof(*o), err);
    if (o == NULL)
        return CM_ENOMEM;
    o->root = root;
    o->net = net;
    pthread_mutex_init(&o->lock, NULL);
    return net != NULL ? cm_allow_check(cm_net_allow(net), err) : CM_OK;
}

void cm_ice_outside_free(cm_ice_outside *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->norigins; i++) {
        free(o->origin[i].name);
        cm_store_free(o->origin[i].store);
    }
    free(o->origin);
    cm_store_free(o->files);
    cm_buf_release(&o->config);
    pthread_mutex_destroy(&o->lock);
    free(o);
}

/* ---- its URL ---- */

/* The location as it is written in the manifest. */
static int spell(const cm_ice_manifest_view *m, const cm_ice_chunk *chunk, char **out,
                 cm_error *err)
{
    char room[CM_ICE_MAX_URL];
    cm_ice_text text;
    int rc = cm_ice_chunk_location(m, chunk, room, &text, err);
    if (rc != CM_OK)
        return rc;
    *out = cm_asprintf(err, "%.*s", (int)text.n, text.bytes);
    return *out != NULL ? CM_OK : CM_ENOMEM;
}

/* The URL that LOCATION means, by the configuration, which is read once. */
static int expand(cm_ice_outside *o, const char *location, char **out, cm_error *err)
{
    pthread_mutex_lock(&o->lock);
    int rc = o->has_config ? CM_OK : cm_ice_config_read(o->root, &o->config, err);
    o->has_config = rc == CM_OK;
    pthread_mutex_unlock(&o->lock);
    *out = NULL;
    return rc == CM_OK ? cm_ice_container_url(&o->config, location, out, err) : rc;
}

/* The absolute URL of CHUNK. */
static int find_url(cm_ice_outside *o, const cm_ice_manifest_view *m, const cm_ice_chunk *chunk,
                    char **out, cm_error *err)
{
    static const char relative[] = "vcc://", google[] = "gcs://";
    char *text = NULL;
    int rc = spell(m, chunk, &text, err);
    *out = text;
    if (rc != CM_OK)
        return rc;
    if (strncasecmp(text, relative, strlen(relative)) == 0) {
        rc = expand(o, text, out, err);
        free(text);
        text = *out;
    }
    if (rc == CM_OK && strncasecmp(text, google, strlen(google)) == 0) {
        *out = cm_asprintf(err, "gs://%s", text + strlen(google));
        free(text);
        rc = *out != NULL ? CM_OK : CM_ENOMEM;
    }
    return rc;
}

/* ---- this machine ---- */

static int open_files(cm_ice_outside *o, cm_store **out, cm_error *err)
{
    pthread_mutex_lock(&o->lock);
    int rc = o->files == NULL ? cm_store_open_dir("/", false, &o->files, err) : CM_OK;
    *out = o->files;
    pthread_mutex_unlock(&o->lock);
    return rc;
}

static int find_file(cm_ice_outside *o, const char *url, cm_ice_spot *out, cm_error *err)
{
    int rc = cm_fileurl_path(url, &out->shown, err);
    if (rc == CM_EINVAL) { /* not an error of the command line */
        err->status = CM_EFORMAT;
        return CM_EFORMAT;
    }
    if (rc != CM_OK)
        return rc;
    if (!cm_allow_is_plain(out->shown))
        return cm_fail(err, CM_EFORMAT, "'%s': is not an absolute path without \"..\"", out->shown);
    if (o->net == NULL || !cm_allow_has_path(cm_net_allow(o->net), out->shown))
        return cm_allow_refuse(out->shown, true, "lies outside the repository", err);
    const char *key = out->shown + strspn(out->shown, "/");
    rc = cm_key_check(key, err);
    if (rc == CM_OK && (out->key = cm_strdup(key, err)) == NULL)
        rc = CM_ENOMEM;
    return rc == CM_OK ? open_files(o, &out->store, err) : rc;
}

/* ---- behind a network ---- */

/* Opens the store NAME; the lock is held. */
static int add_origin(cm_ice_outside *o, const char *name, cm_error *err)
{
    if (o->norigins == MAX_ORIGINS)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "there are more than %d servers and buckets that chunks lie in",
                       MAX_ORIGINS);
    if (o->origin == NULL && (o->origin = cm_calloc(MAX_ORIGINS, sizeof(origin), err)) == NULL)
        return CM_ENOMEM;
    origin *last = &o->origin[o->norigins];
    int rc = cm_store_open_remote(name, o->net, &last->store, err);
    if (rc == CM_OK && (last->name = cm_strdup(name, err)) == NULL) {
        cm_store_free(last->store);
        rc = CM_ENOMEM;
    }
    o->norigins += rc == CM_OK;
    return rc;
}

static int open_origin(cm_ice_outside *o, const char *name, cm_store **out, cm_error *err)
{
    size_t i = 0;
    int rc = CM_OK;
    pthread_mutex_lock(&o->lock);
    while (i < o->norigins && strcmp(o->origin[i].name, name) != 0)
        i++;
    if (i == o->norigins)
        rc = add_origin(o, name, err);
    *out = rc == CM_OK ? o->origin[i].store : NULL;
    pthread_mutex_unlock(&o->lock);
    return rc;
}

static int find_object(cm_ice_outside *o, const char *url, cm_ice_spot *out, cm_error *err)
{
    cm_url parts;
    int rc = cm_url_parse(url, &parts, err);
    if (rc == CM_EINVAL) {
        err->status = CM_EFORMAT;
        return CM_EFORMAT;
    }
    if (rc == CM_OK && ((out->key = cm_strdup(parts.path, err)) == NULL ||
                        (out->shown = cm_strdup(url, err)) == NULL))
        rc = CM_ENOMEM;
    if (rc == CM_OK) { /* locations are URLs, in buckets, too */
        cm_url_decode(out->key);
        rc = cm_key_check(out->key, err);
    }
    if (rc == CM_OK &&
        (o->net == NULL || !cm_allow_has_object(cm_net_allow(o->net), parts.origin, out->key)))
        rc = cm_allow_refuse(url, false, "lies outside the repository", err);
    out->is_net = true;
    if (rc == CM_OK)
        rc = open_origin(o, parts.origin, &out->store, err);
    cm_url_release(&parts);
    return rc;
}

/* ---- both ---- */

int cm_ice_outside_find(cm_ice_outside *o, const cm_ice_manifest_view *m, const cm_ice_chunk *chunk,
                        cm_ice_spot *out, cm_error *err)
{
    static const char file[] = "file:";
    cm_error why = {0};
    char *url = NULL;
    *out = (cm_ice_spot){0};
    int rc = find_url(o, m, chunk, &url, &why);
    if (rc == CM_OK && cm_url_scheme(url) != CM_URL_LOCAL)
        rc = find_object(o, url, out, &why);
    else if (rc == CM_OK && strncasecmp(url, file, strlen(file)) == 0)
        rc = find_file(o, url, out, &why);
    else if (rc == CM_OK)
        rc =
            cm_fail(&why, CM_EUNSUPPORTED,
                    "'%s': only chunks in files, http://, https://, s3:// and gs:// are read", url);
    free(url);
    if (rc != CM_OK) {
        cm_ice_spot_release(out);
        if (err != NULL)
            *err = why;
    }
    return rc;
}

void cm_ice_spot_release(cm_ice_spot *spot)
{
    free(spot->key);
    free(spot->shown);
    *spot = (cm_ice_spot){0};
}
