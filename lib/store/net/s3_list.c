/* Lists a bucket by ListObjectsV2, page by page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fileurl.h"
#include "store/checksum.h"
#include "store/net/headway.h"
#include "store/net/s3_known.h"
#include "store/net/secret.h"
#include "store/net/xml.h"

enum {
    TRIES = 4
};

/* State of a listing. */
typedef struct listing {
    cm_remote *store;
    const cm_http *page;          /* the page being read */
    char *prefix;                 /* in the bucket, encoded in the query */
    size_t skip;                  /* bytes of each key to skip for names relative to the prefix */
    cm_name_list *names;          /* names, folders included; or ... */
    cm_store_visit_object *visit; /* ... called for every object below */
    void *context;
    char *token; /* of the next page; NULL: none */
    bool truncated;
    char *key; /* key of the current entry */
    cm_object_stat stat;
    uint64_t nfound;
    uint64_t sum, nbytes; /* of the names on this page */
    cm_headway headway;
} listing;

/*
 * *NAME is KEY without the prefix; NULL if it cannot be a key of a store.  CM_EIO: it lies in a
 * folder, although the listing asked for folder names only.
 */
static int below(const listing *l, const char *key, const char **name, cm_error *err)
{
    *name = NULL;
    size_t n = strlen(key);
    if (n <= l->skip || (l->names != NULL && key[n - 1] == '/'))
        return CM_OK; /* a folder marker, as consoles make them */
    if (l->names != NULL && strchr(key + l->skip, '/') != NULL)
        return cm_fail(err, CM_EIO,
                       "%s: the server's listing of a folder contains objects of other folders",
                       l->store->base.name);
    if (cm_key_check(key + l->skip, NULL) == CM_OK)
        *name = key + l->skip;
    return CM_OK;
}

/* Decodes encoding-type=url, where a '+' may be a space: a plus in a key is "%2B". */
static void decode(char *key)
{
    for (char *p = key; (p = strchr(p, '+')) != NULL;)
        *p = ' ';
    cm_url_decode(key);
}

static int take_object(listing *l, cm_error *err)
{
    const char *name;
    char *key = l->key;
    l->key = NULL;
    if (key == NULL)
        return CM_OK;
    l->nfound++;
    decode(key);
    int rc = below(l, key, &name, err);
    if (rc == CM_OK && name != NULL)
        rc = l->visit != NULL ? l->visit(l->context, name, &l->stat, err)
                              : cm_name_list_add(l->names, name, strlen(name), false, err);
    l->stat = (cm_object_stat){0};
    free(key);
    return rc;
}

/* "2009-10-12T17:50:30.000Z"; 0: not a time. */
static int64_t seconds_of(const char *text)
{
    struct tm t = {0};
    int n = sscanf(text, "%d-%d-%dT%d:%d:%d", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour,
                   &t.tm_min, &t.tm_sec);
    t.tm_year -= 1900;
    t.tm_mon--;
    return n == 6 ? (int64_t)timegm(&t) : 0;
}

/* Adds quotes, as in the header: some servers omit them in listings. */
static void take_tag(listing *l, const char *text)
{
    char *tag = l->stat.tag;
    size_t n = strlen(text);
    bool quoted = strchr(text, '"') != NULL;
    tag[0] = '\0';
    if (n > 0 && n + 2 < sizeof(l->stat.tag) && strncmp(text, "W/", 2) != 0)
        snprintf(tag, sizeof(l->stat.tag), quoted ? "%s" : "\"%s\"", text);
    if (cm_secret_hide(tag, l->page)) /* documents show it */
        tag[0] = '\0';
}

static int take_folder(listing *l, const char *text, cm_error *err)
{
    const char *name;
    char *key = cm_strdup(text, err);
    if (key == NULL)
        return CM_ENOMEM;
    l->nfound++;
    decode(key);
    size_t n = strlen(key);
    if (n > 0 && key[n - 1] == '/')
        key[n - 1] = '\0';
    int rc = below(l, key, &name, err);
    if (rc == CM_OK && name != NULL)
        rc = cm_name_list_add(l->names, name, strlen(name), true, err);
    free(key);
    return rc;
}

static int set(char **to, const char *text, cm_error *err)
{
    free(*to);
    return (*to = cm_strdup(text, err)) == NULL ? CM_ENOMEM : CM_OK;
}

static int visit_element(void *context, const char *path, const char *text, cm_error *err)
{
    static const char ROOT[] = "ListBucketResult/";
    listing *l = context;
    if (strncmp(path, ROOT, sizeof(ROOT) - 1) != 0)
        return CM_OK;
    path += sizeof(ROOT) - 1;
    if (strcmp(path, "Contents/Key") == 0 || strcmp(path, "CommonPrefixes/Prefix") == 0) {
        l->sum = cm_checksum64(text, strlen(text) + 1, l->sum);
        l->nbytes += strlen(text);
    }
    if (strcmp(path, "Contents/Key") == 0)
        return set(&l->key, text, err);
    if (strcmp(path, "Contents/Size") == 0)
        l->stat.nbytes = strtoull(text, NULL, 10);
    else if (strcmp(path, "Contents/ETag") == 0)
        take_tag(l, text);
    else if (strcmp(path, "Contents/LastModified") == 0)
        l->stat.modified_s = seconds_of(text);
    else if (strcmp(path, "Contents") == 0)
        return take_object(l, err);
    else if (strcmp(path, "CommonPrefixes/Prefix") == 0 && l->names != NULL)
        return take_folder(l, text, err);
    else if (strcmp(path, "IsTruncated") == 0)
        l->truncated = strcmp(text, "true") == 0;
    else if (strcmp(path, "NextContinuationToken") == 0)
        return set(&l->token, text, err);
    return CM_OK;
}

/* Names and values sorted by name, as the signature demands. */
static int write_query(const listing *l, const char *token, cm_buf *out, cm_error *err)
{
    const cm_remote *s = l->store;
    bool hosted = strchr(strstr(s->address, "://") + 3, '/') == NULL;
    int rc = cm_buf_printf(out, err, "%s%s?", s->address, hosted ? "/" : "");
    if (rc == CM_OK && token != NULL)
        rc = cm_buf_printf(out, err, "continuation-token=");
    if (rc == CM_OK && token != NULL)
        rc = cm_url_encode(out, token, false, err);
    if (rc == CM_OK)
        rc = cm_buf_printf(out, err, "%s%sencoding-type=url&list-type=2&max-keys=1000&prefix=",
                           token != NULL ? "&" : "", l->names != NULL ? "delimiter=%2F&" : "");
    if (rc == CM_OK)
        rc = cm_url_encode(out, l->prefix, false, err);
    return rc == CM_OK ? cm_buf_append(out, "", 1, err) : rc;
}

static int pass_over(void *context, const char *path, const char *text, cm_error *err)
{
    (void)context, (void)path, (void)text, (void)err;
    return CM_OK;
}

static int read_page(listing *l, cm_error *err)
{
    cm_buf url = {0};
    char *token = l->token;
    l->token = NULL;
    l->truncated = false;
    l->sum = l->nbytes = 0;
    int rc = write_query(l, token, &url, err);
    cm_http r = {.method = CM_HTTP_GET,
                 .url = (const char *)url.data,
                 .shown = l->store->base.name,
                 .listing = true};
    /* A truncated page is requested again; nothing of it has been used yet. */
    bool whole = false;
    for (int i = 0; rc == CM_OK && !whole && i < TRIES; i++) {
        rc = cm_remote_run(l->store, &r, 1, err);
        whole = rc != CM_OK || r.rc != CM_OK ||
                cm_xml_read(r.text.data, r.text.nbytes, pass_over, NULL, NULL) != CM_EFORMAT;
    }
    if (rc == CM_OK && r.rc == CM_ENOTFOUND)
        rc = cm_fail(err, CM_EIO, "%s: there is no such bucket", l->store->base.name);
    l->page = &r;
    if (rc == CM_OK &&
        (rc = cm_xml_read(r.text.data, r.text.nbytes, visit_element, l, err)) == CM_EFORMAT)
        cm_error_prefix(err, "%s: the server's listing", l->store->base.name);
    if (rc == CM_OK && l->truncated && l->token == NULL)
        rc = cm_fail(err, CM_EIO, "%s: the server's listing ends in its middle",
                     l->store->base.name);
    cm_http_release(&r, 1);
    cm_buf_release(&url);
    free(token);
    return rc;
}

static int read_pages(listing *l, const char *prefix, cm_error *err)
{
    l->prefix = cm_asprintf(err, "%s%s%s", l->store->prefix, prefix, *prefix != '\0' ? "/" : "");
    if (l->prefix == NULL)
        return CM_ENOMEM;
    l->skip = strlen(l->prefix);
    int rc = CM_OK;
    do {
        rc = read_page(l, err);
        if (rc == CM_OK && l->truncated)
            rc = cm_headway_check(&l->headway, l->token, l->sum, l->nbytes, l->store->base.name,
                                  err);
    } while (rc == CM_OK && l->truncated);
    free(l->prefix);
    free(l->token);
    cm_headway_release(&l->headway);
    free(l->key);
    return rc;
}

int cm_s3_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
               cm_error *err)
{
    cm_name_list names = {0};
    listing l = {.store = cm_remote_of(store), .names = &names};
    if (l.store->known != NULL)
        return cm_s3_known_list(l.store->known, prefix, visit, context, err);
    int rc = read_pages(&l, prefix, err);
    /* A folder whose marker is all that it has is one, too. */
    return cm_name_list_finish(&names, l.nfound > 0 ? "" : prefix, rc, visit, context, err);
}

int cm_s3_list_below(cm_store *store, const char *prefix, cm_store_visit_object *visit,
                     void *context, cm_error *err)
{
    listing l = {.store = cm_remote_of(store), .visit = visit, .context = context};
    if (l.store->known != NULL)
        return cm_s3_known_below(l.store->known, prefix, visit, context, err);
    return read_pages(&l, prefix, err);
}

/* ---- uploads ---- */

typedef struct uploads {
    cm_remote *store;
    cm_s3_visit_upload *visit;
    void *context;
    char key[1200], id[1200]; /* of the current entry */
} uploads;

/* Key and id both come before the end of their upload, in any order. */
static int take_upload(void *context, const char *path, const char *text, cm_error *err)
{
    uploads *u = context;
    size_t n = strlen(u->store->prefix);
    if (strcmp(path, "ListMultipartUploadsResult/Upload/Key") == 0)
        snprintf(u->key, sizeof(u->key), "%s", text);
    if (strcmp(path, "ListMultipartUploadsResult/Upload/UploadId") == 0)
        snprintf(u->id, sizeof(u->id), "%s", text);
    if (strcmp(path, "ListMultipartUploadsResult/Upload") != 0)
        return CM_OK;
    bool ours = strncmp(u->key, u->store->prefix, n) == 0 && u->key[n] != '\0' && u->id[0] != '\0';
    int rc = ours ? u->visit(u->context, u->key + n, u->id, err) : CM_OK;
    u->key[0] = u->id[0] = '\0';
    return rc;
}

/* Reads one page of a thousand; servers without this request are taken to have no uploads. */
static int read_uploads(uploads *u, const char *prefix, bool below, cm_error *err)
{
    cm_remote *s = u->store;
    cm_buf url = {0};
    bool hosted = strchr(strstr(s->address, "://") + 3, '/') == NULL;
    int rc =
        cm_buf_printf(&url, err, "%s%s?max-uploads=1000&prefix=", s->address, hosted ? "/" : "");
    if (rc == CM_OK)
        rc = cm_url_encode(&url, s->prefix, false, err);
    if (rc == CM_OK)
        rc = cm_url_encode(&url, prefix, false, err);
    if (rc == CM_OK && below)
        rc = cm_buf_printf(&url, err, "%%2F");
    if (rc == CM_OK)
        rc = cm_buf_printf(&url, err, "&uploads=");
    if (rc == CM_OK)
        rc = cm_buf_append(&url, "", 1, err);
    cm_http r = {.method = CM_HTTP_GET,
                 .url = (const char *)url.data,
                 .shown = s->base.name,
                 .listing = true,
                 .patience = 8};
    if (rc == CM_OK && cm_remote_run(s, &r, 1, NULL) == CM_OK && r.rc == CM_OK)
        rc = cm_xml_read(r.text.data, r.text.nbytes, take_upload, u, err);
    cm_http_release(&r, 1);
    cm_buf_release(&url);
    return rc == CM_EFORMAT ? CM_OK : rc;
}

int cm_s3_list_uploads(cm_store *store, const char *prefix, cm_s3_visit_upload *visit,
                       void *context, cm_error *err)
{
    uploads u = {.store = cm_remote_of(store), .visit = visit, .context = context};
    if (u.store->known != NULL)
        return cm_s3_known_uploads(u.store->known, prefix, visit, context, err);
    return read_uploads(&u, prefix, *prefix != '\0', err);
}

int cm_s3_list_uploads_of(cm_store *store, const char *key, cm_s3_visit_upload *visit,
                          void *context, cm_error *err)
{
    uploads u = {.store = cm_remote_of(store), .visit = visit, .context = context};
    return read_uploads(&u, key, false, err);
}

/* ---- the cached listing ---- */

static int add_key(void *known, const char *below, const cm_object_stat *stat, cm_error *err)
{
    (void)stat;
    return cm_s3_known_add(known, below, err);
}

static int add_upload(void *known, const char *key, const char *id, cm_error *err)
{
    return cm_s3_known_add_upload(known, key, id, err);
}

int cm_s3_cache_listing(cm_store *store, cm_error *err)
{
    cm_remote *s = cm_remote_of(store);
    if (s->known != NULL)
        return CM_OK;
    cm_s3_known *k = cm_s3_known_create(err);
    int rc = k == NULL ? CM_ENOMEM : cm_s3_list_below(store, "", add_key, k, err);
    if (rc == CM_OK)
        rc = cm_s3_list_uploads(store, "", add_upload, k, err);
    if (rc == CM_OK)
        s->known = k; /* not before, so that the server is asked */
    else
        cm_s3_known_free(k);
    return rc;
}
