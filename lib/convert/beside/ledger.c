#include "convert/beside/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "convert/beside/journal_line.h"

enum {
    MAX_NBYTES = 1 << 30,
    WRITE_NBYTES = 64 << 10
};

#define HEAD_1 "{\"chunkmill\":\"ledger\",\"version\":1}" /* without a last line */
#define HEAD   "{\"chunkmill\":\"ledger\",\"version\":2}"

/* ---- reading ---- */

/* The end along ALONG in a line. */
static uint64_t end_of(const cm_json *j, const char *along)
{
    uint64_t end;
    const char *has = cm_json_text(cm_json_member(j, "along"), NULL);
    const bool is_it = along != NULL && has != NULL && strcmp(has, along) == 0;
    return is_it && cm_json_get_u64(cm_json_member(j, "end"), &end) ? end : 0;
}

static int parse(const char *payload, const char *along, cm_ledger_entry *out, cm_error *err)
{
    cm_json *j = NULL;
    *out = (cm_ledger_entry){0};
    int rc = cm_json_parse(payload, strlen(payload), &j, err);
    const char *path = cm_json_text(cm_json_member(j, "path"), NULL);
    const char *xxh128 = cm_json_text(cm_json_member(j, "xxh128"), NULL);
    const char *sha256 = cm_json_text(cm_json_member(j, "sha256"), NULL);
    if (rc == CM_OK &&
        (path == NULL || !cm_json_get_u64(cm_json_member(j, "bytes"), &out->nbytes) ||
         !cm_json_get_u64(cm_json_member(j, "mtime_ns"), &out->mtime_ns)))
        rc = cm_fail(err, CM_EFORMAT, "a line of the ledger names no file");
    if (rc == CM_OK && xxh128 != NULL && strlen(xxh128) + 1 == sizeof(out->xxh128))
        memcpy(out->xxh128, xxh128, sizeof(out->xxh128));
    if (rc == CM_OK && sha256 != NULL && strlen(sha256) + 1 == sizeof(out->sha256))
        memcpy(out->sha256, sha256, sizeof(out->sha256));
    const char *tag = cm_json_text(cm_json_member(j, "etag"), NULL);
    if (rc == CM_OK && tag != NULL && strlen(tag) < sizeof(out->tag))
        memcpy(out->tag, tag, strlen(tag) + 1);
    out->end = end_of(j, along);
    if (rc == CM_OK && (out->path = cm_strdup(path, err)) == NULL)
        rc = CM_ENOMEM;
    cm_json_free(j);
    return rc;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const cm_ledger_entry *)a)->path, ((const cm_ledger_entry *)b)->path);
}

/* Lines are appended: of those with one path the last in the file is the last here. */
typedef struct line {
    cm_ledger_entry entry;
    size_t number;
} line;

static int by_path_and_number(const void *a, const void *b)
{
    const line *x = a, *y = b;
    int order = by_path(&x->entry, &y->entry);
    return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

static int keep_last(line *list, size_t n, cm_ledger *out, cm_error *err)
{
    if ((out->entry = cm_calloc(n + 1, sizeof(out->entry[0]), err)) == NULL)
        return CM_ENOMEM;
    if (n > 0)
        qsort(list, n, sizeof(list[0]), by_path_and_number);
    for (size_t i = 0; i < n; i++) {
        bool last = i + 1 == n || strcmp(list[i].entry.path, list[i + 1].entry.path) != 0;
        if (!last)
            continue;
        out->entry[out->n++] = list[i].entry;
        list[i].entry.path = NULL;
    }
    return CM_OK;
}

/* The last line, which tells a whole ledger from one that was cut behind a line. */
static int print_end(uint64_t nlines, char **out, cm_error *err)
{
    *out = cm_asprintf(err, "{\"chunkmill\":\"ledger\",\"lines\":%" PRIu64 "}", nlines);
    return *out == NULL ? CM_ENOMEM : CM_OK;
}

static int fail_cut(cm_error *err)
{
    return cm_fail(err, CM_EFORMAT,
                   "the ledger is cut short or damaged; move it away, and files that are in the "
                   "store are read again");
}

/* The payloads of all lines; LIST is to be freed. */
static int split_lines(cm_buf *text, char ***list, size_t *n, cm_error *err)
{
    size_t at = 0, capacity = 0;
    char *payload;
    *list = NULL;
    *n = 0;
    while ((payload = cm_journal_line_next((char *)text->data, text->nbytes, &at)) != NULL) {
        char **more = cm_make_room(*list, *n, &capacity, sizeof(*more), 64);
        if (more == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for the ledger");
        *list = more;
        more[(*n)++] = payload;
    }
    return at < text->nbytes || *n == 0 ? fail_cut(err) : CM_OK;
}

/* LIST has all *N payloads; from then on *N counts those between the first and the last. */
static int check_ends(char *const *list, size_t *n, cm_error *err)
{
    char *end;
    if (strcmp(list[0], HEAD_1) == 0) {
        --*n;
        return CM_OK;
    }
    if (strcmp(list[0], HEAD) != 0)
        return cm_fail(err, CM_EFORMAT,
                       "another version wrote the ledger; move it away, and files that are in the "
                       "store are read again");
    if (*n < 2)
        return fail_cut(err);
    int rc = print_end(*n - 2, &end, err);
    if (rc == CM_OK && strcmp(list[*n - 1], end) != 0)
        rc = fail_cut(err);
    free(end);
    *n -= 2;
    return rc;
}

/* The payloads of its files, in TEXT; *LIST, whose first is none of them, is to be freed. */
static int get_files(const cm_beside *b, cm_buf *text, char ***list, size_t *n, cm_error *err)
{
    *list = NULL;
    *n = 0;
    int rc = cm_store_get(b->in, CM_LEDGER_NAME, MAX_NBYTES, text, err);
    if (rc == CM_ENOTFOUND)
        return CM_OK;
    if (rc == CM_OK)
        rc = split_lines(text, list, n, err);
    return rc == CM_OK ? check_ends(*list, n, err) : rc;
}

static int parse_all(char *const *payload, size_t n, const char *along, cm_ledger *out,
                     cm_error *err)
{
    line *list = cm_calloc(n + 1, sizeof(*list), err);
    int rc = list == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        list[i].number = i;
        rc = parse(payload[i], along, &list[i].entry, err);
    }
    if (rc == CM_OK)
        rc = keep_last(list, n, out, err);
    for (size_t i = 0; list != NULL && i < n; i++)
        free(list[i].entry.path);
    free(list);
    return rc;
}

int cm_ledger_read(const cm_beside *b, const char *along, cm_ledger *out, cm_error *err)
{
    cm_buf text = {0};
    char **list;
    size_t n;
    *out = (cm_ledger){0};
    if (b->in == NULL)
        return CM_OK;
    int rc = get_files(b, &text, &list, &n, err);
    if (rc == CM_OK && n > 0)
        rc = parse_all(list + 1, n, along, out, err);
    if (rc != CM_OK)
        cm_error_place(err, b->path);
    free(list);
    cm_buf_release(&text);
    return rc;
}

void cm_ledger_release(cm_ledger *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->entry[i].path);
    free(l->entry);
    *l = (cm_ledger){0};
}

const cm_ledger_entry *cm_ledger_find(const cm_ledger *l, const char *path)
{
    const cm_ledger_entry wanted = {.path = (char *)(uintptr_t)path};
    return l->n == 0 ? NULL : bsearch(&wanted, l->entry, l->n, sizeof(wanted), by_path);
}

/* ---- files ---- */

int cm_ledger_look(const char *path, cm_ledger_entry *out, cm_error *err)
{
    struct stat st;
    *out = (cm_ledger_entry){0};
    if (stat(path, &st) != 0 || (out->path = realpath(path, NULL)) == NULL)
        return cm_fail_errno(err, errno, "%s", path);
    out->nbytes = (uint64_t)st.st_size;
    out->mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    return CM_OK;
}

/* ---- writing ---- */

int cm_ledger_json(const cm_ledger_entry *entry, cm_json **out, cm_error *err)
{
    cm_json *j = cm_json_object();
    int rc = cm_json_set(j, "path", cm_json_string(entry->path), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "bytes", cm_json_u64(entry->nbytes), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "mtime_ns", cm_json_u64(entry->mtime_ns), err);
    if (rc == CM_OK && entry->xxh128[0] != '\0')
        rc = cm_json_set(j, "xxh128", cm_json_string(entry->xxh128), err);
    if (rc == CM_OK && entry->tag[0] != '\0')
        rc = cm_json_set(j, "etag", cm_json_string(entry->tag), err);
    if (rc == CM_OK && entry->along != NULL)
        rc = cm_json_set(j, "along", cm_json_string(entry->along), err);
    if (rc == CM_OK && entry->along != NULL)
        rc = cm_json_set(j, "end", cm_json_u64(entry->end), err);
    if (rc == CM_OK)
        *out = j;
    else
        cm_json_free(j);
    return rc;
}

static int put_line(cm_ledger_writer *w, const char *payload, size_t nbytes, cm_error *err)
{
    w->nlines++;
    return cm_journal_line_append(&w->lines, payload, nbytes, err);
}

/* The line PAYLOAD, unless its path is one of RENEWED. */
static int put_known_line(cm_ledger_writer *w, const char *payload, const cm_ledger *renewed,
                          cm_error *err)
{
    cm_ledger_entry entry;
    int rc = parse(payload, NULL, &entry, err);
    if (rc == CM_OK && cm_ledger_find(renewed, entry.path) == NULL)
        rc = put_line(w, payload, strlen(payload), err);
    free(entry.path);
    return rc;
}

/* The first line, and those of the ledger that is there. */
static int put_known(const cm_beside *b, const cm_ledger *renewed, cm_ledger_writer *w,
                     cm_error *err)
{
    cm_buf text = {0};
    char **list;
    size_t n;
    int rc = get_files(b, &text, &list, &n, err);
    if (rc == CM_OK)
        rc = cm_journal_line_append(&w->lines, HEAD, strlen(HEAD), err);
    for (size_t i = 1; rc == CM_OK && i <= n; i++)
        rc = put_known_line(w, list[i], renewed, err);
    free(list);
    cm_buf_release(&text);
    return rc;
}

static int put_end(cm_ledger_writer *w, cm_error *err)
{
    char *end;
    int rc = print_end(w->nlines, &end, err);
    if (rc == CM_OK)
        rc = cm_journal_line_append(&w->lines, end, strlen(end), err);
    free(end);
    return rc;
}

static int flush(cm_ledger_writer *w, cm_error *err)
{
    int rc = cm_object_write(w->object, w->nbytes, w->lines.data, w->lines.nbytes, err);
    w->nbytes += w->lines.nbytes;
    w->lines.nbytes = 0;
    return rc;
}

/* Lines of paths in RENEWED are left out. */
static int begin(const cm_beside *b, const cm_ledger *renewed, cm_ledger_writer *out, cm_error *err)
{
    *out = (cm_ledger_writer){.path = b->path};
    int rc = put_known(b, renewed, out, err);
    if (rc == CM_OK)
        rc = cm_object_create(b->in, CM_LEDGER_NAME, &(cm_object_form){.in_order = true},
                              &out->object, err);
    if (rc != CM_OK) {
        cm_error_place(err, b->path);
        cm_buf_release(&out->lines);
    }
    return rc;
}

int cm_ledger_begin(const cm_beside *b, cm_ledger_writer *out, cm_error *err)
{
    return begin(b, &(cm_ledger){0}, out, err);
}

static int put_json(cm_ledger_writer *w, const cm_json *j, cm_error *err)
{
    cm_buf payload = {0};
    int rc = cm_json_write(j, false, &payload, err);
    if (rc == CM_OK)
        rc = put_line(w, (char *)payload.data, payload.nbytes, err);
    cm_buf_release(&payload);
    return rc == CM_OK && w->lines.nbytes > WRITE_NBYTES ? flush(w, err) : rc;
}

int cm_ledger_put(cm_ledger_writer *w, const cm_ledger_entry *entry, cm_error *err)
{
    cm_json *j = NULL;
    int rc = cm_ledger_json(entry, &j, err);
    if (rc == CM_OK)
        rc = put_json(w, j, err);
    cm_json_free(j);
    return rc;
}

int cm_ledger_end(cm_ledger_writer *w, int rc, cm_error *err)
{
    if (rc == CM_OK)
        rc = put_end(w, err);
    if (rc == CM_OK)
        rc = flush(w, err);
    cm_buf_release(&w->lines);
    if (rc == CM_OK)
        rc = cm_object_commit(w->object, err);
    else
        cm_object_abort(w->object);
    if (rc != CM_OK)
        cm_error_place(err, w->path);
    return rc;
}

/* The paths of LIST, in order; *OUT borrows them, its entries are to be freed. */
static int get_paths(const cm_json *list, cm_ledger *out, cm_error *err)
{
    out->n = cm_json_length(list);
    if ((out->entry = cm_calloc(out->n + 1, sizeof(out->entry[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < out->n; i++) {
        const char *path = cm_json_text(cm_json_member(cm_json_at(list, i), "path"), NULL);
        out->entry[i].path = (char *)(uintptr_t)(path == NULL ? "" : path);
    }
    if (out->n > 0)
        qsort(out->entry, out->n, sizeof(out->entry[0]), by_path);
    return CM_OK;
}

int cm_ledger_add(const cm_beside *b, const cm_json *list, cm_error *err)
{
    cm_ledger renewed = {0};
    cm_ledger_writer w;
    int rc = get_paths(list, &renewed, err);
    if (rc == CM_OK)
        rc = begin(b, &renewed, &w, err);
    free(renewed.entry);
    if (rc != CM_OK)
        return rc;
    for (size_t i = 0; rc == CM_OK && i < cm_json_length(list); i++)
        rc = put_json(&w, cm_json_at(list, i), err);
    return cm_ledger_end(&w, rc, err);
}
