#include "base/fileurl.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/mem.h"

/* Bytes of "SCHEME://" that TEXT begins with (RFC 3986, 3.1); 0: it is a path. */
static size_t scheme_nbytes(const char *text)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char OTHERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789+.-";
    size_t n = strspn(text, OTHERS);
    return strspn(text, LETTERS) > 0 && strncmp(text + n, "://", 3) == 0 ? n + 3 : 0;
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

int cm_fileurl_strip(const char *text, const char **path, bool *is_url, cm_error *err)
{
    size_t n = scheme_nbytes(text);
    *path = text;
    *is_url = false;
    if (n == 0 || is_there(text))
        return CM_OK;
    if (n != strlen("file://") || strncasecmp(text, "file", 4) != 0)
        return cm_fail(
            err, CM_EINVAL,
            "%s: cannot be opened: use a path, or a URL that begins with file://, s3://, "
            "gs://, https:// or http://",
            text);
    const char *host = text + n, *slash = strchr(host, '/');
    size_t nhost = slash == NULL ? strlen(host) : (size_t)(slash - host);
    bool here = nhost == 0 || (nhost == 9 && strncasecmp(host, "localhost", 9) == 0);
    if (!here)
        return cm_fail(err, CM_EINVAL,
                       "%s: names the host %.*s, and only files of this machine can be had; "
                       "file:///PATH, with three slashes, is a path",
                       text, (int)nhost, host);
    if (slash == NULL)
        return cm_fail(err, CM_EINVAL, "%s: has no path; file:///PATH has one", text);
    *path = slash;
    *is_url = true;
    return CM_OK;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void cm_url_decode(char *text)
{
    char *to = text;
    for (const char *p = text; *p != '\0'; to++) {
        int high = *p == '%' ? digit(p[1]) : -1;
        int low = high >= 0 ? digit(p[2]) : -1;
        *to = low >= 0 && (high | low) != 0 ? (char)(high << 4 | low) : *p;
        p += low >= 0 && (high | low) != 0 ? 3 : 1;
    }
    *to = '\0';
}

int cm_fileurl_decode(char *path, cm_error *err)
{
    if (strchr(path, '%') == NULL || is_there(path))
        return CM_OK;
    for (const char *p = path; (p = strchr(p, '%')) != NULL; p++)
        if (digit(p[1]) < 0 || digit(p[2]) < 0 || (p[1] == '0' && p[2] == '0'))
            return cm_fail(err, CM_EINVAL,
                           "%s: '%.3s' is not a byte of a path; write %%25 for a percent sign",
                           path, p);
    cm_url_decode(path);
    return CM_OK;
}

int cm_fileurl_path(const char *text, char **out, cm_error *err)
{
    const char *path;
    bool is_url;
    *out = NULL;
    int rc = cm_fileurl_strip(text, &path, &is_url, err);
    if (rc == CM_OK && (*out = cm_strdup(path, err)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK && is_url)
        rc = cm_fileurl_decode(*out, err);
    if (rc != CM_OK) {
        free(*out);
        *out = NULL;
    }
    return rc;
}
