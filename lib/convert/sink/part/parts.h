/*
 * A job that is one part of several: processes that make one store and never talk.
 *
 * Each of them opens the source and describes the target by itself.  The first then
 * publishes the plan (parts_plan.c); the others find it and check that theirs is the
 * same.  Each moves the objects that are its own (plan/part_cut.c), has them on the disk
 * and says so in a file; whoever finds that all have writes the metadata (parts.c).
 * Nobody removes what another wrote.
 */
#ifndef CM_CONVERT_SINK_PART_PARTS_H
#define CM_CONVERT_SINK_PART_PARTS_H

#include "convert/beside/parts_files.h"
#include "convert/job.h"
#include "convert/sink/sink.h"

/*
 * Hooks of parts that add to a store, which is there already: publishing the plan removes nothing
 * of it, and `finish` completes it.  CONTEXT goes to all hooks.
 */
typedef struct cm_parts_hooks {
    void *context;
    /*
     * The store is what was planned with; CM_EEXIST where it was changed.  With the output's lock
     * before the plan is published, without it to say why another plan is there.
     */
    int (*check)(void *context, cm_error *err);
    /* Whether the store has all that the job adds, whoever added it. */
    bool (*is_in)(void *context);
    /* Adds to the plan. */
    int (*describe)(void *context, cm_json *plan, cm_error *err);
    /* The part was begun by a process that ended. */
    int (*again)(void *context, cm_error *err);
    /* All parts are done, and LOCK, the output's, is held: completes the store. */
    int (*finish)(void *context, cm_job *job, cm_lock *lock, cm_error *err);
    const struct cm_parts_chunks *chunks; /* NULL: they are objects of the output */
} cm_parts_hooks;

struct cm_part_claim;

/* Hooks of parts whose chunks are no objects of the output; all are there.  CONTEXT as above. */
typedef struct cm_parts_chunks {
    /* Opens the output, and makes its store that which chunks are put into. */
    int (*open)(void *context, cm_error *err);
    /* CM_EEXIST where PLAN, which is of the same job, is for another place or state of it. */
    int (*compare)(void *context, const cm_parts_plan *plan, cm_error *err);
    /* *GONE: PLAN is complete, and what it has made is not there any more. */
    int (*is_gone)(void *context, const cm_parts_plan *plan, bool *gone, cm_error *err);
    /* Before another plan takes the place of PLAN: if it is not complete, its chunks go. */
    int (*clear)(void *context, const cm_parts_plan *plan, cm_error *err);
    /* With the lock of the part: it goes on, or begins. */
    int (*begin)(void *context, cm_error *err);
    /* All of its chunks are written, and not seen by the others yet. */
    int (*moved)(void *context, cm_error *err);
    /* As cm_part_claims_see. */
    int (*see)(void *context, uint64_t first, uint64_t n, struct cm_part_claim *out, cm_error *err);
    /* The plan is noted as complete. */
    void (*closed)(void *context);
} cm_parts_chunks;

typedef struct cm_parts {
    const cm_parts_hooks *hooks; /* NULL: the parts make the store */
    cm_parts_plan plan;
    uint64_t number;                        /* of this part, from 0 */
    char *lock, *progress, *journal, *done; /* names of its files */
    cm_lock *own;                           /* of the part; NULL: not taken */
    bool moves;                             /* its objects are made now: from begin to commit */
    cm_made made;
    cm_journal *log; /* of what it leaves out */
    struct cm_parts_teller *teller;
} cm_parts;

/* How chunks are kept that are no objects of the output; NULL: they are. */
static inline const cm_parts_chunks *cm_parts_chunks_of(const cm_parts *p)
{
    return p->hooks != NULL ? p->hooks->chunks : NULL;
}

/* parts_progress.c: how far the part is, told beside the store; *out may be NULL. */
typedef struct cm_parts_teller cm_parts_teller;
int cm_parts_tell(const cm_job *job, const cm_beside *beside, cm_parts_teller **out, cm_error *err);
void cm_parts_tell_end(cm_parts_teller *teller); /* NULL accepted */

/*
 * The part of OUT, whose place is known and nothing else, as a sink begins, commits and withdraws
 * it (sink.h); one of the last two ends it.  HOOKS may be NULL.
 */
int cm_part_begin(cm_job *job, cm_output *out, const cm_parts_hooks *hooks, bool *moves,
                  cm_error *err);
int cm_part_commit(cm_sink *s, cm_job *job, cm_error *err);
void cm_part_withdraw(cm_sink *s, cm_job *job, int rc, cm_error *err);

/*
 * parts_wait.c: takes the lock NAME, waiting while another part has it.  *lock is NULL where ENOUGH
 * (or NULL) has become true meanwhile.
 */
int cm_parts_wait(cm_job *job, cm_output *out, const char *name, cm_lock **lock,
                  bool (*enough)(cm_job *job, cm_output *out), cm_error *err);

/* parts_enter.c: the plan of this job is there then; nobody but its parts writes the output. */
int cm_parts_enter(cm_job *job, cm_output *out, cm_error *err);
/* The memory of the whole: what of it is this part's is moved within that. */
int cm_parts_make_plan(cm_job *job, cm_output *out, cm_error *err);

/* parts_finish.c: whether the job's plan, and no other, is complete. */
bool cm_parts_is_complete(cm_job *job, cm_output *out);
/*
 * A plan that is complete may be replaced by whoever changes the store next: a process that was
 * late then finds files of another plan, or none.  With the lock of the output, or of a part that
 * is not done, the plan that is there stays.
 */
bool cm_parts_is_replaced(cm_job *job, cm_output *out);
/* CM_EEXIST where it was. */
int cm_parts_check_plan(cm_job *job, cm_output *out, cm_error *err);
/* Completes the store where all parts are done; the report says how they stand. */
int cm_parts_finish(cm_job *job, cm_output *out, cm_error *err);

/* parts_plan.c: the plan that this process would publish; OUT is to be freed. */
int cm_parts_propose(const cm_job *job, cm_json **out, cm_error *err);
/* How heavy PLAN says that each variable is: for part_cut.h, which tells what is missing. */
const cm_json *cm_parts_weights(const cm_parts_plan *plan);
/* CM_EEXIST, saying what differs, where PLAN is not of this job. */
int cm_parts_compare(const cm_job *job, const cm_parts_plan *plan, cm_error *err);
/* The part's number by PLAN, from what was asked for. */
int cm_parts_number(const cm_job *job, const cm_parts_plan *plan, uint64_t *number, cm_error *err);

#endif
