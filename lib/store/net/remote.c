/* A store behind a network, web server or bucket: reading objects, and the table of operations. */
#include "store/net/remote.h"

#include <stdlib.h>
#include <string.h>

#include "store/checksum.h"
#include "store/net/loop.h"
#include "store/net/s3_known.h"
#include "store/net/secret.h"

static int fail_absent(const char *key, cm_error *err)
{
    return cm_fail(err, CM_ENOTFOUND, "%s: no such object", key);
}

static int run_key(cm_remote *s, const char *key, cm_http *r, cm_error *err)
{
    int rc = cm_remote_run_key(s, key, NULL, r, err);
    if (rc == CM_OK && r->rc == CM_ENOTFOUND)
        rc = fail_absent(key, err);
    cm_http_release(r, 1);
    return rc;
}

/* Runs R, whose body replaces BUF, also after a partial earlier try. */
static int run_into(cm_store *store, const char *key, cm_http *r, cm_buf *buf, cm_error *err)
{
    buf->nbytes = 0;
    r->buf = buf;
    int rc = run_key(cm_remote_of(store), key, r, err);
    if (rc != CM_OK)
        return rc;
    if (r->at > 0 && r->got_nbytes > 0)
        memmove(buf->data, buf->data + r->at, r->got_nbytes);
    buf->nbytes = r->got_nbytes;
    return CM_OK;
}

static int get_tagged(cm_store *store, const char *key, uint64_t max_nbytes, cm_buf *buf,
                      cm_object_tag *tag, cm_error *err)
{
    cm_http r = {.method = CM_HTTP_GET, .max_nbytes = max_nbytes};
    int rc = run_into(store, key, &r, buf, err);
    if (rc != CM_OK)
        return rc;
    _Static_assert(sizeof(tag->text) == sizeof(r.etag), "a tag holds an ETag");
    memcpy(tag->text, r.etag, sizeof(tag->text));
    tag->changed_s = r.modified > 0 ? r.modified : 0;
    tag->age_s = r.modified > 0 && r.date >= r.modified ? r.date - r.modified : -1;
    return CM_OK;
}

/*
 * Asks for the last byte of KEY, whose answer has what that to HEAD lacked: the length, or the
 * reason for a refusal.
 */
static int ask_length(cm_store *store, const char *key, cm_http *r, cm_error *err)
{
    cm_buf byte = {0};
    *r = (cm_http){.method = CM_HTTP_GET, .range = {CM_HTTP_SUFFIX, 0, 1}, .max_nbytes = 1};
    int rc = run_into(store, key, r, &byte, err);
    r->buf = NULL;
    cm_buf_release(&byte);
    if (r->status == 416) { /* it has no last byte */
        r->total_nbytes = 0;
        return CM_OK;
    }
    return rc != CM_EUNSUPPORTED && rc != CM_EFORMAT
               ? rc
               : cm_fail(err, CM_EUNSUPPORTED, "%s: the server does not say how long it is", key);
}

/*
 * Whether a bucket's answer R, which has no body as all answers to HEAD, may hide its reason: one
 * that credentials are renewed for, or that there is no bucket (asked for once: objects are absent
 * more often).
 */
static bool hides_reason(cm_remote *s, int rc, const cm_http *r)
{
    if (s->aws == NULL || rc == CM_OK)
        return false;
    if (rc == CM_ENOTFOUND)
        return r->status == 404 && !atomic_exchange(&s->asked_for_bucket, true);
    return r->status == 400 || r->status == 403;
}

static int head(cm_store *store, const char *key, cm_http *r, cm_error *err)
{
    cm_remote *s = cm_remote_of(store);
    *r = (cm_http){.method = CM_HTTP_HEAD};
    if (cm_s3_known_lacks(s->known, key))
        return fail_absent(key, err);
    int rc = run_key(s, key, r, err);
    return (rc == CM_OK && !r->sized) || hides_reason(s, rc, r) ? ask_length(store, key, r, err)
                                                                : rc;
}

static int stat_object(cm_store *store, const char *key, cm_object_stat *out, cm_error *err)
{
    cm_http r;
    int rc = head(store, key, &r, err);
    if (rc != CM_OK)
        return rc;
    *out = (cm_object_stat){.nbytes = r.total_nbytes, .modified_s = r.modified};
    _Static_assert(sizeof(out->tag) == sizeof(r.etag), "cm_object_stat holds an ETag");
    /* Skip weak ETags, which never match, and any that repeat a secret, as documents show them. */
    if (strncmp(r.etag, "W/", 2) != 0 && !cm_secret_hide(r.etag, &r))
        memcpy(out->tag, r.etag, sizeof(out->tag));
    return CM_OK;
}

static int identity(cm_store *store, const char *key, cm_identity *out, cm_error *err)
{
    cm_http r;
    int rc = head(store, key, &r, err);
    if (rc != CM_OK)
        return rc;
    if (r.etag[0] == '\0' && r.modified == 0)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: the server tells neither its ETag nor when it was changed, so an older "
                       "copy cannot be told from it",
                       key);
    *out = (cm_identity){.nbytes = r.total_nbytes,
                         .changed_ns = r.modified * 1000000000,
                         .inode = cm_checksum64(r.etag, strlen(r.etag), 0)};
    return CM_OK;
}

/* ---- parts of objects ---- */

static int new_reader(cm_store *store, const char *key, const cm_http *r, cm_object_reader **out,
                      cm_error *err)
{
    cm_remote_reader *reader = cm_calloc(1, sizeof(*reader), err);
    if (reader == NULL)
        return CM_ENOMEM;
    reader->base.store = store;
    reader->base.nbytes = r->total_nbytes;
    /* A weak ETag never matches. */
    if (strncmp(r->etag, "W/", 2) != 0)
        memcpy(reader->etag, r->etag, sizeof(reader->etag));
    reader->modified = r->modified;
    if ((reader->base.key = cm_strdup(key, err)) == NULL) {
        free(reader);
        return CM_ENOMEM;
    }
    *out = &reader->base;
    return CM_OK;
}

static int reader_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err)
{
    cm_http r;
    int rc = head(store, key, &r, err);
    return rc == CM_OK ? new_reader(store, key, &r, out, err) : rc;
}

static int reader_open_stat(cm_store *store, const char *key, const cm_object_stat *stat,
                            cm_object_reader **out, cm_error *err)
{
    cm_http r = {.total_nbytes = stat->nbytes, .modified = stat->modified_s};
    memcpy(r.etag, stat->tag, sizeof(r.etag));
    return new_reader(store, key, &r, out, err);
}

/* One request gives the size and the part. */
static int reader_open_part(cm_store *store, const char *key, bool at_end, size_t nbytes,
                            cm_buf *buf, cm_object_reader **out, cm_error *err)
{
    cm_http r = {.method = CM_HTTP_GET,
                 .range = {at_end ? CM_HTTP_SUFFIX : CM_HTTP_PREFIX, 0, nbytes},
                 .max_nbytes = nbytes};
    int rc = run_into(store, key, &r, buf, err);
    return rc == CM_OK ? new_reader(store, key, &r, out, err) : rc;
}

static int reader_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err)
{
    cm_http r = {.method = CM_HTTP_GET, .range = {CM_HTTP_RANGE, offset, nbytes}, .dst = dst};
    cm_remote_expect(&r, reader);
    int rc = run_key(cm_remote_of(reader->store), reader->key, &r, err);
    cm_remote_note_change(&r, reader);
    return rc;
}

static void reader_close(cm_object_reader *reader)
{
    free(reader->key);
    free(reader);
}

/* ---- not supported by web servers ---- */

static int list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err)
{
    (void)prefix, (void)visit, (void)context;
    return cm_fail(err, CM_EUNSUPPORTED,
                   "%s: there are no consolidated metadata (zarr.json, .zmetadata), and a web "
                   "server cannot list its objects",
                   store->name);
}

static void free_store(cm_store *store)
{
    cm_remote *s = cm_remote_of(store);
    free(s->address);
    free(s->bucket);
    free(s->prefix);
    free(s->base.name);
    cm_s3_memory_release(&s->pool);
    cm_s3_known_free(s->known);
    free(s);
}

/* ---- cached listing ---- */

static void drop_listing(cm_store *store)
{
    cm_remote *s = cm_remote_of(store);
    cm_s3_known_free(s->known);
    s->known = NULL;
}

static bool has(cm_store *store, const char *key)
{
    const cm_remote *s = cm_remote_of(store);
    return s->known != NULL ? !cm_s3_known_lacks(s->known, key)
                            : cm_store_size(store, key, NULL, NULL) == CM_OK;
}

/* ---- memory of writers ---- */

static void limit(cm_store *store, const cm_store_limits *limits)
{
    cm_s3_memory_set(&cm_remote_of(store)->pool, limits);
}

static size_t writer_nbytes(const cm_store *store, const cm_object_form *form)
{
    return cm_s3_memory_need(&cm_remote_of(store)->pool, form);
}

static size_t piece_nbytes(const cm_store *store)
{
    return cm_s3_memory_piece(&cm_remote_of(store)->pool);
}

/* ---- the tables ---- */

static const cm_store_open_ops open_ops = {.stat = reader_open_stat, .part = reader_open_part};

static const cm_store_reading_ops reading_ops = {
    .begin = cm_remote_read_begin, .cancel = cm_remote_read_cancel, .end = cm_remote_read_end};

static const cm_store_write_ops write_ops = {
    .put = cm_s3_put,
    .delete = cm_s3_delete,
    .sweep = cm_s3_sweep,
    .create = cm_s3_writer_create,
    .write = cm_s3_writer_write,
    .commit = cm_s3_writer_commit,
    .abort = cm_s3_writer_abort,
};

static const cm_store_change_ops change_ops = {
    .begin = cm_s3_change_begin, .done = cm_s3_change_done, .end = cm_s3_change_end};

static const cm_store_tag_ops tag_ops = {.get = get_tagged, .put = cm_s3_put_if};

static const cm_store_listing_ops listing_ops = {
    .cache = cm_s3_cache_listing, .drop = drop_listing, .has = has};

static const cm_store_memory_ops memory_ops = {
    .limit = limit, .writer_nbytes = writer_nbytes, .piece_nbytes = piece_nbytes};

#define READING                                                                                    \
    .remote = true, .request_nbytes = CM_HTTP_REQUEST_NBYTES, .free = free_store,                  \
    .stat = stat_object, .identity = identity, .open = reader_open, .read = reader_read,           \
    .close = reader_close, .read_many = cm_remote_read_many, .opening = &open_ops,                 \
    .reading = &reading_ops

static const cm_store_ops web_ops = {
    READING,
    .read_only = "nothing can be written over HTTP; a bucket is s3://BUCKET",
    .list = list,
};

/*
 * A lock needs a put that is refused where an object is.  S3 asks for it by If-None-Match; Google
 * documents x-goog-if-generation-match for it.
 */
static const cm_store_ops google_ops = {
    READING,
    .read_only = CM_URL_GOOGLE_READ_ONLY,
    .list = cm_s3_list,
    .list_below = cm_s3_list_below,
};

/* No sync: an object is visible to all once its PUT was answered. */
static const cm_store_ops s3_ops = {
    READING,
    .list = cm_s3_list,
    .list_below = cm_s3_list_below,
    .write = &write_ops,
    .changes = &change_ops,
    .tags = &tag_ops,
    .listing = &listing_ops,
    .memory = &memory_ops,
};

/* ---- opening ---- */

static int set_place(cm_remote *s, const cm_url *url, cm_error *err)
{
    const char *slash = url->path[0] != '\0' ? "/" : "";
    s->base.name = cm_asprintf(err, "%s%s%s", url->origin, slash, url->path);
    if (url->kind == CM_URL_HTTP) {
        s->address = cm_asprintf(err, "%s%s%s", url->origin, slash, url->path);
        s->prefix = cm_strdup("", err);
        return s->address == NULL || s->prefix == NULL ? CM_ENOMEM : CM_OK;
    }
    s->aws = cm_url_is_google(url->origin) ? s->net->google : s->net->aws;
    s->bucket = cm_strdup(url->bucket, err);
    s->prefix = cm_asprintf(err, "%s%s", url->path, slash);
    int rc = cm_aws_address(s->aws, url->bucket, &s->address, err);
    if (rc == CM_OK)
        s->checksum = cm_sum_at(s->net->settings.checksum, s->address);
    return rc == CM_OK && (s->bucket == NULL || s->prefix == NULL) ? CM_ENOMEM : rc;
}

int cm_store_open_remote(const char *url, cm_net *net, cm_store **out, cm_error *err)
{
    cm_url parts;
    *out = NULL;
    cm_remote *s = cm_calloc(1, sizeof(*s), err);
    if (s == NULL)
        return CM_ENOMEM;
    s->net = net;
    cm_s3_memory_init(&s->pool);
    int rc = cm_url_parse(url, &parts, err);
    s->base.ops = parts.kind != CM_URL_S3 ? &web_ops
                  : cm_url_is_google(url) ? &google_ops
                                          : &s3_ops;
    if (rc == CM_OK)
        rc = set_place(s, &parts, err);
    if (rc == CM_OK && s->base.name == NULL)
        rc = CM_ENOMEM;
    cm_url_release(&parts);
    if (rc != CM_OK) {
        free_store(&s->base);
        return rc;
    }
    *out = &s->base;
    return CM_OK;
}
