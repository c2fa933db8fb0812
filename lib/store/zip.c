/* A zip file as a store: finding and reading its objects. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/crc32.h"
#include "base/fd.h"
#include "store/checksum.h"
#include "store/zip_impl.h"

typedef struct zip_reader {
    cm_object_reader base;
    uint64_t offset; /* of its bytes in the file */
    uint32_t crc;
} zip_reader;

/* ---- which files ---- */

bool cm_zip_is_name(const char *path)
{
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/')
        n--;
    return n > 4 && path[n - 5] != '/' && strncasecmp(path + n - 4, ".zip", 4) == 0;
}

bool cm_zip_begins(const char *path, const void *head, size_t nbytes)
{
    const uint32_t magic = nbytes >= sizeof(magic) ? cm_load_le32(head) : 0;
    return cm_zip_is_name(path) || magic == CM_ZIP_LOCAL || magic == CM_ZIP_END;
}

bool cm_zip_is(const char *path)
{
    uint8_t head[4];
    size_t got;
    return cm_file_head(path, head, sizeof(head), &got) && cm_zip_begins(path, head, got);
}

/* ---- entries ---- */

cm_zip_entry *cm_zip_find(const cm_zip_store *z, const char *key)
{
    const cm_zip_table *t = &z->table;
    if (z->writing != NULL && !z->writing->complete)
        return cm_zip_find_written(z, key);
    const size_t i = cm_zip_lower_bound(t, key);
    return i < t->n && strcmp(cm_zip_key(t, &t->item[i]), key) == 0 ? &t->item[i] : NULL;
}

static void lock(cm_zip_store *z)
{
    if (z->writing != NULL)
        pthread_mutex_lock(&z->writing->lock);
}

static void unlock(cm_zip_store *z)
{
    if (z->writing != NULL)
        pthread_mutex_unlock(&z->writing->lock);
}

static int read_bytes(const cm_zip_store *z, const char *key, uint64_t offset, void *dst,
                      size_t nbytes, cm_error *err)
{
    size_t got;
    int errnum = cm_fd_read_at(z->fd, dst, nbytes, offset, &got);
    if (errnum != 0)
        return cm_fail_errno(err, errnum, "%s", key);
    return got == nbytes ? CM_OK : cm_fail(err, CM_EFORMAT, "%s: its zip file became shorter", key);
}

/* Sets *HEAD to the length of the header before the bytes of E, which is in the file. */
static int read_head(const cm_zip_store *z, const char *key, const cm_zip_entry *e, uint32_t *head,
                     cm_error *err)
{
    uint8_t header[CM_ZIP_LOCAL_NBYTES + 4096];
    const size_t nbytes = CM_ZIP_LOCAL_NBYTES + (size_t)e->name_nbytes;
    if (nbytes > sizeof(header)) /* keys are shorter */
        return cm_fail(err, CM_EFORMAT, "%s: its name is too long", key);
    int rc = read_bytes(z, key, e->offset, header, nbytes, err);
    if (rc != CM_OK)
        return rc;
    if (cm_load_le32(header) != CM_ZIP_LOCAL || cm_load_le16(header + 26) != e->name_nbytes ||
        memcmp(header + CM_ZIP_LOCAL_NBYTES, key, e->name_nbytes) != 0)
        return cm_fail(err, CM_EFORMAT,
                       "%s: its zip file has another entry where the directory says", key);
    *head = (uint32_t)nbytes + cm_load_le16(header + 28);
    if (*head > z->table.end - e->offset || e->nbytes > z->table.end - e->offset - *head)
        return cm_fail(err, CM_EFORMAT, "%s: lies outside of its zip file", key);
    return CM_OK;
}

/* Where the bytes of KEY, an entry E, begin. */
static int locate(cm_zip_store *z, const char *name, cm_zip_entry *e, uint64_t *out, cm_error *err)
{
    uint32_t head = atomic_load_explicit(&e->head_nbytes, memory_order_relaxed);
    if (e->flags & CM_ZIP_ENCRYPTED)
        return cm_fail(err, CM_EUNSUPPORTED, "%s: is encrypted in its zip file", name);
    if (e->method != 0)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: is compressed in its zip file (method %u); only stored entries are "
                       "read: unpack the file, and pack it with \"zip -0\"",
                       name, e->method);
    int rc = head > 0 ? CM_OK : read_head(z, cm_zip_key(&z->table, e), e, &head, err);
    atomic_store_explicit(&e->head_nbytes, head, memory_order_relaxed);
    *out = e->offset + head;
    return rc;
}

static int not_found(const char *key, cm_error *err)
{
    return cm_fail(err, CM_ENOTFOUND, "%s: no such object", key);
}

int cm_zip_stat(cm_store *store, const char *key, cm_object_stat *out, cm_error *err)
{
    cm_zip_store *z = cm_zip_of(store);
    lock(z);
    const cm_zip_entry *e = cm_zip_find(z, key);
    if (e != NULL)
        out->nbytes = e->nbytes;
    unlock(z);
    return e != NULL ? CM_OK : not_found(key, err);
}

/* An object is its bytes at their place in this version of the file. */
int cm_zip_identify(cm_store *store, const char *key, cm_identity *out, cm_error *err)
{
    cm_zip_store *z = cm_zip_of(store);
    lock(z);
    const cm_zip_entry *e = cm_zip_find(z, key);
    if (e != NULL) {
        const uint64_t place[] = {(uint64_t)z->st.st_ino, e->offset, e->crc};
        *out = (cm_identity){.nbytes = e->nbytes,
                             .changed_ns =
                                 (int64_t)z->st.st_ctim.tv_sec * 1000000000 + z->st.st_ctim.tv_nsec,
                             .inode = cm_checksum64(place, sizeof(place), 0)};
    }
    unlock(z);
    return e != NULL ? CM_OK : not_found(key, err);
}

/* ---- readers ---- */

int cm_zip_reader_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err)
{
    cm_zip_store *z = cm_zip_of(store);
    zip_reader *r = cm_calloc(1, sizeof(*r), err);
    char *name = r != NULL ? cm_strdup(key, err) : NULL;
    int rc = name == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK) {
        lock(z);
        cm_zip_entry *e = cm_zip_find(z, key);
        rc = e == NULL ? not_found(key, err) : locate(z, key, e, &r->offset, err);
        if (rc == CM_OK) {
            r->base.nbytes = e->nbytes;
            r->crc = e->crc;
        }
        unlock(z);
    }
    if (rc != CM_OK) {
        free(name);
        free(r);
        return rc;
    }
    r->base.store = store;
    r->base.key = name;
    *out = &r->base;
    return CM_OK;
}

/* The range was checked against nbytes. */
int cm_zip_reader_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err)
{
    const zip_reader *r = (const zip_reader *)reader;
    int rc =
        read_bytes(cm_zip_of(reader->store), reader->key, r->offset + offset, dst, nbytes, err);
    if (rc == CM_OK && nbytes == reader->nbytes && cm_crc32(0, dst, nbytes) != r->crc)
        rc = cm_fail(err, CM_EFORMAT, "%s: is damaged: its checksum in the zip file is another",
                     reader->key);
    return rc;
}

void cm_zip_reader_close(cm_object_reader *reader)
{
    free(reader->key);
    free(reader);
}

/* ---- names ---- */

/* Moves *AT to the first entry after KEY, or after all of the folder with the prefix KEY. */
static int step_over(const cm_zip_table *t, const char *key, size_t nbytes, size_t *at,
                     cm_error *err)
{
    if (key[nbytes] == '\0') {
        ++*at;
        return CM_OK;
    }
    char *behind = cm_asprintf(err, "%.*s%c", (int)nbytes, key, '/' + 1);
    if (behind == NULL)
        return CM_ENOMEM;
    *at = cm_zip_lower_bound(t, behind);
    free(behind);
    return CM_OK;
}

static int list_names(cm_zip_store *z, const char *from, cm_name_list *names, cm_error *err)
{
    const cm_zip_table *t = &z->table;
    const bool sorted = z->writing == NULL || z->writing->complete;
    const size_t skip = strlen(from);
    int rc = CM_OK;
    for (size_t i = sorted ? cm_zip_lower_bound(t, from) : 0; i < t->n && rc == CM_OK;) {
        const char *key = cm_zip_key(t, &t->item[i]);
        const bool below = strncmp(key, from, skip) == 0 && !t->item[i].dropped;
        if (sorted && !below)
            break;
        if (below)
            rc = cm_name_list_add_path(names, key + skip, err);
        if (!sorted)
            i++;
        else if (rc == CM_OK)
            rc = step_over(t, key, skip + strcspn(key + skip, "/"), &i, err);
    }
    return rc;
}

int cm_zip_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err)
{
    cm_zip_store *z = cm_zip_of(store);
    cm_name_list names = {0};
    char *from = cm_asprintf(err, "%s%s", prefix, *prefix != '\0' ? "/" : "");
    if (from == NULL)
        return CM_ENOMEM;
    lock(z);
    int rc = list_names(z, from, &names, err);
    unlock(z);
    free(from);
    return cm_name_list_finish(&names, prefix, rc, visit, context, err);
}

/* Of a file that is only read: nothing moves while it is visited. */
static int list_below(cm_store *store, const char *prefix, cm_store_visit_object *visit,
                      void *context, cm_error *err)
{
    const cm_zip_table *t = &cm_zip_of(store)->table;
    char *from = cm_asprintf(err, "%s%s", prefix, *prefix != '\0' ? "/" : "");
    int rc = from == NULL ? CM_ENOMEM : CM_OK;
    const size_t skip = from == NULL ? 0 : strlen(from);
    for (size_t i = rc == CM_OK ? cm_zip_lower_bound(t, from) : t->n; i < t->n && rc == CM_OK;
         i++) {
        const char *key = cm_zip_key(t, &t->item[i]);
        if (strncmp(key, from, skip) != 0)
            break;
        rc = visit(context, key + skip, &(cm_object_stat){.nbytes = t->item[i].nbytes}, err);
    }
    free(from);
    return rc;
}

/* ---- opening ---- */

/* Removes the file if it is not complete. */
static void end_writing(cm_zip_store *z)
{
    cm_zip_writing *w = z->writing;
    if (w == NULL)
        return;
    if (!w->complete && z->fd >= 0)
        unlink(w->temporary);
    pthread_mutex_destroy(&w->lock);
    free(w->slot);
    free(w->path);
    free(w->folder);
    free(w->temporary);
    free(w);
    z->writing = NULL;
}

void cm_zip_free(cm_store *store)
{
    cm_zip_store *z = cm_zip_of(store);
    end_writing(z);
    if (z->fd >= 0)
        close(z->fd);
    cm_zip_release(&z->table);
    free(store->name);
    free(z);
}

static const cm_store_ops read_ops = {
    CM_ZIP_READING,
    .read_only = "a zip file is written once, as a whole",
    .list_below = list_below,
};

/* Keeps what lies below NODE, and removes NODE from the keys; their order stays. */
static void keep_below(cm_zip_store *z, const char *node)
{
    cm_zip_table *t = &z->table;
    const size_t nbytes = strlen(node);
    size_t kept = 0;
    for (size_t i = 0; nbytes > 0 && i < t->n; i++) {
        const char *key = cm_zip_key(t, &t->item[i]);
        if (strncmp(key, node, nbytes) == 0 && key[nbytes] == '/')
            memcpy(&t->item[kept++], &t->item[i], sizeof(t->item[0]));
    }
    for (size_t i = 0; i < kept; i++)
        t->item[i].key += nbytes + 1;
    t->n = nbytes > 0 ? kept : t->n;
}

static int open_file(const char *path, cm_zip_store *z, cm_error *err)
{
    z->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (z->fd < 0)
        return cm_fail_errno(err, errno, "%s", path);
    if (fstat(z->fd, &z->st) != 0)
        return cm_fail_errno(err, errno, "%s", path);
    if (!S_ISREG(z->st.st_mode))
        return cm_fail(err, CM_EFORMAT, "%s: is not a regular file", path);
    int rc = cm_zip_read(z->fd, (uint64_t)z->st.st_size, &z->table, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s", path);
    return rc;
}

int cm_store_open_zip(const char *path, const char *node, cm_store **out, cm_error *err)
{
    *out = NULL;
    cm_zip_store *z = cm_calloc(1, sizeof(*z), err);
    if (z == NULL)
        return CM_ENOMEM;
    z->base.ops = &read_ops;
    z->fd = -1;
    z->base.name = cm_asprintf(err, "%s%s%s", path, *node != '\0' ? "/" : "", node);
    int rc = z->base.name == NULL ? CM_ENOMEM : open_file(path, z, err);
    if (rc == CM_OK)
        keep_below(z, node);
    if (rc == CM_OK && *node != '\0' && z->table.n == 0)
        rc = cm_fail(err, CM_ENOTFOUND, "%s: has no group or array %s", path, node);
    if (rc != CM_OK) {
        cm_zip_free(&z->base);
        return rc;
    }
    *out = &z->base;
    return CM_OK;
}
