/*
 * The store of a document of references.
 *
 * A read opens the file, checks it, reads and closes it, like a folder's objects: four system
 * calls, and no descriptor is kept.
 */
#include "store/references_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/fd.h"
#include "store/checksum.h"
#include "store/net/url.h"

static const cm_reference_table *table_of(const cm_store *store)
{
    return &cm_reference_store_of(store)->table;
}

/* ---- bytes ---- */

/* Compares whole seconds only: archives and some file systems keep no more. */
static bool is_unchanged(const cm_reference_file *file, const struct stat *st)
{
    const uint64_t ns = (uint64_t)st->st_mtim.tv_nsec;
    const uint64_t now = (uint64_t)st->st_mtim.tv_sec * 1000000000 + ns;
    return !file->known || (file->nbytes == (uint64_t)st->st_size &&
                            (file->mtime_ns == now ||
                             (ns == 0 && file->mtime_ns / 1000000000 == now / 1000000000)));
}

/* Opens the file of REF, checked to have its bytes; *NBYTES are those of the object. */
static int open_file(const cm_store *store, const char *key, const cm_reference *ref, int *out,
                     struct stat *st, uint64_t *nbytes, cm_error *err)
{
    const char *path = cm_reference_file_of(store, ref)->name;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = CM_OK;
    if (fd < 0) /* a chunk that is not stored has no reference, so its file must exist */
        return cm_fail(err, errno == ENOENT ? CM_EFORMAT : CM_EIO, "%s: refers to %s: %s", key,
                       path, strerror(errno));
    if (fstat(fd, st) != 0)
        rc = cm_fail_errno(err, errno, "%s: refers to %s", key, path);
    else if (!S_ISREG(st->st_mode))
        rc = cm_fail(err, CM_EFORMAT, "%s: refers to %s, which is not a regular file", key, path);
    else if (!is_unchanged(cm_reference_file_of(store, ref), st))
        rc = cm_fail(err, CM_EFORMAT,
                     "%s: %s has changed since the references to it were made: make them anew", key,
                     path);
    else if (!ref->whole && ref->offset + ref->nbytes > (uint64_t)st->st_size)
        rc = cm_fail(err, CM_EFORMAT, "%s: refers to bytes %llu to %llu of %s, which has %lld", key,
                     (unsigned long long)ref->offset,
                     (unsigned long long)(ref->offset + ref->nbytes), path, (long long)st->st_size);
    if (rc != CM_OK) {
        close(fd);
        return rc;
    }
    *nbytes = ref->whole ? (uint64_t)st->st_size : ref->nbytes;
    *out = fd;
    return CM_OK;
}

static int read_all(int fd, const char *key, uint64_t offset, void *dst, size_t nbytes,
                    cm_error *err)
{
    size_t got;
    int errnum = cm_fd_read_at(fd, dst, nbytes, offset, &got);
    if (errnum != 0)
        return cm_fail_errno(err, errnum, "%s", key);
    return got == nbytes ? CM_OK : cm_fail(err, CM_EFORMAT, "%s: its file became shorter", key);
}

static int get_inline(const cm_store *store, const char *key, const cm_reference *ref,
                      uint64_t max_nbytes, cm_buf *buf, cm_error *err)
{
    const char *text = (const char *)table_of(store)->texts.data + ref->offset;
    uint8_t *decoded = NULL;
    size_t nbytes = ref->nbytes;
    if (ref->is_base64 && !cm_base64_decode(text, ref->nbytes, &decoded, &nbytes))
        return cm_fail(err, CM_EFORMAT, "%s: is not valid base64", key);
    int rc = nbytes > max_nbytes ? cm_object_too_long(key, nbytes, max_nbytes, err)
                                 : cm_buf_resize(buf, nbytes, err);
    if (rc == CM_OK && nbytes > 0)
        memcpy(buf->data, decoded != NULL ? (char *)decoded : text, nbytes);
    free(decoded);
    return rc;
}

static int identify_inline(cm_store *store, const char *key, const cm_reference *ref,
                           cm_identity *out, cm_error *err)
{
    cm_buf buf;
    cm_buf_init(&buf, 0);
    int rc = get_inline(store, key, ref, UINT64_MAX, &buf, err);
    if (rc == CM_OK)
        *out = (cm_identity){.nbytes = buf.nbytes, .inode = cm_checksum64(buf.data, buf.nbytes, 0)};
    cm_buf_release(&buf);
    return rc;
}

/* Identifies the object by its bytes and their place. */
static int identify(cm_store *store, const char *key, cm_identity *out, cm_error *err)
{
    const cm_reference *ref;
    struct stat st;
    int fd, rc = cm_reference_find(table_of(store), key, &ref, err);
    *out = (cm_identity){0};
    if (rc != CM_OK)
        return rc;
    if (ref->file == CM_REFERENCE_INLINE)
        return identify_inline(store, key, ref, out, err);
    if (cm_reference_is_remote(store, ref)) {
        rc = cm_reference_net_identify(store, key, ref, out, err);
    } else if ((rc = open_file(store, key, ref, &fd, &st, &out->nbytes, err)) == CM_OK) {
        close(fd);
        out->changed_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
        out->inode = st.st_ino;
    }
    const char *name = cm_reference_file_of(store, ref)->name;
    const uint64_t place[] = {out->inode, ref->offset};
    out->inode = cm_checksum64(place, sizeof place, cm_checksum64(name, strlen(name), 0));
    return rc;
}

static int stat_key(cm_store *store, const char *key, cm_object_stat *out, cm_error *err)
{
    const cm_reference *ref;
    cm_identity identity;
    int rc = cm_reference_find(table_of(store), key, &ref, err);
    if (rc != CM_OK)
        return rc;
    /* Send no request only for this: reading will show whether the object has them. */
    if (cm_reference_is_remote(store, ref) && !ref->whole) {
        out->nbytes = ref->nbytes;
        return CM_OK;
    }
    rc = identify(store, key, &identity, err);
    out->nbytes = identity.nbytes;
    return rc;
}

/* ---- readers ---- */

static void reader_close(cm_object_reader *reader)
{
    cm_reference_reader *r = (cm_reference_reader *)reader;
    if (r->fd >= 0)
        close(r->fd);
    cm_buf_release(&r->data);
    free(reader->key);
    free(r);
}

static int reader_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err)
{
    const cm_reference *ref;
    struct stat st;
    int rc = cm_reference_find(table_of(store), key, &ref, err);
    cm_reference_reader *r = rc == CM_OK ? cm_calloc(1, sizeof *r, err) : NULL;
    if (r == NULL)
        return rc != CM_OK ? rc : CM_ENOMEM;
    r->fd = -1;
    r->ref = ref;
    r->base.store = store;
    r->base.key = cm_strdup(key, err);
    if (r->base.key == NULL) {
        rc = CM_ENOMEM;
    } else if (ref->file == CM_REFERENCE_INLINE) {
        rc = get_inline(store, key, ref, UINT64_MAX, &r->data, err);
        r->base.nbytes = r->data.nbytes;
    } else if (cm_reference_is_remote(store, ref)) {
        rc = cm_store_size(store, key, &r->base.nbytes, err);
    } else {
        rc = open_file(store, key, ref, &r->fd, &st, &r->base.nbytes, err);
    }
    if (rc != CM_OK) {
        reader_close(&r->base);
        return rc;
    }
    *out = &r->base;
    return CM_OK;
}

static int reader_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err)
{
    cm_reference_reader *r = (cm_reference_reader *)reader;
    if (r->fd >= 0)
        return read_all(r->fd, reader->key, r->ref->offset + offset, dst, nbytes, err);
    if (cm_reference_is_remote(reader->store, r->ref))
        return cm_reference_net_read(reader->store, reader->key, r->ref, offset, dst, nbytes, err);
    memcpy(dst, r->data.data + offset, nbytes); /* the range was checked against nbytes */
    return CM_OK;
}

/* ---- names ---- */

/* Moves *AT to the first reference after KEY, or after all of the folder with the prefix KEY. */
static int step_over(const cm_reference_table *t, const char *key, size_t nbytes, size_t *at,
                     cm_error *err)
{
    if (key[nbytes] == '\0') {
        ++*at;
        return CM_OK;
    }
    char *behind = cm_asprintf(err, "%.*s%c", (int)nbytes, key, '/' + 1);
    if (behind == NULL)
        return CM_ENOMEM;
    *at = cm_reference_lower_bound(t, behind);
    free(behind);
    return CM_OK;
}

static int list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err)
{
    const cm_reference_table *t = table_of(store);
    size_t skip = strlen(prefix);
    cm_name_list names = {0};
    int rc = CM_OK;
    char *from = cm_asprintf(err, "%s%s", prefix, skip > 0 ? "/" : "");
    if (from == NULL)
        return CM_ENOMEM;
    skip = strlen(from);
    for (size_t i = cm_reference_lower_bound(t, from); i < t->n && rc == CM_OK;) {
        const char *key = cm_reference_key(t, &t->item[i]);
        if (strncmp(key, from, skip) != 0)
            break;
        rc = cm_name_list_add_path(&names, key + skip, err);
        if (rc == CM_OK)
            rc = step_over(t, key, skip + strcspn(key + skip, "/"), &i, err);
    }
    free(from);
    return cm_name_list_finish(&names, prefix, rc, visit, context, err);
}

/* The size of a whole object behind a network would need a request. */
static bool knows_sizes(const cm_store *store)
{
    const cm_reference_table *t = table_of(store);
    for (size_t i = 0; i < t->n; i++)
        if (t->item[i].whole && cm_reference_is_remote(store, &t->item[i]))
            return false;
    return true;
}

static int list_below(cm_store *store, const char *prefix, cm_store_visit_object *visit,
                      void *context, cm_error *err)
{
    const cm_reference_table *t = table_of(store);
    if (!knows_sizes(store))
        return cm_fail(err, CM_EUNSUPPORTED, "%s: does not say how long its objects are",
                       store->name);
    char *from = cm_asprintf(err, "%s%s", prefix, *prefix != '\0' ? "/" : "");
    int rc = from == NULL ? CM_ENOMEM : CM_OK;
    size_t skip = from == NULL ? 0 : strlen(from);
    for (size_t i = rc == CM_OK ? cm_reference_lower_bound(t, from) : t->n; i < t->n; i++) {
        const char *key = cm_reference_key(t, &t->item[i]);
        cm_object_stat object = {0};
        if (strncmp(key, from, skip) != 0)
            break;
        rc = stat_key(store, key, &object, err);
        if (rc == CM_OK)
            rc = visit(context, key + skip, &object, err);
        if (rc != CM_OK)
            break;
    }
    free(from);
    return rc;
}

/* ---- opening ---- */

static void free_store(cm_store *store)
{
    cm_reference_store *s = cm_reference_store_of(store);
    cm_reference_free_origins(s);
    cm_references_release(&s->table);
    free(store->name);
    free(store);
}

#define READING                                                                                    \
    .read_only = "references are only read from", .free = free_store, .stat = stat_key,            \
    .identity = identify, .list = list, .open = reader_open, .read = reader_read,                  \
    .close = reader_close

static const cm_store_ops reference_ops = {READING};

/* Some references point behind a network. */
static const cm_store_ops remote_ops = {
    READING, .remote = true, .read_many = cm_reference_read_many, .list_below = list_below};

bool cm_store_is_references(const cm_store *store)
{
    return store->ops == &reference_ops || store->ops == &remote_ops;
}

/* Keeps the references below NODE, and removes NODE from their keys. */
static void keep_below(cm_reference_table *t, const char *node)
{
    size_t nbytes = strlen(node), kept = 0;
    for (size_t i = 0; nbytes > 0 && i < t->n; i++) {
        const char *key = cm_reference_key(t, &t->item[i]);
        if (strncmp(key, node, nbytes) != 0 || key[nbytes] != '/')
            continue;
        t->item[kept] = t->item[i];
        t->item[kept++].key += nbytes + 1;
    }
    t->n = nbytes > 0 ? kept : t->n;
}

int cm_store_open_references(const char *place, const char *node, const cm_store_options *options,
                             cm_store **out, cm_error *err)
{
    *out = NULL;
    cm_reference_store *s = cm_calloc(1, sizeof *s, err);
    if (s == NULL)
        return CM_ENOMEM;
    s->base.name = cm_url_join(place, node, err);
    int rc = s->base.name == NULL ? CM_ENOMEM : cm_references_read(place, options, &s->table, err);
    if (rc == CM_OK)
        keep_below(&s->table, node);
    if (rc == CM_OK && *node != '\0' && s->table.n == 0)
        rc = cm_fail(err, CM_ENOTFOUND, "%s: has no group or array %s", place, node);
    if (rc == CM_OK)
        rc = cm_reference_open_origins(s, options->net, err);
    s->base.ops = s->table.norigins > 0 ? &remote_ops : &reference_ops;
    if (rc != CM_OK) {
        free_store(&s->base);
        return rc;
    }
    *out = &s->base;
    return CM_OK;
}
