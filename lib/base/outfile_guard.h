/*
 * Protects inputs, and folders that are read or made, from being overwritten by an output.
 * Compares device and inode, so that no link hides a file; for a path, those of each folder.
 */
#ifndef CM_BASE_OUTFILE_GUARD_H
#define CM_BASE_OUTFILE_GUARD_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/mem.h"

/* Paths that no output may overwrite. */
typedef struct cm_outfile_guard {
    const char *const *read; /* files and folders being read: paths, not URLs */
    size_t nread;
    const char *made;                /* a folder being made, existing or not; or NULL */
    bool (*canceled)(void *context); /* called while waiting for a pipe; or NULL */
    void *context;
} cm_outfile_guard;

/*
 * Checks that the folder PATH, which need not exist, may be written into: it is neither a guarded
 * path nor below one.  CM_EINVAL.
 */
int cm_outfile_check_folder(const char *path, const cm_outfile_guard *guard, cm_error *err);

/* The folder of PATH; *name is the last part, a pointer into PATH. */
char *cm_outfile_folder(const char *path, const char **name, cm_error *err);

/*
 * CM_EINVAL, with a message about SHOWN, if REAL, a path without links, existing or not, is a
 * guarded path or below one.  ST describes an existing file, or is NULL.
 */
int cm_outfile_refuse_guarded(const char *shown, const char *real, const struct stat *st,
                              bool is_folder, const cm_outfile_guard *guard, cm_error *err);

#endif
