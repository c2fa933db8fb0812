/* Writing and removing single objects of a bucket, one request each. */
#include <string.h>

#include "store/net/s3_known.h"

int cm_s3_put(cm_store *store, const char *key, const void *data, size_t nbytes, cm_error *err)
{
    cm_remote *s = cm_remote_of(store);
    cm_http r = {.method = CM_HTTP_PUT, .body = data, .body_nbytes = nbytes};
    int rc = cm_remote_run_key(s, key, NULL, &r, err);
    if (rc == CM_OK && r.rc == CM_ENOTFOUND)
        rc = cm_fail(err, CM_EIO, "%s: there is no such bucket", s->base.name);
    if (rc == CM_OK && s->known != NULL)
        rc = cm_s3_known_add(s->known, key, err);
    cm_http_release(&r, 1);
    return rc;
}

int cm_s3_put_new(cm_store *store, const char *key, const void *data, size_t nbytes,
                  const cm_object_tag *tag, cm_error *err)
{
    cm_remote *s = cm_remote_of(store);
    cm_http r = {
        .method = CM_HTTP_PUT, .body = data, .body_nbytes = nbytes, .if_none_match = tag == NULL};
    if (tag != NULL)
        memcpy(r.if_match, tag->text, sizeof(r.if_match));
    int rc = cm_remote_run_key(s, key, NULL, &r, err);
    if (rc == CM_OK && r.rc == CM_ENOTFOUND)
        rc = CM_EEXIST; /* what was to be replaced is gone */
    if (rc == CM_EIO && r.status == 412)
        rc = CM_EEXIST;
    /* Of two that come in the same moment one is told so. */
    if (rc == CM_EIO && r.status == 409)
        rc = CM_EEXIST;
    if (rc == CM_OK && s->known != NULL)
        rc = cm_s3_known_add(s->known, key, err);
    cm_http_release(&r, 1);
    return rc;
}

int cm_s3_remove(cm_store *store, const char *key, cm_error *err)
{
    cm_remote *s = cm_remote_of(store);
    cm_http r = {.method = CM_HTTP_DELETE};
    if (s->known != NULL && !cm_s3_known_has(s->known, key))
        return CM_OK;
    int rc = cm_remote_run_key(s, key, NULL, &r, err);
    if (rc == CM_OK && s->known != NULL)
        cm_s3_known_remove(s->known, key);
    cm_http_release(&r, 1);
    return rc;
}
