/*
 * Removes for --overwrite the files of a report that is there, by their names, and
 * the folders of its sessions when nothing else is in them.  No link is followed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/marks.h"
#include "file.h"
#include "plot.h"

/* Whether the open folder FD holds a summary of this program. */
static bool is_report(int folder)
{
    uint8_t head[CM_MARK_HEAD];
    struct stat st;
    int fd = openat(folder, "summary.json", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read(fd, head, sizeof(head)) : -1;
    close(fd);
    return n > 0 && CM_KIND_REPORT.is_ours(head, (size_t)n);
}

bool readbench_is_report(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is = fd >= 0 && is_report(fd);
    if (fd >= 0)
        close(fd);
    return is;
}

static int clear_one(int folder, const char *name, const char *shown, cm_error *err)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return CM_OK;
    return unlinkat(folder, name, 0) == 0
               ? CM_OK
               : cm_fail_errno(err, errno, "%s/%s: cannot be replaced", shown, name);
}

/* With what a run that was killed left of it. */
static int clear_name(int folder, const char *name, const char *shown, cm_error *err)
{
    char part[128];
    snprintf(part, sizeof(part), READBENCH_PART "%s", name);
    int rc = clear_one(folder, part, shown, err);
    return rc == CM_OK ? clear_one(folder, name, shown, err) : rc;
}

static int clear_picture(int folder, const char *name, const char *shown, cm_error *err)
{
    char file[96];
    snprintf(file, sizeof(file), "%s.svg", name);
    return clear_name(folder, file, shown, err);
}

/* The summary goes last: a folder that is half cleared is known as what it was. */
static int clear_files(int folder, const char *shown, cm_error *err)
{
    static const char *const NAMES[] = {
        "report.html",        "batches.csv",         "events.log",
        "events_workers.log", "trace.json",          "samples.csv",
        "config.yaml",        "benchmark.log",       "benchmark_workers.log",
        "timing_results.csv", "timing_summary.yaml", "summary.yaml",
        "summary.json"};
    int rc = CM_OK;
    for (const readbench_plot *p = READBENCH_PLOTS; p->name && rc == CM_OK; p++)
        rc = clear_picture(folder, p->name, shown, err);
    for (const readbench_comparison *p = READBENCH_COMPARISONS; p->name && rc == CM_OK; p++)
        rc = clear_picture(folder, p->name, shown, err);
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]) && rc == CM_OK; i++)
        rc = clear_name(folder, NAMES[i], shown, err);
    return rc;
}

/* The folder of a session, unless NAME is none. */
static int clear_session(int folder, const char *name, const char *shown, cm_error *err)
{
    int below = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int rc = CM_OK;
    if (below < 0)
        return CM_OK;
    bool ours = is_report(below);
    /* A run that was killed before a session's summary had its name leaves a part of it. */
    rc = ours ? clear_files(below, shown, err)
              : clear_one(below, READBENCH_PART "summary.json", shown, err);
    close(below);
    if (ours && rc == CM_OK)
        (void)unlinkat(folder, name, AT_REMOVEDIR); /* what else is in it keeps it */
    return rc;
}

int readbench_out_clear(const char *path, cm_error *err)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return cm_fail_errno(err, errno, "%s", path);
    int rc = CM_OK;
    for (struct dirent *e; rc == CM_OK && (e = readdir(dir)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = clear_session(dirfd(dir), e->d_name, path, err);
    if (rc == CM_OK)
        rc = clear_files(dirfd(dir), path, err);
    closedir(dir);
    return rc;
}
