/*
 * Reads the objects of a directory.
 *
 * io.h counts the system calls for each object.  One of them is fstat: it gives the size that
 * bounds the buffer, and rejects anything but regular files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "store/beneath.h"
#include "store/dir.h"

enum {
    GROUP = 64 /* objects of one call that are open at once with io_uring */
};

typedef struct dir_reader {
    cm_object_reader base;
    int fd;
} dir_reader;

static cm_dir_store *dir_of(cm_store *store)
{
    return (cm_dir_store *)store;
}

/* ---- opening ---- */

/* O_NONBLOCK, so that a FIFO in a hostile store does not block us; it has no effect on files. */
static int open_flags(const cm_dir_store *dir)
{
    return O_RDONLY | O_CLOEXEC | O_NONBLOCK | (dir->io == CM_IO_DIRECT ? O_DIRECT : 0);
}

static int check_stat(const char *key, const struct stat *st, cm_error *err)
{
    if (S_ISDIR(st->st_mode))
        return cm_fail(err, CM_ENOTFOUND, "%s: a folder, not an object", key);
    if (!S_ISREG(st->st_mode))
        return cm_fail(err, CM_EFORMAT, "%s: not a regular file", key);
    return CM_OK;
}

static int behind_link(const char *key, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: is a symbolic link, or behind one", key);
}

static int open_failed(const cm_dir_store *dir, const char *key, int errnum, cm_error *err)
{
    if (errnum == ENOENT || errnum == ENOTDIR)
        return cm_fail(err, CM_ENOTFOUND, "%s: no such object", key);
    if (errnum == ELOOP && dir->own)
        return behind_link(key, err);
    if (errnum != EINVAL || dir->io != CM_IO_DIRECT)
        return cm_fail_errno(err, errnum, "%s", key);
    /* No file system opens folders with O_DIRECT. */
    struct stat st;
    int rc = fstatat(dir->root, key, &st, 0) == 0 ? check_stat(key, &st, err) : CM_OK;
    return rc != CM_OK
               ? rc
               : cm_fail(err, CM_EUNSUPPORTED,
                         "%s: its file system does not read past the page cache (O_DIRECT)", key);
}

/*
 * Checks that the open FD of KEY is a regular file, of *NBYTES.  With io_uring clears O_NONBLOCK,
 * which would make reads that wait for the disk fail.
 */
static int examine(const cm_dir_store *dir, int fd, const char *key, uint64_t *nbytes,
                   cm_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return cm_fail_errno(err, errno, "%s", key);
    int rc = check_stat(key, &st, err);
    if (rc == CM_OK && dir->io == CM_IO_URING && fcntl(fd, F_SETFL, O_RDONLY) != 0)
        rc = cm_fail_errno(err, errno, "%s", key);
    *nbytes = (uint64_t)st.st_size;
    return rc;
}

static int open_object(cm_dir_store *dir, const char *key, int *out, uint64_t *nbytes,
                       cm_error *err)
{
    int fd = dir->own ? cm_beneath_open(dir->root, key, open_flags(dir), 0)
                      : openat(dir->root, key, open_flags(dir));
    if (fd < 0)
        return open_failed(dir, key, errno, err);
    int rc = examine(dir, fd, key, nbytes, err);
    if (rc != CM_OK) {
        close(fd);
        return rc;
    }
    *out = fd;
    return CM_OK;
}

/* ---- a range of an open file ---- */

static int ends_short(const char *key, uint64_t end, size_t missing, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: ends at %llu, %zu bytes short", key,
                   (unsigned long long)end, missing);
}

static int read_plain(int fd, const char *key, uint64_t offset, void *dst, size_t nbytes,
                      cm_error *err)
{
    size_t got;
    int errnum = cm_fd_read_at(fd, dst, nbytes, offset, &got);
    if (errnum != 0)
        return cm_fail_errno(err, errnum, "%s", key);
    return got == nbytes ? CM_OK : ends_short(key, offset + got, nbytes - got, err);
}

/*
 * The kernel copies from the mapping (process_vm_readv of this process): memcpy would be killed by
 * SIGBUS if the file became shorter, and a library should not handle signals.  Costs a sixth more
 * than memcpy from warm pages.
 */
static int read_mapped(int fd, const char *key, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    size_t before = (size_t)(offset % page), done = 0;
    uint8_t *map = mmap(NULL, before + nbytes, PROT_READ, MAP_SHARED, fd, (off_t)(offset - before));
    if (map == MAP_FAILED)
        return cm_fail_errno(err, errno, "%s: cannot be mapped", key);
    int rc = CM_OK;
    while (done < nbytes && rc == CM_OK) {
        struct iovec to = {(uint8_t *)dst + done, nbytes - done};
        struct iovec from = {map + before + done, nbytes - done};
        ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno == EFAULT)
            rc = ends_short(key, offset + done, nbytes - done, err);
        else if (errno == ENOSYS || errno == EPERM)
            rc = cm_fail(err, CM_EUNSUPPORTED,
                         "%s: this system does not let a process copy from its mappings", key);
        else if (errno != EINTR)
            rc = cm_fail_errno(err, errno, "%s", key);
    }
    munmap(map, before + nbytes);
    /* The last page of a mapping continues past the end of the file with zeros. */
    struct stat st;
    if (rc == CM_OK && fstat(fd, &st) == 0 && (uint64_t)st.st_size < offset + nbytes)
        rc = ends_short(key, (uint64_t)st.st_size, (size_t)(offset + nbytes - (uint64_t)st.st_size),
                        err);
    return rc;
}

static int check_request(const cm_ring_request *q, const char *key, cm_error *err)
{
    if (q->error)
        return cm_fail_errno(err, q->error, "%s", key);
    if (q->done < q->nbytes)
        return ends_short(key, q->offset + q->done, q->nbytes - q->done, err);
    return CM_OK;
}

static int read_ring(cm_dir_store *dir, int fd, const char *key, uint64_t offset, void *dst,
                     size_t nbytes, cm_error *err)
{
    cm_ring_request q = {.fd = fd, .dst = dst, .offset = offset, .nbytes = nbytes};
    int rc = cm_rings_run(dir->rings, &q, 1, err);
    return rc != CM_OK ? rc : check_request(&q, key, err);
}

static int read_range(cm_dir_store *dir, int fd, const char *key, uint64_t offset, void *dst,
                      size_t nbytes, cm_error *err)
{
    if (nbytes == 0)
        return CM_OK;
    switch (dir->io) {
    case CM_IO_MMAP:
        return read_mapped(fd, key, offset, dst, nbytes, err);
    case CM_IO_URING:
        return read_ring(dir, fd, key, offset, dst, nbytes, err);
    case CM_IO_DIRECT:
        return cm_direct_read(dir->direct, fd, key, offset, dst, nbytes, err);
    case CM_IO_PREAD:
        break;
    }
    return read_plain(fd, key, offset, dst, nbytes, err);
}

/* ---- whole objects ---- */

/* Appends the object KEY to BUF. */
static int append_object(cm_dir_store *dir, const char *key, uint64_t max_nbytes, cm_buf *buf,
                         cm_error *err)
{
    int fd = -1;
    uint64_t nbytes = 0;
    int rc = open_object(dir, key, &fd, &nbytes, err);
    if (rc != CM_OK)
        return rc;
    size_t at = buf->nbytes;
    if (nbytes > max_nbytes)
        rc = cm_object_too_long(key, nbytes, max_nbytes, err);
    if (rc == CM_OK)
        rc = cm_buf_extend(buf, nbytes, err);
    if (rc == CM_OK)
        rc = read_range(dir, fd, key, 0, buf->data + at, (size_t)nbytes, err);
    close(fd);
    return rc;
}

/* fstatat in the way that DIR is read. */
static int stat_key(const cm_dir_store *dir, const char *key, struct stat *st)
{
    if (!dir->own)
        return fstatat(dir->root, key, st, 0);
    const char *name;
    int parent = cm_beneath_parent(dir->root, key, &name);
    if (parent < 0)
        return -1;
    int failed = fstatat(parent, name, st, AT_SYMLINK_NOFOLLOW), errnum = errno;
    close(parent);
    errno = !failed && S_ISLNK(st->st_mode) ? ELOOP : errnum;
    return !failed && S_ISLNK(st->st_mode) ? -1 : failed;
}

/* Looks at the object KEY. */
static int look_at(cm_store *store, const char *key, struct stat *st, cm_error *err)
{
    if (stat_key(dir_of(store), key, st) != 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return cm_fail(err, CM_ENOTFOUND, "%s: no such object", key);
        if (errno == ELOOP && dir_of(store)->own)
            return behind_link(key, err);
        return cm_fail_errno(err, errno, "%s", key);
    }
    return check_stat(key, st, err);
}

int cm_dir_identity(cm_store *store, const char *key, cm_identity *out, cm_error *err)
{
    struct stat st = {0};
    int rc = look_at(store, key, &st, err);
    *out = (cm_identity){
        .nbytes = (uint64_t)st.st_size,
        .changed_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec,
        .inode = st.st_ino,
    };
    return rc;
}

int cm_dir_stat(cm_store *store, const char *key, cm_object_stat *out, cm_error *err)
{
    struct stat st = {0};
    int rc = look_at(store, key, &st, err);
    out->nbytes = (uint64_t)st.st_size;
    out->modified_s = st.st_mtim.tv_sec;
    return rc;
}

/* ---- readers ---- */

int cm_dir_reader_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err)
{
    dir_reader *r = cm_calloc(1, sizeof *r, err);
    if (r == NULL)
        return CM_ENOMEM;
    r->base.store = store;
    r->base.key = cm_strdup(key, err);
    int rc = r->base.key != NULL ? open_object(dir_of(store), key, &r->fd, &r->base.nbytes, err)
                                 : CM_ENOMEM;
    if (rc != CM_OK) {
        free(r->base.key);
        free(r);
        return rc;
    }
    *out = &r->base;
    return CM_OK;
}

int cm_dir_reader_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err)
{
    return read_range(dir_of(reader->store), ((dir_reader *)reader)->fd, reader->key, offset, dst,
                      nbytes, err);
}

void cm_dir_reader_close(cm_object_reader *reader)
{
    close(((dir_reader *)reader)->fd);
    free(reader->key);
    free(reader);
}

/* ---- many at once ---- */

static int read_one(cm_dir_store *dir, cm_store_read *read, cm_buf *buf, cm_error *err)
{
    read->at = buf->nbytes;
    int rc;
    if (read->reader != NULL) {
        rc = cm_buf_extend(buf, read->nbytes, err);
        if (rc == CM_OK)
            rc = read_range(dir, ((dir_reader *)read->reader)->fd, read->reader->key, read->offset,
                            buf->data + read->at, (size_t)read->nbytes, err);
    } else {
        rc = append_object(dir, read->key, read->max_nbytes, buf, err);
        if (rc == CM_ENOTFOUND) {
            read->absent = true;
            return CM_OK;
        }
    }
    read->got_nbytes = buf->nbytes - read->at;
    return rc;
}

/* Up to GROUP reads in progress through a ring. */
typedef struct group {
    cm_dir_store *dir;
    cm_store_read *read;
    size_t n;
    cm_ring_request request[GROUP]; /* opens, then reads */
    int fd[GROUP];                  /* of read i; closed here unless a reader owns it */
    bool crowded;                   /* too many files to have open at once */
} group;

static int open_all(group *g, cm_error *err)
{
    size_t from[GROUP], nopen = 0;
    for (size_t i = 0; i < g->n; i++) {
        const cm_store_read *read = &g->read[i];
        g->fd[i] = read->reader != NULL ? ((dir_reader *)read->reader)->fd : -1;
        if (read->reader != NULL)
            continue;
        g->request[nopen] = (cm_ring_request){
            .path = read->key, .fd = g->dir->root, .flags = open_flags(g->dir), .opened = -1};
        from[nopen++] = i;
    }
    int rc = nopen ? cm_rings_run(g->dir->rings, g->request, nopen, err) : CM_OK;
    for (size_t k = 0; k < nopen; k++)
        g->fd[from[k]] = g->request[k].opened;
    for (size_t k = 0; k < nopen && rc == CM_OK; k++) {
        cm_store_read *read = &g->read[from[k]];
        int errnum = g->request[k].error;
        uint64_t nbytes = 0;
        g->crowded = g->n > 1 && (errnum == EMFILE || errnum == ENFILE);
        rc = errnum ? open_failed(g->dir, read->key, errnum, err)
                    : examine(g->dir, g->fd[from[k]], read->key, &nbytes, err);
        if (rc == CM_OK && nbytes > read->max_nbytes)
            rc = cm_object_too_long(read->key, nbytes, read->max_nbytes, err);
        read->absent = rc == CM_ENOTFOUND;
        if (read->absent)
            rc = CM_OK;
        read->got_nbytes = read->absent ? 0 : (size_t)nbytes;
    }
    return rc;
}

static int read_all(group *g, cm_buf *buf, cm_error *err)
{
    size_t at = buf->nbytes, total = 0, from[GROUP], nread = 0;
    for (size_t i = 0; i < g->n; i++) {
        cm_store_read *read = &g->read[i];
        if (read->reader != NULL)
            read->got_nbytes = (size_t)read->nbytes;
        read->at = at + total;
        if (!cm_add_size(total, read->got_nbytes, &total))
            return cm_fail(err, CM_ENOMEM, "no memory for this many bytes at once");
    }
    int rc = cm_buf_extend(buf, total, err);
    if (rc != CM_OK)
        return rc;
    for (size_t i = 0; i < g->n; i++) {
        const cm_store_read *read = &g->read[i];
        if (read->got_nbytes == 0)
            continue;
        g->request[nread] = (cm_ring_request){.fd = g->fd[i],
                                              .dst = buf->data + read->at,
                                              .offset = read->reader != NULL ? read->offset : 0,
                                              .nbytes = read->got_nbytes};
        from[nread++] = i;
    }
    rc = nread ? cm_rings_run(g->dir->rings, g->request, nread, err) : CM_OK;
    for (size_t k = 0; k < nread && rc == CM_OK; k++) {
        const cm_store_read *read = &g->read[from[k]];
        rc = check_request(&g->request[k], read->reader != NULL ? read->reader->key : read->key,
                           err);
    }
    return rc;
}

static int read_group(group *g, cm_buf *buf, cm_error *err)
{
    g->crowded = false;
    int rc = open_all(g, err);
    if (rc == CM_OK)
        rc = read_all(g, buf, err);
    for (size_t i = 0; i < g->n; i++)
        if (g->read[i].reader == NULL && g->fd[i] >= 0)
            close(g->fd[i]);
    return rc;
}

int cm_dir_read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf, cm_error *err)
{
    int rc = CM_OK;
    if (dir_of(store)->io != CM_IO_URING) {
        for (size_t i = 0; i < n && rc == CM_OK; i++)
            rc = read_one(dir_of(store), &read[i], buf, err);
        return rc;
    }
    group g = {.dir = dir_of(store)};
    size_t most = GROUP;
    for (size_t i = 0; i < n && rc == CM_OK;) {
        g.read = read + i;
        g.n = cm_rings_take_files(g.dir->rings, n - i < most ? n - i : most);
        rc = read_group(&g, buf, err);
        cm_rings_give_files(g.dir->rings, g.n);
        if (g.crowded) {
            /* The process has other files open too: nothing was read, try fewer. */
            most = g.n / 2;
            rc = CM_OK;
        } else
            i += g.n;
    }
    return rc;
}

/* ---- checking the folder ---- */

static int probe_file(void *context, const char *name, bool is_prefix, cm_error *err)
{
    if (is_prefix)
        return CM_OK;
    cm_dir_store *dir = context;
    int fd = -1;
    uint64_t nbytes = 0;
    int rc = open_object(dir, name, &fd, &nbytes, err);
    uint8_t first;
    if (rc == CM_OK) {
        rc = read_range(dir, fd, name, 0, &first, nbytes > 0, err);
        close(fd);
    }
    return rc == CM_EUNSUPPORTED ? rc : CM_ECANCELED;
}

int cm_dir_probe_io(cm_dir_store *dir, cm_error *err)
{
    int rc = cm_dir_list(&dir->base, "", probe_file, dir, err);
    return rc == CM_EUNSUPPORTED ? rc : CM_OK;
}
