/*
 * Commits to a repository: the snapshot and its transaction log are written, and then the file
 * "repo" is replaced in one step, if it is still the one that was read.  Where another commit was
 * faster, the change is applied to its snapshot instead, unless both touch the same nodes.
 */
#ifndef CM_FORMAT_ICECHUNK_COMMIT_H
#define CM_FORMAT_ICECHUNK_COMMIT_H

#include "format/icechunk/file_read.h"
#include "format/icechunk/snapshot_write.h"

/* A branch of a repository, as it was read. */
typedef struct cm_ice_base {
    bool there; /* there is a repository; else it begins with the initial snapshot */
    cm_ice_read repo, snapshot;
    uint8_t tip[CM_ICE_ID];
} cm_ice_base;

/* A branch that is not there begins at the tip of "main".  CM_EUNSUPPORTED: of version 1. */
int cm_ice_base_open(cm_store *root, const char *branch, cm_ice_base *out, cm_error *err);
/*
 * The same with the snapshot ID, which was at the tip when several processes began what one of them
 * commits.  CM_EEXIST: it is not there any more.
 */
int cm_ice_base_open_at(cm_store *root, const char *branch, const uint8_t id[CM_ICE_ID],
                        cm_ice_base *out, cm_error *err);
void cm_ice_base_release(cm_ice_base *base); /* zeroed memory accepted */

typedef struct cm_ice_commit {
    cm_store *root;
    const char *branch;
    const cm_ice_base *base; /* that the run began with */
    cm_ice_change change;    /* its time is set here */
    const cm_json *config;   /* of a new repository; or NULL */
    bool durable;            /* all files are on the disk before they are referred to */
    /* Called with the id of a snapshot before it is written, and again before it is published. */
    int (*before)(void *context, const uint8_t id[CM_ICE_ID], bool published, cm_error *err);
    void *context;
    uint8_t tried[CM_ICE_ID]; /* the tip that it was made, or refused, on top of */
} cm_ice_commit;

/* *ID is the snapshot's; CM_EEXIST: nodes are in the way, or were changed by another commit. */
int cm_ice_commit_run(cm_ice_commit *commit, uint8_t id[CM_ICE_ID], cm_error *err);

#endif
