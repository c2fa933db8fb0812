/*
 * A repository as the target of a job: "icechunk:PATH" or "icechunk:PATH::GROUP", its lock, the
 * journal of the run, and the commit at the end.  For chunks that are converted (icechunk.c), for
 * those that stay in their files (virtual.c), and for arrays that grow (grow.c).
 */
#ifndef CM_CONVERT_SINK_ICECHUNK_REPOSITORY_H
#define CM_CONVERT_SINK_ICECHUNK_REPOSITORY_H

#include "convert/beside/parts_files.h"
#include "convert/sink/icechunk/run_journal.h"
#include "convert/sink/sink.h"
#include "format/icechunk/commit.h"

typedef struct cm_repository {
    const char *branch; /* of the options, or "main" */
    const char *path;   /* borrowed, as the next three are */
    cm_beside *beside;
    cm_lock *lock;
    cm_store *root;
    bool made;         /* its folder is ours */
    bool counts;       /* elements are told of as they pass: a run that goes on would miss some */
    bool in_parts;     /* the report is of a part, and the commit of all */
    bool grows;        /* a session has all documents of the base, some of which are changed */
    cm_ice_base *base; /* that the run began with; OWN, or one that is borrowed */
    cm_ice_base own;
    char *const *relied; /* as in cm_ice_change; borrowed */
    size_t nrelied;
    const char *grown; /* its member grows */
    cm_run_journal journal;
    bool begun, resumes; /* the journal tells of the run; an earlier one began it */
    cm_json *config;     /* of a new repository; or NULL */
    uint8_t committed[CM_ICE_ID];
    bool refused; /* the repository was read again, and has none of the run's snapshots */
    uint8_t tried[CM_ICE_ID]; /* then: the tip that was read */
    /* Called before a snapshot is published; or NULL. */
    int (*publishing)(void *context, const uint8_t id[CM_ICE_ID], cm_error *err);
    void *context;
} cm_repository;

/* An array of a commit. */
typedef struct cm_repository_array {
    const char *name; /* below the group that is the target */
    cm_ice_places places;
    const cm_fb_table *was; /* in the base, where it is there and changes; NULL: it is new */
} cm_repository_array;

/*
 * Finds what stands at the target of S: CM_EEXIST where it is neither a repository nor empty, or
 * where another run writes it.  Touches nothing.
 */
int cm_repository_find(cm_sink *s, cm_job *job, cm_error *err);
/* The same for one of several processes, which looks at what stands there when it has a plan. */
int cm_repository_find_part(cm_sink *s, cm_job *job, cm_error *err);
/* CM_EEXIST where what stands there is not to be written into; with the lock, or for a message. */
int cm_repository_check_place(cm_output *out, cm_error *err);
/* The nodes of JOB, and its statistics, may be put there: R has a base. */
int cm_repository_check(cm_repository *r, const cm_sink *s, cm_job *job, cm_error *err);
/*
 * Locks and opens it, and checks that the nodes of JOB, which is described, may be put there.  R
 * is zeroed.  *DONE: an earlier run of the same command has committed already.
 */
int cm_repository_begin(cm_repository *r, cm_sink *s, cm_job *job, bool *done, cm_error *err);
/* Chunks of an earlier run. */
typedef enum cm_settled {
    CM_SETTLED_NOTHING, /* or no more: its files are removed */
    CM_SETTLED_GOES_ON, /* the same run, which goes on */
    CM_SETTLED_DONE     /* the same run, which has committed */
} cm_settled;

/* The group of statistics, in that of the target. */
#define CM_REPOSITORY_STATISTICS "statistics"

enum {
    CM_REPOSITORY_NFOLDERS = 5
};
/* Folders of a repository. */
extern const char *const cm_repository_folders[CM_REPOSITORY_NFOLDERS];

/* A member of a journal's head: the run adds to arrays. */
#define CM_REPOSITORY_GROWS "grows"
/* Another: the commit of this plan's parts is made. */
#define CM_REPOSITORY_PARTS "parts"

/*
 * Looks at the journal that R has found, and removes the files of a run that nobody goes on with:
 * HEAD is that of this run.  CM_EEXIST: such a run that DROPS, false, would lose.
 */
int cm_repository_settle(cm_repository *r, cm_job *job, const cm_json *head, bool drops,
                         cm_settled *out, cm_error *err);
/*
 * With the lock, where no part runs: PLAN's parts are given up.  What they wrote is removed, unless
 * it is complete, or a commit was about to refer to it.
 */
int cm_repository_give_up(cm_repository *r, const cm_parts_plan *plan, cm_error *err);
/* The same of the plan that is there, which goes, of parts of which none runs. */
int cm_repository_settle_parts(cm_repository *r, cm_error *err);
/* Temporaries of killed runs; the lock is held. */
int cm_repository_sweep(cm_store *root, cm_error *err);

/*
 * The path of the group of statistics below the group NODE of the base, to be freed; NULL: there is
 * none that was made here.
 */
char *cm_repository_statistics(const cm_repository *r, const char *node);

/* ---- repository_commit.c ---- */

/*
 * Commits the documents of SESSION, and the N arrays ARRAY, as one snapshot.  Writes the manifests
 * before.
 */
int cm_repository_commit(cm_repository *r, cm_sink *s, cm_job *job, cm_store *session,
                         const cm_repository_array *array, size_t n, cm_error *err);
/* The report takes the id that was committed. */
int cm_repository_tell(const cm_repository *r, cm_job *job, cm_error *err);
/* Of parts: the commit is noted, and the journal goes. */
void cm_repository_close(cm_repository *r);
/* After a failure: removes the run's files, unless the journal stays for one that goes on. */
void cm_repository_withdraw(cm_repository *r, cm_job *job, bool goes_on, cm_error *err);
void cm_repository_release(cm_repository *r);

#endif
