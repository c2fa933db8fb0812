/*
 * URLs of stores: "s3://BUCKET/PREFIX", "https://HOST/PATH", "http://HOST/PATH".
 *
 * The prefix of a bucket is taken as it is typed; the path of a web address is percent-encoded
 * already, as in a browser.
 */
#ifndef CM_STORE_NET_URL_H
#define CM_STORE_NET_URL_H

#include "base/mem.h"

typedef enum cm_url_kind {
    CM_URL_LOCAL, /* a path, or "file://" */
    CM_URL_HTTP,
    CM_URL_S3
} cm_url_kind;

typedef struct cm_url {
    cm_url_kind kind;
    char *origin; /* "https://host:port"; "s3://bucket" */
    char *bucket; /* NULL but for S3 */
    char *path;   /* without '/' at either end: of a URL encoded, of a bucket not */
} cm_url;

/* What TEXT is; a file of that very name wins. */
cm_url_kind cm_url_kind_of(const char *text);
/* What it is whatever files there are. */
cm_url_kind cm_url_scheme(const char *text);
/*
 * Takes a TEXT with a remote scheme apart.  CM_EINVAL, without repeating what may be secret, for
 * one with a user, a query or a fragment.
 */
int cm_url_parse(const char *text, cm_url *out, cm_error *err);
void cm_url_release(cm_url *url);

/* True where two addresses of the web have the same scheme, host and port. */
bool cm_url_same_origin(const char *a, const char *b);

/*
 * Appends TEXT percent-encoded strictly, in upper case: all but letters, digits and "-._~", and '/'
 * where SLASHES.
 */
int cm_url_encode(cm_buf *out, const char *text, bool slashes, cm_error *err);
/* Decodes TEXT in place; what is no code stays. */
void cm_url_decode(char *text);

#endif
