/*
 * A directory as a store; shared by dir.c (writing, opening), dir_make.c, dir_read.c and
 * dir_tree.c (folders).
 */
#ifndef CM_STORE_DIR_H
#define CM_STORE_DIR_H

#include "store/direct.h"
#include "store/impl.h"
#include "store/uring.h"

typedef struct cm_dir_store {
    cm_store base;
    int root;                       /* every path is relative to this descriptor */
    bool own;                       /* an output: reading does not follow symbolic links either */
    long process;                   /* for temporary names; the system is not asked for each */
    atomic_uint_fast64_t temporary; /* numbers them */
    cm_io io;
    cm_direct *direct; /* CM_IO_DIRECT */
    cm_rings *rings;   /* CM_IO_URING */
} cm_dir_store;

/* True for a folder as a store. */
bool cm_store_is_dir(const cm_store *store);

int cm_dir_stat(cm_store *store, const char *key, cm_object_stat *out, cm_error *err);
int cm_dir_identity(cm_store *store, const char *key, cm_identity *out, cm_error *err);
int cm_dir_read_many(cm_store *store, cm_store_read *read, size_t n, cm_buf *buf, cm_error *err);
int cm_dir_reader_open(cm_store *store, const char *key, cm_object_reader **out, cm_error *err);
int cm_dir_reader_read(cm_object_reader *reader, uint64_t offset, void *dst, size_t nbytes,
                       cm_error *err);
void cm_dir_reader_close(cm_object_reader *reader);

/* Whether the folder's file system supports DIR->io. */
int cm_dir_probe_io(cm_dir_store *dir, cm_error *err);

int cm_dir_list(cm_store *store, const char *prefix, cm_store_visit *visit, void *context,
                cm_error *err);
int cm_dir_walk(cm_store *store, const char *prefix, cm_store_visit_key *visit, void *context,
                cm_error *err);
int cm_dir_is_link(cm_store *store, const char *key, bool *out, cm_error *err);
int cm_dir_kind(cm_store *store, const char *key, cm_entry_kind *out, cm_error *err);
int cm_dir_sweep(cm_store *store, const char *prefix, cm_store_judge *judge, void *context,
                 cm_error *err);

/* ---- dir_make.c ---- */

enum {
    /*
     * Another run may remove an empty folder that it made just when we need it: then make it
     * again.  So many tries matter only against a process that removes empty folders in a loop,
     * which wins nine of ten times on a busy machine.
     */
    CM_DIR_MAX_TRIES = 2000
};

/*
 * The reason where a folder cannot be made in AT because of ENOENT: AT was removed meanwhile
 * (ENOENT), or is there and takes none, as the folders of /proc (EPERM).
 */
int cm_dir_explain_absence(int at);
/* Makes the folder PATH, whose parent was there.  0 or an errno. */
int cm_dir_make_folder(const char *path);
/* Makes the parents of PATH. */
int cm_dir_make_above(const char *path, cm_error *err);

#endif
