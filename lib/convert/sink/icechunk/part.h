/*
 * A part of a commit, which several processes make (sink/part/parts.h).  Each writes chunks into
 * the repository, and leaves beside it where they lie; whoever finds that all have done so makes
 * one commit of them.  Until then the repository refers to nothing of it.
 *
 * Arrays are those of the job (part_write.c), or ones that grow (part_grow.c): these bring ops.
 */
#ifndef CM_CONVERT_SINK_ICECHUNK_PART_H
#define CM_CONVERT_SINK_ICECHUNK_PART_H

#include "convert/sink/icechunk/writing.h"
#include "convert/sink/part/parts.h"

typedef struct cm_repository_part cm_repository_part;

/* W is the part's own, whose session has its chunks, or that of the commit, with all of them. */
typedef struct cm_repository_part_ops {
    bool grows; /* arrays of the snapshot that the plan names */
    /*
     * CM_EEXIST where the branch does not take what the job makes; *TIP is the snapshot that it
     * begins with.
     */
    int (*check)(cm_repository_part *p, uint8_t tip[CM_ICE_ID], cm_error *err);
    /* CM_EEXIST: PLAN, of the same job on this branch, is of another snapshot; NULL: of any. */
    int (*compare)(const cm_repository_part *p, const cm_parts_plan *plan, cm_error *err);
    /* The session of W, whose repository is set, and its arrays. */
    int (*open)(cm_repository_part *p, cm_ice_writing *w, cm_error *err);
    /* All chunks are known: what else the commit has. */
    int (*complete)(cm_repository_part *p, cm_ice_writing *w, cm_error *err);
    /* Manifests, and the commit. */
    int (*publish)(cm_repository_part *p, cm_ice_writing *w, cm_error *err);
} cm_repository_part_ops;

struct cm_repository_part {
    const cm_repository_part_ops *ops;
    void *of; /* the sink's own state */
    cm_sink *sink;
    cm_job *job;
    cm_ice_writing own, all;
    cm_store *root;
    uint8_t tip[CM_ICE_ID]; /* that the plan is to name */
    cm_json *published;     /* an array; of processes that were killed, too */
    cm_parts_hooks hooks;
};

/* Of a job that is described; P is zeroed but for OPS and OF. */
int cm_repository_part_begin(cm_repository_part *p, cm_sink *s, cm_job *job, bool *moves,
                             cm_error *err);
void cm_repository_part_release(cm_repository_part *p);

/* ---- part_plan.c: for these, and for ops ---- */

void cm_repository_part_set_repository(const cm_repository_part *p, cm_repository *r);
/* Opens the branch as it is, for a look.  What is not there yet is like an empty store. */
int cm_repository_part_look(const cm_repository_part *p, cm_repository *r, cm_store **root,
                            cm_error *err);
/* NAME of what PLAN says of the commit: "branch", "group" or "base"; "": nothing. */
const char *cm_repository_part_plan_text(const cm_parts_plan *plan, const char *name);
/* The head of a journal of P's plan. */
int cm_repository_part_head(const cm_repository_part *p, const char *name, cm_json **out,
                            cm_error *err);

/* ---- part_commit.c ---- */

/* With the lock of the repository, and where every part is done. */
int cm_repository_part_finish(cm_repository_part *p, cm_lock *lock, cm_error *err);

#endif
