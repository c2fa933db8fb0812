/* Makes the folder of a report. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "file.h"
#include "readbench.h"

/* Makes the folders above PATH; those that are there are fine. */
static int make_parents(char *path, cm_error *err)
{
    for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        int status = mkdir(path, 0777);
        int errnum = errno;
        if (status != 0 && errnum != EEXIST)
            status = cm_fail_errno(err, errnum, "%s: this folder cannot be made", path);
        else
            status = CM_OK;
        *p = '/';
        if (status != CM_OK)
            return status;
    }
    return CM_OK;
}

/* But for files that a run which was killed had begun. */
static bool is_empty(const char *path)
{
    DIR *dir = opendir(path);
    bool any = dir == NULL;
    for (const struct dirent *e; !any && (e = readdir(dir)) != NULL;)
        any = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
              strncmp(e->d_name, READBENCH_PART, strlen(READBENCH_PART)) != 0;
    if (dir)
        closedir(dir);
    return !any;
}

/* An existing file is written into only if it is a report, and the user said so. */
static int take_existing(const char *path, const char *name, bool overwrite, cm_error *err)
{
    if (overwrite && (readbench_is_report(name) || is_empty(name)))
        return CM_OK;
    return cm_fail(
        err, CM_EEXIST,
        overwrite ? "%s: exists and is not a report of readbench; --out names another folder"
                  : "%s: exists already; --out names another folder, --overwrite replaces a report",
        path);
}

static int make_named(const char *path, bool overwrite, char **out, bool *made, cm_error *err)
{
    char *name = cm_strdup(path, err);
    if (name == NULL)
        return CM_ENOMEM;
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/')
        name[--n] = '\0';
    int rc = make_parents(name, err);
    *made = rc == CM_OK && mkdir(name, 0777) == 0;
    if (rc == CM_OK && !*made)
        rc = errno == EEXIST ? take_existing(path, name, overwrite, err)
                             : cm_fail_errno(err, errno, "%s: this folder cannot be made", path);
    if (rc != CM_OK) {
        free(name);
        return rc;
    }
    *out = name;
    return CM_OK;
}

int readbench_out_create(const char *path, bool overwrite, char **out, bool *made, cm_error *err)
{
    char stamp[32], name[96];
    time_t now = time(NULL);
    struct tm tm;

    *out = NULL;
    *made = false;
    if (path)
        return make_named(path, overwrite, out, made, err);
    if (!localtime_r(&now, &tm) || !strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm))
        return cm_fail(err, CM_EINTERNAL, "the clock has no time to name a folder after");
    int rc = CM_EEXIST;
    /* Two that begin in the same second take a number each. */
    for (int i = 1; i < 100 && rc == CM_EEXIST; i++) {
        if (i == 1)
            snprintf(name, sizeof(name), "results/readbench/%s", stamp);
        else
            snprintf(name, sizeof(name), "results/readbench/%s-%d", stamp, i);
        rc = make_named(name, false, out, made, err);
    }
    return rc;
}

void readbench_out_remove(const char *out)
{
    rmdir(out);
}
