/*
 * Adding to a store: what of each array is written, and where.
 *
 * The source has all elements, those that the store has too; an array of the target is written
 * in *windows* of whole chunks (or shards) along the dimension that grows.  Each window is a
 * cm_job_var of its own, whose writer names its chunks by their place in the array.
 */
#ifndef CM_CONVERT_SINK_GROWTH_APPEND_H
#define CM_CONVERT_SINK_GROWTH_APPEND_H

#include <chunkmill/append.h>

#include "convert/beside/ledger.h"
#include "convert/beside/lock.h"
#include "convert/job.h"
#include "convert/sink/growth/append_commit.h"
#include "convert/sink/growth/append_rows.h"
#include "convert/sink/sink.h"
#include "format/multi/multi.h"

/* The order in which windows are written. */
enum {
    CM_PHASE_BEYOND, /* chunks that begin behind the old end */
    CM_PHASE_WITHIN, /* chunks that the old dataset has: whole, with its elements in them */
    CM_PHASE_LABELS  /* coordinates along the dimension */
};

/*
 * A run that was stopped while it wrote elements FIRST to END along DIMENSION anew; NULL: there was
 * none.
 */
typedef struct cm_stopped {
    char *dimension;
    uint64_t first, end;
    cm_buf arrays; /* that it rewrites, texts with their NULs; none: all along the dimension */
    char *given;   /* of an append: a digest of the elements that its files gave; or NULL */
} cm_stopped;

struct cm_append {
    char *dimension;
    char *root;  /* of the store, without "file://" */
    char *opens; /* by which it is read: ROOT, or a snapshot of a repository */
    struct cm_append_repository *repository; /* append_repository.h; NULL: it is a store */
    char *replace;                           /* "DIM=RANGE"; NULL: the store grows */
    bool recheck, hold, look;
    bool overlaps;  /* files may win over the store */
    bool part;      /* one of several processes: has LOCK only to open the store, and in the end */
    bool knows_was; /* without the lock: that WAS is the length of what grows when it was opened */
    uint64_t was;
    cm_beside beside;
    cm_lock *lock;
    cm_store *store;
    cm_ledger ledger;
    uint64_t ends; /* where the shortest array along the dimension does */
    size_t nlisted;
    cm_stopped stopped;
    uint64_t reach; /* elements that a run that was killed may have written; 0: there was none */
    uint64_t nrows; /* the same in rows of chunks, where an array lists their lengths; 0: unknown */
    cm_json *left;  /* append_repair.h: what was read of its note; or NULL */
};

/*
 * append_reach.c.  The mark of a run that writes chunks, beside the store: how far they reach, in
 * elements and, where lengths are listed (else 0), in rows of chunks.  Whoever finds it sweeps what
 * that run left.
 */
#define CM_APPEND_MARK "append-begun"
int cm_append_mark(cm_append *a, uint64_t reach, uint64_t nrows, cm_error *err);
void cm_append_unmark(cm_append *a);
/* Removes temporaries of a run that was killed, and reads its mark; with the lock. */
int cm_append_sweep(cm_append *a, cm_error *err);
/* The store and its lock; beside.stays tells of what could not be removed. */
void cm_append_give_back(cm_append *a);

/*
 * append_view.c: without the lock others may add to the store while it is looked at, so that what
 * was read of it first is of another store than what is read later.  Lengths tell, for they only
 * grow.  The first is called when nothing else has been read yet; the second is CM_EEXIST where
 * NOW, which was opened later, has another length.
 */
int cm_append_note_length(cm_append *a, cm_error *err);
int cm_append_check_length(const cm_append *a, const cm_dataset *now, cm_error *err);

/* One array of the store that has the dimension. */
typedef struct cm_grown {
    cm_growth growth;
    cm_rows rows;
    cm_variable *files;     /* what is added, in chunks that stay: append_files.h; or NULL */
    size_t first, nwindows; /* of it in job->var */
    cm_variable *source;
    /* Of a replacement: elements that change, and by how much at most; NaN: none is a number. */
    uint64_t nchanged;
    double largest;
    bool unread; /* what the store has cannot be read, and so changes are not counted */
} cm_grown;

typedef struct cm_append_state {
    cm_append *append;
    cm_dataset *target; /* the store as it was */
    cm_grown *grown;
    size_t ngrown;
    struct cm_append_files *files; /* append_files.h; NULL: nobody asked */
    uint64_t was, length;          /* of the dimension */
    uint64_t nheld;                /* elements of the source beyond LENGTH, held back */
    uint64_t first, end;           /* elements of the store that are written anew */
    bool compared;                 /* with what the files have there */
    bool writes, begun; /* the store is changed from here on; chunks that may be taken back */
    cm_store_counts before;
    struct cm_append_work *work; /* append_parts.c; NULL: one process adds */
    /* Whether array T is to end with a full chunk where elements are held back; NULL: each is. */
    int (*fills)(const struct cm_append_state *s, const cm_variable *t, bool *out, cm_error *err);
} cm_append_state;

/* append_window.c: takes job->var apart into windows; CM_EINVAL where the store is another. */
int cm_append_make_windows(cm_job *job, cm_append_state *s, cm_error *err);
/* Releases what job->var holds until then; none is left. */
void cm_append_drop_vars(cm_job *job);
void cm_append_state_release(cm_append_state *s);

/*
 * append_reach.c: notes how far S will write, and removes objects from its end on to where a run
 * that was killed may have written.
 */
int cm_append_mark_reach(const cm_append_state *s, cm_error *err);
int cm_append_remove_reach(const cm_append_state *s, cm_error *err);

/*
 * rewrite.c.  The note of a run that writes elements of the store anew, a replacement or an append
 * whose files win over it, lies beside the store until the commit: until then some elements of the
 * range are new, and others are not.
 */
int cm_rewrite_read_note(cm_append *a, cm_error *err);
/* Nothing where S leaves all elements as they are. */
int cm_rewrite_write_note(const cm_job *job, const cm_append_state *s, cm_error *err);
/* CM_EEXIST: the sentence of the run that was stopped. */
int cm_rewrite_refuse(const cm_append *a, cm_error *err);
/* An append goes on with a run that was stopped where its files give the same elements, or all. */
int cm_rewrite_check_given(const cm_job *job, const cm_append_state *s, cm_error *err);
/* Elements along joined axis K of V that files give, the store's own left out. */
typedef struct cm_given {
    uint64_t first, end; /* from the first element to the last */
    uint64_t nelem;      /* of these, in all joined axes; no two parts overlap */
} cm_given;
cm_given cm_rewrite_given(const cm_multi_spec *spec, const cm_multi_var *v, unsigned k,
                          uint64_t first, uint64_t end);
/* The joined axis of V that DIMENSION is; v->naxes: none. */
unsigned cm_rewrite_axis(const cm_multi_var *v, const char *dimension);
/* ARRAY stays as it is: refused where it is half rewritten by a run that was stopped. */
int cm_rewrite_leave(const cm_append *a, const char *array, cm_error *err);

/* replace.c: a range that is replaced. */
/* Which elements are replaced: all of them lie in the store, and no file has another one. */
int cm_replace_find_range(cm_job *job, cm_append_state *s, cm_error *err);
/* The files give all of these elements to V, array T of the store. */
int cm_replace_check_given(cm_job *job, const cm_append_state *s, const cm_variable *source,
                           cm_error *err);
/* replace_compare.c: counts what changes. */
int cm_replace_compare(cm_job *job, cm_append_state *s, cm_error *err);

/* ---- append.c: steps of the sinks that add to a store ---- */

int cm_append_find(cm_sink *s, cm_job *job, cm_error *err);
int cm_append_join(cm_job *job, cm_error *err);
/* The store, the windows of job->var, and what a replacement changes; the sink's own state. */
int cm_append_prepare(cm_sink *s, cm_job *job, cm_error *err);
/* The same into a state that is zeroed. */
int cm_append_prepare_into(cm_append_state *a, cm_job *job, cm_error *err);
/* The same of a dry run, and then its plan. */
int cm_append_foresee_windows(cm_job *job, cm_append_state *a, cm_error *err);
int cm_append_foresee(cm_job *job, const cm_append_state *s, cm_error *err);
/* Up to where the windows that JOB has can be moved; and, after a failure, what goes. */
int cm_append_begin_chunks(cm_job *job, cm_append_state *s, cm_error *err);
void cm_append_withdraw_chunks(cm_job *job, cm_append_state *s);
/* Chunks are there: the documents. */
int cm_append_commit(cm_job *job, cm_append_state *s, cm_error *err);
/* Of the growth, or the replacement, as a whole; the second, of variables too. */
int cm_append_tell_change(cm_job *job, const cm_append_state *s, cm_error *err);
int cm_append_tell_all(cm_job *job, const cm_append_state *s, bool written, cm_error *err);
/* As a sink leaves: one line of the report for each variable, not for each window. */
int cm_append_leave(cm_sink *s, cm_job *job, int rc, cm_error *err);
void cm_append_end(cm_sink *s);
const char *cm_append_end_output(cm_sink *s);

#endif
