/*
 * The store of a document of references.
 *
 * A read opens the file, looks at it, reads and closes it, as a folder's objects are read: four
 * system calls, and no descriptor is kept.
 */
#include "store/references.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"

typedef struct reference_store {
    cm_store base;
    cm_reference_table table;
} reference_store;

typedef struct reference_reader {
    cm_object_reader base;
    int fd;          /* -1: DATA */
    uint64_t offset; /* of the object in the file */
    cm_buf data;
} reference_reader;

static const cm_reference_table *table_of(const cm_store *store)
{
    return &((const reference_store *)store)->table;
}

/* The first reference whose key is not less than KEY. */
static size_t lower_bound(const cm_reference_table *t, const char *key)
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

static int find(const cm_store *store, const char *key, const cm_reference **out, cm_error *err)
{
    const cm_reference_table *t = table_of(store);
    size_t at = lower_bound(t, key);
    if (at == t->n || strcmp(cm_reference_key(t, &t->item[at]), key) != 0)
        return cm_fail(err, CM_ENOTFOUND, "%s: no such object", key);
    *out = &t->item[at];
    return CM_OK;
}

/* ---- bytes ---- */

/* Opens the file of REF, which has its bytes; *NBYTES are those of the object. */
static int open_file(const cm_store *store, const char *key, const cm_reference *ref, int *out,
                     struct stat *st, uint64_t *nbytes, cm_error *err)
{
    const char *path = table_of(store)->file[ref->file];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = CM_OK;
    if (fd < 0) /* a chunk that is not stored has no reference: its file must be there */
        return cm_fail(err, errno == ENOENT ? CM_EFORMAT : CM_EIO, "%s: refers to %s: %s", key,
                       path, strerror(errno));
    if (fstat(fd, st) != 0)
        rc = cm_fail_errno(err, errno, "%s: refers to %s", key, path);
    else if (!S_ISREG(st->st_mode))
        rc = cm_fail(err, CM_EFORMAT, "%s: refers to %s, which is not a regular file", key, path);
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
    for (uint8_t *p = dst; nbytes > 0;) {
        ssize_t n = pread(fd, p, nbytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cm_fail_errno(err, errno, "%s", key);
        if (n == 0)
            return cm_fail(err, CM_EFORMAT, "%s: its file became shorter", key);
        p += n;
        offset += (uint64_t)n;
        nbytes -= (size_t)n;
    }
    return CM_OK;
}

static int get_inline(const cm_store *store, const char *key, const cm_reference *ref,
                      uint64_t max_nbytes, cm_buf *buf, cm_error *err)
{
    const char *text = (const char *)table_of(store)->texts.data + ref->offset;
    uint8_t *decoded = NULL;
    size_t nbytes = ref->nbytes;
    if (ref->is_base64 && !cm_base64_decode(text, ref->nbytes, &decoded, &nbytes))
        return cm_fail(err, CM_EFORMAT, "%s: is no base64", key);
    int rc = nbytes > max_nbytes ? cm_object_too_long(key, nbytes, max_nbytes, err)
                                 : cm_buf_resize(buf, nbytes, err);
    if (rc == CM_OK && nbytes > 0)
        memcpy(buf->data, decoded != NULL ? (char *)decoded : text, nbytes);
    free(decoded);
    return rc;
}

static int get(cm_store *store, const char *key, uint64_t max_nbytes, cm_buf *buf, cm_error *err)
{
    const cm_reference *ref;
    struct stat st;
    uint64_t nbytes;
    int fd, rc = find(store, key, &ref, err);
    if (rc != CM_OK)
        return rc;
    if (ref->file == CM_REFERENCE_INLINE)
        return get_inline(store, key, ref, max_nbytes, buf, err);
    rc = open_file(store, key, ref, &fd, &st, &nbytes, err);
    if (rc != CM_OK)
        return rc;
    rc = nbytes > max_nbytes ? cm_object_too_long(key, nbytes, max_nbytes, err)
                             : cm_buf_resize(buf, nbytes, err);
    if (rc == CM_OK)
        rc = read_all(fd, key, ref->offset, buf->data, nbytes, err);
    close(fd);
    return rc;
}

/* The bytes of REF, and of its file what tells it from another one. */
static int identify(cm_store *store, const char *key, cm_identity *out, cm_error *err)
{
    const cm_reference *ref;
    struct stat st;
    cm_buf buf;
    int fd, rc = find(store, key, &ref, err);
    *out = (cm_identity){0};
    if (rc != CM_OK)
        return rc;
    if (ref->file != CM_REFERENCE_INLINE) {
        rc = open_file(store, key, ref, &fd, &st, &out->nbytes, err);
        if (rc != CM_OK)
            return rc;
        close(fd);
        out->changed_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
        out->inode = st.st_ino;
        return CM_OK;
    }
    cm_buf_init(&buf, 0);
    rc = get_inline(store, key, ref, UINT64_MAX, &buf, err);
    out->nbytes = buf.nbytes;
    cm_buf_release(&buf);
    return rc;
}

static int size(cm_store *store, const char *key, uint64_t *nbytes, cm_error *err)
{
    cm_identity identity;
    int rc = identify(store, key, &identity, err);
    *nbytes = identity.nbytes;
    return rc;
}

/* ---- readers ---- */

static void reader_close(cm_object_reader *reader)
{
    reference_reader *r = (reference_reader *)reader;
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
    int rc = find(store, key, &ref, err);
    reference_reader *r = rc == CM_OK ? cm_calloc(1, sizeof *r, err) : NULL;
    if (r == NULL)
        return rc != CM_OK ? rc : CM_ENOMEM;
    r->fd = -1;
    r->base.store = store;
    r->base.key = cm_strdup(key, err);
    r->offset = ref->offset;
    if (r->base.key == NULL) {
        rc = CM_ENOMEM;
    } else if (ref->file == CM_REFERENCE_INLINE) {
        rc = get_inline(store, key, ref, UINT64_MAX, &r->data, err);
        r->base.nbytes = r->data.nbytes;
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
    reference_reader *r = (reference_reader *)reader;
    if (r->fd >= 0)
        return read_all(r->fd, reader->key, r->offset + offset, dst, nbytes, err);
    memcpy(dst, r->data.data + offset, nbytes); /* the range was checked against nbytes */
    return CM_OK;
}

/* ---- names ---- */

/* *AT becomes the first reference behind KEY, or behind all of the folder that KEY begins with. */
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
    *at = lower_bound(t, behind);
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
    for (size_t i = lower_bound(t, from); i < t->n && rc == CM_OK;) {
        const char *key = cm_reference_key(t, &t->item[i]);
        if (strncmp(key, from, skip) != 0)
            break;
        size_t nbytes = strcspn(key + skip, "/");
        rc = cm_name_list_add(&names, key + skip, nbytes, key[skip + nbytes] == '/', err);
        if (rc == CM_OK)
            rc = step_over(t, key, skip + nbytes, &i, err);
    }
    if (rc == CM_OK && names.n == 0 && skip > 0)
        rc = cm_fail(err, CM_ENOTFOUND, "%s: no such folder", prefix);
    if (rc == CM_OK)
        rc = cm_name_list_visit(&names, visit, context, err);
    cm_name_list_release(&names);
    free(from);
    return rc;
}

/* ---- what references do not do ---- */

static int refuse(const char *what, cm_error *err)
{
    return cm_fail(err, CM_EINVAL, "%s: references are only read from", what);
}

static int put(cm_store *store, const char *key, const void *data, size_t nbytes, cm_error *err)
{
    (void)store, (void)data, (void)nbytes;
    return refuse(key, err);
}

static int remove_object(cm_store *store, const char *key, cm_error *err)
{
    (void)store;
    return refuse(key, err);
}

static int sync_store(cm_store *store, cm_error *err)
{
    return refuse(store->name, err);
}

static int writer_create(cm_store *store, const char *key, cm_object_writer **out, cm_error *err)
{
    (void)store, (void)out;
    return refuse(key, err);
}

/* ---- opening ---- */

static void free_store(cm_store *store)
{
    cm_references_release(&((reference_store *)store)->table);
    free(store->name);
    free(store);
}

static const cm_store_ops reference_ops = {
    .free = free_store,
    .get = get,
    .size = size,
    .identity = identify,
    .put = put,
    .remove = remove_object,
    .list = list,
    .sync = sync_store,
    .reader_open = reader_open,
    .reader_read = reader_read,
    .reader_close = reader_close,
    .writer_create = writer_create,
};

int cm_store_open_references(const char *path, cm_store **out, cm_error *err)
{
    *out = NULL;
    reference_store *s = cm_calloc(1, sizeof *s, err);
    if (s == NULL)
        return CM_ENOMEM;
    s->base.ops = &reference_ops;
    s->base.name = cm_strdup(path, err);
    int rc = s->base.name == NULL ? CM_ENOMEM : cm_references_read(path, &s->table, err);
    if (rc != CM_OK) {
        free_store(&s->base);
        return rc;
    }
    *out = &s->base;
    return CM_OK;
}
