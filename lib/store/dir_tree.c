/* Folders of a directory store: listing, links, and removing what is empty. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/dir.h"

enum {
    MAX_PRUNE_DEPTH = 1000 /* deeper than any key */
};

bool cm_dir_is_temporary(const char *name)
{
    static const char prefix[] = ".chunkmill-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    const char *p = name + sizeof prefix - 1;
    size_t process = strspn(p, "0123456789");
    if (process == 0 || p[process] != '-')
        return false;
    p += process + 1;
    size_t number = strspn(p, "0123456789");
    return number > 0 && strcmp(p + number, ".tmp") == 0;
}

static bool is_dot_name(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Opens folder PREFIX for reading; "" is the root.  FLAGS: O_NOFOLLOW or 0. */
static int open_folder(int root, const char *prefix, int flags, DIR **out, cm_error *err)
{
    const char *path = prefix[0] ? prefix : ".";
    int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || (flags && errno == ELOOP)))
        return cm_fail(err, CM_ENOTFOUND, "%s: no such folder", path);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int errnum = errno;
        if (fd >= 0)
            close(fd);
        return cm_fail_errno(err, errnum, "%s", path);
    }
    *out = dir;
    return CM_OK;
}

/* readdir that tells an error from the end: 1 an entry, 0 the end, -1 an error in errno. */
static int next_entry(DIR *dir, struct dirent **out)
{
    errno = 0;
    *out = readdir(dir);
    return *out ? 1 : errno ? -1 : 0;
}

/* Whether E is a folder; symbolic links count as what they lead to when FOLLOW. */
static bool is_folder(DIR *dir, const struct dirent *e, bool follow)
{
    if (e->d_type != DT_UNKNOWN && !(follow && e->d_type == DT_LNK))
        return e->d_type == DT_DIR;
    struct stat st;
    return fstatat(dirfd(dir), e->d_name, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(st.st_mode);
}

int cm_dir_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err)
{
    DIR *dir = NULL;
    int rc = open_folder(((cm_dir_store *)store)->root, prefix, 0, &dir, err);
    if (rc)
        return rc;
    cm_name_list names = {0};
    struct dirent *e;
    int more;
    while (rc == CM_OK && (more = next_entry(dir, &e)) != 0) {
        if (more < 0)
            rc = cm_fail_errno(err, errno, "%s: cannot list", prefix[0] ? prefix : store->name);
        else if (!is_dot_name(e->d_name) && !cm_dir_is_temporary(e->d_name))
            rc = cm_name_list_add(&names, e->d_name, strlen(e->d_name), is_folder(dir, e, true),
                                  err);
    }
    closedir(dir);
    if (rc == CM_OK)
        rc = cm_name_list_visit(&names, visit, context, err);
    cm_name_list_release(&names);
    return rc;
}

int cm_dir_is_link(cm_store *store, const char *key, bool *out, cm_error *err)
{
    struct stat st;
    if (fstatat(((cm_dir_store *)store)->root, key, &st, AT_SYMLINK_NOFOLLOW) == 0)
        *out = S_ISLNK(st.st_mode);
    else if (errno != ENOENT && errno != ENOTDIR)
        return cm_fail_errno(err, errno, "%s", key);
    return CM_OK;
}

/* Prunes all that lies in DIR, which stays; closes it. */
static int prune_folder(DIR *dir, const char *name, unsigned depth, cm_error *err)
{
    int rc = CM_OK;
    struct dirent *e;
    int more;
    while (rc == CM_OK && (more = next_entry(dir, &e)) != 0) {
        if (more < 0) {
            rc = cm_fail_errno(err, errno, "%s: cannot list", name);
        } else if (is_dot_name(e->d_name)) {
            continue;
        } else if (cm_dir_is_temporary(e->d_name)) {
            if (unlinkat(dirfd(dir), e->d_name, 0) != 0 && errno != ENOENT && errno != EISDIR)
                rc = cm_fail_errno(err, errno, "%s: cannot remove %s", name, e->d_name);
        } else if (depth < MAX_PRUNE_DEPTH && is_folder(dir, e, false)) {
            /* A folder that cannot be opened is not ours to judge: it stays. */
            DIR *below;
            if (open_folder(dirfd(dir), e->d_name, O_NOFOLLOW, &below, NULL) != CM_OK)
                continue;
            rc = prune_folder(below, e->d_name, depth + 1, err);
            if (rc == CM_OK && unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR) != 0 &&
                errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
                rc = cm_fail_errno(err, errno, "%s: cannot remove this folder", e->d_name);
        }
    }
    closedir(dir);
    return rc;
}

int cm_dir_prune(cm_store *store, const char *prefix, cm_error *err)
{
    int root = ((cm_dir_store *)store)->root;
    DIR *dir = NULL;
    int rc = open_folder(root, prefix, prefix[0] ? O_NOFOLLOW : 0, &dir, err);
    if (rc == CM_ENOTFOUND)
        return CM_OK;
    if (rc == CM_OK)
        rc = prune_folder(dir, prefix[0] ? prefix : store->name, 0, err);
    if (rc == CM_OK && prefix[0] && unlinkat(root, prefix, AT_REMOVEDIR) != 0 &&
        errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
        rc = cm_fail_errno(err, errno, "%s: cannot remove this folder", prefix);
    return rc;
}
