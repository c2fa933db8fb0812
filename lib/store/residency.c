/* Measures how much of files is in the page cache; warms and evicts them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/io.h"

enum {
    WINDOW_PAGES = 1 << 16, /* per call; a byte each */
    READ_NBYTES = 1 << 20,
    MAX_DEPTH = 64,  /* of folders: each holds a descriptor */
    OUT_OF_TIME = -1 /* ends the walk without an error */
};

typedef int visit_file(void *context, int fd, const struct stat *st, const char *path,
                       cm_error *err);

typedef struct walk {
    visit_file *visit;
    void *context;
    const cm_stop *stop;
    char path[PATH_MAX];
} walk;

static int walk_path(walk *w, unsigned depth, cm_error *err);

static int walk_folder(walk *w, int fd, unsigned depth, cm_error *err)
{
    if (depth > MAX_DEPTH) {
        close(fd);
        return cm_fail(err, CM_EUNSUPPORTED, "%s: lies more than %d folders deep", w->path,
                       MAX_DEPTH);
    }
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        int rc = cm_fail_errno(err, errno, "%s", w->path);
        close(fd);
        return rc;
    }
    size_t length = strlen(w->path);
    int rc = CM_OK;
    for (struct dirent *e; rc == CM_OK;) {
        errno = 0;
        e = readdir(dir);
        if (e == NULL) {
            rc = errno ? cm_fail_errno(err, errno, "%s", w->path) : CM_OK;
            break;
        }
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        int n = snprintf(w->path + length, sizeof w->path - length, "/%s", e->d_name);
        if (n < 0 || (size_t)n >= sizeof w->path - length)
            rc = cm_fail_errno(err, ENAMETOOLONG, "%s", w->path);
        else
            rc = walk_path(w, depth + 1, err);
        w->path[length] = '\0';
    }
    closedir(dir);
    return rc;
}

/*
 * Walks a file or a folder.  Skips vanished and special files, and links to folders below the
 * first, which could form a loop.
 */
static int walk_path(walk *w, unsigned depth, cm_error *err)
{
    if (cm_stop_check(w->stop, err))
        return CM_ECANCELED;
    int fd = open(w->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st, link;
    if (fd < 0) {
        bool is_gone = depth > 0 && (errno == ENOENT || errno == ENXIO || errno == ELOOP);
        return is_gone ? CM_OK : cm_fail_errno(err, errno, "%s", w->path);
    }
    int rc = CM_OK;
    if (fstat(fd, &st) != 0)
        rc = cm_fail_errno(err, errno, "%s", w->path);
    else if (S_ISREG(st.st_mode))
        rc = w->visit(w->context, fd, &st, w->path, err);
    else if (S_ISDIR(st.st_mode) &&
             (depth == 0 || (lstat(w->path, &link) == 0 && !S_ISLNK(link.st_mode))))
        return walk_folder(w, fd, depth, err);
    else if (depth == 0)
        rc = cm_fail(err, CM_EINVAL, "%s: neither a file nor a folder", w->path);
    close(fd);
    return rc;
}

static int walk_all(const char *path, const cm_stop *stop, visit_file *visit, void *context,
                    cm_error *err)
{
    walk *w = cm_calloc(1, sizeof *w, err);
    if (w == NULL)
        return CM_ENOMEM;
    w->visit = visit;
    w->context = context;
    w->stop = stop;
    int n = snprintf(w->path, sizeof w->path, "%s", path);
    int rc = n < 0 || (size_t)n >= sizeof w->path ? cm_fail_errno(err, ENAMETOOLONG, "%s", path)
                                                  : walk_path(w, 0, err);
    free(w);
    return rc;
}

/* ---- measuring ---- */

/* Since Linux 5.2, mincore reports everything as resident to users who may not write the file. */
static bool may_ask(const struct stat *st, const char *path)
{
    return st->st_uid == geteuid() || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static int count_window(int fd, uint64_t offset, size_t nbytes, size_t page, uint64_t *resident,
                        cm_error *err)
{
    uint8_t in_core[WINDOW_PAGES];
    void *map = mmap(NULL, nbytes, PROT_READ, MAP_SHARED, fd, (off_t)offset);
    if (map == MAP_FAILED)
        return cm_fail_errno(err, errno, "cannot be mapped");
    int rc = mincore(map, nbytes, in_core) == 0 ? CM_OK : cm_fail_errno(err, errno, "mincore");
    munmap(map, nbytes);
    for (size_t at = 0; at < nbytes && rc == CM_OK; at += page)
        if (in_core[at / page] & 1)
            *resident += nbytes - at < page ? nbytes - at : page;
    return rc;
}

typedef struct measuring {
    cm_residency *sum;
    uint64_t until_ns; /* 0: no limit */
    const cm_stop *stop;
} measuring;

/* Checked before each window: a sparse file may have any number of them. */
static int check_time(const measuring *m, cm_error *err)
{
    if (m->until_ns != 0 && cm_now_ns() > m->until_ns) {
        m->sum->whole = false;
        return OUT_OF_TIME;
    }
    return cm_stop_check(m->stop, err);
}

static int measure_file(void *context, int fd, const struct stat *st, const char *path,
                        cm_error *err)
{
    measuring *m = context;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t size = (uint64_t)st->st_size, window = WINDOW_PAGES * (uint64_t)page;
    bool told = may_ask(st, path);
    int rc = check_time(m, err);
    for (uint64_t at = 0; at < size && told && rc == CM_OK; at += window) {
        size_t nbytes = (size_t)(size - at < window ? size - at : window);
        if ((rc = check_time(m, err)) != CM_OK)
            break;
        rc = count_window(fd, at, nbytes, page, &m->sum->resident_nbytes, err);
        if (rc != CM_OK)
            cm_error_prefix(err, "%s", path);
        else
            m->sum->asked_nbytes += nbytes;
    }
    if (rc != CM_OK)
        return rc;
    m->sum->nbytes += size;
    m->sum->nfiles++;
    return CM_OK;
}

int cm_residency_measure(const char *path, uint64_t max_ns, const cm_stop *stop, cm_residency *out,
                         cm_error *err)
{
    measuring m = {out, max_ns != 0 ? cm_now_ns() + max_ns : 0, stop};
    int rc = walk_all(path, stop, measure_file, &m, err);
    return rc == OUT_OF_TIME ? CM_OK : rc;
}

/* ---- evicting and warming ---- */

/*
 * Dirty pages cannot be evicted, so write them first: the data alone, without the disk barrier of
 * fsync for every file.
 */
static int evict_file(void *context, int fd, const struct stat *st, const char *path, cm_error *err)
{
    (void)context, (void)st;
    unsigned flags =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (sync_file_range(fd, 0, 0, flags) != 0 && fdatasync(fd) != 0 && errno != EROFS &&
        errno != EINVAL)
        return cm_fail_errno(err, errno, "%s", path);
    int errnum = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return errnum ? cm_fail_errno(err, errnum, "%s", path) : CM_OK;
}

int cm_residency_evict(const char *path, const cm_stop *stop, cm_error *err)
{
    return walk_all(path, stop, evict_file, NULL, err);
}

typedef struct warming {
    void *buf; /* of READ_NBYTES */
    const cm_stop *stop;
} warming;

static int warm_file(void *context, int fd, const struct stat *st, const char *path, cm_error *err)
{
    const warming *w = context;
    (void)st;
    for (;;) {
        if (cm_stop_check(w->stop, err))
            return CM_ECANCELED;
        ssize_t n = read(fd, w->buf, READ_NBYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? cm_fail_errno(err, errno, "%s", path) : CM_OK;
    }
}

int cm_residency_warm(const char *path, const cm_stop *stop, cm_error *err)
{
    warming w = {cm_calloc(READ_NBYTES, 1, err), stop};
    int rc = w.buf != NULL ? walk_all(path, stop, warm_file, &w, err) : CM_ENOMEM;
    free(w.buf);
    return rc;
}
