/*
 * The output of a run: refusing what exists, locking it, making it, and leaving
 * nothing behind when the run fails.
 *
 * What is removed, and what is not, is decided by format/zarr/erase.h.  The root of
 * the output may be a symbolic link, for the user named it; nothing is reached
 * through links below it.
 */
#ifndef CM_CONVERT_SINK_STORE_OUTPUT_H
#define CM_CONVERT_SINK_STORE_OUTPUT_H

#include <chunkmill/monitor.h>

#include "convert/beside/journal.h"
#include "convert/beside/lock.h"
#include "format/zarr/erase.h"

typedef enum cm_output_state {
    CM_OUTPUT_ABSENT,
    CM_OUTPUT_EMPTY,
    CM_OUTPUT_BEGUN, /* a journal tells of a run that did not end */
    CM_OUTPUT_STORE,
    CM_OUTPUT_OTHER
} cm_output_state;

/* The options that concern the output. */
typedef struct cm_output_request {
    const char *root; /* the store's folder; or "file://..." */
    const char *node; /* in it; "": the store itself */
    bool overwrite, resume, break_lock;
    cm_net *net;         /* for what lies behind a network; NULL: there is none */
    cm_monitor *monitor; /* ends waiting for a lock; or NULL */
} cm_output_request;

typedef struct cm_output {
    cm_net *net;
    char *root, *node;
    char *path; /* of the folder that is made, without "file://" */
    bool overwrite, resume, break_lock;
    cm_output_state state;
    cm_journal_phase phase;
    cm_beside beside;
    char *journal; /* its name there */
    cm_lock *lock; /* NULL: not begun */
    cm_store *store;
    bool is_zip;            /* a zip file, which takes its name when it is complete */
    uint64_t device, inode; /* of the zip file that is there; 0: none */
    bool made;              /* the folder is ours */
    bool resumes;           /* a run that was stopped is there, and is to be finished */
    bool finished;          /* nothing is to be resumed: the store is complete */
    bool touched;           /* what lies under the names that are made is ours */
    bool begun;             /* there is a journal that a later run can go on with */
    char *note;             /* for the user, after cm_output_lock, or NULL */
} cm_output;

/* Where it is and what its files are called: the first part of cm_output_check. */
int cm_output_find(const cm_output_request *request, cm_output *out, cm_error *err);
/*
 * CM_EEXIST when the output exists, unless OVERWRITE was asked for and it is a Zarr
 * store or one that was being made, or RESUME and it is the latter or complete; or
 * when another run holds its lock.  Touches nothing.
 */
int cm_output_check(const cm_output_request *request, cm_output *out, cm_error *err);
/*
 * After cm_output_check: fails where cm_output_lock or cm_output_open_journal would, and touches
 * nothing.
 */
int cm_output_foresee(const cm_output *out, const cm_json *fingerprint, const cm_made *made,
                      cm_error *err);
/*
 * Locks it.  MADE, NULL when it is not known yet, is what will be written: CM_EEXIST
 * when something of another kind has such a name, or when the output is not as it was
 * when it was checked.
 */
int cm_output_lock(cm_output *out, const cm_made *made, cm_error *err);
/*
 * Makes the folder, or empties the store that is there; *left tells what is not the
 * store's and stays.  Nothing when a run is to be finished.
 */
int cm_output_begin(cm_output *out, const cm_made *made, cm_zarr_left *left, cm_error *err);
/*
 * Begins the journal, or goes on where a run was stopped; *nchunks are done already.
 * Errors name the folder.
 */
int cm_output_open_journal(cm_output *out, const cm_json *fingerprint, const cm_made *made,
                           unsigned nthreads, uint64_t memory, cm_journal **journal,
                           uint64_t *nchunks, cm_error *err);
/*
 * For a process that holds the lock already: looks at what is there, and decides as
 * cm_output_check does; a run that was killed while it emptied a store may be repeated.
 */
int cm_output_decide(cm_output *out, cm_error *err);
/* The folder as a store, which is there: for a part of what another process began. */
int cm_output_join(cm_output *out, cm_error *err);
/* All is written: makes it visible, where that is a step of its own. */
int cm_output_finish(cm_output *out, cm_error *err);
/* The store is complete: the journal goes. */
void cm_output_complete(cm_output *out);
/*
 * Of a store that was complete already: removes the lock that a run left which was killed at its
 * very end.
 */
void cm_output_tidy(cm_output *out);
/*
 * Removes what was written of MADE, and the folder if it is ours and then empty.  False: something
 * could not be removed, and the journal stays for a run that resumes.
 */
bool cm_output_discard(cm_output *out, const cm_made *made);
/* Gives the lock back: out->beside.stays tells where it could not be removed, or the journal. */
void cm_output_end(cm_output *out);
void cm_output_release(cm_output *out);

/* Whether a run that makes NODE of the store ROOT was stopped. */
int cm_output_is_begun(const char *root, const char *node, cm_net *net, bool *out, cm_error *err);
/*
 * CM_EEXIST when NODE of the store ROOT lies in something that is not finished, ROOT itself
 * counted.
 */
int cm_output_check_above(const char *root, const char *node, cm_net *net, cm_error *err);

#endif
