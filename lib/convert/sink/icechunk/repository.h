/*
 * A repository as the target of a job: "icechunk:PATH" or "icechunk:PATH::GROUP", its lock, the
 * journal of the run, and the commit at the end.  For chunks that are converted (icechunk.c) and
 * for those that stay in their files (references.c).
 */
#ifndef CM_CONVERT_SINK_ICECHUNK_REPOSITORY_H
#define CM_CONVERT_SINK_ICECHUNK_REPOSITORY_H

#include "convert/sink/icechunk/run_journal.h"
#include "convert/sink/sink.h"
#include "format/icechunk/commit.h"

typedef struct cm_repository {
    const char *branch; /* of the options, or "main" */
    cm_store *root;
    bool made; /* its folder is ours */
    cm_ice_base base;
    cm_run_journal journal;
    cm_json *config; /* of a new repository; or NULL */
    uint8_t committed[CM_ICE_ID];
    bool refused; /* the repository was read again, and has none of the run's snapshots */
} cm_repository;

/*
 * Finds what stands at the target of S: CM_EEXIST where it is neither a repository nor empty, or
 * where another run writes it.  Touches nothing.
 */
int cm_repository_find(cm_sink *s, cm_job *job, cm_error *err);
/*
 * Locks and opens it, and checks that the nodes of JOB, which is described, may be put there.  R
 * is zeroed.  *DONE: an earlier run of the same command has committed already.
 */
int cm_repository_begin(cm_repository *r, cm_sink *s, cm_job *job, bool *done, cm_error *err);
/*
 * Commits the documents of SESSION as one snapshot; PLACES are those of the variables of JOB.
 * Writes the manifests before.
 */
int cm_repository_commit(cm_repository *r, cm_sink *s, cm_job *job, cm_store *session,
                         const cm_ice_places *places, cm_error *err);
/* After a failure: removes the run's files, unless the journal stays for one that goes on. */
void cm_repository_withdraw(cm_repository *r, cm_sink *s, cm_job *job, bool goes_on, cm_error *err);
void cm_repository_release(cm_repository *r);

#endif
