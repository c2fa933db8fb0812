/*
 * Untrusted documents may point only where the user allows.  Otherwise their author could make the
 * reader fetch any local file, any address in its network, and any bucket that its credentials
 * open, and show the bytes as data.
 */
#include "store/allow.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/fileurl.h"
#include "store/net/url.h"

/* True if PATH is FOLDER, or below it, by name; "" is the root. */
static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    while (n > 0 && folder[n - 1] == '/')
        n--;
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

bool cm_allow_is_plain(const char *path)
{
    for (const char *p = path; (p = strstr(p, "/..")) != NULL; p += 3)
        if (p[3] == '/' || p[3] == '\0')
            return false;
    return path[0] == '/';
}

/* ---- local files ---- */

bool cm_allow_in_folder(const char *path, const char *folder)
{
    char real[PATH_MAX];
    return (folder[0] == '/' && is_below(path, folder)) ||
           (realpath(*folder != '\0' ? folder : ".", real) != NULL && is_below(path, real));
}

static bool is_allowed_path(const char *path, const char *prefix)
{
    char *folder = NULL;
    bool allowed = cm_url_scheme(prefix) == CM_URL_LOCAL &&
                   cm_fileurl_path(prefix, &folder, NULL) == CM_OK &&
                   cm_allow_in_folder(path, folder);
    free(folder);
    return allowed;
}

/* ---- behind a network ---- */

bool cm_allow_same_origin(const char *a, const char *b)
{
    cm_url_kind kind = cm_url_scheme(a);
    return kind == cm_url_scheme(b) &&
           (kind == CM_URL_HTTP ? cm_url_same_origin(a, b) : strcmp(a, b) == 0);
}

/* True if the URL PREFIX is a prefix of KEY at ORIGIN. */
static bool is_allowed_object(const char *origin, const char *key, const char *prefix)
{
    cm_url url = {0};
    bool allowed = false;
    if (cm_url_scheme(prefix) != CM_URL_LOCAL && cm_url_parse(prefix, &url, NULL) == CM_OK) {
        if (url.kind == CM_URL_HTTP)
            cm_url_decode(url.path);
        allowed = cm_allow_same_origin(url.origin, origin) &&
                  (url.path[0] == '\0' || is_below(key, url.path));
    }
    cm_url_release(&url);
    return allowed;
}

/* ---- both ---- */

bool cm_allow_has_path(const cm_texts *allow, const char *path)
{
    bool allowed = false;
    for (size_t i = 0; allow != NULL && i < allow->n && !allowed; i++)
        allowed = is_allowed_path(path, allow->text[i]);
    return allowed;
}

bool cm_allow_has_object(const cm_texts *allow, const char *origin, const char *key)
{
    bool allowed = false;
    for (size_t i = 0; allow != NULL && i < allow->n && !allowed; i++)
        allowed = is_allowed_object(origin, key, allow->text[i]);
    return allowed;
}

/* Quotes TEXT, of NBYTES, as one word for a shell. */
static char *shell_word(const char *text, size_t nbytes, cm_error *err)
{
    static const char SAFE[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-./:=,+@%";
    cm_buf word = {0};
    bool plain = strspn(text, SAFE) >= nbytes;
    int rc = plain ? CM_OK : cm_buf_append(&word, "'", 1, err);
    for (size_t i = 0; rc == CM_OK && i < nbytes; i++)
        rc = text[i] == '\'' ? cm_buf_append(&word, "'\\''", 4, err)
                             : cm_buf_append(&word, text + i, 1, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&word, "'", plain ? 0 : 1, err);
    if (rc == CM_OK && (rc = cm_buf_append(&word, "", 1, err)) == CM_OK)
        return (char *)word.data;
    cm_buf_release(&word);
    return NULL;
}

int cm_allow_check(const cm_texts *allow, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; allow != NULL && rc == CM_OK && i < allow->n; i++) {
        const char *prefix = allow->text[i];
        cm_url url = {0};
        char *path = NULL;
        rc = cm_url_scheme(prefix) != CM_URL_LOCAL ? cm_url_parse(prefix, &url, err)
                                                   : cm_fileurl_path(prefix, &path, err);
        cm_url_release(&url);
        free(path);
    }
    if (rc == CM_EINVAL)
        cm_error_prefix(err, "`allow`");
    return rc;
}

int cm_allow_refuse(const char *name, bool local, const char *why, cm_error *err)
{
    /* The file's folder, or a whole bucket or server. */
    const char *slash = strrchr(name, '/');
    const char *host = local ? NULL : strstr(name, "://");
    size_t n = host != NULL && slash < host + 3 ? strlen(name) : (size_t)(slash - name);
    char *word = shell_word(name, n > 0 ? n : 1, err);
    if (word == NULL)
        return CM_ENOMEM;
    int rc = cm_fail(err, CM_EUNSUPPORTED, "'%s': %s; `allow` %s permits it", name, why, word);
    free(word);
    return rc;
}
