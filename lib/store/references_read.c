/* From the document to a table. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fileurl.h"
#include "base/json.h"
#include "store/net/url.h"
#include "store/references.h"

enum {
    MAX_URL = 16 << 10 /* templates could make terabytes */
};

typedef struct reading {
    const char *path; /* of the document, or its URL */
    size_t folder;    /* bytes of it that are its folder */
    bool remote;      /* it is a URL */
    const cm_json *templates;
    cm_reference_table *out;
    size_t capacity, file_capacity;
    uint32_t *bucket; /* of urls: number of the file + 1, or 0 */
    char **url;       /* as the document has it, one for each file */
    size_t nbuckets;
} reading;

/* ---- the text ---- */

static int open_document(const char *path, struct stat *st)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, st) != 0 || !S_ISREG(st->st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

bool cm_references_are(const char *path)
{
    char head[64];
    struct stat st;
    int fd = open_document(path, &st);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, head, sizeof head), i = 0;
    close(fd);
    while (i < n && isspace((unsigned char)head[i]))
        i++;
    return i < n && head[i] == '{';
}

static int read_file(const char *path, cm_buf *text, cm_error *err)
{
    struct stat st;
    int fd = open_document(path, &st);
    if (fd < 0)
        return cm_fail_errno(err, errno != 0 ? errno : EINVAL, "%s", path);
    int rc =
        st.st_size > CM_REFERENCES_MAX_NBYTES
            ? cm_fail(err, CM_EUNSUPPORTED, "%s: has %lld bytes, more than references may have",
                      path, (long long)st.st_size)
            : cm_buf_resize(text, (size_t)st.st_size, err);
    for (size_t at = 0; rc == CM_OK && at < text->nbytes;) {
        ssize_t n = read(fd, text->data + at, text->nbytes - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = cm_fail_errno(err, errno, "%s", path);
        else if (n == 0)
            text->nbytes = at;
        else
            at += (size_t)n;
    }
    close(fd);
    return rc;
}

/* ---- paths ---- */

/* "{{name}}" in URL becomes its text; anything else in braces is an expression, and refused. */
static int fill_templates(const reading *r, const char *url, char **out, cm_error *err)
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

/* The number of the server or bucket TEXT, which is taken over or freed. */
static int number_of_origin(reading *r, char *text, uint32_t *out, cm_error *err)
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
    char **grown =
        i == CM_REFERENCES_MAX_ORIGINS ? NULL : realloc(t->origin, (i + 1) * sizeof *t->origin);
    if (grown == NULL) {
        free(text);
        return i == CM_REFERENCES_MAX_ORIGINS
                   ? cm_fail(err, CM_EUNSUPPORTED,
                             "there are more than %d servers and buckets that it refers to",
                             CM_REFERENCES_MAX_ORIGINS)
                   : cm_fail(err, CM_ENOMEM, "no memory for references");
    }
    t->origin = grown;
    t->origin[t->norigins++] = text;
    return CM_OK;
}

/* URL, and BELOW it a path as a key has it, as an object of its origin. */
static int resolve_remote(reading *r, const char *url, const char *below, cm_reference_file *out,
                          cm_error *err)
{
    cm_url parts;
    int rc = cm_url_parse(url, &parts, err);
    if (rc == CM_EINVAL) { /* nobody typed it */
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
static int resolve_local(reading *r, const char *url, cm_reference_file *out, cm_error *err)
{
    out->origin = CM_REFERENCE_LOCAL;
    bool absolute = url[0] == '/' || strncmp(url, "file:", 5) == 0;
    if (r->remote && absolute)
        return cm_fail(err, CM_EFORMAT,
                       "'%s': a document that came over a network cannot refer to files of this "
                       "machine",
                       url);
    if (absolute && url[0] != '/')
        return cm_fileurl_path(url, &out->name, err);
    if (absolute)
        return (out->name = cm_strdup(url, err)) == NULL ? CM_ENOMEM : CM_OK;
    if (strstr(url, "://") != NULL)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "'%s': only references to files, http://, https:// and s3:// are read", url);
    int rc = cm_key_check(url, err); /* no "..", so that it stays below the folder */
    char *folder = rc == CM_OK ? cm_asprintf(err, "%.*s", (int)r->folder, r->path) : NULL;
    if (folder == NULL)
        return rc != CM_OK ? rc : CM_ENOMEM;
    if (r->remote)
        rc = resolve_remote(r, folder, url, out, err);
    else if ((out->name = cm_asprintf(err, "%s%s", folder, url)) == NULL)
        rc = CM_ENOMEM;
    free(folder);
    return rc;
}

static void release_file(cm_reference_file *file)
{
    free(file->name);
    free(file->key);
    *file = (cm_reference_file){0};
}

static int resolve(reading *r, const char *url, cm_reference_file *out, cm_error *err)
{
    int rc = cm_url_scheme(url) == CM_URL_LOCAL ? resolve_local(r, url, out, err)
                                                : resolve_remote(r, url, "", out, err);
    if (rc != CM_OK)
        release_file(out);
    return rc;
}

static int grow_files(reading *r, cm_error *err)
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

/* The number of the file that URL means: one for all references to it. */
static int number_of(reading *r, const char *url, uint32_t *out, cm_error *err)
{
    int rc = r->out->nfiles == r->file_capacity ? grow_files(r, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    size_t at = cm_key_hash(url, r->nbuckets);
    while (r->bucket[at] != 0 && strcmp(r->url[r->bucket[at] - 1], url) != 0)
        at = (at + 1) % r->nbuckets;
    if (r->bucket[at] == 0) {
        cm_reference_file file = {0};
        char *copy = cm_strdup(url, err), *filled = NULL;
        rc = copy == NULL ? CM_ENOMEM : fill_templates(r, url, &filled, err);
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
    }
    *out = r->bucket[at] - 1;
    return CM_OK;
}

/* ---- references ---- */

/* Appends NBYTES of TEXT and a NUL; *AT is where they lie. */
static int add_text(reading *r, const char *text, size_t nbytes, size_t *at, cm_error *err)
{
    cm_buf *texts = &r->out->texts;
    *at = texts->nbytes;
    int rc = cm_buf_extend(texts, nbytes + 1, err);
    if (rc != CM_OK)
        return rc;
    memcpy(texts->data + *at, text, nbytes);
    texts->data[*at + nbytes] = '\0';
    return CM_OK;
}

static int read_inline(reading *r, const char *text, size_t nbytes, cm_reference *ref,
                       cm_error *err)
{
    static const char prefix[] = "base64:";
    size_t at, skip = strlen(prefix);
    ref->is_base64 = nbytes >= skip && memcmp(text, prefix, skip) == 0;
    if (!ref->is_base64)
        skip = 0;
    int rc = add_text(r, text + skip, nbytes - skip, &at, err);
    ref->file = CM_REFERENCE_INLINE;
    ref->offset = at;
    ref->nbytes = nbytes - skip;
    return rc;
}

/* [URL] or [URL, OFFSET, LENGTH]. */
static int read_range(reading *r, const cm_json *value, cm_reference *ref, cm_error *err)
{
    size_t n = cm_json_length(value), nbytes;
    const char *url = cm_json_text(cm_json_at(value, 0), &nbytes);
    if (url == NULL || strlen(url) != nbytes || (n != 1 && n != 3))
        return cm_fail(err, CM_EFORMAT, "is neither [URL] nor [URL, OFFSET, LENGTH]");
    ref->whole = n == 1;
    if (n == 3 && (!cm_json_get_u64(cm_json_at(value, 1), &ref->offset) ||
                   !cm_json_get_u64(cm_json_at(value, 2), &ref->nbytes) ||
                   ref->offset > INT64_MAX || ref->nbytes > INT64_MAX - ref->offset))
        return cm_fail(err, CM_EFORMAT, "its offset and length are no bytes of a file");
    return number_of(r, url, &ref->file, err);
}

static int read_value(reading *r, const cm_json *value, cm_reference *ref, cm_error *err)
{
    size_t nbytes;
    const char *text = cm_json_text(value, &nbytes);
    if (text != NULL)
        return read_inline(r, text, nbytes, ref, err);
    if (cm_json_is(value, CM_JSON_ARRAY))
        return read_range(r, value, ref, err);
    if (!cm_json_is(value, CM_JSON_OBJECT))
        return cm_fail(err, CM_EFORMAT, "is neither a text, nor a document, nor a range of a file");
    cm_buf document;
    cm_buf_init(&document, 0);
    int rc = cm_json_write(value, false, &document, err);
    if (rc == CM_OK)
        rc = read_inline(r, (const char *)document.data, document.nbytes, ref, err);
    cm_buf_release(&document);
    return rc;
}

static int read_reference(reading *r, const char *key, const cm_json *value, cm_error *err)
{
    cm_reference_table *t = r->out;
    if (t->n == r->capacity) {
        size_t capacity = r->capacity > 0 ? 2 * r->capacity : 256;
        cm_reference *grown = realloc(t->item, capacity * sizeof *grown);
        if (grown == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for %zu references", capacity);
        t->item = grown;
        r->capacity = capacity;
    }
    cm_reference *ref = &t->item[t->n];
    *ref = (cm_reference){0};
    int rc = cm_key_check(key, err);
    if (rc == CM_OK)
        rc = add_text(r, key, strlen(key), &ref->key, err);
    if (rc == CM_OK) {
        rc = read_value(r, value, ref, err);
        if (rc != CM_OK)
            cm_error_prefix(err, "reference %s", key);
    }
    t->n += rc == CM_OK;
    return rc;
}

/* ---- the document ---- */

static int find_references(reading *r, const cm_json *document, const cm_json **refs, cm_error *err)
{
    uint64_t version = 0;
    const cm_json *given = cm_json_member(document, "version");
    *refs = document;
    if (given == NULL)
        return CM_OK; /* version 0: references, and nothing besides */
    if (!cm_json_get_u64(given, &version) || version != 1)
        return cm_fail(err, CM_EUNSUPPORTED, "is of a version of references other than 1");
    if (cm_json_length(cm_json_member(document, "gen")) > 0)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "has references that are generated by expressions, which are not read");
    r->templates = cm_json_member(document, "templates");
    *refs = cm_json_member(document, "refs");
    return cm_json_is(*refs, CM_JSON_OBJECT) ? CM_OK : cm_fail(err, CM_EFORMAT, "has no \"refs\"");
}

static int by_key(const void *a, const void *b, void *table)
{
    const cm_reference_table *t = table;
    return strcmp(cm_reference_key(t, a), cm_reference_key(t, b));
}

static int read_document(reading *r, const cm_json *document, cm_error *err)
{
    const cm_json *refs;
    if (!cm_json_is(document, CM_JSON_OBJECT))
        return cm_fail(err, CM_EFORMAT, "is no JSON object");
    int rc = find_references(r, document, &refs, err);
    if (rc != CM_OK)
        return rc;
    cm_json_iter it = cm_json_begin(refs);
    while (rc == CM_OK && cm_json_next(&it))
        rc = read_reference(r, it.name, it.value, err);
    if (rc == CM_OK && r->out->n > 0)
        qsort_r(r->out->item, r->out->n, sizeof *r->out->item, by_key, r->out);
    return rc;
}

/* The text at the URL of the document. */
static int fetch(reading *r, cm_net *net, cm_buf *text, cm_error *err)
{
    cm_reference_file file = {0};
    cm_store *store = NULL;
    int rc = resolve_remote(r, r->path, "", &file, err);
    if (rc == CM_OK)
        rc = cm_store_open_remote(r->out->origin[file.origin], net, &store, err);
    if (rc == CM_OK)
        rc = cm_store_get(store, file.key, CM_REFERENCES_MAX_NBYTES, text, err);
    cm_store_free(store);
    release_file(&file);
    return rc;
}

static int read_text(reading *r, cm_net *net, cm_buf *text, cm_error *err)
{
    if (!r->remote)
        return read_file(r->path, text, err);
    if (net == NULL)
        return cm_fail(err, CM_EINVAL, "%s: only folders and files are read here", r->path);
    int rc = fetch(r, net, text, err);
    if (rc != CM_OK)
        cm_error_place(err, r->path);
    return rc;
}

int cm_references_read(const char *place, cm_net *net, cm_reference_table *out, cm_error *err)
{
    const char *slash = strrchr(place, '/');
    reading r = {.path = place,
                 .folder = slash == NULL ? 0 : (size_t)(slash - place) + 1,
                 .remote = cm_url_kind_of(place) != CM_URL_LOCAL,
                 .out = out};
    cm_json *document = NULL;
    cm_buf text;
    *out = (cm_reference_table){0};
    cm_buf_init(&text, 0);
    int rc = read_text(&r, net, &text, err);
    if (rc == CM_OK) {
        rc = cm_json_parse(text.data, text.nbytes, &document, err);
        cm_buf_release(&text); /* a large one: not kept beside the tree */
        if (rc == CM_OK)
            rc = read_document(&r, document, err);
        if (rc != CM_OK)
            cm_error_prefix(err, "%s", place);
    }
    cm_json_free(document);
    cm_buf_release(&text);
    for (size_t i = 0; i < out->nfiles; i++)
        free(r.url[i]);
    free(r.url);
    free(r.bucket);
    return rc;
}

void cm_references_release(cm_reference_table *t)
{
    for (size_t i = 0; i < t->nfiles; i++)
        release_file(&t->file[i]);
    for (size_t i = 0; i < t->norigins; i++)
        free(t->origin[i]);
    free(t->file);
    free(t->origin);
    free(t->item);
    cm_buf_release(&t->texts);
    *t = (cm_reference_table){0};
}
