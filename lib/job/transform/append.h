/*
 * Adding to a store: what of each array is written, and where.
 *
 * The source has all elements, those that the store has too; an array of the target is written
 * in *windows* of whole chunks (or shards) along the dimension that grows.  Each window is a
 * cm_job_var of its own, whose writer names its chunks by their place in the array.
 */
#ifndef CM_JOB_APPEND_H
#define CM_JOB_APPEND_H

#include <chunkmill/append.h>

#include "job/transform/append_commit.h"
#include "job/transform/job.h"
#include "job/transform/ledger.h"
#include "job/transform/lock.h"

/* The order in which windows are written. */
enum {
    CM_PHASE_BEYOND, /* chunks that begin behind the old end */
    CM_PHASE_WITHIN, /* chunks that the old dataset has: whole, with its elements in them */
    CM_PHASE_LABELS, /* coordinates along the dimension */
    CM_APPEND_PHASES
};

struct cm_append {
    char *dimension;
    char *root; /* of the store, without "file://" */
    bool recheck, hold, look;
    cm_beside beside;
    cm_lock *lock;
    cm_store *store;
    cm_ledger ledger;
    size_t nlisted;
    uint64_t reach; /* elements that a run that was killed may have written; 0: there was none */
};

/*
 * The mark of a run that writes chunks, beside the store: how far they reach.  Whoever finds it
 * sweeps what that run left.
 */
#define CM_APPEND_MARK "append-begun"
int cm_append_mark(cm_append *a, uint64_t reach, cm_error *err);
void cm_append_unmark(cm_append *a);

/* One array of the store that has the dimension. */
typedef struct cm_grown {
    cm_growth growth;
    size_t first, nwindows; /* of it in job->var */
} cm_grown;

typedef struct cm_append_state {
    cm_append *append;
    cm_dataset *target; /* the store as it was */
    cm_grown *grown;
    size_t ngrown;
    uint64_t was, length; /* of the dimension */
    uint64_t nheld;       /* elements of the source beyond LENGTH, held back */
} cm_append_state;

/* append_window.c: takes job->var apart into windows; CM_EINVAL where the store is another. */
int cm_append_make_windows(cm_job *job, cm_append_state *s, cm_error *err);
void cm_append_state_release(cm_append_state *s);

/* Removes objects from the end of S on to where a run that was killed may have written. */
int cm_append_remove_reach(const cm_append_state *s, cm_error *err);

/* append.c: the whole of it, for a job that is prepared up to its view. */
int cm_job_append(cm_job *job, cm_error *err);

#endif
