#include "store/net/s3_upload.h"

#include <stdlib.h>
#include <string.h>

#include "store/net/xml.h"

static char *encode_id(const char *id, cm_error *err)
{
    cm_buf encoded = {0};
    int rc = cm_url_encode(&encoded, id, false, err);
    if (rc == CM_OK && (rc = cm_buf_append(&encoded, "", 1, err)) == CM_OK)
        return (char *)encoded.data;
    cm_buf_release(&encoded);
    return NULL;
}

/* ---- beginning ---- */

/* An upload of KEY, and the id of the one to keep; NULL: none. */
typedef struct begun {
    cm_remote *store;
    const char *key, *id;
} begun;

static int abort_other(void *context, const char *key, const char *id, cm_error *err)
{
    const begun *b = context;
    if (strcmp(key, b->key) != 0)
        return CM_OK;
    char *encoded = encode_id(id, err);
    int rc = encoded == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK && (b->id == NULL || strcmp(encoded, b->id) != 0))
        rc = cm_s3_upload_abort(b->store, key, encoded, err);
    free(encoded);
    return rc;
}

/*
 * A try whose answer was lost may have begun an upload.  If it cannot be aborted, the object is
 * still right, and the next run that replaces it tries again.
 */
static void abort_lost(cm_remote *s, const char *key, const char *id)
{
    (void)cm_s3_list_uploads_of(&s->base, key, abort_other, &(begun){s, key, id}, NULL);
}

int cm_s3_upload_begin(cm_remote *s, const char *key, char **id, cm_error *err)
{
    char text[2048];
    /* Sets the object's type; libcurl's default would be a form. */
    cm_http r = {.method = CM_HTTP_POST, .header = {"Content-Type: application/octet-stream"}};
    *id = NULL;
    if (s->checksum == CM_CHECKSUM_CRC32C)
        r.header[1] = "x-amz-checksum-algorithm: CRC32C"; /* of the parts */
    int rc = cm_remote_run_key(s, key, "uploads=", &r, err);
    if (rc == CM_OK && r.rc == CM_ENOTFOUND)
        rc = cm_fail(err, CM_EIO, "%s: there is no such bucket", s->base.name);
    if (rc == CM_OK && !cm_xml_find(r.text.data, r.text.nbytes,
                                    "InitiateMultipartUploadResult/UploadId", text, sizeof(text)))
        rc = cm_fail(err, CM_EIO, "%s: the server begins no upload", key);
    if (rc == CM_OK && (*id = encode_id(text, err)) == NULL)
        rc = CM_ENOMEM;
    if (r.nasked > 1)
        abort_lost(s, key, *id);
    cm_http_release(&r, 1);
    return rc;
}

/* ---- going on ---- */

char *cm_s3_upload_url(const cm_remote *s, const char *key, const char *id, size_t number,
                       cm_error *err)
{
    char *query = cm_asprintf(err, "partNumber=%zu&uploadId=%s", number, id);
    char *url = query != NULL ? cm_remote_url(s, key, query, err) : NULL;
    free(query);
    return url;
}

static int write_list(const cm_s3_part *part, size_t n, bool summed, cm_buf *xml, cm_error *err)
{
    int rc = cm_buf_printf(xml, err, "<CompleteMultipartUpload>");
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        rc = cm_buf_printf(xml, err, "<Part><PartNumber>%zu</PartNumber><ETag>%s</ETag>", i + 1,
                           part[i].etag);
        if (rc == CM_OK && summed && part[i].sum[0] != '\0')
            rc = cm_buf_printf(xml, err, "<ChecksumCRC32C>%s</ChecksumCRC32C>", part[i].sum);
        if (rc == CM_OK)
            rc = cm_buf_printf(xml, err, "</Part>");
    }
    return rc == CM_OK ? cm_buf_printf(xml, err, "</CompleteMultipartUpload>") : rc;
}

int cm_s3_upload_complete(cm_remote *s, const char *key, const char *id, const cm_s3_part *part,
                          size_t n, uint64_t nbytes, cm_error *err)
{
    cm_buf xml = {0};
    cm_store *store = &s->base;
    /* Servers that take it for a form ignore the body. */
    cm_http r = {.method = CM_HTTP_POST, .header = {"Content-Type: application/xml"}};
    cm_object_stat there;
    char *query = cm_asprintf(err, "uploadId=%s", id);
    int rc = query == NULL ? CM_ENOMEM
                           : write_list(part, n, s->checksum == CM_CHECKSUM_CRC32C, &xml, err);
    r.body = xml.data;
    r.body_nbytes = xml.nbytes;
    if (rc == CM_OK)
        rc = cm_remote_run_key(s, key, query, &r, err);
    /* An earlier answer may have been lost: then the upload is gone, and the object exists. */
    if (rc == CM_OK && r.rc == CM_ENOTFOUND) {
        rc = store->ops->stat(store, key, &there, NULL);
        if (rc != CM_OK || there.nbytes != nbytes)
            rc = cm_fail(err, CM_EIO, "%s: the server has lost an upload", key);
    }
    cm_http_release(&r, 1);
    cm_buf_release(&xml);
    free(query);
    return rc;
}

int cm_s3_upload_abort(cm_remote *s, const char *key, const char *id, cm_error *err)
{
    cm_http r = {.method = CM_HTTP_DELETE};
    char *query = cm_asprintf(err, "uploadId=%s", id);
    int rc = query == NULL ? CM_ENOMEM : cm_remote_run_key(s, key, query, &r, err);
    free(query);
    cm_http_release(&r, 1);
    return rc;
}

int cm_s3_upload_abort_listed(cm_remote *s, const char *key, const char *id, cm_error *err)
{
    char *encoded = encode_id(id, err);
    int rc = encoded == NULL ? CM_ENOMEM : cm_s3_upload_abort(s, key, encoded, err);
    free(encoded);
    return rc;
}
