/* The requests of an upload in parts: its beginning and its end. */
#ifndef CM_STORE_NET_S3_UPLOAD_H
#define CM_STORE_NET_S3_UPLOAD_H

#include "store/net/remote.h"

/* A part as acknowledged by the server. */
typedef struct cm_s3_part {
    char etag[CM_HTTP_ETAG_SIZE];
    char sum[CM_SUM_SIZE]; /* "": unknown to the server */
} cm_s3_part;

/* *id is encoded; the caller frees it. */
int cm_s3_upload_begin(cm_remote *s, const char *key, char **id, cm_error *err);
/* The address of part NUMBER, from 1; to be freed. */
char *cm_s3_upload_url(const cm_remote *s, const char *key, const char *id, size_t number,
                       cm_error *err);
/* Completes the object, which has NBYTES. */
int cm_s3_upload_complete(cm_remote *s, const char *key, const char *id, const cm_s3_part *part,
                          size_t n, uint64_t nbytes, cm_error *err);
int cm_s3_upload_abort(cm_remote *s, const char *key, const char *id, cm_error *err);
/* Aborts by an id from a listing, not encoded. */
int cm_s3_upload_abort_listed(cm_remote *s, const char *key, const char *id, cm_error *err);

#endif
