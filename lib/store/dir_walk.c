/* All names below a folder, as the directory has them: no call for a file, but for links. */
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
    MAX_DEPTH = 128 /* each level holds a descriptor; no key of an array comes near */
};

/* A folder under way, and those above it, by which a link back is known. */
typedef struct level {
    const struct level *above;
    dev_t dev;
    ino_t ino;
    unsigned depth;
} level;

typedef struct walk {
    const char *shown; /* the folder that the walk began in */
    bool follow;       /* links to folders */
    cm_store_visit_key *visit;
    void *context;
    char below[PATH_MAX]; /* the current name, relative to the prefix */
} walk;

static int walk_folder(walk *w, int fd, size_t nbelow, const level *above, cm_error *err);

static int fail_at(const walk *w, const char *what, cm_error *err)
{
    return cm_fail_errno(err, errno, "%s%s%s: %s", w->shown, w->below[0] ? "/" : "", w->below,
                         what);
}

static bool is_above(const level *l, const struct stat *st)
{
    for (; l != NULL; l = l->above)
        if (l->dev == st->st_dev && l->ino == st->st_ino)
            return true;
    return false;
}

typedef enum kind {
    KIND_OBJECT,
    KIND_FOLDER,
    KIND_LINKED_FOLDER,
    KIND_GONE
} kind;

static kind kind_of(const walk *w, int folder, const struct dirent *e)
{
    struct stat st;
    if (e->d_type == DT_DIR)
        return KIND_FOLDER;
    if (e->d_type != DT_UNKNOWN && e->d_type != DT_LNK)
        return KIND_OBJECT;
    if (fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? KIND_GONE : KIND_OBJECT;
    if (S_ISDIR(st.st_mode))
        return KIND_FOLDER;
    /* A link to nothing is an object that cannot be read. */
    if (!S_ISLNK(st.st_mode) || !w->follow || fstatat(folder, e->d_name, &st, 0) != 0)
        return KIND_OBJECT;
    return S_ISDIR(st.st_mode) ? KIND_LINKED_FOLDER : KIND_OBJECT;
}

static int enter(walk *w, int folder, const char *name, bool is_link, size_t nbelow,
                 const level *here, cm_error *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (is_link ? 0 : O_NOFOLLOW);
    if (here->depth >= MAX_DEPTH)
        return CM_OK;
    int fd = openat(folder, name, flags);
    if (fd < 0)
        return errno == ENOENT || errno == ELOOP ? CM_OK : fail_at(w, "cannot be listed", err);
    return walk_folder(w, fd, nbelow, here, err);
}

static int walk_entry(walk *w, int folder, const struct dirent *e, size_t nbelow, const level *here,
                      cm_error *err)
{
    const kind is = kind_of(w, folder, e);
    int n = snprintf(w->below + nbelow, sizeof(w->below) - nbelow, "%s%s", nbelow > 0 ? "/" : "",
                     e->d_name);
    if (n < 0 || (size_t)n >= sizeof(w->below) - nbelow || is == KIND_GONE) {
        w->below[nbelow] = '\0'; /* deeper than any key, or removed meanwhile */
        return CM_OK;
    }
    int rc = is == KIND_OBJECT ? w->visit(w->context, w->below, CM_WALK_NO_SIZE, err)
                               : enter(w, folder, e->d_name, is == KIND_LINKED_FOLDER,
                                       nbelow + (size_t)n, here, err);
    w->below[nbelow] = '\0';
    return rc;
}

/* Closes FD. */
static int walk_folder(walk *w, int fd, size_t nbelow, const level *above, cm_error *err)
{
    level here = {.above = above, .depth = above != NULL ? above->depth + 1 : 0};
    struct stat st = {0};
    DIR *dir = NULL;
    int rc = CM_OK;
    if (fstat(fd, &st) != 0 || (!is_above(above, &st) && (dir = fdopendir(fd)) == NULL))
        rc = fail_at(w, "cannot be listed", err);
    here.dev = st.st_dev;
    here.ino = st.st_ino;
    while (rc == CM_OK && dir != NULL) {
        errno = 0;
        const struct dirent *e = readdir(dir);
        if (e == NULL && errno != 0)
            rc = fail_at(w, "cannot be listed", err);
        if (e == NULL)
            break;
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = walk_entry(w, fd, e, nbelow, &here, err);
    }
    if (dir != NULL)
        closedir(dir);
    else
        close(fd);
    return rc;
}

int cm_dir_walk(cm_store *store, const char *prefix, cm_store_visit_key *visit, void *context,
                cm_error *err)
{
    const cm_dir_store *dir = (const cm_dir_store *)store;
    const char *path = prefix[0] ? prefix : ".";
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int fd = dir->own ? cm_beneath_open(dir->root, prefix, O_RDONLY | O_DIRECTORY, 0)
                      : openat(dir->root, path, flags);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || (dir->own && errno == ELOOP)))
        return cm_fail(err, CM_ENOTFOUND, "%s: no such folder", path);
    if (fd < 0)
        return cm_fail_errno(err, errno, "%s: cannot be listed", path);
    walk *w = cm_calloc(1, sizeof(*w), err);
    if (w == NULL) {
        close(fd);
        return CM_ENOMEM;
    }
    w->shown = prefix[0] ? prefix : store->name;
    w->follow = !dir->own;
    w->visit = visit;
    w->context = context;
    int rc = walk_folder(w, fd, 0, NULL, err);
    free(w);
    return rc;
}
