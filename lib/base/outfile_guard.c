#include "base/outfile_guard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *cm_outfile_folder(const char *path, const char **name, cm_error *err)
{
    const char *slash = strrchr(path, '/');
    *name = slash == NULL ? path : slash + 1;
    if (slash == NULL)
        return cm_strdup(".", err);
    return slash == path ? cm_strdup("/", err)
                         : cm_asprintf(err, "%.*s", (int)(slash - path), path);
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether PATH, without links, or a folder above it is FOLDER.  What is not there is not. */
static bool lies_in(const char *path, const struct stat *folder, cm_error *err, bool *inside)
{
    struct stat st;
    char *copy = cm_strdup(path, err);
    *inside = false;
    if (copy == NULL)
        return false;
    for (size_t n = strlen(copy); !*inside;) {
        if (stat(n == 0 ? "/" : copy, &st) == 0)
            *inside = same(&st, folder);
        if (n == 0)
            break;
        while (n > 0 && copy[n - 1] != '/')
            n--;
        n -= n > 0;
        copy[n] = '\0';
    }
    free(copy);
    return true;
}

/*
 * Resolves links in PATH, whose end need not exist: the nearest existing folder is resolved, the
 * rest appended.
 */
static int real_of(const char *path, char **out, cm_error *err)
{
    char *above = cm_strdup(path, err), *real = NULL;
    int rc = above == NULL ? CM_ENOMEM : CM_OK;
    size_t n = above == NULL ? 0 : strlen(above);
    while (n > 1 && above[n - 1] == '/')
        above[--n] = '\0';
    while (rc == CM_OK && (real = realpath(n == 0 ? "." : above, NULL)) == NULL) {
        if (errno == ENOMEM || n == 0 || (errno != ENOENT && errno != ENOTDIR)) {
            rc = cm_fail_errno(err, errno, "%s", path);
            break;
        }
        while (n > 0 && above[n - 1] != '/')
            n--;
        while (n > 1 && above[n - 1] == '/')
            n--;
        above[n] = '\0';
    }
    if (rc == CM_OK) {
        const char *rest = path + n + strspn(path + n, "/");
        size_t nrest = strlen(rest);
        while (nrest > 0 && rest[nrest - 1] == '/')
            nrest--;
        *out = cm_asprintf(err, "%s%s%.*s", real[1] == '\0' && nrest > 0 ? "" : real,
                           nrest > 0 ? "/" : "", (int)nrest, rest);
        rc = *out == NULL ? CM_ENOMEM : CM_OK;
    }
    free(real);
    free(above);
    return rc;
}

/* Refuses an output REAL that is a folder yet to be made, inside it, or above it. */
static int refuse_unmade(const char *shown, const char *real, bool is_folder, const char *made,
                         cm_error *err)
{
    char *there = NULL;
    int rc = real_of(made, &there, err);
    if (rc != CM_OK)
        return rc;
    size_t n = strlen(real), m = strlen(there);
    size_t shorter = n < m ? n : m;
    bool above = is_folder && n < m; /* a folder above it may be there, or be made */
    if (!above && strncmp(real, there, shorter) == 0 &&
        (n == m || (n > m ? real[m] : there[n]) == '/'))
        rc = cm_fail(err, CM_EINVAL, "%s: %s %s, which is being made", shown,
                     n == m  ? "is"
                     : n > m ? "lies in"
                             : "is in the way of",
                     made);
    free(there);
    return rc;
}

int cm_outfile_refuse_guarded(const char *shown, const char *real, const struct stat *st,
                              bool is_folder, const cm_outfile_guard *guard, cm_error *err)
{
    struct stat folder;
    bool inside;
    for (size_t i = 0; i < guard->nread; i++) {
        if (stat(guard->read[i], &folder) != 0)
            continue; /* that it cannot be read is told by who reads it */
        if (st != NULL && same(st, &folder))
            return cm_fail(err, CM_EINVAL, "%s: is an input, and inputs are never overwritten",
                           shown);
        if (!lies_in(real, &folder, err, &inside))
            return CM_ENOMEM;
        if (inside)
            return cm_fail(err, CM_EINVAL, "%s: lies in %s, which is read", shown, guard->read[i]);
    }
    if (guard->made == NULL)
        return CM_OK;
    if (stat(guard->made, &folder) != 0)
        return refuse_unmade(shown, real, is_folder, guard->made, err);
    if (!lies_in(real, &folder, err, &inside))
        return CM_ENOMEM;
    return inside ? cm_fail(err, CM_EINVAL, "%s: is %s or lies in it, which is being made", shown,
                            guard->made)
                  : CM_OK;
}

int cm_outfile_check_folder(const char *path, const cm_outfile_guard *guard, cm_error *err)
{
    struct stat st;
    char *real = NULL;
    int rc = real_of(path, &real, err);
    if (rc == CM_OK)
        rc = cm_outfile_refuse_guarded(path, real, stat(real, &st) == 0 ? &st : NULL, true, guard,
                                       err);
    free(real);
    return rc;
}
