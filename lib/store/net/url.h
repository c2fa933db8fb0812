/*
 * URLs of stores: "s3://BUCKET/PREFIX", "gs://BUCKET/PREFIX", "https://HOST/PATH",
 * "http://HOST/PATH".
 *
 * A bucket's prefix is taken as typed; a web path must be percent-encoded already, as in a browser.
 */
#ifndef CM_STORE_NET_URL_H
#define CM_STORE_NET_URL_H

#include "base/mem.h"

typedef enum cm_url_kind {
    CM_URL_LOCAL, /* a path, or "file://" */
    CM_URL_HTTP,
    CM_URL_S3 /* a bucket, at Google, too, whose XML interface speaks S3 */
} cm_url_kind;

typedef struct cm_url {
    cm_url_kind kind;
    char *origin; /* "https://host:port"; "s3://bucket"; "gs://bucket" */
    char *bucket; /* NULL but for S3 */
    /* Without '/' at either end; percent-encoded for web addresses, plain for buckets. */
    char *path;
} cm_url;

/* The kind of TEXT; an existing file of exactly that name wins. */
cm_url_kind cm_url_kind_of(const char *text);
#define CM_URL_GOOGLE_READ_ONLY "Google's buckets are only read; write it here, and copy it"
/* True for "gs://...", a bucket at Google. */
bool cm_url_is_google(const char *text);
/* The kind of TEXT by its scheme alone, ignoring files. */
cm_url_kind cm_url_scheme(const char *text);
/*
 * Parses TEXT with a remote scheme.  CM_EINVAL, without repeating possible secrets, if it has a
 * user, a query or a fragment.
 */
int cm_url_parse(const char *text, cm_url *out, cm_error *err);
void cm_url_release(cm_url *url);

/* True if two web addresses have the same scheme, host and port. */
bool cm_url_same_origin(const char *a, const char *b);

/*
 * Appends TEXT percent-encoded strictly, in upper case: all but letters, digits and "-._~", and '/'
 * where SLASHES.
 */
int cm_url_encode(cm_buf *out, const char *text, bool slashes, cm_error *err);
/* The address of NODE, a well-formed key or "", in the store URL; the caller frees it. */
char *cm_url_join(const char *url, const char *node, cm_error *err);

#endif
