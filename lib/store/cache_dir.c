#include "store/cache_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "store/checksum.h"

#define TEMPORARY "tmp-"

enum {
    NFOLDERS = 256,
    NAME_DIGITS = 30, /* of a copy in its folder: cm_cache_name */
    SLACK = 20 /* frees a twentieth more than needed, so that not every copy must look for room */
};

/* ---- all of a file ---- */

bool cm_cache_read(int fd, struct iovec *iov, int n, uint64_t offset)
{
    while (n > 0) {
        ssize_t got = preadv(fd, iov, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = EIO; /* shorter than it should be */
        if (got <= 0)
            return false;
        offset += (uint64_t)got;
        size_t left = (size_t)got;
        for (; n > 0 && left >= iov->iov_len; n--)
            left -= (iov++)->iov_len;
        if (n > 0) {
            iov->iov_base = (uint8_t *)iov->iov_base + left;
            iov->iov_len -= left;
        }
    }
    return true;
}

/* ---- the lock and the state under it ---- */

typedef struct state {
    uint64_t magic;
    uint64_t nbytes; /* of copies and temporary files */
    uint64_t sum;
} state;

#define STATE_MAGIC 0x316574617473436du /* "mCstate1" */

/* Opens a new descriptor each time, so that threads exclude each other like processes. */
static int lock(const cm_cache_dir *dir, int *out, cm_error *err)
{
    int fd = openat(dir->fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return cm_fail_errno(err, errno, "the cache's lock");
    while (flock(fd, LOCK_EX) != 0) {
        if (errno == EINTR)
            continue;
        int rc = cm_fail_errno(err, errno, "the cache's lock");
        close(fd);
        return rc;
    }
    *out = fd;
    return CM_OK;
}

/* Unlock explicitly: a child forked meanwhile shares the descriptor. */
static void unlock(int fd)
{
    flock(fd, LOCK_UN);
    close(fd);
}

static bool read_state(const cm_cache_dir *dir, uint64_t *nbytes)
{
    state s = {0};
    int fd = openat(dir->fd, "state", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool valid = fd >= 0 && cm_cache_read(fd, &(struct iovec){&s, sizeof s}, 1, 0) &&
                 s.magic == STATE_MAGIC && s.sum == cm_checksum64(&s, offsetof(state, sum), 0);
    if (fd >= 0)
        close(fd);
    *nbytes = s.nbytes;
    return valid;
}

static int write_state(const cm_cache_dir *dir, uint64_t nbytes, cm_error *err)
{
    state s = {.magic = STATE_MAGIC, .nbytes = nbytes};
    s.sum = cm_checksum64(&s, offsetof(state, sum), 0);
    int fd = openat(dir->fd, "state", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    int rc = CM_OK, errnum = errno;
    if (fd < 0 || (errnum = cm_fd_write_at(fd, &s, sizeof s, 0)) != 0)
        rc = cm_fail_errno(err, errnum, "the cache's state");
    if (fd >= 0)
        close(fd);
    return rc;
}

/* ---- existing files ---- */

typedef struct copy {
    int64_t used_ns; /* when it was written or touched */
    uint64_t nbytes;
    char name[CM_CACHE_NAME_SIZE];
} copy;

typedef struct inventory {
    copy *item;
    size_t n, capacity;
    uint64_t nbytes; /* of copies and of temporary files being written */
} inventory;

static int add_copy(inventory *v, const char *name, const struct stat *st, cm_error *err)
{
    copy *grown = cm_make_room(v->item, v->n, &v->capacity, sizeof *grown, 1024);
    if (grown == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for a list of %zu files", v->n + 1);
    v->item = grown;
    copy *c = &v->item[v->n++];
    *c = (copy){.used_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
                .nbytes = (uint64_t)st->st_size};
    snprintf(c->name, sizeof c->name, "%s", name);
    v->nbytes += c->nbytes;
    return CM_OK;
}

/* Opens folder NAME for listing; a missing folder is empty. */
static DIR *open_folder(const cm_cache_dir *dir, const char *name)
{
    int fd = openat(dir->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && d == NULL)
        close(fd);
    return d;
}

/* True for names that this code gives: the folder may hold other files, which are never removed. */
static bool is_copy(const char *name)
{
    return strspn(name, "0123456789abcdef") == NAME_DIGITS && name[NAME_DIGITS] == '\0';
}

/* "tmp-PROCESS-NUMBER" */
static bool is_temporary(const char *name)
{
    static const char digits[] = "0123456789";
    if (strncmp(name, TEMPORARY, strlen(TEMPORARY)) != 0)
        return false;
    const char *process = name + strlen(TEMPORARY);
    const char *number = process + strspn(process, digits);
    if (number == process || *number++ != '-')
        return false;
    size_t n = strspn(number, digits);
    return n > 0 && number[n] == '\0';
}

static int list_copies(const cm_cache_dir *dir, inventory *v, cm_error *err)
{
    int rc = CM_OK;
    for (int i = 0; i < NFOLDERS && rc == CM_OK; i++) {
        char folder[4], name[CM_CACHE_NAME_SIZE];
        snprintf(folder, sizeof folder, "%02x", i);
        DIR *d = open_folder(dir, folder);
        for (struct dirent *e; d != NULL && rc == CM_OK && (e = readdir(d)) != NULL;) {
            struct stat st;
            int n = snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
            if (!is_copy(e->d_name) || n < 0 || (size_t)n >= sizeof name)
                continue;
            if (fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
                rc = add_copy(v, name, &st, err);
        }
        if (d != NULL)
            closedir(d);
    }
    return rc;
}

/* Removes temporary files of dead processes; adds those of live ones to *NBYTES. */
static void sweep(const cm_cache_dir *dir, uint64_t *nbytes)
{
    DIR *d = open_folder(dir, ".");
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        struct stat st;
        if (!is_temporary(e->d_name))
            continue;
        int fd = openat(dir->fd, e->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
            continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            unlinkat(dir->fd, e->d_name, 0);
        else if (fstat(fd, &st) == 0)
            *nbytes += (uint64_t)st.st_size;
        close(fd);
    }
    if (d != NULL)
        closedir(d);
}

static int by_use(const void *a, const void *b)
{
    int64_t x = ((const copy *)a)->used_ns, y = ((const copy *)b)->used_ns;
    return (x > y) - (x < y);
}

/* Sums up all files and, if they exceed MOST, removes the least recently used.  Lock held. */
static int make_room(cm_cache_dir *dir, uint64_t most, uint64_t *nbytes, cm_error *err)
{
    inventory v = {0};
    sweep(dir, &v.nbytes);
    int rc = list_copies(dir, &v, err);
    if (rc == CM_OK && v.nbytes > most) {
        uint64_t target = most - most / SLACK;
        qsort(v.item, v.n, sizeof *v.item, by_use);
        for (size_t i = 0; i < v.n && v.nbytes > target; i++) {
            if (unlinkat(dir->fd, v.item[i].name, 0) != 0 && errno != ENOENT)
                continue;
            v.nbytes -= v.item[i].nbytes;
            atomic_fetch_add(&dir->evictions, 1);
        }
    }
    free(v.item);
    *nbytes = v.nbytes;
    return rc;
}

/* ---- files ---- */

static int create_file(cm_cache_dir *dir, cm_cache_file *file, cm_error *err)
{
    for (;;) {
        snprintf(file->temporary, sizeof file->temporary, TEMPORARY "%ld-%llu", (long)getpid(),
                 (unsigned long long)atomic_fetch_add(&dir->temporary, 1));
        file->fd = openat(dir->fd, file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0)
            break;
        if (errno != EEXIST)
            return cm_fail_errno(err, errno, "the cache");
    }
    /* Full size from the start, so that others count all of it. */
    if (flock(file->fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(file->fd, (off_t)file->nbytes) == 0)
        return CM_OK;
    int rc = cm_fail_errno(err, errno, "the cache");
    unlinkat(dir->fd, file->temporary, 0);
    close(file->fd);
    return rc;
}

int cm_cache_file_create(cm_cache_dir *dir, uint64_t nbytes, cm_cache_file *out, cm_error *err)
{
    *out = (cm_cache_file){.fd = -1, .nbytes = nbytes};
    if (nbytes > dir->max_nbytes)
        return cm_fail(err, CM_EBUDGET, "%llu bytes do not fit a cache of %llu",
                       (unsigned long long)nbytes, (unsigned long long)dir->max_nbytes);
    int held = -1;
    uint64_t total = 0, most = dir->max_nbytes - nbytes;
    int rc = lock(dir, &held, err);
    if (rc != CM_OK)
        return rc;
    if (!read_state(dir, &total) || total > most)
        rc = make_room(dir, most, &total, err);
    if (rc == CM_OK && total > most)
        rc = cm_fail(err, CM_EBUDGET, "the cache is full of files that are being written");
    if (rc == CM_OK)
        rc = write_state(dir, total + nbytes, err);
    if (rc == CM_OK)
        rc = create_file(dir, out, err);
    unlock(held);
    return rc;
}

/* Lowers the count by the bytes removed; on failure it stays too high, which is harmless. */
static void lower_state(const cm_cache_dir *dir, uint64_t nbytes)
{
    uint64_t total;
    if (nbytes > 0 && read_state(dir, &total))
        write_state(dir, total > nbytes ? total - nbytes : 0, NULL);
}

int cm_cache_file_commit(cm_cache_dir *dir, cm_cache_file *file, const char *name, cm_error *err)
{
    char folder[3] = {name[0], name[1], '\0'};
    int held = -1;
    int rc = lock(dir, &held, err);
    if (rc != CM_OK)
        return rc;
    struct stat st;
    uint64_t before = fstatat(dir->fd, name, &st, 0) == 0 ? (uint64_t)st.st_size : 0;
    if (renameat(dir->fd, file->temporary, dir->fd, name) != 0 &&
        (errno != ENOENT || (mkdirat(dir->fd, folder, 0777) != 0 && errno != EEXIST) ||
         renameat(dir->fd, file->temporary, dir->fd, name) != 0))
        rc = cm_fail_errno(err, errno, "the cache");
    if (rc == CM_OK) {
        lower_state(dir, before);
        flock(file->fd, LOCK_UN);
    }
    unlock(held);
    return rc;
}

void cm_cache_file_abort(cm_cache_dir *dir, cm_cache_file *file)
{
    int held = -1;
    if (lock(dir, &held, NULL) == CM_OK) {
        if (unlinkat(dir->fd, file->temporary, 0) == 0)
            lower_state(dir, file->nbytes);
        unlock(held);
    }
    close(file->fd);
}

/* ---- opening ---- */

/*
 * Whether the folder holds only names that this code gives, and no copy yet; an error if it cannot
 * be listed.
 */
static int look_if_new(const cm_cache_dir *dir, bool *out, cm_error *err)
{
    DIR *d = open_folder(dir, ".");
    bool is = true;
    if (d == NULL)
        return cm_fail_errno(err, errno, "cannot be listed");
    errno = 0;
    for (struct dirent *e; is && (e = readdir(d)) != NULL;)
        is = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
             strcmp(e->d_name, "lock") == 0 || strcmp(e->d_name, "state") == 0 ||
             is_temporary(e->d_name);
    const int errnum = is ? errno : 0;
    closedir(d);
    *out = is;
    return errnum == 0 ? CM_OK : cm_fail_errno(err, errnum, "cannot be listed");
}

/*
 * Refuses to overwrite a foreign file "state": that is longer, or not a regular file.  A folder
 * without a valid state is a cache if it has the empty lock file, or nothing else.
 */
static int check_state(const cm_cache_dir *dir, cm_error *err)
{
    state s = {0};
    struct stat st;
    bool there = fstatat(dir->fd, "state", &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there && errno != ENOENT)
        return cm_fail_errno(err, errno, "state");
    if (there && (!S_ISREG(st.st_mode) || st.st_size > (off_t)sizeof(state)))
        return cm_fail(err, CM_EINVAL, "is not a folder for a cache: 'state' in it is another's");
    int fd = there ? openat(dir->fd, "state", O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    bool ours =
        fd >= 0 && pread(fd, &s, sizeof s.magic, 0) == sizeof s.magic && s.magic == STATE_MAGIC;
    if (fd >= 0)
        close(fd);
    bool has_lock = fstatat(dir->fd, "lock", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISREG(st.st_mode) && st.st_size == 0;
    bool is_ours = ours || has_lock;
    int rc = is_ours ? CM_OK : look_if_new(dir, &is_ours, err);
    if (rc != CM_OK || is_ours)
        return rc;
    return cm_fail(err, CM_EINVAL, "is not a folder for a cache: it holds other files");
}

int cm_cache_dir_open(cm_cache_dir *dir, const char *path, uint64_t max_nbytes, cm_error *err)
{
    *dir = (cm_cache_dir){.fd = -1, .max_nbytes = max_nbytes};
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return cm_fail_errno(err, errno, "%s: cannot make this folder", path);
    dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->fd < 0)
        return cm_fail_errno(err, errno, "%s", path);
    int held = -1;
    uint64_t total = 0, before = 0;
    int rc = check_state(dir, err);
    if (rc == CM_OK)
        rc = lock(dir, &held, err);
    if (rc == CM_OK) {
        bool known = read_state(dir, &before);
        /* If the count is known, only sweep: listing a large cache takes long. */
        sweep(dir, &total);
        if (!known || before > max_nbytes) {
            rc = make_room(dir, max_nbytes, &total, err);
            if (rc == CM_OK)
                rc = write_state(dir, total, err);
        }
        unlock(held);
    }
    if (rc != CM_OK) {
        cm_error_prefix(err, "%s", path);
        cm_cache_dir_close(dir);
    }
    return rc;
}

void cm_cache_dir_close(cm_cache_dir *dir)
{
    if (dir->fd >= 0)
        close(dir->fd);
    dir->fd = -1;
}
