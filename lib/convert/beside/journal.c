#include "convert/beside/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "convert/beside/adopt.h"
#include "convert/beside/journal_line.h"
#include "format/zarr/erase.h"
#include "model/digest.h"

#define FILE_NAME "journal"

static const uint64_t MAX_NBYTES = (uint64_t)4 << 30;

enum {
    MAX_NODE_NAME = 180 /* of a file name, with room for the rest */
};

struct cm_journal {
    char *path;
    int fd;
};

/* "journal", or "journal-group%2Farray"; longer ones end in a digest. */
char *cm_journal_name(const char *node, cm_error *err)
{
    cm_buf text = {0};
    char digits[33];
    int rc = cm_buf_printf(&text, err, FILE_NAME "%s", *node == '\0' ? "" : "-");
    for (const char *p = node; rc == CM_OK && *p != '\0'; p++)
        rc = *p == '/' || *p == '%' ? cm_buf_printf(&text, err, "%%%02X", (unsigned)*p)
                                    : cm_buf_append(&text, p, 1, err);
    if (rc == CM_OK && text.nbytes > MAX_NODE_NAME) {
        cm_digest digest = {0};
        cm_digest_element(&digest, 0, node, strlen(node));
        text.nbytes = MAX_NODE_NAME;
        rc = cm_buf_printf(&text, err, "-%s", cm_digest_text(&digest, digits));
    }
    if (rc == CM_OK)
        rc = cm_buf_append(&text, "", 1, err);
    if (rc != CM_OK) {
        cm_buf_release(&text);
        return NULL;
    }
    return (char *)text.data;
}

/* ---- reading ---- */

/* A journal's text while it is read. */
typedef struct content {
    cm_buf text;
    size_t at;     /* behind the lines that were read */
    cm_json *head; /* NULL: not whole */
} content;

static void content_release(content *c)
{
    cm_buf_release(&c->text);
    cm_json_free(c->head);
}

static int read_content(const cm_beside *b, const char *name, content *c, bool *there,
                        cm_error *err)
{
    *c = (content){0};
    *there = false;
    if (b->in == NULL)
        return CM_OK;
    int rc = cm_store_get(b->in, name, MAX_NBYTES, &c->text, err);
    if (rc == CM_ENOTFOUND)
        return CM_OK;
    if (rc != CM_OK) {
        cm_error_prefix(err, "%s", b->path);
        return rc;
    }
    *there = true;
    char *payload = cm_journal_line_next((char *)c->text.data, c->text.nbytes, &c->at);
    if (payload != NULL && cm_json_parse(payload, strlen(payload), &c->head, NULL) != CM_OK)
        c->head = NULL;
    return CM_OK;
}

static cm_journal_phase phase_of(const content *c)
{
    const char *phase = cm_json_text(cm_json_member(c->head, "phase"), NULL);
    if (phase != NULL && strcmp(phase, "preparing") == 0)
        return CM_JOURNAL_PREPARING;
    return phase != NULL && strcmp(phase, "writing") == 0 ? CM_JOURNAL_WRITING : CM_JOURNAL_DAMAGED;
}

int cm_journal_look(const cm_beside *b, const char *name, cm_journal_phase *out, cm_error *err)
{
    content c;
    bool there;
    int rc = read_content(b, name, &c, &there, err);
    *out = there ? phase_of(&c) : CM_JOURNAL_NONE;
    content_release(&c);
    return rc;
}

int cm_journal_member(const cm_beside *b, const char *name, const char *key, cm_json **out,
                      cm_error *err)
{
    content c;
    bool there;
    int rc = read_content(b, name, &c, &there, err);
    const cm_json *member = rc == CM_OK && there ? cm_json_member(c.head, key) : NULL;
    *out = member != NULL ? cm_json_copy(member) : NULL;
    if (member != NULL && *out == NULL)
        rc = cm_fail(err, CM_ENOMEM, "no memory for the journal");
    content_release(&c);
    return rc;
}

/* ---- the head ---- */

static cm_json *lengths(unsigned rank, const uint64_t *length, cm_error *err)
{
    cm_json *list = cm_json_array();
    for (unsigned i = 0; i < rank; i++) {
        if (cm_json_append(list, cm_json_u64(length[i]), err) != CM_OK) {
            cm_json_free(list);
            return NULL;
        }
    }
    return list;
}

/* The members that decide the names of the chunks of the array M at PATH. */
static int describe(void *arrays, const char *path, const cm_zarr_meta *m, cm_error *err)
{
    cm_json *j = cm_json_object();
    int rc = cm_json_set(j, "path", cm_json_string(path), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "zarr_format", cm_json_i64(m->zarr_format), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "keys of version 2", cm_json_bool(m->key_v2), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "separator", cm_json_string_n(&m->separator, 1), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "shape", lengths(m->rank, m->shape, err), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "chunk", lengths(m->rank, m->chunk, err), err);
    if (rc == CM_OK)
        return cm_json_append(arrays, j, err);
    cm_json_free(j);
    return rc;
}

static bool read_lengths(const cm_json *list, unsigned *rank, uint64_t *out)
{
    *rank = (unsigned)cm_json_length(list);
    if (!cm_json_is(list, CM_JSON_ARRAY) || cm_json_length(list) > CM_MAX_RANK)
        return false;
    for (unsigned i = 0; i < *rank; i++)
        if (!cm_json_get_u64(cm_json_at(list, i), &out[i]))
            return false;
    return true;
}

/* The other way; false when J does not say. */
static bool understand(const cm_json *j, const char **path, cm_zarr_meta *m)
{
    unsigned chunk_rank;
    int64_t format;
    const char *separator = cm_json_text(cm_json_member(j, "separator"), NULL);
    *m = (cm_zarr_meta){0};
    *path = cm_json_text(cm_json_member(j, "path"), NULL);
    if (*path == NULL || (**path != '\0' && cm_key_check(*path, NULL) != CM_OK) ||
        separator == NULL || (strcmp(separator, ".") != 0 && strcmp(separator, "/") != 0) ||
        !cm_json_get_i64(cm_json_member(j, "zarr_format"), &format) ||
        !cm_json_get_bool(cm_json_member(j, "keys of version 2"), &m->key_v2) ||
        !read_lengths(cm_json_member(j, "shape"), &m->rank, m->shape) ||
        !read_lengths(cm_json_member(j, "chunk"), &chunk_rank, m->chunk) || chunk_rank != m->rank)
        return false;
    m->separator = *separator;
    m->zarr_format = (int)format;
    return true;
}

/* Writes a journal of the head alone.  ARRAYS, which is taken: more of them. */
static int write_head(const cm_beside *b, const char *name, const cm_json *fingerprint,
                      const char *phase, const cm_made *made, cm_json *arrays, cm_error *err)
{
    cm_buf payload = {0}, line = {0};
    cm_json *j = fingerprint == NULL ? cm_json_object() : cm_json_copy(fingerprint);
    int rc =
        j == NULL || arrays == NULL ? cm_fail(err, CM_ENOMEM, "no memory for the journal") : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < made->n; i++)
        if (made->node[i].meta != NULL)
            rc = describe(arrays, made->node[i].path, made->node[i].meta, err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "phase", cm_json_string(phase), err);
    if (rc == CM_OK) {
        rc = cm_json_set(j, "arrays", arrays, err);
        arrays = NULL;
    }
    cm_json_free(arrays);
    if (rc == CM_OK)
        rc = cm_json_write(j, false, &payload, err);
    if (rc == CM_OK)
        rc = cm_journal_line_append(&line, (const char *)payload.data, payload.nbytes, err);
    if (rc == CM_OK && (rc = cm_store_put(b->in, name, line.data, line.nbytes, err)) != CM_OK)
        cm_error_prefix(err, "%s", b->path);
    cm_buf_release(&payload);
    cm_buf_release(&line);
    cm_json_free(j);
    return rc;
}

int cm_journal_prepare(const cm_beside *b, const char *name, const cm_made *made, cm_store *store,
                       cm_error *err)
{
    content c;
    bool there;
    int rc = read_content(b, name, &c, &there, err);
    if (rc != CM_OK)
        return rc;
    const cm_json *old = cm_json_member(c.head, "arrays");
    cm_json *arrays = old == NULL ? cm_json_array() : cm_json_copy(old);
    if (store != NULL && arrays != NULL)
        rc = cm_zarr_each_array(store, describe, arrays, err);
    if (rc == CM_OK)
        rc = write_head(b, name, NULL, "preparing", made, arrays, err);
    else
        cm_json_free(arrays);
    content_release(&c);
    return rc;
}

int cm_journal_erase(const cm_beside *b, const char *name, cm_store *store, cm_error *err)
{
    content c;
    bool there;
    int rc = read_content(b, name, &c, &there, err);
    const cm_json *arrays = cm_json_member(c.head, "arrays");
    for (size_t i = 0; rc == CM_OK && i < cm_json_length(arrays); i++) {
        cm_zarr_meta meta;
        const char *path;
        if (understand(cm_json_at(arrays, i), &path, &meta))
            rc = cm_zarr_erase_chunks(store, path, &meta, err);
    }
    content_release(&c);
    return rc;
}

/* ---- writing ---- */

static int open_to_append(const cm_beside *b, const char *name, cm_journal **out, cm_error *err)
{
    struct stat st;
    cm_journal *j = cm_calloc(1, sizeof(*j), err);
    *out = NULL;
    if (j == NULL)
        return CM_ENOMEM;
    j->fd = -1;
    j->path = cm_asprintf(err, "%s/%s", b->path, name);
    int rc = j->path == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK && !b->remote) {
        j->fd = openat(b->fd, name, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (j->fd < 0 || fstat(j->fd, &st) != 0)
            rc = cm_fail_errno(err, errno, "cannot open %s", j->path);
        else if (!S_ISREG(st.st_mode))
            rc = cm_fail(err, CM_EEXIST, "%s: is not a regular file", j->path);
    }
    if (rc == CM_OK)
        *out = j;
    else
        cm_journal_close(j);
    return rc;
}

int cm_journal_begin(const cm_beside *b, const char *name, const cm_json *fingerprint,
                     const cm_made *made, cm_journal **out, cm_error *err)
{
    *out = NULL;
    int rc = write_head(b, name, fingerprint, "writing", made, cm_json_array(), err);
    return rc == CM_OK ? open_to_append(b, name, out, err) : rc;
}

int cm_journal_skip(cm_journal *journal, size_t index, uint64_t chunk, cm_error *err)
{
    char line[CM_JOURNAL_SKIP_SIZE];
    /* Nothing can be added to an object: a run that goes on makes such chunks again. */
    if (journal == NULL || journal->fd < 0)
        return CM_OK;
    size_t nbytes = cm_journal_line_of_skip(line, index, chunk);
    int errnum = cm_fd_write(journal->fd, line, nbytes);
    return errnum == 0 ? CM_OK : cm_fail_errno(err, errnum, "cannot write %s", journal->path);
}

void cm_journal_close(cm_journal *journal)
{
    if (journal == NULL)
        return;
    if (journal->fd >= 0)
        close(journal->fd);
    free(journal->path);
    free(journal);
}

/* ---- going on ---- */

const char *cm_journal_other(const cm_json *was, const cm_json *is, uint64_t *before, uint64_t *now)
{
    const char *other = NULL;
    *before = *now = 0;
    for (cm_json_iter it = cm_json_begin(is); other == NULL && cm_json_next(&it);)
        if (!cm_json_equal(it.value, cm_json_member(was, it.name)))
            other = it.name;
    /* Some options are named only where they were given. */
    for (cm_json_iter it = cm_json_begin(was); other == NULL && cm_json_next(&it);)
        if (!cm_json_has(is, it.name) && strcmp(it.name, "phase") != 0 &&
            strcmp(it.name, "arrays") != 0)
            other = it.name;
    if (other != NULL && strcmp(other, "inputs") == 0 &&
        !(cm_json_get_u64(cm_json_member(was, other), before) &&
          cm_json_get_u64(cm_json_member(is, other), now)))
        *before = *now = 0;
    return other;
}

static int refuse_other(const cm_json *was, const cm_json *is, cm_error *err)
{
    uint64_t before, now;
    const char *other = cm_journal_other(was, is, &before, &now);
    if (other == NULL)
        return CM_OK;
    const uint64_t n = before > now ? before - now : now - before;
    if (n > 0)
        return cm_fail(err, CM_EEXIST,
                       "the output was begun with %" PRIu64 " %s %s than there are now; `resume` "
                       "needs the same, `overwrite` begins again",
                       n, cm_of_count(n, "input", "inputs"), before > now ? "more" : "fewer");
    return cm_fail(err, CM_EEXIST,
                   "the output was begun with %s %s; `resume` needs the same, `overwrite` begins "
                   "again",
                   strncmp(other, "inputs", 6) == 0 ? "other" : "another", other);
}

static bool has_shards(const cm_made_node *node)
{
    return cm_zarr_writer_outer_grid(node->writer)->nchunks !=
           cm_zarr_writer_grid(node->writer)->nchunks;
}

/*
 * The chunks that lines of C say were left out, of arrays with or without SHARDS.
 * *AT is where the lines end that are whole and mean something here.
 */
static int adopt_skipped(const cm_made *made, const content *c, bool shards, size_t *at,
                         uint64_t *nchunks, cm_error *err)
{
    int rc = CM_OK;
    *at = c->at;
    while (rc == CM_OK && *at < c->text.nbytes) {
        uint64_t item, chunk;
        /* Its newlines are needed by the next pass. */
        size_t end = *at;
        char *payload = cm_journal_line_next((char *)c->text.data, c->text.nbytes, &end);
        if (payload == NULL)
            break;
        bool known = cm_journal_line_skip(payload, &item, &chunk) && item < made->n &&
                     made->node[item].writer != NULL &&
                     chunk < cm_zarr_writer_grid(made->node[item].writer)->nchunks;
        c->text.data[end - 1] = '\n';
        if (!known)
            break;
        *at = end;
        const cm_made_node *node = &made->node[item];
        if (has_shards(node) != shards || cm_zarr_writer_is_delivered(node->writer, chunk))
            continue;
        rc = cm_zarr_writer_skip(node->writer, chunk, err);
        if (rc == CM_OK && node->see != NULL)
            rc = node->see(node->see_context, chunk, NULL, err);
        *nchunks += rc == CM_OK;
    }
    return rc;
}

/*
 * Without shards a chunk that was left out has no object, whatever lies there.  A
 * shard that is whole may hold such a chunk: it is adopted first.
 */
static int adopt(const cm_made *made, const content *c, cm_store *store, unsigned nthreads,
                 uint64_t memory, size_t *end, uint64_t *nchunks, cm_error *err)
{
    int rc = adopt_skipped(made, c, false, end, nchunks, err);
    for (size_t i = 0; rc == CM_OK && i < made->n; i++)
        if (made->node[i].writer != NULL)
            rc = cm_adopt(store, &made->node[i], nthreads, memory, nchunks, err);
    return rc == CM_OK ? adopt_skipped(made, c, true, end, nchunks, err) : rc;
}

static int read_to_resume(const cm_beside *b, const char *name, const cm_json *fingerprint,
                          content *c, cm_error *err)
{
    bool there;
    int rc = read_content(b, name, c, &there, err);
    if (rc == CM_OK && phase_of(c) != CM_JOURNAL_WRITING)
        rc = cm_fail(err, CM_EFORMAT, "%s/%s: is not a journal that a run can continue", b->path,
                     name);
    return rc == CM_OK ? refuse_other(c->head, fingerprint, err) : rc;
}

int cm_journal_check(const cm_beside *b, const char *name, const cm_json *fingerprint,
                     cm_error *err)
{
    content c;
    int rc = read_to_resume(b, name, fingerprint, &c, err);
    content_release(&c);
    return rc;
}

int cm_journal_resume(const cm_beside *b, const char *name, const cm_json *fingerprint,
                      const cm_made *made, cm_store *store, unsigned nthreads, uint64_t memory,
                      cm_journal **out, uint64_t *nchunks, cm_error *err)
{
    content c;
    size_t end = 0;
    *out = NULL;
    *nchunks = 0;
    int rc = read_to_resume(b, name, fingerprint, &c, err);
    if (rc == CM_OK)
        rc = cm_store_cache_listing(store, err);
    for (size_t i = 0; rc == CM_OK && i < made->n; i++)
        rc = cm_zarr_erase_temporaries(store, made->node[i].path, made->node[i].meta, err);
    cm_store_drop_listing(store);
    if (rc == CM_OK)
        rc = adopt(made, &c, store, nthreads, memory, &end, nchunks, err);
    /* A new file, not a shorter one: nothing is cut that may have another name. */
    if (rc == CM_OK) {
        c.text.data[c.at - 1] = '\n';
        rc = cm_store_put(b->in, name, c.text.data, end, err);
    }
    content_release(&c);
    return rc == CM_OK ? open_to_append(b, name, out, err) : rc;
}
