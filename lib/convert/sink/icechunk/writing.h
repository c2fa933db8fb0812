/* The part common to sinks of a repository: chunks go through a session, a commit shows them. */
#ifndef CM_CONVERT_SINK_ICECHUNK_WRITING_H
#define CM_CONVERT_SINK_ICECHUNK_WRITING_H

#include "convert/sink/icechunk/repository.h"

/* The first member of such a sink's state. */
typedef struct cm_ice_writing {
    cm_repository repository;
    cm_store *session;
    size_t narrays; /* of the session: those of the job first, then those of statistics */
    bool done;      /* an earlier run has committed */
    bool verified;  /* in full, before the commit */
} cm_ice_writing;

/* Of a job that is described; W is zeroed.  *MOVES becomes false where nothing is to be done. */
int cm_ice_writing_begin(cm_ice_writing *w, cm_sink *s, cm_job *job, bool *moves, cm_error *err);
/* PLACES, or NULL, has those of variables that were not written; others are NULL (`find`). */
int cm_ice_writing_commit(cm_ice_writing *w, cm_sink *s, cm_job *job, const cm_ice_places *places,
                          cm_error *err);
/* ---- steps of these, for parts ---- */

/* Names of the job's chunks as a repository has them, and no variable where statistics go. */
int cm_ice_writing_check(cm_job *job, cm_error *err);
/* The session, once the repository is open. */
int cm_ice_writing_open(cm_ice_writing *w, cm_sink *s, cm_job *job, cm_error *err);
/* Chunks of an earlier run stay, of what the job's writers make. */
int cm_ice_writing_resume(cm_ice_writing *w, cm_job *job, cm_error *err);
/* Statistics and documents, and all files have their names. */
int cm_ice_writing_complete(cm_ice_writing *w, cm_sink *s, cm_job *job, cm_error *err);
/* Manifests, and the commit. */
int cm_ice_writing_publish(cm_ice_writing *w, cm_sink *s, cm_job *job, const cm_ice_places *places,
                           cm_error *err);

void cm_ice_writing_withdraw(cm_sink *s, cm_job *job, int rc, cm_error *err);
void cm_ice_writing_release(cm_ice_writing *w);

#endif
