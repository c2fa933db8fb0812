/* Writing and removing single objects of a bucket, one request each. */
#include <stdlib.h>
#include <string.h>

#include "store/net/s3_known.h"

/* Interprets the answer R to a PUT, whose request returned RC. */
static int note_put(cm_remote *s, const char *key, const cm_http *r, int rc, cm_error *err)
{
    if (rc == CM_OK && r->rc == CM_ENOTFOUND)
        rc = cm_fail(err, CM_EIO, "%s: there is no such bucket", s->base.name);
    if (rc == CM_OK && s->known != NULL)
        rc = cm_s3_known_add(s->known, key, err);
    return rc;
}

int cm_s3_put(cm_store *store, const char *key, const void *data, size_t nbytes, cm_error *err)
{
    cm_remote *s = cm_remote_of(store);
    cm_http r = {.method = CM_HTTP_PUT, .body = data, .body_nbytes = nbytes};
    int rc = note_put(s, key, &r, cm_remote_run_key(s, key, NULL, &r, err), err);
    cm_http_release(&r, 1);
    return rc;
}

/*
 * A put that was sent more than once may be refused because its first try succeeded, and the answer
 * was lost.  CM_OK: KEY has what was put; CM_EEXIST: it has something else.
 */
static int check_refused(cm_store *store, const char *key, const void *data, size_t nbytes,
                         cm_error *err)
{
    cm_buf now = {0};
    cm_error why = {0};
    cm_object_tag tag;
    int rc = cm_store_get_tagged(store, key, (uint64_t)nbytes + (1 << 20), &now, &tag, &why);
    if (rc == CM_OK && (now.nbytes != nbytes || memcmp(now.data, data, nbytes) != 0))
        rc = CM_EEXIST;
    else if (rc == CM_ENOTFOUND || rc == CM_EFORMAT)
        rc = CM_EEXIST;
    else if (rc != CM_OK && err != NULL)
        *err = why;
    cm_buf_release(&now);
    return rc;
}

int cm_s3_put_if(cm_store *store, const char *key, const void *data, size_t nbytes,
                 const cm_object_tag *tag, cm_error *err)
{
    cm_remote *s = cm_remote_of(store);
    cm_http r = {
        .method = CM_HTTP_PUT, .body = data, .body_nbytes = nbytes, .if_none_match = tag == NULL};
    if (tag != NULL && tag->text[0] == '\0')
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: the server gives it no ETag, or one too long to send back: a change by "
                       "another writer would not be noticed",
                       key);
    if (tag != NULL && strncmp(tag->text, "W/", 2) == 0)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: the server gives it a weak ETag, which no condition matches: a change "
                       "by another writer would not be noticed",
                       key);
    if (tag != NULL)
        memcpy(r.if_match, tag->text, sizeof(r.if_match));
    int rc = cm_remote_run_key(s, key, NULL, &r, err);
    if (rc == CM_OK && r.rc == CM_ENOTFOUND)
        rc = CM_EEXIST; /* the object to replace is gone */
    if (rc == CM_EIO && r.status == 412)
        rc = CM_EEXIST;
    /* Of two simultaneous puts one gets this answer. */
    if (rc == CM_EIO && r.status == 409)
        rc = CM_EEXIST;
    if (rc == CM_EEXIST && r.nasked > 1)
        rc = check_refused(store, key, data, nbytes, err);
    if (rc == CM_OK && s->known != NULL)
        rc = cm_s3_known_add(s->known, key, err);
    cm_http_release(&r, 1);
    return rc;
}

int cm_s3_delete(cm_store *store, const char *key, cm_error *err)
{
    cm_remote *s = cm_remote_of(store);
    cm_http r = {.method = CM_HTTP_DELETE};
    if (cm_s3_known_lacks(s->known, key))
        return CM_OK;
    int rc = cm_remote_run_key(s, key, NULL, &r, err);
    if (rc == CM_OK && s->known != NULL)
        cm_s3_known_remove(s->known, key);
    cm_http_release(&r, 1);
    return rc;
}

/* ---- asynchronous ---- */

typedef struct change {
    cm_store_change base;
    cm_remote_batch batch; /* of one request */
    char key[];
} change;

static void free_change(change *c)
{
    cm_remote_batch_release(&c->batch);
    free(c);
}

int cm_s3_change_begin(cm_store *store, const char *key, const void *data, size_t nbytes,
                       cm_store_change **out, cm_error *err)
{
    cm_http r = {.method = CM_HTTP_DELETE};
    if (data != NULL)
        r = (cm_http){.method = CM_HTTP_PUT, .body = data, .body_nbytes = nbytes};
    change *c = cm_calloc(1, sizeof(*c) + strlen(key) + 1, err);
    if (c == NULL)
        return CM_ENOMEM;
    memcpy(c->key, key, strlen(key) + 1);
    int rc = cm_remote_batch_init(&c->batch, cm_remote_of(store), 1, err);
    if (rc == CM_OK)
        rc = cm_remote_batch_add(&c->batch, c->key, &r, err);
    if (rc == CM_OK)
        rc = cm_remote_batch_start(&c->batch, err);
    if (rc == CM_OK)
        *out = &c->base;
    else
        free_change(c);
    return rc;
}

bool cm_s3_change_done(const cm_store_change *started)
{
    return cm_http_is_done(((const change *)started)->batch.call);
}

int cm_s3_change_end(cm_store_change *started, cm_error *err)
{
    change *c = (change *)started;
    cm_remote *s = cm_remote_of(started->store);
    int rc = cm_remote_batch_wait(&c->batch, err);
    if (started->puts)
        rc = note_put(s, c->key, c->batch.request, rc, err);
    else if (rc == CM_OK && s->known != NULL)
        cm_s3_known_remove(s->known, c->key);
    free_change(c);
    return rc;
}
