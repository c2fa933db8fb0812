/*
 * Objects as files under one folder: writing and opening.
 *
 * Writing an object takes four system calls (open a temporary name beside it, write, close,
 * rename); dir_read.c counts those of reading.  A missing folder is noticed when the open fails,
 * and made then, so that folders are not checked for every chunk: two new folders, one in the
 * other, take eight more calls (two opens that fail, two of folders, two mkdir, two close).  In a
 * store that nobody reads yet (cm_store_set_unread) fstat takes the place of renaming, which is 10
 * of 26 us of an object of 1 KiB on ext4.
 * Nothing is written or removed through a symbolic link below the root, and only regular files are
 * replaced or removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/glibc.h"
#include "store/beneath.h"
#include "store/dir.h"

typedef struct dir_writer {
    cm_object_writer base;
    int fd;
    char temporary[]; /* path */
} dir_writer;

enum {
    WRITE_NBYTES = 64 << 10
};

static int root_of(const cm_store *store)
{
    return ((const cm_dir_store *)store)->root;
}

/* ---- writing ---- */

/* Explains an errno of cm_beneath_open. */
static int fail_beneath(cm_error *err, int errnum, const char *key)
{
    if (errnum == ELOOP)
        return cm_fail(err, CM_EEXIST,
                       "%s: a symbolic link is in the way; nothing is written or removed through "
                       "links",
                       key);
    return cm_fail_errno(err, errnum, "%s", key);
}

/*
 * Makes the NBYTES of PATH, a folder of the store that was not there, with its missing parents,
 * through no link; the last one is not looked at again.  0 or an errno.
 */
static int try_folder(int root, const char *path, size_t nbytes)
{
    char folder[PATH_MAX];
    memcpy(folder, path, nbytes);
    folder[nbytes] = '\0';
    size_t end = nbytes;
    int at = -1;
    /* Find the deepest existing folder above it. */
    while (at < 0 && end > 0) {
        end = cm_key_folder(folder);
        folder[end] = '\0';
        at = cm_beneath_open(root, folder, O_PATH | O_DIRECTORY, 0);
        if (at < 0 && (errno != ENOENT || end == 0))
            return errno;
    }
    while (end < nbytes) {
        size_t from = end + (end > 0);
        end = from + strcspn(path + from, "/");
        memcpy(folder, path + from, end - from);
        folder[end - from] = '\0';
        int errnum = mkdirat(at, folder, 0777) == 0 || errno == EEXIST ? 0 : errno;
        int below = -1;
        if (errnum == ENOENT)
            errnum = cm_dir_explain_absence(at);
        if (errnum == 0 && end < nbytes &&
            (below = cm_beneath_open(at, folder, O_PATH | O_DIRECTORY, 0)) < 0)
            errnum = errno;
        close(at);
        if (errnum != 0)
            return errnum;
        at = below;
    }
    return 0;
}

static int make_folder(int root, const char *path, size_t nbytes, const char *key, cm_error *err)
{
    int errnum = nbytes < PATH_MAX ? ENOENT : ENAMETOOLONG;
    for (int i = 0; i < CM_DIR_MAX_TRIES && errnum == ENOENT; i++)
        errnum = try_folder(root, path, nbytes);
    return errnum == 0 ? CM_OK : fail_beneath(err, errnum, key);
}

/*
 * Creates PATH, which lies beside KEY, with the folders above it.  *OUT is -1, and errno says why,
 * where it is there or cannot be made; folders that cannot be made are an error.
 */
static int create_new(cm_store *store, const char *path, const char *key, int *out, cm_error *err)
{
    const int root = root_of(store);
    for (int nmade = 0; nmade <= CM_DIR_MAX_TRIES; nmade++) {
        *out = cm_beneath_open(root, path, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (*out >= 0 || errno != ENOENT || nmade == CM_DIR_MAX_TRIES)
            break;
        int rc = make_folder(root, key, cm_key_folder(key), key, err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

/* Creates a temporary file beside KEY, leaving its path in PATH (PATH_MAX). */
static int create_temporary(cm_store *store, const char *key, char *path, int *out, cm_error *err)
{
    cm_dir_store *dir = (cm_dir_store *)store;
    size_t folder = cm_key_folder(key);
    for (;;) {
        unsigned long long number = atomic_fetch_add(&dir->temporary, 1);
        int n = snprintf(path, PATH_MAX, "%.*s%s.chunkmill-%s%ld-%llu.tmp", (int)folder, key,
                         folder ? "/" : "", store->tag, dir->process, number);
        if (n < 0 || n >= PATH_MAX)
            return cm_fail_errno(err, ENAMETOOLONG, "%s", key);
        int rc = create_new(store, path, key, out, err);
        if (rc != CM_OK || *out >= 0)
            return rc;
        /* Left by a killed process with our process number, or of a child that was forked. */
        if (errno != EEXIST)
            return fail_beneath(err, errno, key);
    }
}

/*
 * At most WRITE_NBYTES per call: ext4 takes larger folios for longer writes, and touching these
 * first is slow in a guest that returns free memory to its host (rechunk of 1 GB: 2.95 CPU seconds
 * instead of 3.35).  No call crosses a multiple of it, so that no folio is filled by two calls (277
 * MB into shards: 0.18 s instead of 0.22).
 */
static int write_all(int fd, const char *key, uint64_t offset, const void *src, size_t nbytes,
                     cm_error *err)
{
    const uint8_t *p = src;
    while (nbytes > 0) {
        size_t piece = WRITE_NBYTES - offset % WRITE_NBYTES;
        size_t n = nbytes < piece ? nbytes : piece;
        int errnum = cm_fd_write_at(fd, p, n, offset);
        if (errnum != 0)
            return cm_fail_errno(err, errnum, "%s", key);
        p += n;
        offset += n;
        nbytes -= n;
    }
    return CM_OK;
}

/*
 * Fails unless KEY is free, or a regular file, which may be replaced.  *MODE is its permissions, 0
 * if it is free.
 */
static int check_replaceable(int root, const char *key, mode_t *mode, cm_error *err)
{
    const char *name;
    struct stat st;
    int folder = cm_beneath_parent(root, key, &name);
    if (folder < 0)
        return fail_beneath(err, errno, key);
    int found = fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW);
    int errnum = errno;
    close(folder);
    *mode = found == 0 ? st.st_mode & 0777 : 0;
    if (found != 0)
        return errnum == ENOENT ? CM_OK : cm_fail_errno(err, errnum, "%s", key);
    if (S_ISREG(st.st_mode))
        return CM_OK;
    return cm_fail(err, CM_EEXIST, "%s: is %s, and is not replaced", key,
                   S_ISDIR(st.st_mode)   ? "a folder"
                   : S_ISLNK(st.st_mode) ? "a symbolic link"
                                         : "not a regular file");
}

/*
 * Renames the file PATH to KEY beside it.  In the usual case, KEY being free, takes one call.  If a
 * folder above became a link since PATH was made, the rename cannot go elsewhere: PATH does not
 * exist there.
 */
static int take_name(int root, const char *path, const char *key, cm_error *err)
{
    if (renameat2(root, path, root, key, RENAME_NOREPLACE) == 0)
        return CM_OK;
    /* EINVAL, ENOSYS: the file system or the kernel lacks RENAME_NOREPLACE. */
    if (errno != EEXIST && errno != EINVAL && errno != ENOSYS)
        return cm_fail_errno(err, errno, "%s", key);
    mode_t mode = 0;
    int rc = check_replaceable(root, key, &mode, err);
    /* Keep the old object's permissions, whatever our umask, if possible. */
    if (rc == CM_OK && mode != 0)
        (void)fchmodat(root, path, mode, 0);
    if (rc == CM_OK && renameat(root, path, root, key) != 0)
        rc = cm_fail_errno(err, errno, "%s", key);
    return rc;
}

/* Closes FD and renames the file; removes it instead if RC is a failure. */
static int finish_file(int root, int fd, const char *path, const char *key, int rc, cm_error *err)
{
    /* Network file systems report a full disk only on close. */
    if (close(fd) != 0 && errno != EINTR && rc == CM_OK)
        rc = cm_fail_errno(err, errno, "%s", key);
    if (rc == CM_OK)
        rc = take_name(root, path, key, err);
    if (rc != CM_OK)
        unlinkat(root, path, 0);
    return rc;
}

static int dir_delete(cm_store *store, const char *key, cm_error *err)
{
    const char *name;
    struct stat st;
    int folder = cm_beneath_parent(root_of(store), key, &name);
    if (folder < 0)
        return errno == ENOENT || errno == ENOTDIR ? CM_OK : fail_beneath(err, errno, key);
    int rc = CM_OK;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        rc = errno == ENOENT ? CM_OK : cm_fail_errno(err, errno, "%s", key);
    else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        rc = cm_fail(err, CM_EEXIST, "%s: is not a regular file, and is not removed", key);
    else if (S_ISREG(st.st_mode) && unlinkat(folder, name, 0) != 0 && errno != ENOENT)
        rc = cm_fail_errno(err, errno, "%s", key);
    close(folder);
    return rc;
}

/* Removes KEY if it is still the file OWN: who broke our lock may have put another there. */
static void remove_own(cm_store *store, const char *key, const struct stat *own)
{
    struct stat named;
    const char *name;
    int folder = cm_beneath_parent(root_of(store), key, &name);
    if (folder < 0)
        return;
    if (fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && own->st_dev == named.st_dev &&
        own->st_ino == named.st_ino)
        unlinkat(folder, name, 0);
    close(folder);
}

/* Puts an object under a name that is free, without another name before; *done: it was. */
static int put_at_once(cm_store *store, const char *key, const void *data, size_t nbytes,
                       bool *done, cm_error *err)
{
    int fd = -1;
    int rc = create_new(store, key, key, &fd, err);
    *done = rc != CM_OK || fd >= 0;
    if (fd < 0)
        return rc;
    struct stat own;
    rc = write_all(fd, key, 0, data, nbytes, err);
    const bool known = fstat(fd, &own) == 0;
    /* Network file systems report a full disk only on close. */
    if (close(fd) != 0 && errno != EINTR && rc == CM_OK)
        rc = cm_fail_errno(err, errno, "%s", key);
    if (rc != CM_OK && known)
        remove_own(store, key, &own);
    return rc;
}

static int dir_put(cm_store *store, const char *key, const void *data, size_t nbytes, cm_error *err)
{
    if (store->unread) {
        bool done;
        int rc = put_at_once(store, key, data, nbytes, &done, err);
        if (done)
            return rc;
    }
    char path[PATH_MAX];
    int fd = -1;
    int rc = create_temporary(store, key, path, &fd, err);
    if (rc != CM_OK)
        return rc;
    rc = write_all(fd, key, 0, data, nbytes, err);
    return finish_file(root_of(store), fd, path, key, rc, err);
}

static int dir_writer_create(cm_store *store, const char *key, const cm_object_form *form,
                             cm_object_writer **out, cm_error *err)
{
    (void)form;
    char path[PATH_MAX];
    int fd = -1;
    int rc = create_temporary(store, key, path, &fd, err);
    if (rc != CM_OK)
        return rc;
    size_t path_nbytes = strlen(path) + 1;
    dir_writer *w = cm_calloc(1, sizeof *w + path_nbytes, err);
    char *name = w != NULL ? cm_strdup(key, err) : NULL;
    if (name == NULL) {
        free(w);
        return finish_file(root_of(store), fd, path, key, CM_ENOMEM, err);
    }
    w->base.store = store;
    w->base.key = name;
    w->fd = fd;
    memcpy(w->temporary, path, path_nbytes);
    *out = &w->base;
    return CM_OK;
}

static int dir_writer_write(cm_object_writer *writer, uint64_t offset, const void *src,
                            size_t nbytes, cm_error *err)
{
    return write_all(((dir_writer *)writer)->fd, writer->key, offset, src, nbytes, err);
}

static int end_writer(cm_object_writer *writer, int rc, cm_error *err)
{
    dir_writer *w = (dir_writer *)writer;
    rc = finish_file(root_of(writer->store), w->fd, w->temporary, writer->key, rc, err);
    free(writer->key);
    free(w);
    return rc;
}

static int dir_writer_commit(cm_object_writer *writer, cm_error *err)
{
    return end_writer(writer, CM_OK, err);
}

static void dir_writer_abort(cm_object_writer *writer)
{
    end_writer(writer, CM_ECANCELED, NULL);
}

static int dir_sync(cm_store *store, cm_error *err)
{
    if (syncfs(root_of(store)) != 0)
        return cm_fail_errno(err, errno, "%s: cannot sync to disk", store->name);
    return CM_OK;
}

/* ---- opening ---- */

static void dir_free(cm_store *store)
{
    cm_direct_free(((cm_dir_store *)store)->direct);
    cm_rings_free(((cm_dir_store *)store)->rings);
    close(root_of(store));
    free(store->name);
    free(store);
}

static const cm_store_write_ops write_ops = {
    .put = dir_put,
    .delete = dir_delete,
    .sweep = cm_dir_sweep,
    .create = dir_writer_create,
    .write = dir_writer_write,
    .commit = dir_writer_commit,
    .abort = dir_writer_abort,
};

static const cm_store_link_ops link_ops = {.is_link = cm_dir_is_link, .kind = cm_dir_kind};

static const cm_store_ops dir_ops = {
    .free = dir_free,
    .stat = cm_dir_stat,
    .identity = cm_dir_identity,
    .list = cm_dir_list,
    .walk = cm_dir_walk,
    .open = cm_dir_reader_open,
    .read = cm_dir_reader_read,
    .close = cm_dir_reader_close,
    .read_many = cm_dir_read_many,
    .sync = dir_sync,
    .write = &write_ops,
    .links = &link_ops,
};

bool cm_store_is_dir(const cm_store *store)
{
    return store->ops == &dir_ops;
}

static int open_root(const char *path, bool create, int *out, cm_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd < 0 && errno == ENOENT && create && i < CM_DIR_MAX_TRIES; i++) {
        int rc = cm_dir_make_above(path, err);
        if (rc != CM_OK)
            return rc;
        const int errnum = cm_dir_make_folder(path);
        if (errnum != 0 && errnum != ENOENT)
            return cm_fail_errno(err, errnum, "%s: cannot make this folder", path);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd >= 0) {
        *out = fd;
        return CM_OK;
    }
    if (errno == ENOTDIR)
        return cm_fail(err, CM_EFORMAT, "%s: not a folder", path);
    if (errno == ENOENT)
        return cm_fail(err, CM_ENOTFOUND, "%s: no such folder", path);
    return cm_fail_errno(err, errno, "%s", path);
}

static cm_dir_store *new_dir(cm_error *err)
{
    cm_dir_store *dir = cm_calloc(1, sizeof *dir, err);
    if (dir != NULL) {
        dir->base.ops = &dir_ops;
        dir->process = (long)getpid();
    }
    return dir;
}

int cm_store_open_dir(const char *path, bool create, cm_store **out, cm_error *err)
{
    *out = NULL;
    if (path[0] == '\0')
        return cm_fail(err, CM_EINVAL, "the path of a store is empty");
    cm_dir_store *dir = new_dir(err);
    if (dir == NULL)
        return CM_ENOMEM;
    dir->base.name = cm_strdup(path, err);
    int rc = dir->base.name != NULL ? CM_OK : CM_ENOMEM;
    if (rc == CM_OK) {
        /* A trailing '/' would hide the parent from make_folder. */
        for (size_t n = strlen(path); n > 1 && dir->base.name[n - 1] == '/'; n--)
            dir->base.name[n - 1] = '\0';
        rc = open_root(dir->base.name, create, &dir->root, err);
    }
    if (rc != CM_OK) {
        free(dir->base.name);
        free(dir);
        return rc;
    }
    *out = &dir->base;
    return CM_OK;
}

int cm_store_open_dir_io(const char *path, cm_io io, cm_store **out, cm_error *err)
{
    int rc = cm_store_open_dir(path, false, out, err);
    if (rc != CM_OK)
        return rc;
    cm_dir_store *dir = (cm_dir_store *)*out;
    dir->io = io;
    if (io == CM_IO_DIRECT)
        rc = cm_direct_create(&dir->direct, err);
    else if (io == CM_IO_URING)
        rc = cm_rings_create(&dir->rings, err);
    if (rc == CM_OK)
        rc = cm_dir_probe_io(dir, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "%s", dir->base.name);
        cm_store_free(*out);
        *out = NULL;
    }
    return rc;
}

int cm_store_open_output(const char *path, bool create, cm_store **out, cm_error *err)
{
    int rc = cm_store_open_dir(path, create, out, err);
    if (rc == CM_OK)
        ((cm_dir_store *)*out)->own = true;
    return rc;
}

static int open_folder(int root, const char *path, bool create, int *out, cm_error *err)
{
    *out = cm_beneath_open(root, path, O_RDONLY | O_DIRECTORY, 0);
    for (int i = 0; *out < 0 && errno == ENOENT && create && i < CM_DIR_MAX_TRIES; i++) {
        int rc = make_folder(root, path, strlen(path), path, err);
        if (rc != CM_OK)
            return rc;
        *out = cm_beneath_open(root, path, O_RDONLY | O_DIRECTORY, 0);
    }
    if (*out >= 0)
        return CM_OK;
    return errno == ENOENT ? cm_fail(err, CM_ENOTFOUND, "%s: no such folder", path)
                           : fail_beneath(err, errno, path);
}

int cm_store_open_below(cm_store *store, const char *prefix, bool create, cm_store **out,
                        cm_error *err)
{
    *out = NULL;
    int rc = cm_key_check(prefix, err);
    if (rc == CM_OK && store->ops != &dir_ops)
        rc = cm_fail(err, CM_EINVAL, "%s: not a folder", store->name);
    if (rc != CM_OK)
        return rc;
    cm_dir_store *dir = new_dir(err);
    if (dir == NULL)
        return CM_ENOMEM;
    dir->own = true;
    dir->base.name = cm_asprintf(err, "%s/%s", store->name, prefix);
    rc = open_folder(root_of(store), prefix, create, &dir->root, err);
    if (dir->base.name == NULL)
        rc = CM_ENOMEM;
    if (rc != CM_OK) {
        if (dir->root >= 0)
            close(dir->root);
        free(dir->base.name);
        free(dir);
        return rc;
    }
    *out = &dir->base;
    return CM_OK;
}
