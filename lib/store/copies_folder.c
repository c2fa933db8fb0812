#include "store/copies_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFIX "chunkmill-inputs-"

static bool is_number(const char *name)
{
    return *name != '\0' && strspn(name, "0123456789") == strlen(name);
}

/* Removes all our files in the folder FD, which stays open. */
static void remove_files(int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again >= 0 ? fdopendir(again) : NULL;
    if (dir == NULL && again >= 0)
        close(again);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (is_number(e->d_name))
            (void)unlinkat(fd, e->d_name, 0);
    if (dir != NULL)
        closedir(dir);
}

/* Removes folder NAME of ABOVE if its process no longer exists. */
static void remove_left(int above, const char *name)
{
    struct stat st;
    int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        remove_files(fd);
        (void)unlinkat(above, name, AT_REMOVEDIR);
    }
    close(fd);
}

static void remove_all_left(const char *above)
{
    int fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL && fd >= 0)
        close(fd);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0)
            remove_left(fd, e->d_name);
    if (dir != NULL)
        closedir(dir);
}

/* ---- the cleaning child ---- */

/* Closes all other inherited descriptors: readers of the parent's pipes wait for their end. */
static void close_others(int a, int b)
{
    int low = a < b ? a : b, high = a < b ? b : a;
    if (low > 0)
        (void)syscall(SYS_close_range, 0, low - 1, 0);
    if (high - low > 1)
        (void)syscall(SYS_close_range, low + 1, high - 1, 0);
    (void)syscall(SYS_close_range, high + 1, ~0U, 0);
}

static _Noreturn void be_tidier(const char *path, int folder, int wait)
{
    char byte;
    (void)setsid();
    close_others(folder, wait);
    while (read(wait, &byte, 1) < 0 && errno == EINTR)
        ;
    remove_files(folder);
    (void)rmdir(path);
    _exit(0);
}

/* If this fails, the next process that makes a folder removes this one. */
static void start_tidier(cm_copies_folder *f)
{
    int end[2];
    sigset_t all, before;
    if (pipe2(end, O_CLOEXEC) != 0)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        close(end[1]);
        be_tidier(f->path, f->fd, end[0]);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(end[0]);
    if (pid < 0) {
        close(end[1]);
        return;
    }
    f->tidier = pid;
    f->alive = end[1];
}

/* ---- for callers ---- */

/* False if another process removed it as abandoned before it was locked. */
static bool is_there(const cm_copies_folder *f)
{
    struct stat here, there;
    return fstat(f->fd, &here) == 0 && stat(f->path, &there) == 0 && here.st_ino == there.st_ino &&
           here.st_dev == there.st_dev;
}

static int make(const char *above, cm_copies_folder *f, cm_error *err)
{
    f->path = cm_asprintf(err, "%s/" PREFIX "XXXXXX", above);
    if (f->path == NULL)
        return CM_ENOMEM;
    if (mkdtemp(f->path) == NULL) {
        int errnum = errno;
        free(f->path);
        f->path = NULL;
        return cm_fail_errno(err, errnum, "%s: no folder can be made for inputs", above);
    }
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->fd >= 0)
        (void)flock(f->fd, LOCK_EX); /* file systems without locks: nobody will remove it later */
    return CM_OK;
}

int cm_copies_folder_make(const char *above, cm_copies_folder *out, cm_error *err)
{
    enum {
        TRIES = 8
    };
    int rc = CM_OK;
    remove_all_left(above);
    for (int i = 0; rc == CM_OK && i < TRIES; i++) {
        *out = (cm_copies_folder){.fd = -1, .alive = -1, .maker = getpid()};
        rc = make(above, out, err);
        if (rc == CM_OK && is_there(out)) {
            start_tidier(out);
            return CM_OK;
        }
        if (rc == CM_OK && out->fd >= 0)
            close(out->fd);
        free(out->path);
        *out = (cm_copies_folder){.fd = -1, .alive = -1};
    }
    return rc != CM_OK ? rc : cm_fail(err, CM_EIO, "%s: no folder can be made for inputs", above);
}

void cm_copies_folder_remove(cm_copies_folder *f)
{
    if (f->path == NULL)
        return;
    if (f->maker == getpid()) {
        remove_files(f->fd);
        (void)rmdir(f->path);
        if (f->alive >= 0)
            close(f->alive);
        if (f->tidier > 0)
            while (waitpid(f->tidier, NULL, 0) < 0 && errno == EINTR)
                ;
    }
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    *f = (cm_copies_folder){.fd = -1, .alive = -1};
}
