#include "convert/beside/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/net/url.h"
#include "store/open.h"

#define ENDING ".chunkmill"

enum {
    MAX_TRIES = 100, /* others come and go meanwhile */
    MAX_AGED = 64 << 20
};

/* The real path of PATH, of which the end need not be there yet. */
static int real_path(const char *path, char **out, cm_error *err)
{
    struct stat st;
    char *real = realpath(path, NULL), *above = NULL, *name;
    int rc = CM_OK;
    *out = NULL;
    if (real == NULL && errno == ENOENT && strcmp(path, ".") == 0)
        return cm_fail(err, CM_ENOTFOUND, "the current folder has been removed");
    if (real == NULL && errno != ENOENT)
        return cm_fail_errno(err, errno, "%s", path);
    if (real == NULL && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return cm_fail(err, CM_EEXIST, "%s: is a symbolic link to nothing", path);
    if (real == NULL) {
        if ((above = cm_strdup(path, err)) == NULL)
            return CM_ENOMEM;
        for (size_t n = strlen(above); n > 1 && above[n - 1] == '/'; n--)
            above[n - 1] = '\0';
        char *slash = strrchr(above, '/');
        name = slash == NULL ? above : slash + 1;
        if (slash != NULL)
            *slash = '\0';
        rc = real_path(slash == NULL ? "." : *above == '\0' ? "/" : above, &real, err);
        if (rc == CM_OK) {
            *out = cm_asprintf(err, "%s%s%s", real, strcmp(real, "/") == 0 ? "" : "/", name);
            rc = *out == NULL ? CM_ENOMEM : CM_OK;
        }
        free(real);
        free(above);
        return rc;
    }
    if ((*out = cm_strdup(real, err)) == NULL)
        rc = CM_ENOMEM;
    free(real);
    return rc;
}

/* Beside a bucket itself there are other buckets. */
static int check_prefix(const char *url, cm_error *err)
{
    cm_url parts;
    int rc = cm_url_parse(url, &parts, err);
    if (rc == CM_OK && *parts.path == '\0')
        rc = cm_fail(err, CM_EINVAL,
                     "%s: is a whole bucket, which has no place for a lock beside it; name a "
                     "prefix in it, as in %s/NAME.zarr",
                     url, parts.origin);
    cm_url_release(&parts);
    return rc;
}

int cm_beside_find(const char *output, cm_net *net, cm_beside *out, cm_error *err)
{
    *out = (cm_beside){.fd = -1, .remote = cm_store_url_is_remote(output), .net = net};
    int rc = out->remote ? check_prefix(output, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    if (!out->remote)
        rc = real_path(output, &out->root, err);
    else if ((out->root = cm_strdup(output, err)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK && (out->shown = cm_strdup(output, err)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK && (out->path = cm_asprintf(err, "%s" ENDING, out->root)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK && (out->silence = cm_silence_create(err)) == NULL)
        rc = CM_ENOMEM;
    return rc;
}

static int open_in(cm_beside *b, cm_store *above, const char *name, bool create, cm_error *err)
{
    cm_error why = {0};
    int rc = cm_store_open_below(above, name, create, &b->in, &why);
    if (rc == CM_ENOTFOUND && !create)
        return CM_OK;
    if (rc == CM_OK) {
        b->fd = open(b->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (b->fd < 0)
            rc = cm_fail_errno(&why, errno, "%s", name);
    }
    if (rc == CM_OK)
        return rc;
    cm_beside_close(b);
    return cm_fail(err, rc, "%s: cannot hold the lock and journal of the output (%s)", b->path,
                   why.text);
}

static int open_once(cm_beside *b, bool create, cm_error *err)
{
    cm_store *above = NULL;
    char *folder = cm_strdup(b->path, err);
    if (folder == NULL)
        return CM_ENOMEM;
    char *slash = strrchr(folder, '/');
    *slash = '\0';
    int rc = cm_store_open_dir(*folder == '\0' ? "/" : folder, create, &above, err);
    if (rc == CM_ENOTFOUND && !create)
        rc = CM_OK;
    else if (rc == CM_OK)
        rc = open_in(b, above, slash + 1, create, err);
    cm_store_free(above);
    free(folder);
    return rc;
}

int cm_beside_open(cm_beside *b, bool create, cm_error *err)
{
    int rc = CM_ENOTFOUND;
    cm_beside_close(b);
    /* There are no folders: it is there as soon as something is in it. */
    if (b->remote)
        return cm_store_open(b->path, &(cm_store_options){.output = true, .net = b->net}, &b->in,
                             err);
    /* Whoever ends removes the folder: it may go between any two calls. */
    for (int i = 0; rc == CM_ENOTFOUND && i < MAX_TRIES; i++)
        rc = open_once(b, create, err);
    return rc;
}

void cm_beside_close(cm_beside *b)
{
    cm_store_free(b->in);
    b->in = NULL;
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
}

void cm_beside_leave(cm_beside *b)
{
    if (b->in != NULL && !b->remote)
        rmdir(b->path);
    cm_beside_close(b);
}

void cm_beside_release(cm_beside *b)
{
    if (b->root == NULL)
        return;
    cm_beside_close(b);
    free(b->shown);
    free(b->root);
    free(b->path);
    free(b->stays);
    cm_silence_free(b->silence);
    *b = (cm_beside){.fd = -1};
}

void cm_beside_temporary(char *name, size_t size)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, size, ".chunkmill-%ld-%lld%09ld.tmp", (long)getpid(), (long long)now.tv_sec,
             now.tv_nsec);
}

int64_t cm_beside_now(const cm_beside *b)
{
    char name[64] = "";
    struct stat st;
    /* NFS and others have no files without names. */
    int fd = openat(b->fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EACCES && errno != EROFS) {
        cm_beside_temporary(name, sizeof(name));
        fd = openat(b->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    /* Someone who may not write there only looks: the clock of this machine does. */
    if (fd < 0)
        return errno == EACCES || errno == EROFS ? (int64_t)time(NULL) : 0;
    const bool known = fstat(fd, &st) == 0;
    close(fd);
    if (*name != '\0')
        unlinkat(b->fd, name, 0);
    return known ? (int64_t)st.st_mtim.tv_sec : 0;
}

int64_t cm_beside_age(const cm_beside *b, const char *name)
{
    cm_object_tag tag = {.age_s = -1};
    cm_buf text = {0};
    struct stat st;
    if (b->remote && cm_store_get_tagged(b->in, name, MAX_AGED, &text, &tag, NULL) != CM_OK)
        tag.age_s = -1;
    cm_buf_release(&text);
    if (b->remote || fstatat(b->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return tag.age_s;
    const int64_t age = cm_beside_now(b) - (int64_t)st.st_mtim.tv_sec;
    return age >= 0 ? age : -1;
}

int cm_beside_refuse(const cm_beside *b, const char *name, cm_error *err)
{
    int rc = cm_fail(err, CM_EEXIST,
                     "%s/%s: is no regular file, and no run's; remove it, or choose another output",
                     b->path, name);
    cm_error_place(err, b->shown);
    return rc;
}

void cm_beside_tell(cm_beside *b, const char *name, const cm_error *why)
{
    char *before = b->stays;
    b->stays = before == NULL
                   ? cm_asprintf(NULL,
                                 "%s/%s could not be removed (%s); remove it when no run writes "
                                 "there, for the next one may refuse the output, or take it for "
                                 "unfinished",
                                 b->path, name, why->text)
                   : cm_asprintf(NULL, "%s/%s, %s", b->path, name, before);
    free(before);
}

void cm_beside_remove(cm_beside *b, const char *name)
{
    cm_error why = {0};
    int rc = b->in != NULL ? cm_store_delete(b->in, name, &why) : CM_OK;
    if (rc != CM_OK && rc != CM_ENOTFOUND)
        cm_beside_tell(b, name, &why);
}
