/*
 * A bounded directory of copies, shared by processes that may be killed at any moment.
 *
 * A copy is written under a temporary name at the top and renamed into one of 256 folders.  The
 * file "state" holds the bytes of all copies and temporary files; it is read and written under a
 * lock on the file "lock", and neither is locked while data move.  The number is raised before a
 * file appears and lowered after one was removed, so that a killed process leaves it too high,
 * never too low; making room counts the real files.  The writer of a temporary file holds a lock on
 * it: one that can be locked is abandoned, and is removed.
 */
#ifndef CM_STORE_CACHE_DIR_H
#define CM_STORE_CACHE_DIR_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "base/mem.h"

enum {
    CM_CACHE_NAME_SIZE = 36 /* "ab/" and 30 digits, NUL */
};

typedef struct cm_cache_dir {
    int fd;
    uint64_t max_nbytes;
    atomic_uint_fast64_t evictions, temporary;
} cm_cache_dir;

/* Makes PATH if it is missing. */
int cm_cache_dir_open(cm_cache_dir *dir, const char *path, uint64_t max_nbytes, cm_error *err);
void cm_cache_dir_close(cm_cache_dir *dir);

/* Reads everything, or returns false with errno.  IOV is used up. */
bool cm_cache_read(int fd, struct iovec *iov, int n, uint64_t offset);

typedef struct cm_cache_file {
    int fd; /* for reading and writing */
    uint64_t nbytes;
    char temporary[64];
} cm_cache_file;

/* Makes room, and a file of NBYTES.  CM_EBUDGET if it cannot fit. */
int cm_cache_file_create(cm_cache_dir *dir, uint64_t nbytes, cm_cache_file *out, cm_error *err);
/* Renames it to NAME, replacing an existing copy; the descriptor stays the caller's. */
int cm_cache_file_commit(cm_cache_dir *dir, cm_cache_file *file, const char *name, cm_error *err);
/* Removes it and closes the descriptor. */
void cm_cache_file_abort(cm_cache_dir *dir, cm_cache_file *file);

#endif
