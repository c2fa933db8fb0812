/*
 * Writing a zip file by many threads.
 *
 * An object whose bytes are there takes its place under the lock and is written without it.  One
 * that is written in pieces lies in a scratch file until its size is known.  The directory comes
 * last, and then the file takes its name: it is absent or complete.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32.h"
#include "base/fd.h"
#include "base/glibc.h"
#include "base/scratch.h"
#include "store/zip_impl.h"

enum {
    COPY_NBYTES = 256 << 10,
    FIRST_SLOTS = 1024, /* a power of two, as all that follow */
    MADE_BY_UNIX = 3 << 8,
    VERSION = 20,
    VERSION64 = 45,
    DATE = 1 << 5 | 1, /* 1 January 1980: the same input makes the same file */
    EXTRA64_NBYTES = 28,
    MAX_HEADER = CM_ZIP_CENTRAL_NBYTES + 4096 + EXTRA64_NBYTES
};
#define FILE_MODE (0100644u << 16)

typedef struct zip_writer {
    cm_object_writer base;
    int fd; /* a scratch file */
    atomic_uint_fast64_t nbytes;
} zip_writer;

static void store_le16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static uint32_t narrow(uint64_t v)
{
    return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

/* ---- the table ---- */

static int grow_slots(cm_zip_store *z, cm_error *err)
{
    cm_zip_writing *w = z->writing;
    uint32_t *old = w->slot;
    const size_t nold = w->nslots;
    uint32_t *slot = cm_calloc(2 * nold, sizeof(*slot), err);
    if (slot == NULL)
        return CM_ENOMEM;
    w->slot = slot;
    w->nslots = 2 * nold;
    for (size_t i = 0; i < nold; i++)
        if (old[i] > 0)
            *cm_zip_slot(z, cm_zip_key(&z->table, &z->table.item[old[i] - 1])) = old[i];
    free(old);
    return CM_OK;
}

/* An entry for KEY at the end of the file, whose header has HEAD bytes; an older one is dropped. */
static int add_entry(cm_zip_store *z, const char *key, uint64_t nbytes, uint32_t crc, uint32_t head,
                     uint64_t *offset, cm_error *err)
{
    cm_zip_writing *w = z->writing;
    cm_zip_table *t = &z->table;
    cm_zip_entry *e;
    if (t->n >= UINT32_MAX - 1)
        return cm_fail(err, CM_EUNSUPPORTED, "%s: has too many objects for a zip file",
                       z->base.name);
    const uint64_t most = INT64_MAX;
    if (nbytes > most - head || t->end > most - head - nbytes)
        return cm_fail(err, CM_EUNSUPPORTED, "%s: is too long", z->base.name);
    int rc = 2 * (t->n + 1) > w->nslots ? grow_slots(z, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_zip_add(t, key, strlen(key), &e, err);
    if (rc != CM_OK)
        return rc;
    uint32_t *slot = cm_zip_slot(z, key);
    if (*slot > 0)
        t->item[*slot - 1].dropped = true;
    *slot = (uint32_t)t->n;
    e->offset = *offset = t->end;
    e->nbytes = nbytes;
    e->crc = crc;
    for (const char *p = key; *p != '\0'; p++)
        if ((unsigned char)*p >= 0x80)
            e->flags = CM_ZIP_UTF8;
    atomic_store_explicit(&e->head_nbytes, head, memory_order_relaxed);
    t->end += head + nbytes;
    return CM_OK;
}

/* ---- entries in the file ---- */

static bool is_long(uint64_t nbytes)
{
    return nbytes >= UINT32_MAX;
}

/* The header before an object's bytes; HEADER has MAX_HEADER.  Returns its length. */
static uint32_t make_header(uint8_t *header, const char *key, uint64_t nbytes, uint32_t crc)
{
    const size_t name = strlen(key);
    const bool wide = is_long(nbytes);
    unsigned flags = 0;
    for (size_t i = 0; i < name; i++)
        if ((unsigned char)key[i] >= 0x80)
            flags = CM_ZIP_UTF8;
    memset(header, 0, CM_ZIP_LOCAL_NBYTES);
    cm_store_le32(header, CM_ZIP_LOCAL);
    store_le16(header + 4, wide ? VERSION64 : VERSION);
    store_le16(header + 6, flags);
    store_le16(header + 12, DATE);
    cm_store_le32(header + 14, crc);
    cm_store_le32(header + 18, narrow(nbytes));
    cm_store_le32(header + 22, narrow(nbytes));
    store_le16(header + 26, (unsigned)name);
    memcpy(header + CM_ZIP_LOCAL_NBYTES, key, name);
    uint8_t *extra = header + CM_ZIP_LOCAL_NBYTES + name;
    if (!wide)
        return (uint32_t)(CM_ZIP_LOCAL_NBYTES + name);
    store_le16(header + 28, 20);
    store_le16(extra, CM_ZIP_EXTRA64);
    store_le16(extra + 2, 16);
    cm_store_le64(extra + 4, nbytes);
    cm_store_le64(extra + 12, nbytes);
    return (uint32_t)(CM_ZIP_LOCAL_NBYTES + name + 20);
}

static int write_at(const cm_zip_store *z, const char *key, uint64_t offset, const void *src,
                    size_t nbytes, cm_error *err)
{
    int errnum = cm_fd_write_at(z->fd, src, nbytes, offset);
    return errnum == 0 ? CM_OK : cm_fail_errno(err, errnum, "%s", key);
}

/* Takes a place for KEY and writes its header; *AT: where its bytes go. */
static int begin_entry(cm_zip_store *z, const char *key, uint64_t nbytes, uint32_t crc,
                       uint64_t *at, cm_error *err)
{
    uint8_t header[MAX_HEADER];
    const uint32_t head = make_header(header, key, nbytes, crc);
    uint64_t offset = 0;
    pthread_mutex_lock(&z->writing->lock);
    int rc = z->writing->complete ? cm_fail(err, CM_EINTERNAL, "%s: is complete", z->base.name)
                                  : add_entry(z, key, nbytes, crc, head, &offset, err);
    pthread_mutex_unlock(&z->writing->lock);
    *at = offset + head;
    return rc == CM_OK ? write_at(z, key, offset, header, head, err) : rc;
}

static int put(cm_store *store, const char *key, const void *data, size_t nbytes, cm_error *err)
{
    cm_zip_store *z = cm_zip_of(store);
    uint64_t at;
    int rc = begin_entry(z, key, nbytes, cm_crc32(0, data, nbytes), &at, err);
    return rc == CM_OK ? write_at(z, key, at, data, nbytes, err) : rc;
}

/* Its bytes stay in the file, and no directory tells of them. */
static int delete (cm_store *store, const char *key, cm_error *err)
{
    cm_zip_store *z = cm_zip_of(store);
    (void)err;
    pthread_mutex_lock(&z->writing->lock);
    cm_zip_entry *e = cm_zip_find(z, key);
    if (e != NULL && !z->writing->complete)
        e->dropped = true;
    pthread_mutex_unlock(&z->writing->lock);
    return CM_OK;
}

/* ---- objects in pieces ---- */

static void writer_abort(cm_object_writer *writer)
{
    zip_writer *w = (zip_writer *)writer;
    if (w->fd >= 0)
        close(w->fd);
    free(writer->key);
    free(w);
}

static int writer_create(cm_store *store, const char *key, const cm_object_form *form,
                         cm_object_writer **out, cm_error *err)
{
    (void)form;
    zip_writer *w = cm_calloc(1, sizeof(*w), err);
    if (w == NULL)
        return CM_ENOMEM;
    w->fd = -1;
    w->base.store = store;
    w->base.key = cm_strdup(key, err);
    int rc = w->base.key == NULL ? CM_ENOMEM
                                 : cm_scratch_open(cm_zip_of(store)->writing->folder, &w->fd, err);
    if (rc != CM_OK) {
        writer_abort(&w->base);
        return rc;
    }
    *out = &w->base;
    return CM_OK;
}

static int writer_write(cm_object_writer *writer, uint64_t offset, const void *src, size_t nbytes,
                        cm_error *err)
{
    zip_writer *w = (zip_writer *)writer;
    const uint64_t end = offset + nbytes;
    int errnum = cm_fd_write_at(w->fd, src, nbytes, offset);
    if (errnum != 0)
        return cm_fail_errno(err, errnum, "%s", writer->key);
    uint_fast64_t was = atomic_load(&w->nbytes);
    while (was < end && !atomic_compare_exchange_weak(&w->nbytes, &was, end))
        ;
    return CM_OK;
}

/* Reads the scratch file piece by piece: its checksum, or (AT) a copy in the zip file. */
static int pass_over(const zip_writer *w, void *piece, uint32_t *crc, const uint64_t *at,
                     cm_error *err)
{
    const uint64_t nbytes = atomic_load(&w->nbytes);
    const char *key = w->base.key;
    int rc = CM_OK;
    for (uint64_t done = 0; rc == CM_OK && done < nbytes;) {
        const size_t n = nbytes - done < COPY_NBYTES ? (size_t)(nbytes - done) : COPY_NBYTES;
        size_t got;
        int errnum = cm_fd_read_at(w->fd, piece, n, done, &got);
        if (errnum != 0 || got < n)
            return cm_fail_errno(err, errnum != 0 ? errnum : EIO, "%s", key);
        if (at == NULL)
            *crc = cm_crc32(*crc, piece, n);
        else
            rc = write_at(cm_zip_of(w->base.store), key, *at + done, piece, n, err);
        done += n;
    }
    return rc;
}

static int writer_commit(cm_object_writer *writer, cm_error *err)
{
    zip_writer *w = (zip_writer *)writer;
    void *piece = cm_calloc(COPY_NBYTES, 1, err);
    uint32_t crc = 0;
    uint64_t at;
    int rc = piece == NULL ? CM_ENOMEM : pass_over(w, piece, &crc, NULL, err);
    if (rc == CM_OK)
        rc = begin_entry(cm_zip_of(writer->store), writer->key, atomic_load(&w->nbytes), crc, &at,
                         err);
    if (rc == CM_OK)
        rc = pass_over(w, piece, &crc, &at, err);
    free(piece);
    writer_abort(writer);
    return rc;
}

/* ---- the directory ---- */

typedef struct directory {
    const cm_zip_store *z;
    uint8_t *piece;
    size_t used;
    uint64_t at; /* in the file, of PIECE */
    uint64_t n, begin;
} directory;

static int flush(directory *d, cm_error *err)
{
    int rc = write_at(d->z, d->z->base.name, d->at, d->piece, d->used, err);
    d->at += d->used;
    d->used = 0;
    return rc;
}

/* Numbers that do not fit in 32 bits follow in an extra field. */
static void add_central(directory *d, const cm_zip_entry *e)
{
    const char *key = cm_zip_key(&d->z->table, e);
    uint8_t *p = d->piece + d->used, *extra = p + CM_ZIP_CENTRAL_NBYTES + e->name_nbytes;
    const bool wide = is_long(e->nbytes), far = e->offset >= UINT32_MAX;
    const unsigned field = (wide ? 16u : 0u) + (far ? 8u : 0u);
    memset(p, 0, CM_ZIP_CENTRAL_NBYTES);
    cm_store_le32(p, CM_ZIP_CENTRAL);
    store_le16(p + 4, MADE_BY_UNIX | (field > 0 ? VERSION64 : VERSION));
    store_le16(p + 6, field > 0 ? VERSION64 : VERSION);
    store_le16(p + 8, e->flags);
    store_le16(p + 14, DATE);
    cm_store_le32(p + 16, e->crc);
    cm_store_le32(p + 20, narrow(e->nbytes));
    cm_store_le32(p + 24, narrow(e->nbytes));
    store_le16(p + 28, e->name_nbytes);
    store_le16(p + 30, field > 0 ? field + 4 : 0);
    cm_store_le32(p + 38, FILE_MODE);
    cm_store_le32(p + 42, narrow(e->offset));
    memcpy(p + CM_ZIP_CENTRAL_NBYTES, key, e->name_nbytes);
    if (field > 0) {
        store_le16(extra, CM_ZIP_EXTRA64);
        store_le16(extra + 2, field);
        extra += 4;
    }
    for (int twice = 0; wide && twice < 2; twice++, extra += 8)
        cm_store_le64(extra, e->nbytes);
    if (far)
        cm_store_le64(extra, e->offset);
    d->used += CM_ZIP_CENTRAL_NBYTES + e->name_nbytes + (field > 0 ? field + 4 : 0);
    d->n++;
}

/* The end, with that of ZIP64 before it where a number does not fit. */
static void add_end(directory *d, uint64_t nbytes)
{
    uint8_t *p = d->piece + d->used;
    const uint64_t at = d->at + d->used;
    if (d->n >= UINT16_MAX || nbytes >= UINT32_MAX || d->begin >= UINT32_MAX) {
        memset(p, 0, CM_ZIP_END64_NBYTES + CM_ZIP_LOCATOR64_NBYTES);
        cm_store_le32(p, CM_ZIP_END64);
        cm_store_le64(p + 4, CM_ZIP_END64_NBYTES - 12);
        store_le16(p + 12, MADE_BY_UNIX | VERSION64);
        store_le16(p + 14, VERSION64);
        cm_store_le64(p + 24, d->n);
        cm_store_le64(p + 32, d->n);
        cm_store_le64(p + 40, nbytes);
        cm_store_le64(p + 48, d->begin);
        p += CM_ZIP_END64_NBYTES;
        cm_store_le32(p, CM_ZIP_LOCATOR64);
        cm_store_le64(p + 8, at);
        cm_store_le32(p + 16, 1);
        p += CM_ZIP_LOCATOR64_NBYTES;
    }
    const unsigned n = d->n < UINT16_MAX ? (unsigned)d->n : UINT16_MAX;
    memset(p, 0, CM_ZIP_END_NBYTES);
    cm_store_le32(p, CM_ZIP_END);
    store_le16(p + 8, n);
    store_le16(p + 10, n);
    cm_store_le32(p + 12, narrow(nbytes));
    cm_store_le32(p + 16, narrow(d->begin));
    d->used = (size_t)(p + CM_ZIP_END_NBYTES - d->piece);
}

static int write_directory(const cm_zip_store *z, cm_error *err)
{
    directory d = {.z = z, .at = z->table.end, .begin = z->table.end};
    d.piece = cm_calloc(COPY_NBYTES, 1, err);
    int rc = d.piece == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; i < z->table.n && rc == CM_OK; i++) {
        if (z->table.item[i].dropped)
            continue;
        add_central(&d, &z->table.item[i]);
        if (d.used > COPY_NBYTES / 2)
            rc = flush(&d, err);
    }
    if (rc == CM_OK) {
        add_end(&d, d.at + d.used - d.begin);
        rc = flush(&d, err);
    }
    free(d.piece);
    return rc;
}

/* ---- completing ---- */

static int sync_file(cm_store *store, cm_error *err)
{
    cm_zip_store *z = cm_zip_of(store);
    z->writing->synced = true;
    return fsync(z->fd) == 0 ? CM_OK
                             : cm_fail_errno(err, errno, "%s: cannot sync to disk", store->name);
}

static int sync_folder(const char *path, cm_error *err)
{
    const size_t n = cm_key_folder(path);
    char *folder = cm_asprintf(err, "%.*s/", (int)n, path);
    if (folder == NULL)
        return CM_ENOMEM;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = CM_OK;
    if (fd < 0 || fsync(fd) != 0)
        rc = cm_fail_errno(err, errno, "%s: cannot sync to disk", folder);
    if (fd >= 0)
        close(fd);
    free(folder);
    return rc;
}

/* Only the file that was to be replaced is. */
static int take_name(const cm_zip_writing *w, cm_error *err)
{
    struct stat st;
    if (renameat2(AT_FDCWD, w->temporary, AT_FDCWD, w->path, RENAME_NOREPLACE) == 0)
        return CM_OK;
    /* EINVAL, ENOSYS: the file system or the kernel lacks RENAME_NOREPLACE. */
    if (errno != EEXIST && errno != EINVAL && errno != ENOSYS)
        return cm_fail_errno(err, errno, "%s", w->path);
    const bool there = lstat(w->path, &st) == 0;
    if (!there && errno != ENOENT)
        return cm_fail_errno(err, errno, "%s", w->path);
    if (there && (!S_ISREG(st.st_mode) || st.st_dev != w->device || st.st_ino != w->inode))
        return cm_fail(err, CM_EEXIST,
                       "%s: something else was put there meanwhile, and is not replaced", w->path);
    if (there)
        (void)chmod(w->temporary, st.st_mode & 0777);
    return rename(w->temporary, w->path) == 0 ? CM_OK : cm_fail_errno(err, errno, "%s", w->path);
}

static int complete(cm_store *store, cm_error *err)
{
    cm_zip_store *z = cm_zip_of(store);
    cm_zip_writing *w = z->writing;
    pthread_mutex_lock(&w->lock);
    int rc = w->complete ? cm_fail(err, CM_EINTERNAL, "%s: is complete", store->name)
                         : write_directory(z, err);
    if (rc == CM_OK && w->synced)
        rc = sync_file(store, err);
    if (rc == CM_OK)
        rc = take_name(w, err);
    if (rc == CM_OK) {
        w->complete = true;
        (void)fstat(z->fd, &z->st);
        cm_zip_sort(&z->table);
        rc = w->synced ? sync_folder(w->path, err) : CM_OK;
    }
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static const cm_store_write_ops write_ops = {
    .put = put,
    .delete = delete,
    .sweep = cm_store_sweep_listed,
    .create = writer_create,
    .write = writer_write,
    .commit = writer_commit,
    .abort = writer_abort,
    .complete = complete,
};

/* ---- opening ---- */

static const cm_store_ops ops = {CM_ZIP_READING, .sync = sync_file, .write = &write_ops};

static int open_temporary(cm_zip_store *z, const cm_zip_place *place, cm_error *err)
{
    cm_zip_writing *w = z->writing;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    w->path = cm_strdup(place->path, err);
    w->folder = cm_strdup(place->folder, err);
    w->temporary = cm_asprintf(err, "%s/" CM_ZIP_TEMPORARY "%ld-%lld%09ld", place->folder,
                               (long)getpid(), (long long)now.tv_sec, now.tv_nsec);
    w->slot = cm_calloc(FIRST_SLOTS, sizeof(w->slot[0]), err);
    w->nslots = FIRST_SLOTS;
    w->device = place->device;
    w->inode = place->inode;
    if (w->path == NULL || w->folder == NULL || w->temporary == NULL || w->slot == NULL)
        return CM_ENOMEM;
    z->fd = open(w->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    return z->fd >= 0 ? CM_OK : cm_fail_errno(err, errno, "%s", w->temporary);
}

int cm_store_create_zip(const cm_zip_place *place, cm_store **out, cm_error *err)
{
    *out = NULL;
    cm_zip_store *z = cm_calloc(1, sizeof(*z), err);
    if (z == NULL)
        return CM_ENOMEM;
    z->base.ops = &ops;
    z->fd = -1;
    z->base.name = cm_strdup(place->path, err);
    z->writing = cm_calloc(1, sizeof(*z->writing), err);
    if (z->writing != NULL)
        pthread_mutex_init(&z->writing->lock, NULL);
    int rc = z->base.name == NULL || z->writing == NULL ? CM_ENOMEM : open_temporary(z, place, err);
    if (rc == CM_OK && fstat(z->fd, &z->st) != 0)
        rc = cm_fail_errno(err, errno, "%s", place->path);
    if (rc != CM_OK) {
        cm_zip_free(&z->base);
        return rc;
    }
    *out = &z->base;
    return CM_OK;
}
