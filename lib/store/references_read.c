/* Parses a document into a table. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json_scan.h"
#include "base/json_size.h"
#include "store/allow.h"
#include "store/net/url.h"
#include "store/references_read.h"

typedef cm_reference_reading reading;

/* ---- the memory ---- */

static int too_large(const reading *r, cm_error *err)
{
    return cm_fail(err, CM_EBUDGET,
                   "its references do not fit the memory: there are %llu MiB for them; raise "
                   "`memory`",
                   (unsigned long long)(r->memory >> 20));
}

/* Memory left for trees of JSON; lists and texts that grow are moved, and there twice. */
static uint64_t left_for_trees(const reading *r)
{
    const cm_reference_table *t = r->out;
    const uint64_t listed = r->text_nbytes + t->texts.nbytes + r->capacity * sizeof *t->item * 2 +
                            r->file_capacity * (sizeof *t->file + sizeof *r->url) * 2;
    return listed < r->memory ? r->memory - listed : 0;
}

static int parse(const reading *r, const cm_json_slice *slice, cm_json **out, cm_error *err)
{
    const uint64_t left = left_for_trees(r);
    *out = NULL;
    return left == 0 ? too_large(r, err)
                     : cm_json_parse_within(slice->text, slice->nbytes, left, out, err);
}

/* A text of unknown length is there twice while it comes. */
static uint64_t most_text(const reading *r)
{
    return r->memory / 3 < CM_REFERENCES_MAX_NBYTES ? r->memory / 3 : CM_REFERENCES_MAX_NBYTES;
}

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

bool cm_references_begin(const char *head, size_t nbytes)
{
    size_t i = 0;
    while (i < nbytes && isspace((unsigned char)head[i]))
        i++;
    return i < nbytes && head[i] == '{';
}

bool cm_references_are(const char *path)
{
    char head[CM_REFERENCES_HEAD];
    size_t n;
    return cm_file_head(path, head, sizeof head, &n) && cm_references_begin(head, n);
}

static int read_file(const reading *r, cm_buf *text, cm_error *err)
{
    const char *path = r->path;
    struct stat st;
    int fd = open_document(path, &st);
    if (fd < 0)
        return cm_fail_errno(err, errno != 0 ? errno : EINVAL, "%s", path);
    int rc =
        st.st_size > CM_REFERENCES_MAX_NBYTES
            ? cm_fail(err, CM_EUNSUPPORTED, "%s: has %lld bytes, more than references may have",
                      path, (long long)st.st_size)
        : (uint64_t)st.st_size > most_text(r) ? too_large(r, err)
                                              : cm_buf_resize(text, (size_t)st.st_size, err);
    int errnum = rc == CM_OK ? cm_fd_read(fd, text->data, text->nbytes, &text->nbytes) : 0;
    if (errnum != 0)
        rc = cm_fail_errno(err, errnum, "%s", path);
    close(fd);
    return rc;
}

/* ---- references ---- */

/* Appends NBYTES of TEXT and a NUL; *AT is their place. */
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

static int set_range(reading *r, const char *url, size_t nbytes, cm_reference *ref, cm_error *err)
{
    if (ref->offset > INT64_MAX || ref->nbytes > INT64_MAX - ref->offset)
        return cm_fail(err, CM_EFORMAT,
                       "its offset and length must be integers from 0 to 2^63 - 1");
    return cm_reference_file_number(r, url, nbytes, &ref->file, err);
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
                   !cm_json_get_u64(cm_json_at(value, 2), &ref->nbytes)))
        return cm_fail(err, CM_EFORMAT,
                       "its offset and length must be integers from 0 to 2^63 - 1");
    return set_range(r, url, nbytes, ref, err);
}

static const char *after_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n'))
        p++;
    return p;
}

/* ", 123"; NULL for anything else. */
static const char *read_number(const char *p, const char *end, uint64_t *out)
{
    p = after_space(p, end);
    if (p == end || *p++ != ',')
        return NULL;
    const char *first = p = after_space(p, end);
    for (*out = 0; p < end && *p >= '0' && *p <= '9' && p - first < 19; p++)
        *out = *out * 10 + (uint64_t)(*p - '0');
    bool zeros = p - first > 1 && *first == '0';
    return p > first && !zeros && p < end && (*p < '0' || *p > '9') ? p : NULL;
}

/*
 * Parses a range in the form of nearly all documents, a million times: a text without escapes, two
 * numbers.  False: another form, or an error.
 */
static bool read_plain_range(const cm_json_slice *value, cm_json_slice *url, cm_reference *ref)
{
    const char *p = value->text, *end = p + value->nbytes;
    if (value->nbytes < 2 || *p != '[')
        return false;
    p = after_space(p + 1, end);
    const char *quote = p < end && *p == '"' ? memchr(p + 1, '"', (size_t)(end - p - 1)) : NULL;
    if (quote == NULL)
        return false;
    *url = (cm_json_slice){p, (size_t)(quote - p) + 1};
    if ((p = read_number(quote + 1, end, &ref->offset)) == NULL ||
        (p = read_number(p, end, &ref->nbytes)) == NULL)
        return false;
    p = after_space(p, end);
    return p + 1 == end && *p == ']' && cm_json_slice_is_plain(url);
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

static int read_slice(reading *r, const cm_json_slice *value, cm_reference *ref, cm_error *err)
{
    cm_json_slice url;
    cm_json *j;
    if (read_plain_range(value, &url, ref))
        return set_range(r, url.text + 1, url.nbytes - 2, ref, err);
    *ref = (cm_reference){.key = ref->key};
    int rc = parse(r, value, &j, err);
    if (rc == CM_OK)
        rc = read_value(r, j, ref, err);
    cm_json_free(j);
    return rc;
}

/* Adds the text of NAME, a string with its quotes; *OUT is its place. */
static int read_name(reading *r, const cm_json_slice *name, size_t *out, cm_error *err)
{
    if (cm_json_slice_is_plain(name))
        return add_text(r, name->text + 1, name->nbytes - 2, out, err);
    cm_json *j;
    size_t nbytes = 0;
    int rc = parse(r, name, &j, err);
    const char *text = rc == CM_OK ? cm_json_text(j, &nbytes) : NULL;
    if (rc == CM_OK && (text == NULL || strlen(text) != nbytes))
        rc = cm_fail(err, CM_EFORMAT, "a key has a NUL");
    if (rc == CM_OK)
        rc = add_text(r, text, nbytes, out, err);
    cm_json_free(j);
    return rc;
}

static int read_reference(reading *r, const cm_json_slice *name, const cm_json_slice *value,
                          cm_error *err)
{
    cm_reference_table *t = r->out;
    cm_reference *grown = cm_make_room(t->item, t->n, &r->capacity, sizeof *grown, 256);
    if (grown == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for %zu references", (size_t)t->n + 1);
    t->item = grown;
    cm_reference *ref = &t->item[t->n];
    *ref = (cm_reference){0};
    int rc = read_name(r, name, &ref->key, err);
    if (rc == CM_OK)
        rc = cm_key_check(cm_reference_key(t, ref), err);
    if (rc == CM_OK) {
        rc = read_slice(r, value, ref, err);
        if (rc != CM_OK)
            cm_error_prefix(err, "reference %s", cm_reference_key(t, ref));
    }
    t->n += rc == CM_OK;
    return rc == CM_OK && left_for_trees(r) == 0 ? too_large(r, err) : rc;
}

/* ---- the document ---- */

typedef struct members {
    /* Members of the document; empty text: absent. */
    cm_json_slice version, gen, templates, files, refs;
} members;

static int find_members(const cm_buf *text, members *m, cm_error *err)
{
    const struct {
        const char *name;
        cm_json_slice *slice;
    } wanted[] = {{"\"version\"", &m->version},
                  {"\"gen\"", &m->gen},
                  {"\"templates\"", &m->templates},
                  {"\"files\"", &m->files},
                  {"\"refs\"", &m->refs}};
    cm_json_scan scan;
    cm_json_slice name, value;
    bool more = true;
    int rc = cm_json_scan_begin(&scan, text->data, text->nbytes, err);
    while (rc == CM_OK && (rc = cm_json_scan_next(&scan, &name, &value, &more, err)) == CM_OK &&
           more)
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            if (name.nbytes == strlen(wanted[i].name) &&
                memcmp(name.text, wanted[i].name, name.nbytes) == 0)
                *wanted[i].slice = value;
    return rc;
}

static int parse_member(const reading *r, const cm_json_slice *slice, cm_json **out, cm_error *err)
{
    *out = NULL;
    return slice->text != NULL ? parse(r, slice, out, err) : CM_OK;
}

/* Sets REFS to the object of references in TEXT. */
static int find_references(reading *r, const cm_buf *text, cm_json_slice *refs, cm_error *err)
{
    members m = {0};
    uint64_t number = 0;
    cm_json *version = NULL, *gen = NULL;
    int rc = find_members(text, &m, err);
    *refs = (cm_json_slice){(const char *)text->data, text->nbytes};
    if (rc != CM_OK || m.version.text == NULL)
        return rc; /* version 0: only references */
    rc = parse_member(r, &m.version, &version, err);
    if (rc == CM_OK && (!cm_json_get_u64(version, &number) || number != 1))
        rc = cm_fail(err, CM_EUNSUPPORTED, "is of a version of references other than 1");
    if (rc == CM_OK)
        rc = parse_member(r, &m.gen, &gen, err);
    if (rc == CM_OK && cm_json_length(gen) > 0)
        rc = cm_fail(err, CM_EUNSUPPORTED,
                     "has references that are generated by expressions, which are not read");
    if (rc == CM_OK)
        rc = parse_member(r, &m.templates, &r->templates, err);
    if (rc == CM_OK)
        rc = parse_member(r, &m.files, &r->files, err);
    if (rc == CM_OK && (m.refs.text == NULL || m.refs.text[0] != '{'))
        rc = cm_fail(err, CM_EFORMAT, "has no \"refs\"");
    *refs = m.refs;
    cm_json_free(version);
    cm_json_free(gen);
    return rc;
}

/*
 * "files": [[URL, bytes, time of change in ns], ...], as this project writes it; other forms are
 * ignored.
 */
static void know_files(reading *r)
{
    for (size_t i = 0; i < cm_json_length(r->files); i++) {
        const cm_json *j = cm_json_at(r->files, i);
        const char *url = cm_json_text(cm_json_at(j, 0), NULL);
        uint32_t number;
        if (url == NULL || cm_json_length(j) != 3 || !cm_reference_file_find(r, url, &number))
            continue;
        cm_reference_file *file = &r->out->file[number];
        file->known = cm_json_get_u64(cm_json_at(j, 1), &file->nbytes) &&
                      cm_json_get_u64(cm_json_at(j, 2), &file->mtime_ns);
    }
}

/* Compares references by key, then by their order in the document. */
static int by_key(const void *a, const void *b, void *table)
{
    const cm_reference_table *t = table;
    const cm_reference *x = a, *y = b;
    int order = strcmp(cm_reference_key(t, x), cm_reference_key(t, y));
    return order != 0 ? order : x->key < y->key ? -1 : x->key > y->key;
}

/* Of several references with one key the last counts, as in any JSON object. */
static void sort(cm_reference_table *t)
{
    size_t kept = 0;
    if (t->n > 0)
        qsort_r(t->item, t->n, sizeof *t->item, by_key, t);
    for (size_t i = 0; i < t->n; i++) {
        const char *key = cm_reference_key(t, &t->item[i]);
        if (i + 1 == t->n || strcmp(key, cm_reference_key(t, &t->item[i + 1])) != 0)
            t->item[kept++] = t->item[i];
    }
    t->n = kept;
}

static int read_document(reading *r, const cm_buf *text, cm_error *err)
{
    cm_json_slice refs, name, value;
    cm_json_scan scan;
    bool more = true;
    int rc = find_references(r, text, &refs, err);
    if (rc == CM_OK)
        rc = cm_json_scan_begin(&scan, refs.text, refs.nbytes, err);
    while (rc == CM_OK && (rc = cm_json_scan_next(&scan, &name, &value, &more, err)) == CM_OK &&
           more)
        rc = read_reference(r, &name, &value, err);
    if (rc == CM_OK) {
        know_files(r);
        sort(r->out);
    }
    return rc;
}

/* Fetches the document from its URL. */
static int fetch(reading *r, cm_net *net, cm_buf *text, cm_error *err)
{
    cm_reference_file file = {0};
    cm_store *store = NULL;
    int rc = cm_reference_resolve_remote(r, r->path, "", &file, err);
    if (rc == CM_OK)
        rc = cm_store_open_remote(r->out->origin[file.origin], net, &store, err);
    if (rc == CM_OK)
        rc = cm_store_get(store, file.key, most_text(r), text, err);
    if (rc == CM_EFORMAT && most_text(r) < CM_REFERENCES_MAX_NBYTES)
        cm_error_suffix(err, "; no more fits the memory; raise `memory`");
    cm_store_free(store);
    cm_reference_release_file(&file);
    return rc;
}

static int read_text(reading *r, cm_net *net, cm_buf *text, cm_error *err)
{
    if (!r->remote) {
        int rc = read_file(r, text, err);
        if (rc == CM_EBUDGET)
            cm_error_place(err, r->path);
        return rc;
    }
    if (net == NULL)
        return cm_fail(err, CM_EINVAL, "%s: only folders and files are read here", r->path);
    int rc = fetch(r, net, text, err);
    if (rc != CM_OK)
        cm_error_place(err, r->path);
    return rc;
}

int cm_references_read(const char *place, const cm_store_options *options, cm_reference_table *out,
                       cm_error *err)
{
    cm_net *net = options->net;
    const char *slash = strrchr(place, '/');
    reading r = {.path = place,
                 .own_folder =
                     cm_asprintf(err, "%.*s", slash == NULL ? 0 : (int)(slash - place) + 1, place),
                 .remote = cm_url_kind_of(place) != CM_URL_LOCAL,
                 .allow = net != NULL ? cm_net_allow(net) : NULL,
                 .trusted = options->trusted,
                 .memory = cm_store_half_memory(options->memory),
                 .out = out};
    cm_buf text;
    *out = (cm_reference_table){0};
    cm_buf_init(&text, 0);
    int rc = r.own_folder == NULL ? CM_ENOMEM : cm_allow_check(r.allow, err);
    if (rc == CM_OK)
        rc = read_text(&r, net, &text, err);
    r.text_nbytes = text.nbytes;
    if (rc == CM_OK && (rc = read_document(&r, &text, err)) != CM_OK)
        cm_error_prefix(err, "%s", place);
    cm_buf_release(&text);
    cm_reference_reading_release(&r);
    return rc;
}

size_t cm_reference_lower_bound(const cm_reference_table *t, const char *key)
{
    size_t from = 0, to = t->n;
    while (from < to) {
        size_t at = from + (to - from) / 2;
        if (strcmp(cm_reference_key(t, &t->item[at]), key) < 0)
            from = at + 1;
        else
            to = at;
    }
    return from;
}

int cm_reference_find(const cm_reference_table *t, const char *key, const cm_reference **out,
                      cm_error *err)
{
    size_t at = cm_reference_lower_bound(t, key);
    *out = NULL;
    if (at == t->n || strcmp(cm_reference_key(t, &t->item[at]), key) != 0)
        return cm_fail(err, CM_ENOTFOUND, "%s: no such object", key);
    *out = &t->item[at];
    return CM_OK;
}

void cm_references_release(cm_reference_table *t)
{
    for (size_t i = 0; i < t->nfiles; i++)
        cm_reference_release_file(&t->file[i]);
    for (size_t i = 0; i < t->norigins; i++)
        free(t->origin[i]);
    free(t->file);
    free(t->origin);
    free(t->item);
    cm_buf_release(&t->texts);
    *t = (cm_reference_table){0};
}
