#include "store/net/sign.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

enum {
    BLOCK_NBYTES = 64,
    MOST_HEADERS = 16,
    DAY_NBYTES = 8 /* of a date */
};

static const char PAYLOAD[] = "UNSIGNED-PAYLOAD";

bool cm_sign_is_needed(const char *url)
{
    const char *query = strchr(url, '?');
    return query != NULL && strstr(query, "%2B") != NULL;
}

/* ---- HMAC (RFC 2104) ---- */

/* OUT may be KEY. */
static void hmac(const void *key, size_t key_nbytes, const char *text,
                 uint8_t out[CM_SHA256_NBYTES])
{
    uint8_t pad[BLOCK_NBYTES] = {0}, inner[CM_SHA256_NBYTES];
    cm_sha256 sha;
    cm_sha256_begin(&sha);
    if (key_nbytes > BLOCK_NBYTES) {
        cm_sha256_add(&sha, key, key_nbytes);
        cm_sha256_end(&sha, pad);
        cm_sha256_begin(&sha);
    } else {
        memcpy(pad, key, key_nbytes);
    }
    for (int i = 0; i < BLOCK_NBYTES; i++)
        pad[i] ^= 0x36;
    cm_sha256_add(&sha, pad, sizeof(pad));
    cm_sha256_add(&sha, text, strlen(text));
    cm_sha256_end(&sha, inner);
    for (int i = 0; i < BLOCK_NBYTES; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    cm_sha256_begin(&sha);
    cm_sha256_add(&sha, pad, sizeof(pad));
    cm_sha256_add(&sha, inner, sizeof(inner));
    cm_sha256_end(&sha, out);
}

/* ---- the canonical request ---- */

static const char *method_name(cm_http_method method)
{
    switch (method) {
    case CM_HTTP_HEAD:
        return "HEAD";
    case CM_HTTP_PUT:
        return "PUT";
    case CM_HTTP_POST:
        return "POST";
    case CM_HTTP_DELETE:
        return "DELETE";
    default:
        return "GET";
    }
}

/* As libcurl sends it: without the scheme's default port. */
static int add_host(cm_buf *out, const char *url, const char *host, size_t nbytes, cm_error *err)
{
    const char *port = strncmp(url, "https:", 6) == 0 ? ":443" : ":80";
    const size_t n = strlen(port);
    if (nbytes > n && memcmp(host + nbytes - n, port, n) == 0)
        nbytes -= n;
    int rc = cm_buf_printf(out, err, "host:");
    return rc == CM_OK ? cm_buf_append(out, host, nbytes, err) : rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "name:value" of each header, and "name;name": the host, then those of AWS in their order. */
static int add_headers(const char *url, const struct curl_slist *headers, const char *dated,
                       cm_buf *lines, cm_buf *names, cm_error *err)
{
    const char *own[MOST_HEADERS] = {dated}, *host = strstr(url, "://") + 3;
    size_t n = 1;
    for (; headers != NULL; headers = headers->next)
        if (strncmp(headers->data, "x-amz-", 6) == 0 && n < MOST_HEADERS)
            own[n++] = headers->data;
    qsort(own, n, sizeof(*own), by_name);
    int rc = add_host(lines, url, host, strcspn(host, "/?"), err);
    if (rc == CM_OK)
        rc = cm_buf_printf(names, err, "host");
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        const int length = (int)strcspn(own[i], ":");
        const char *value = own[i] + length + 1;
        rc = cm_buf_printf(lines, err, "\n%.*s:%s", length, own[i], value + strspn(value, " "));
        if (rc == CM_OK)
            rc = cm_buf_printf(names, err, ";%.*s", length, own[i]);
    }
    return rc;
}

/* The digest of the canonical request; NAMES are its headers. */
static int digest_request(const cm_http *r, const struct curl_slist *headers, const char *date,
                          cm_buf *names, char text[65], cm_error *err)
{
    cm_buf form = {0}, lines = {0};
    cm_sha256 sha;
    const char *path = strstr(r->url, "://") + 3;
    path += strcspn(path, "/?");
    const char *query = strchr(path, '?');
    const int length = (int)(query != NULL ? (size_t)(query - path) : strlen(path));
    char *dated = cm_asprintf(err, "x-amz-date: %s", date);
    int rc = dated == NULL ? CM_ENOMEM : add_headers(r->url, headers, dated, &lines, names, err);
    if (rc == CM_OK)
        rc = cm_buf_printf(&form, err, "%s\n%s%.*s\n%s\n%.*s\n\n%.*s\n%s", method_name(r->method),
                           length == 0 ? "/" : "", length, path, query != NULL ? query + 1 : "",
                           (int)lines.nbytes, (const char *)lines.data, (int)names->nbytes,
                           (const char *)names->data, PAYLOAD);
    if (rc == CM_OK) {
        cm_sha256_begin(&sha);
        cm_sha256_add(&sha, form.data, form.nbytes);
        cm_sha256_text(&sha, text);
    }
    free(dated);
    cm_buf_release(&form);
    cm_buf_release(&lines);
    return rc;
}

/* SCOPE is "20300102/us-east-1/s3/aws4_request". */
static int sign_digest(const char *secret, const char *scope, const char *date, const char *digest,
                       uint8_t out[CM_SHA256_NBYTES], cm_error *err)
{
    char part[256];
    char *key = cm_asprintf(err, "AWS4%s", secret);
    char *text = cm_asprintf(err, "AWS4-HMAC-SHA256\n%s\n%s\n%s", date, scope, digest);
    int rc = key == NULL || text == NULL ? CM_ENOMEM : CM_OK;
    const void *with = key;
    size_t nbytes = key == NULL ? 0 : strlen(key);
    for (const char *at = scope; rc == CM_OK && *at != '\0'; at += strspn(at, "/")) {
        const size_t n = strcspn(at, "/");
        snprintf(part, sizeof(part), "%.*s", (int)n, at);
        hmac(with, nbytes, part, out);
        with = out;
        nbytes = CM_SHA256_NBYTES;
        at += n;
    }
    if (rc == CM_OK)
        hmac(with, nbytes, text, out);
    free(key);
    free(text);
    return rc;
}

int cm_sign(const cm_http *r, const struct curl_slist *headers, time_t now, char **date,
            char **authorization, cm_error *err)
{
    char stamp[32], digest[65], hex[2 * CM_SHA256_NBYTES + 1];
    uint8_t signature[CM_SHA256_NBYTES];
    struct tm utc;
    cm_buf names = {0};
    const char *region = r->signer->scope + strlen("aws:amz:");
    strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
    *authorization = NULL;
    *date = cm_strdup(stamp, err);
    char *scope = cm_asprintf(err, "%.*s/%.*s/s3/aws4_request", DAY_NBYTES, stamp,
                              (int)strcspn(region, ":"), region);
    int rc = *date == NULL || scope == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK)
        rc = digest_request(r, headers, stamp, &names, digest, err);
    if (rc == CM_OK)
        rc = sign_digest(r->signer->secret, scope, stamp, digest, signature, err);
    for (size_t i = 0; rc == CM_OK && i < sizeof(signature); i++)
        snprintf(hex + 2 * i, 3, "%02x", signature[i]);
    if (rc == CM_OK)
        *authorization =
            cm_asprintf(err, "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%.*s, Signature=%s",
                        r->signer->key, scope, (int)names.nbytes, (const char *)names.data, hex);
    free(scope);
    cm_buf_release(&names);
    return rc == CM_OK && *authorization == NULL ? CM_ENOMEM : rc;
}
