#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/glibc.h"
#include "base/pipe.h"

enum {
    WAIT_MS = 50,  /* between two looks whether a pipe has room */
    MAX_TRIES = 8, /* at a name that others take at the same time */
    MAX_PARTS = 1000,
    MAX_LINKS = 40
};

static bool is_canceled(const cm_outfile *f)
{
    return f->guard.canceled != NULL && f->guard.canceled(f->guard.context);
}

/* ---- what is there ---- */

/* The number of the descriptor of ours that PATH names; -1: none. */
static int own_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        size_t n = strlen(folders[i]), digits = strspn(path + strnlen(path, n), "0123456789");
        if (strncmp(path, folders[i], n) == 0 && digits > 0 && digits < 6 &&
            path[n + digits] == '\0')
            return atoi(path + n);
    }
    return -1;
}

/* Whether the regular file NAME begins as a document of the kind does. */
static int read_head(const cm_outfile *f, const char *name, bool *ours, cm_error *err)
{
    uint8_t head[CM_MARK_HEAD];
    size_t n;
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return cm_fail_errno(err, errno, "%s", f->path);
    int errnum = cm_fd_read(fd, head, sizeof head, &n);
    close(fd);
    if (errnum != 0)
        return cm_fail_errno(err, errnum, "%s", f->path);
    *ours = f->kind->is_ours(head, n);
    return CM_OK;
}

/*
 * Whether what has the name NAME, a path without links that stands for f->real, may be
 * replaced.  ST is what is there.
 */
static int may_replace(const cm_outfile *f, const char *name, const struct stat *st, cm_error *err)
{
    int rc = cm_outfile_refuse_guarded(f->path, f->real, st, false, &f->guard, err);
    if (rc != CM_OK)
        return rc;
    if (S_ISDIR(st->st_mode))
        return cm_fail(err, CM_EINVAL, "%s: is a folder, not a file for the %s", f->path,
                       f->kind->name);
    if (!S_ISREG(st->st_mode))
        return cm_fail(err, CM_EINVAL, "%s: is not a file that the %s could replace", f->path,
                       f->kind->name);
    bool ours = f->overwrite && !f->linked;
    if (!ours && (rc = read_head(f, name, &ours, err)) != CM_OK)
        return rc;
    if (ours)
        return CM_OK;
    if (f->linked)
        return cm_fail(err, CM_EINVAL,
                       "%s: is a symbolic link to %s, which is not a %s that Chunkmill wrote; only "
                       "a file that is named itself can be overwritten",
                       f->path, f->real, f->kind->name);
    return cm_fail(err, CM_EEXIST, "%s: exists and is not a %s that Chunkmill wrote", f->path,
                   f->kind->name);
}

/* ---- claiming ---- */

static int claim_descriptor(cm_outfile *f, int fd, cm_error *err)
{
    struct stat st;
    f->in_place = true;
    if (fstat(fd, &st) != 0)
        return cm_fail_errno(err, errno, "%s", f->path);
    return cm_outfile_refuse_guarded(f->path, "/", &st, false, &f->guard, err);
}

/* A new file AT: its folder must be there, and take one. */
static int claim_new(cm_outfile *f, const char *at, cm_error *err)
{
    const char *name;
    char *folder = cm_outfile_folder(at, &name, err);
    char *real = folder == NULL ? NULL : realpath(folder, NULL);
    int rc = CM_OK;
    if (folder == NULL)
        return CM_ENOMEM;
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        rc = cm_fail(err, CM_EINVAL, "%s: names a folder, not a file for the %s", f->path,
                     f->kind->name);
    else if (real == NULL && (errno == ENOENT || errno == ENOTDIR))
        rc = cm_fail(err, CM_ENOTFOUND, "%s: folder %s does not exist", f->path, folder);
    else if (real == NULL || access(real, W_OK | X_OK) != 0)
        rc = cm_fail_errno(err, errno, "%s: no file can be made in this folder", f->path);
    if (rc == CM_OK) {
        f->real = cm_asprintf(err, "%s/%s", real[1] == '\0' ? "" : real, name);
        rc = f->real == NULL
                 ? CM_ENOMEM
                 : cm_outfile_refuse_guarded(f->path, f->real, NULL, false, &f->guard, err);
    }
    free(real);
    free(folder);
    return rc;
}

/* A link to what is not there stands for a new file there. */
static int claim_link(cm_outfile *f, cm_error *err)
{
    char text[PATH_MAX];
    struct stat st;
    char *at = cm_strdup(f->path, err);
    int rc = at == NULL ? CM_ENOMEM : CM_OK;
    for (int i = 0; rc == CM_OK && lstat(at, &st) == 0 && S_ISLNK(st.st_mode); i++) {
        const char *name;
        ssize_t n = readlink(at, text, sizeof text - 1);
        char *folder = n < 0 || i == MAX_LINKS ? NULL : cm_outfile_folder(at, &name, err);
        text[n < 0 ? 0 : n] = '\0';
        free(at);
        at = folder == NULL   ? NULL
             : text[0] == '/' ? cm_strdup(text, err)
                              : cm_asprintf(err, "%s/%s", folder, text);
        free(folder);
        if (at == NULL)
            rc = cm_fail(err, CM_EINVAL, "%s: is a link that leads nowhere", f->path);
    }
    if (rc == CM_OK)
        rc = claim_new(f, at, err);
    free(at);
    return rc;
}

static int claim_existing(cm_outfile *f, const struct stat *st, cm_error *err)
{
    if ((f->real = realpath(f->path, NULL)) == NULL)
        return cm_fail_errno(err, errno, "%s", f->path);
    f->in_place = S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode);
    if (!f->in_place)
        return may_replace(f, f->real, st, err);
    return cm_outfile_refuse_guarded(f->path, f->real, st, false, &f->guard, err);
}

static int copy_guard(cm_outfile *f, const cm_outfile_guard *guard, cm_error *err)
{
    const char **copy = cm_calloc(guard->nread + 1, sizeof copy[0], err);
    f->guard =
        (cm_outfile_guard){.read = copy, .canceled = guard->canceled, .context = guard->context};
    if (copy == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < guard->nread; i++) {
        if ((copy[i] = cm_strdup(guard->read[i], err)) == NULL)
            return CM_ENOMEM;
        f->guard.nread = i + 1;
    }
    if (guard->made != NULL && (f->guard.made = cm_strdup(guard->made, err)) == NULL)
        return CM_ENOMEM;
    return CM_OK;
}

static void release_guard(cm_outfile_guard *guard)
{
    for (size_t i = 0; i < guard->nread; i++)
        free((char *)(uintptr_t)guard->read[i]);
    free((char **)(uintptr_t)guard->read);
    free((char *)(uintptr_t)guard->made);
}

int cm_outfile_claim(cm_outfile *f, const char *path, const cm_document_kind *kind,
                     const cm_outfile_guard *guard, bool overwrite, cm_error *err)
{
    static const cm_outfile_guard nothing = {0};
    struct stat st, link;
    *f = (cm_outfile){.fd = -1, .overwrite = overwrite, .kind = kind};
    if ((f->path = cm_strdup(path, err)) == NULL)
        return CM_ENOMEM;
    int rc = copy_guard(f, guard == NULL ? &nothing : guard, err);
    if (rc != CM_OK)
        return rc;
    int own = own_descriptor(path);
    if (own >= 0)
        return claim_descriptor(f, own, err);
    f->linked = lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
    if (stat(path, &st) == 0)
        return claim_existing(f, &st, err);
    if (errno != ENOENT && errno != ENOTDIR)
        return cm_fail_errno(err, errno, "%s", path);
    return f->linked ? claim_link(f, err) : claim_new(f, f->path, err);
}

/* ---- opening ---- */

/* A name beside f->real that nothing has, for a document that is not whole yet. */
static int make_part(cm_outfile *f, const char *folder, const char *name, bool named, cm_error *err)
{
    for (int i = 0; i < MAX_PARTS; i++) {
        free(f->part);
        f->part = cm_asprintf(err, "%s/.%.200s.part-%ld-%d", folder, name, (long)getpid(), i);
        if (f->part == NULL)
            return CM_ENOMEM;
        char own[64];
        snprintf(own, sizeof own, "/proc/self/fd/%d", f->fd);
        if (named) /* a file that has no name gets one */
            f->made = linkat(AT_FDCWD, own, AT_FDCWD, f->part, AT_SYMLINK_FOLLOW) == 0;
        else
            f->made = (f->fd = open(f->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) >= 0;
        if (f->made)
            return CM_OK;
        if (errno != EEXIST)
            break;
    }
    return cm_fail_errno(err, errno, "%s: cannot be written", f->path);
}

static int open_part(cm_outfile *f, cm_error *err)
{
    const char *name;
    char *folder = cm_outfile_folder(f->real, &name, err);
    if (folder == NULL)
        return CM_ENOMEM;
    int rc = CM_OK;
    /*
     * Without a name nothing is left behind, whatever happens; some file systems have no such
     * files.
     */
    if (access("/proc/self/fd", X_OK) == 0)
        f->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (f->fd < 0)
        rc = make_part(f, folder, name, false, err);
    free(folder);
    return rc;
}

/* Without waiting: a pipe that nobody ever reads would hold the run for good. */
static int open_in_place(cm_outfile *f, cm_error *err)
{
    struct stat st;
    int own = own_descriptor(f->path);
    if (own >= 0) {
        f->fd = fcntl(own, F_DUPFD_CLOEXEC, 3);
        return f->fd >= 0 ? CM_OK : cm_fail_errno(err, errno, "%s: cannot be written", f->path);
    }
    do
        f->fd = open(f->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (f->fd < 0 && errno == EINTR);
    int errnum = errno;
    if (f->fd < 0 && errnum == ENXIO && stat(f->path, &st) == 0 && S_ISFIFO(st.st_mode))
        return cm_fail(err, CM_EINVAL,
                       "%s: no program reads this pipe; start its reader first, or name a file",
                       f->path);
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return cm_fail_errno(err, errnum, "%s: cannot be written", f->path);
    if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))
        return CM_OK;
    return cm_fail(err, CM_EEXIST, "%s: is no longer the pipe or device that it was", f->path);
}

int cm_outfile_open(cm_outfile *f, cm_error *err)
{
    if (f->fd >= 0)
        return CM_OK;
    return f->in_place ? open_in_place(f, err) : open_part(f, err);
}

/* ---- writing ---- */

static int write_all(cm_outfile *f, const char *p, size_t nbytes)
{
    while (nbytes > 0) {
        ssize_t n = f->in_place ? cm_pipe_write(f->fd, p, nbytes) : write(f->fd, p, nbytes);
        if (n >= 0) {
            p += n;
            nbytes -= (size_t)n;
        } else if (errno == EAGAIN) {
            struct pollfd wait = {.fd = f->fd, .events = POLLOUT};
            if (is_canceled(f))
                return ECANCELED;
            poll(&wait, 1, WAIT_MS);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

/* A document with a gap is none: after a failure nothing more is written. */
static int write_on(void *context, const void *data, size_t nbytes)
{
    cm_outfile *f = context;
    if (f->errnum == 0)
        f->errnum = write_all(f, data, nbytes);
    return f->errnum;
}

int cm_outfile_check(const cm_outfile *f, cm_error *err)
{
    if (f->errnum == ECANCELED)
        return cm_fail(err, CM_ECANCELED, "%s: the reader of this pipe does not read it", f->path);
    return f->errnum == 0 ? CM_OK : cm_fail_errno(err, f->errnum, "%s: cannot be written", f->path);
}

int cm_outfile_write(cm_outfile *f, const void *data, size_t nbytes, cm_error *err)
{
    write_on(f, data, nbytes);
    return cm_outfile_check(f, err);
}

FILE *cm_outfile_stream(cm_outfile *f, cm_error *err)
{
    if (cm_outstream_wrap(&f->stream, write_on, f) != 0)
        cm_fail(err, CM_ENOMEM, "%s: no memory to write it", f->path);
    return f->stream.file;
}

/* ---- taking its place ---- */

/* f->part takes a name that nothing has: EEXIST when something has it. */
static int take_free_name(cm_outfile *f)
{
    if (renameat2(AT_FDCWD, f->part, AT_FDCWD, f->real, RENAME_NOREPLACE) == 0) {
        f->made = false;
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    if (link(f->part, f->real) == 0)
        return 0; /* its other name goes when it is released */
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK)
        return errno;
    /* A file system that knows neither (FAT): what is there now was looked at just before. */
    if (access(f->real, F_OK) == 0)
        return EEXIST;
    if (rename(f->part, f->real) != 0)
        return errno;
    f->made = false;
    return 0;
}

/* Exchanges the names first, then checks the old file, and exchanges them back if it must stay. */
static int replace(cm_outfile *f, int *errnum, cm_error *err)
{
    struct stat st;
    *errnum = 0;
    bool exchanged = renameat2(AT_FDCWD, f->part, AT_FDCWD, f->real, RENAME_EXCHANGE) == 0;
    if (!exchanged && errno != EINVAL && errno != ENOSYS) {
        *errnum = errno;
        return CM_OK;
    }
    const char *was = exchanged ? f->part : f->real;
    int rc = lstat(was, &st) == 0 ? may_replace(f, was, &st, err)
                                  : cm_fail_errno(err, errno, "%s", f->path);
    if (rc == CM_OK && !exchanged && rename(f->part, f->real) != 0)
        *errnum = errno;
    else if (rc == CM_OK && !exchanged)
        f->made = false;
    else if (rc != CM_OK && exchanged &&
             renameat2(AT_FDCWD, f->part, AT_FDCWD, f->real, RENAME_EXCHANGE) != 0) {
        f->made = false; /* never remove what is not ours */
        cm_error_suffix(err, "; it is %s now", f->part);
    }
    return rc;
}

static int take_place(cm_outfile *f, cm_error *err)
{
    int errnum = 0;
    for (int i = 0; i < MAX_TRIES; i++) {
        struct stat st;
        int rc = CM_OK;
        if (lstat(f->real, &st) != 0) {
            if ((errnum = take_free_name(f)) == 0)
                return CM_OK;
        } else {
            rc = replace(f, &errnum, err);
            if (rc != CM_OK || errnum == 0)
                return rc;
        }
        if (errnum != EEXIST && errnum != ENOENT)
            break;
    }
    return cm_fail_errno(err, errnum, "%s: cannot be written", f->path);
}

int cm_outfile_commit(cm_outfile *f, cm_error *err)
{
    int failed = cm_outstream_close(&f->stream);
    if (f->errnum == 0)
        f->errnum = failed;
    int rc = cm_outfile_check(f, err);
    if (rc == CM_OK && !f->in_place && !f->made) {
        const char *name;
        char *folder = cm_outfile_folder(f->real, &name, err);
        rc = folder == NULL ? CM_ENOMEM : make_part(f, folder, name, true, err);
        free(folder);
    }
    if (rc == CM_OK && f->sync && !f->in_place && fsync(f->fd) != 0)
        rc = cm_fail_errno(err, errno, "%s: cannot be written", f->path);
    failed = close(f->fd);
    f->fd = -1;
    if (rc == CM_OK && failed != 0)
        rc = cm_fail_errno(err, errno, "%s: cannot be written", f->path);
    return rc == CM_OK && !f->in_place ? take_place(f, err) : rc;
}

void cm_outfile_release(cm_outfile *f)
{
    if (f->path == NULL)
        return;
    cm_outstream_close(&f->stream);
    if (f->fd >= 0)
        close(f->fd);
    if (f->made)
        unlink(f->part);
    free(f->part);
    free(f->real);
    free(f->path);
    release_guard(&f->guard);
    *f = (cm_outfile){.fd = -1};
}
