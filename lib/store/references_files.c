/* Resolves the URL of a reference to a file or object. */
#include <stdlib.h>
#include <string.h>

#include "base/fileurl.h"
#include "store/net/url.h"
#include "store/references_read.h"

enum {
    MAX_URL = 16 << 10 /* templates could expand to terabytes */
};

/* Expands "{{name}}" in URL; anything else in braces is an expression, and refused. */
static int fill_templates(const cm_reference_reading *r, const char *url, char **out, cm_error *err)
{
    cm_buf text;
    int rc = CM_OK;
    cm_buf_init(&text, 0);
    for (const char *open; rc == CM_OK && (open = strstr(url, "{{")) != NULL;) {
        const char *close = strstr(open, "}}");
        char name[256];
        size_t n = close == NULL ? sizeof name : (size_t)(close - open) - 2;
        const char *value = NULL;
        size_t nvalue = 0;
        if (n < sizeof name) {
            memcpy(name, open + 2, n);
            name[n] = '\0';
            value = cm_json_text(cm_json_member(r->templates, name), &nvalue);
        }
        if (value == NULL || strstr(value, "{{") != NULL || strlen(value) != nvalue)
            rc = cm_fail(err, CM_EUNSUPPORTED, "'%s': only templates that are plain texts are read",
                         url);
        else if ((rc = cm_buf_append(&text, url, (size_t)(open - url), err)) == CM_OK)
            rc = cm_buf_append(&text, value, nvalue, err);
        if (rc == CM_OK)
            url = close + 2;
        if (rc == CM_OK && text.nbytes > MAX_URL)
            rc = cm_fail(err, CM_EFORMAT, "its URL is longer than %d bytes", MAX_URL);
    }
    if (rc == CM_OK)
        rc = cm_buf_append(&text, url, strlen(url) + 1, err);
    *out = (char *)text.data;
    if (rc != CM_OK) {
        cm_buf_release(&text);
        *out = NULL;
    }
    return rc;
}

/* Finds or adds the server or bucket TEXT, which it takes. */
static int number_of_origin(cm_reference_reading *r, char *text, uint32_t *out, cm_error *err)
{
    cm_reference_table *t = r->out;
    size_t i = 0;
    while (i < t->norigins && strcmp(t->origin[i], text) != 0)
        i++;
    *out = (uint32_t)i;
    if (i < t->norigins) {
        free(text);
        return CM_OK;
    }
    int rc = i == CM_REFERENCES_MAX_ORIGINS
                 ? cm_fail(err, CM_EUNSUPPORTED,
                           "there are more than %d servers and buckets that it refers to",
                           CM_REFERENCES_MAX_ORIGINS)
                 : CM_GROW(t->origin, i, err);
    if (rc == CM_OK)
        t->origin[t->norigins++] = text;
    else
        free(text);
    return rc;
}

int cm_reference_resolve_remote(cm_reference_reading *r, const char *url, const char *below,
                                cm_reference_file *out, cm_error *err)
{
    cm_url parts;
    int rc = cm_url_parse(url, &parts, err);
    if (rc == CM_EINVAL) { /* not an error of the command line */
        rc = CM_EFORMAT;
        if (err != NULL)
            err->status = CM_EFORMAT;
    }
    if (rc == CM_OK) {
        const char *path = url + strlen(parts.origin);
        char *start = cm_strdup(path + (*path == '/'), err);
        if (start != NULL && parts.kind == CM_URL_HTTP)
            cm_url_decode(start);
        out->key = start == NULL ? NULL : cm_asprintf(err, "%s%s", start, below);
        out->name = cm_asprintf(err, "%s%s", url, below);
        free(start);
        rc = out->key == NULL || out->name == NULL ? CM_ENOMEM : cm_key_check(out->key, err);
    }
    if (rc == CM_OK) {
        rc = number_of_origin(r, parts.origin, &out->origin, err);
        parts.origin = NULL;
    }
    cm_url_release(&parts);
    return rc;
}

/* URL has no templates, and no scheme of a network. */
static int resolve_local(cm_reference_reading *r, const char *url, cm_reference_file *out,
                         cm_error *err)
{
    out->origin = CM_REFERENCE_LOCAL;
    bool absolute = url[0] == '/' || strncmp(url, "file:", 5) == 0;
    if (r->remote && absolute)
        return cm_fail(err, CM_EFORMAT,
                       "'%s': a document that came over a network cannot refer to files of this "
                       "machine",
                       url);
    if (absolute) {
        int rc = CM_OK;
        if (url[0] != '/')
            rc = cm_fileurl_path(url, &out->name, err);
        else if ((out->name = cm_strdup(url, err)) == NULL)
            rc = CM_ENOMEM;
        return rc == CM_OK ? cm_reference_check_place(r, out, err) : rc;
    }
    if (strstr(url, "://") != NULL)
        return cm_fail(
            err, CM_EUNSUPPORTED,
            "'%s': only references to files, http://, https://, s3:// and gs:// are read", url);
    int rc = cm_key_check(url, err); /* refuses "..", so that it stays below the folder */
    if (rc == CM_OK && r->remote)
        rc = cm_reference_resolve_remote(r, r->own_folder, url, out, err);
    else if (rc == CM_OK && (out->name = cm_asprintf(err, "%s%s", r->own_folder, url)) == NULL)
        rc = CM_ENOMEM;
    return rc;
}

void cm_reference_release_file(cm_reference_file *file)
{
    free(file->name);
    free(file->key);
    *file = (cm_reference_file){0};
}

static int resolve(cm_reference_reading *r, const char *url, cm_reference_file *out, cm_error *err)
{
    const bool local = cm_url_scheme(url) == CM_URL_LOCAL;
    int rc =
        local ? resolve_local(r, url, out, err) : cm_reference_resolve_remote(r, url, "", out, err);
    if (rc == CM_OK && !local)
        rc = cm_reference_check_place(r, out, err);
    if (rc != CM_OK)
        cm_reference_release_file(out);
    return rc;
}

static int grow_files(cm_reference_reading *r, cm_error *err)
{
    size_t capacity = r->file_capacity > 0 ? 2 * r->file_capacity : 64;
    cm_reference_file *file = realloc(r->out->file, capacity * sizeof *file);
    if (file != NULL)
        r->out->file = file;
    char **url = file == NULL ? NULL : realloc(r->url, capacity * sizeof *url);
    if (url != NULL)
        r->url = url;
    uint32_t *bucket = url == NULL ? NULL : calloc(2 * capacity, sizeof *bucket);
    if (bucket == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for %zu files", capacity);
    r->file_capacity = capacity;
    r->nbuckets = 2 * capacity;
    free(r->bucket);
    r->bucket = bucket;
    for (size_t i = 0; i < r->out->nfiles; i++) {
        size_t at = cm_key_hash(r->url[i], r->nbuckets);
        while (bucket[at] != 0)
            at = (at + 1) % r->nbuckets;
        bucket[at] = (uint32_t)i + 1;
    }
    return CM_OK;
}

/* Adds a new URL. */
static int add_file(cm_reference_reading *r, const char *url, size_t at, cm_error *err)
{
    cm_reference_file file = {0};
    char *copy = cm_strdup(url, err), *filled = NULL;
    int rc = copy == NULL ? CM_ENOMEM : fill_templates(r, url, &filled, err);
    if (rc == CM_OK)
        rc = resolve(r, filled, &file, err);
    free(filled);
    if (rc != CM_OK) {
        free(copy);
        return rc;
    }
    r->url[r->out->nfiles] = copy;
    r->out->file[r->out->nfiles++] = file;
    r->bucket[at] = (uint32_t)r->out->nfiles;
    return CM_OK;
}

/* Index of URL in the hash table, or of the free place for it. */
static size_t bucket_of(const cm_reference_reading *r, const char *url)
{
    size_t at = cm_key_hash(url, r->nbuckets);
    while (r->bucket[at] != 0 && strcmp(r->url[r->bucket[at] - 1], url) != 0)
        at = (at + 1) % r->nbuckets;
    return at;
}

bool cm_reference_file_find(const cm_reference_reading *r, const char *url, uint32_t *out)
{
    size_t at = r->nbuckets > 0 ? bucket_of(r, url) : 0;
    if (r->nbuckets == 0 || r->bucket[at] == 0)
        return false;
    *out = r->bucket[at] - 1;
    return true;
}

static int number_of(cm_reference_reading *r, const char *url, uint32_t *out, cm_error *err)
{
    int rc = r->out->nfiles == r->file_capacity ? grow_files(r, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    size_t at = bucket_of(r, url);
    if (r->bucket[at] == 0)
        rc = add_file(r, url, at, err);
    *out = rc == CM_OK ? r->bucket[at] - 1 : 0;
    return rc;
}

int cm_reference_file_number(cm_reference_reading *r, const char *url, size_t nbytes, uint32_t *out,
                             cm_error *err)
{
    /* Successive references usually name the same file. */
    const char *before = r->out->nfiles > 0 ? r->url[r->latest] : "";
    *out = r->latest;
    if (nbytes > 0 && strncmp(before, url, nbytes) == 0 && before[nbytes] == '\0')
        return CM_OK;
    char *text = cm_asprintf(err, "%.*s", (int)nbytes, url);
    int rc = text == NULL ? CM_ENOMEM : number_of(r, text, out, err);
    if (rc == CM_OK)
        r->latest = *out;
    free(text);
    return rc;
}

void cm_reference_reading_release(cm_reference_reading *r)
{
    for (size_t i = 0; i < r->out->nfiles; i++)
        free(r->url[i]);
    free(r->url);
    free(r->bucket);
    free(r->own_folder);
    cm_json_free(r->templates);
    cm_json_free(r->files);
}
