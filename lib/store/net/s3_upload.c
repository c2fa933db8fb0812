#include "store/net/s3_upload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/md5.h"
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

/*
 * Whether ETAG is that of an object made of the N parts: the MD5 of their MD5s, "-", and N.  False
 * for a server with other ETags.
 */
static int is_made_of(const char *etag, const cm_s3_part *part, size_t n, bool *out, cm_error *err)
{
    uint8_t sum[CM_MD5_NBYTES];
    char text[2 * CM_MD5_NBYTES + 32];
    cm_buf sums = {0};
    int rc = cm_buf_resize(&sums, n * CM_MD5_NBYTES, err);
    *out = rc == CM_OK;
    for (size_t i = 0; *out && i < n; i++)
        *out = cm_sum_of_etag(part[i].etag, sums.data + i * CM_MD5_NBYTES);
    if (*out) {
        cm_md5(sums.data, sums.nbytes, sum);
        text[0] = '"';
        for (int i = 0; i < CM_MD5_NBYTES; i++)
            snprintf(text + 1 + 2 * i, 3, "%02x", sum[i]);
        snprintf(text + 1 + 2 * CM_MD5_NBYTES, 32, "-%zu\"", n);
        *out = strcasecmp(etag, text) == 0;
    }
    cm_buf_release(&sums);
    return rc;
}

/*
 * The server does not know the upload: it completed it, and the answer was lost, or it has lost the
 * upload.  An object of the same length may be an older one; only the ETag tells.
 */
static int check_completed(cm_remote *s, const char *key, const cm_s3_part *part, size_t n,
                           uint64_t nbytes, cm_error *err)
{
    cm_object_stat there;
    bool same = false;
    int rc = s->base.ops->stat(&s->base, key, &there, err);
    if (rc == CM_ENOTFOUND)
        return cm_fail(err, CM_EIO, "%s: the server has lost an upload", key);
    if (rc == CM_OK && there.nbytes == nbytes)
        rc = is_made_of(there.tag, part, n, &same, err);
    if (rc == CM_OK && !same)
        rc = cm_fail(err, CM_EIO,
                     "%s: the server has lost an upload, or its answer was lost: the object that "
                     "is there cannot be told from an older one",
                     key);
    return rc;
}

int cm_s3_upload_complete(cm_remote *s, const char *key, const char *id, const cm_s3_part *part,
                          size_t n, uint64_t nbytes, cm_error *err)
{
    cm_buf xml = {0};
    /* Servers that take it for a form ignore the body. */
    cm_http r = {.method = CM_HTTP_POST, .header = {"Content-Type: application/xml"}};
    char *query = cm_asprintf(err, "uploadId=%s", id);
    int rc = query == NULL ? CM_ENOMEM
                           : write_list(part, n, s->checksum == CM_CHECKSUM_CRC32C, &xml, err);
    r.body = xml.data;
    r.body_nbytes = xml.nbytes;
    if (rc == CM_OK)
        rc = cm_remote_run_key(s, key, query, &r, err);
    if (rc == CM_OK && r.rc == CM_ENOTFOUND)
        rc = check_completed(s, key, part, n, nbytes, err);
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
