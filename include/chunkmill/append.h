/*
 * A store that grows, or of which a part is written anew: what is held from the survey of the new
 * files to the last rename.
 *
 *     cm_append_open(&options, &append, err);      locks the store, finishes what was begun
 *     archive.base = cm_append_store(append);      the store is the first of the files
 *     archive.listed = cm_append_listed;           files that are in it already are not read
 *     transform.append = append;                   cm_transform writes what is new
 *     cm_append_close(append);
 *
 * The promise to readers is that of the manual page: consolidated metadata show the old dataset
 * or the new one.
 */
#ifndef CHUNKMILL_APPEND_H
#define CHUNKMILL_APPEND_H

#include <stdbool.h>
#include <stddef.h>

#include <chunkmill/error.h>
#include <chunkmill/monitor.h>
#include <chunkmill/net.h>

typedef struct cm_append_options {
    const char *store;     /* a folder, or icechunk:PATH; what a user types */
    const char *branch;    /* of a repository; NULL: main */
    const char *dimension; /* along which it grows; NULL with REPLACE */
    /*
     * "DIM=FROM..TO" or "DIM=START:STOP": it does not grow; the files give these steps anew, all
     * of them and no others.  The archive's `base_yields` goes with it.  NULL: it grows.
     */
    const char *replace;
    bool break_lock; /* take over the lock of a run that cannot be seen from here */
    bool recheck;    /* files that the ledger lists are read again */
    bool overlaps;   /* the archive's `overlap` is first or last */
    bool hold;       /* what does not fill a chunk, or shard, is not added */
    bool look;       /* nothing will be written: no lock is taken */
    bool part;       /* one of several processes, as cm_transform's `part` will say */
    cm_net *net;
    cm_monitor *monitor; /* ends waiting for a lock; or NULL */
} cm_append_options;

typedef struct cm_append cm_append;

/*
 * CM_ENOTFOUND: there is no store.  CM_EEXIST: another run holds its lock, it is not complete, or
 * a run that wrote steps of it anew was stopped, and this is none.  An append that was stopped
 * between its first document and its last is finished here, which *note then says (on the heap);
 * with `look` that is an error.
 */
int cm_append_open(const cm_append_options *options, cm_append **out, char **note, cm_error *err);
/* Its folder, or the snapshot of a repository that is read, and the dimension; borrowed. */
const char *cm_append_store(const cm_append *a);
const char *cm_append_dimension(const cm_append *a);
/*
 * A cm_archive_listed: the ledger lists it, and it has not changed.  CM_EFORMAT, naming it, where
 * it has.  CONTEXT is a cm_append.
 */
int cm_append_listed(void *context, const char *path, uint64_t nbytes, const char *tag, bool *out,
                     cm_error *err);
/* How many files cm_append_listed said yes of. */
size_t cm_append_nlisted(const cm_append *a);
/*
 * CM_EEXIST: another process added to the store since it was opened, so what a survey or a
 * conversion found wrong may be of neither the store before nor after; or, of a repository, other
 * parts have a plan with another snapshot than this one opened, and whoever opens it again gets
 * that.  Only where no lock is held all the time, with `look` or `part`; else, and of NULL, CM_OK.
 */
int cm_append_check(cm_append *a, cm_error *err);
/* Gives the lock back.  NULL accepted. */
void cm_append_close(cm_append *a);

#endif
