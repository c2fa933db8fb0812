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
    const char *const *read; /* files and folders that are read: paths, not URLs */
    size_t nread;
    const char *made;                /* a folder that is being made, there or not; or NULL */
    bool (*canceled)(void *context); /* asked while a pipe is waited for; or NULL */
    void *context;
} cm_outfile_guard;

/*
 * Whether the folder PATH, which need not be there, may be written into: it is not, and
 * does not lie in, what GUARD names.  CM_EINVAL.
 */
int cm_outfile_check_folder(const char *path, const cm_outfile_guard *guard, cm_error *err);

/* The folder that PATH lies in, and *name its last part, which points into PATH. */
char *cm_outfile_folder(const char *path, const char **name, cm_error *err);

/*
 * CM_EINVAL, with a sentence about SHOWN, when REAL, a path without links, there or not,
 * is what GUARD names or lies in it.  ST is what is there, or NULL.
 */
int cm_outfile_refuse_guarded(const char *shown, const char *real, const struct stat *st,
                              bool is_folder, const cm_outfile_guard *guard, cm_error *err);

#endif
