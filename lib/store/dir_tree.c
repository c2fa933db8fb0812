/* Folders of a directory store: listing, and removing by a judge's verdicts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/beneath.h"
#include "store/dir.h"

enum {
    MAX_DEPTH = 1000 /* each level holds a descriptor; no key of an array comes near */
};

/* True for ".chunkmill-<process>-<number>.tmp", with "p<part>-" before the process or without. */
static bool is_temporary(const char *name)
{
    static const char prefix[] = ".chunkmill-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    const char *p = name + sizeof prefix - 1;
    size_t part = *p == 'p' ? strspn(p + 1, "0123456789") : 0;
    if (part > 0 && p[1 + part] == '-')
        p += part + 2;
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

/* Opens folder PREFIX for reading, through symbolic links only where FOLLOW; "" is the root. */
static int open_folder(int root, const char *prefix, bool follow, DIR **out, cm_error *err)
{
    const char *path = prefix[0] ? prefix : ".";
    int fd = follow ? openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                    : cm_beneath_open(root, prefix, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || (!follow && errno == ELOOP)))
        return cm_fail(err, CM_ENOTFOUND, "%s: no such folder", path);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        int errnum = errno;
        if (fd >= 0)
            close(fd);
        int rc = cm_fail_errno(err, errnum, "%s", path);
        errno = errnum;
        return rc;
    }
    *out = dir;
    return CM_OK;
}

/* readdir that tells an error from the end: 1 an entry, 0 the end, -1 an error in errno. */
static int next_entry(DIR *dir, struct dirent **out)
{
    errno = 0;
    *out = readdir(dir);
    return *out != NULL ? 1 : errno ? -1 : 0;
}

/* Whether E is a folder; with FOLLOW, also a link to one.  0 or an errno. */
static int look_if_folder(DIR *dir, const struct dirent *e, bool follow, bool *out)
{
    struct stat st;
    *out = e->d_type == DT_DIR;
    if (e->d_type != DT_UNKNOWN && !(follow && e->d_type == DT_LNK))
        return 0;
    if (fstatat(dirfd(dir), e->d_name, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || errno == ELOOP ? 0 : errno;
    *out = S_ISDIR(st.st_mode);
    return 0;
}

static int add_entry(cm_name_list *names, DIR *dir, const struct dirent *e, bool follow,
                     cm_error *err)
{
    bool is_folder;
    if (is_dot_name(e->d_name) || is_temporary(e->d_name))
        return CM_OK;
    const int errnum = look_if_folder(dir, e, follow, &is_folder);
    return errnum != 0 ? cm_fail_errno(err, errnum, "%s: cannot be listed", e->d_name)
                       : cm_name_list_add(names, e->d_name, strlen(e->d_name), is_folder, err);
}

int cm_dir_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err)
{
    DIR *dir = NULL;
    bool follow = !((cm_dir_store *)store)->own;
    int rc = open_folder(((cm_dir_store *)store)->root, prefix, follow, &dir, err);
    if (rc != CM_OK)
        return rc;
    cm_name_list names = {0};
    struct dirent *e;
    int more;
    while (rc == CM_OK && (more = next_entry(dir, &e)) != 0) {
        if (more < 0)
            rc = cm_fail_errno(err, errno, "%s: cannot list", prefix[0] ? prefix : store->name);
        else
            rc = add_entry(&names, dir, e, follow, err);
    }
    closedir(dir);
    return cm_name_list_finish(&names, "", rc, visit, context, err);
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

/* ---- sweeping ---- */

typedef struct sweep {
    const char *root_name;
    const char *prefix; /* BELOW is relative to it; "": the root */
    cm_store_judge *judge;
    void *context;
    char below[PATH_MAX]; /* the current name, relative to the prefix */
} sweep;

static int name_kind(int folder, const char *name, cm_entry_kind *kind)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return -1;
    if (S_ISDIR(st.st_mode))
        *kind = CM_ENTRY_FOLDER;
    else if (!S_ISREG(st.st_mode))
        *kind = CM_ENTRY_OTHER;
    else
        *kind = is_temporary(name) ? CM_ENTRY_TEMPORARY : CM_ENTRY_FILE;
    return 0;
}

int cm_dir_kind(cm_store *store, const char *key, cm_entry_kind *out, cm_error *err)
{
    const char *name;
    int parent = cm_beneath_parent(((cm_dir_store *)store)->root, key, &name);
    int rc = CM_OK;
    *out = CM_ENTRY_NONE;
    if (parent < 0 && errno == ELOOP)
        *out = CM_ENTRY_OTHER;
    else if (parent < 0 ? errno != ENOENT && errno != ENOTDIR
                        : name_kind(parent, name, out) != 0 && errno != ENOENT)
        rc = cm_fail_errno(err, errno, "%s", key);
    if (parent >= 0)
        close(parent);
    return rc;
}

static int read_names(DIR *dir, const char *shown, cm_name_list *names, cm_error *err)
{
    struct dirent *e;
    int more, rc = CM_OK;
    while (rc == CM_OK && (more = next_entry(dir, &e)) != 0) {
        if (more < 0)
            rc = cm_fail_errno(err, errno, "%s: cannot list", shown);
        else if (!is_dot_name(e->d_name))
            rc = cm_name_list_add(names, e->d_name, strlen(e->d_name), false, err);
    }
    return rc;
}

static int sweep_folder(sweep *s, DIR *dir, size_t nbelow, unsigned depth, cm_error *err);

/* One level of folders being visited. */
typedef struct level {
    sweep *all;
    int folder;
    size_t nbelow; /* bytes of all->below that name the folder */
    unsigned depth;
} level;

static int cannot(const sweep *s, int errnum, const char *what, cm_error *err)
{
    return cm_fail_errno(err, errnum, "%s%s%s: %s", s->prefix, s->prefix[0] ? "/" : "", s->below,
                         what);
}

static int enter_folder(const level *l, const char *name, size_t nbelow, bool removes,
                        cm_error *err)
{
    DIR *dir;
    if (l->depth >= MAX_DEPTH)
        return CM_OK;
    int rc = open_folder(l->folder, name, false, &dir, NULL);
    /* A folder that we may not read stays; but not one whose chunks readers would take for new. */
    if (rc == CM_ENOTFOUND || (rc != CM_OK && !removes && (errno == EACCES || errno == EPERM)))
        return CM_OK;
    if (rc != CM_OK)
        return cannot(l->all, errno, "cannot open this folder", err);
    rc = sweep_folder(l->all, dir, nbelow, l->depth + 1, err);
    l->all->below[nbelow] = '\0';
    if (rc == CM_OK && removes && unlinkat(l->folder, name, AT_REMOVEDIR) != 0 &&
        errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
        rc = cannot(l->all, errno, "cannot remove this folder", err);
    return rc;
}

static int sweep_name(void *context, const char *name, bool is_prefix, cm_error *err)
{
    const level *l = context;
    sweep *s = l->all;
    cm_entry_kind kind;
    (void)is_prefix;
    int n = snprintf(s->below + l->nbelow, sizeof s->below - l->nbelow, "%s%s",
                     l->nbelow ? "/" : "", name);
    if (n < 0 || (size_t)n >= sizeof s->below - l->nbelow)
        return CM_OK; /* deeper than any key */
    if (name_kind(l->folder, name, &kind) != 0)
        return errno == ENOENT ? CM_OK : cannot(s, errno, "cannot be looked at", err);
    cm_verdict verdict = s->judge(s->context, s->below, kind);
    int rc = CM_OK;
    if (kind == CM_ENTRY_FOLDER && verdict != CM_KEEP)
        rc = enter_folder(l, name, l->nbelow + (size_t)n, verdict == CM_REMOVE, err);
    else if ((kind == CM_ENTRY_FILE || kind == CM_ENTRY_TEMPORARY) && verdict == CM_REMOVE &&
             unlinkat(l->folder, name, 0) != 0 && errno != ENOENT)
        rc = cannot(s, errno, "cannot be removed", err);
    s->below[l->nbelow] = '\0';
    return rc;
}

/* Closes DIR.  Reads all names first: on some file systems removing while listing hides others. */
static int sweep_folder(sweep *s, DIR *dir, size_t nbelow, unsigned depth, cm_error *err)
{
    cm_name_list names = {0};
    level here = {s, dirfd(dir), nbelow, depth};
    int rc = read_names(dir, nbelow ? s->below : s->root_name, &names, err);
    rc = cm_name_list_finish(&names, "", rc, sweep_name, &here, err);
    closedir(dir);
    return rc;
}

static int remove_prefix(int root, const char *prefix, cm_error *err)
{
    const char *name;
    int parent = cm_beneath_parent(root, prefix, &name);
    int rc = CM_OK;
    if (parent >= 0 && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOTEMPTY &&
        errno != EEXIST && errno != ENOENT)
        rc = cm_fail_errno(err, errno, "%s: cannot remove this folder", prefix);
    if (parent >= 0)
        close(parent);
    return rc;
}

int cm_dir_sweep(cm_store *store, const char *prefix, cm_store_judge *judge, void *context,
                 cm_error *err)
{
    int root = ((cm_dir_store *)store)->root;
    DIR *dir = NULL;
    int rc = open_folder(root, prefix, false, &dir, err);
    if (rc != CM_OK)
        return rc == CM_ENOTFOUND ? CM_OK : rc;
    sweep *s = cm_calloc(1, sizeof *s, err);
    if (s == NULL) {
        closedir(dir);
        return CM_ENOMEM;
    }
    s->root_name = prefix[0] ? prefix : store->name;
    s->prefix = prefix;
    s->judge = judge;
    s->context = context;
    rc = sweep_folder(s, dir, 0, 0, err);
    free(s);
    if (rc == CM_OK && prefix[0] && judge(context, "", CM_ENTRY_FOLDER) == CM_REMOVE)
        rc = remove_prefix(root, prefix, err);
    return rc;
}
