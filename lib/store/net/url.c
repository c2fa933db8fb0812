#include "store/net/url.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

bool cm_url_is_google(const char *text)
{
    return strncasecmp(text, "gs://", 5) == 0;
}

cm_url_kind cm_url_scheme(const char *text)
{
    if (strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0)
        return CM_URL_HTTP;
    return strncasecmp(text, "s3://", 5) == 0 || cm_url_is_google(text) ? CM_URL_S3 : CM_URL_LOCAL;
}

cm_url_kind cm_url_kind_of(const char *text)
{
    struct stat st;
    cm_url_kind kind = cm_url_scheme(text);
    return kind != CM_URL_LOCAL && lstat(text, &st) == 0 ? CM_URL_LOCAL : kind;
}

/* TEXT without leading and trailing slashes. */
static char *trimmed(const char *text, cm_error *err)
{
    text += strspn(text, "/");
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == '/')
        n--;
    return cm_asprintf(err, "%.*s", (int)n, text);
}

static int parse_s3(const char *text, cm_url *out, cm_error *err)
{
    static const char ALLOWED[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.-_";
    const char *bucket = text + strlen("s3://"); /* as long as "gs://" */
    const char *scheme = cm_url_is_google(text) ? "gs" : "s3";
    size_t n = strcspn(bucket, "/");
    if (n == 0 || strspn(bucket, ALLOWED) < n || n > 255)
        return cm_fail(err, CM_EINVAL,
                       "%s: names no bucket; %s://BUCKET/PREFIX is the form of an address", text,
                       scheme);
    out->origin = cm_asprintf(err, "%s://%.*s", scheme, (int)n, bucket);
    out->bucket = cm_asprintf(err, "%.*s", (int)n, bucket);
    out->path = trimmed(bucket + n, err);
    return out->origin == NULL || out->bucket == NULL || out->path == NULL ? CM_ENOMEM : CM_OK;
}

static int parse_http(const char *text, cm_url *out, cm_error *err)
{
    const char *host = strstr(text, "://") + 3;
    size_t n = strcspn(host, "/?#");
    if (memchr(host, '@', n) != NULL)
        return cm_fail(err, CM_EINVAL,
                       "an address with a user name or password is not accepted (it would be seen "
                       "in messages and process lists); ~/.netrc can hold them");
    if (strpbrk(host + n, "?#") != NULL)
        return cm_fail(err, CM_EINVAL,
                       "%.*s/...: an address with a query or a fragment is not accepted",
                       (int)(host - text) + (int)n, text);
    if (n == 0)
        return cm_fail(err, CM_EINVAL, "%s: names no host", text);
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return cm_fail(err, CM_EINVAL,
                           "%s: has a space or control character; write it as %%%02X", text,
                           (unsigned char)*p);
    out->origin = cm_asprintf(err, "%.*s", (int)(host - text) + (int)n, text);
    out->path = trimmed(host + n, err);
    return out->origin == NULL || out->path == NULL ? CM_ENOMEM : CM_OK;
}

int cm_url_parse(const char *text, cm_url *out, cm_error *err)
{
    *out = (cm_url){.kind = cm_url_scheme(text)};
    return out->kind == CM_URL_S3 ? parse_s3(text, out, err) : parse_http(text, out, err);
}

/* The scheme, host and port of URL, without a port that is the scheme's own. */
static size_t origin_nbytes(const char *url)
{
    const char *host = strstr(url, "://") + 3;
    size_t n = strcspn(host, "/?#");
    const char *own = strncasecmp(url, "https:", 6) == 0 ? ":443" : ":80";
    size_t k = strlen(own);
    if (n > k && strncmp(host + n - k, own, k) == 0)
        n -= k;
    return (size_t)(host - url) + n;
}

bool cm_url_same_origin(const char *a, const char *b)
{
    size_t n = origin_nbytes(a);
    return n == origin_nbytes(b) && strncasecmp(a, b, n) == 0;
}

void cm_url_release(cm_url *url)
{
    free(url->origin);
    free(url->bucket);
    free(url->path);
    *url = (cm_url){0};
}

int cm_url_encode(cm_buf *out, const char *text, bool slashes, cm_error *err)
{
    static const char HEX[] = "0123456789ABCDEF";
    int rc = cm_buf_reserve(out, out->nbytes + 3 * strlen(text) + 1, err);
    for (const char *p = text; rc == CM_OK && *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        bool plain = (c < 0x80 && isalnum(c)) || strchr("-._~", c) != NULL || (slashes && c == '/');
        const char code[3] = {'%', HEX[c >> 4], HEX[c & 15]};
        rc = plain ? cm_buf_append(out, p, 1, err) : cm_buf_append(out, code, 3, err);
    }
    return rc;
}

char *cm_url_join(const char *url, const char *node, cm_error *err)
{
    cm_buf text = {0};
    if (cm_url_kind_of(url) != CM_URL_HTTP || *node == '\0')
        return cm_asprintf(err, "%s%s%s", url, *node != '\0' ? "/" : "", node);
    int rc = cm_buf_printf(&text, err, "%s/", url);
    if (rc == CM_OK)
        rc = cm_url_encode(&text, node, true, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&text, "", 1, err);
    if (rc == CM_OK)
        return (char *)text.data;
    cm_buf_release(&text);
    return NULL;
}
