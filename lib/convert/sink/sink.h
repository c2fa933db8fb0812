/*
 * A sink: where the chunks of a job go, and what makes them visible.
 *
 *     find      what stands at the target, and whether it may; touches nothing
 *     join      puts another dataset, with the target in it, in the place of the source
 *     layout    chunks, shards, codecs
 *     begin     locks, goes on where a run was stopped, plans: the engine's targets write into
 *               `store`, and none of what they write is seen
 *     commit    what was moved becomes visible
 *     withdraw  instead of that, after a failure: what stays, and what goes
 *     verify    holds what is there against the source
 *     leave     the end of a job that was begun, however it went
 *     give_back what others wait for, last of all
 *
 * A store, a part of one, a store that grows, a document of references, and nothing (a dry run, or
 * a store that is only compared) are sinks.  Whoever moves chunks does not know which one it has;
 * what a sink asks of the steps before it are its terms (terms.h).
 */
#ifndef CM_CONVERT_SINK_SINK_H
#define CM_CONVERT_SINK_SINK_H

#include "convert/job.h"
#include "convert/sink/rules.h"
#include "convert/sink/store/into.h"
#include "convert/sink/store/output.h"
#include "options/store_path.h"

typedef struct cm_sink cm_sink;

/* Functions may be NULL where there is nothing to do, but for find and begin. */
typedef struct cm_sink_ops {
    cm_sink_kind kind; /* by which options are refused (rules.h) */
    cm_terms terms;
    int (*find)(cm_sink *s, cm_job *job, cm_error *err);
    int (*join)(cm_job *job, cm_error *err);
    int (*layout)(cm_job *job, cm_error *err);
    /* *MOVES, true before, becomes false where no chunk is to be moved. */
    int (*begin)(cm_sink *s, cm_job *job, bool *moves, cm_error *err);
    int (*commit)(cm_sink *s, cm_job *job, cm_error *err);
    void (*withdraw)(cm_sink *s, cm_job *job, int rc, cm_error *err);
    int (*verify)(cm_sink *s, cm_job *job, cm_error *err);
    /* Returns RC, or what failed. */
    int (*leave)(cm_sink *s, cm_job *job, int rc, cm_error *err);
    /* The sentence of what could not be removed, and stops the next run; or NULL. */
    const char *(*give_back)(cm_sink *s);
} cm_sink_ops;

struct cm_sink {
    const cm_sink_ops *ops;
    cm_transform_options *options; /* in force: `find` may put targets and formats right */
    const char *target;    /* what is made, or changed, and lies apart from the source; or NULL */
    bool among_sources;    /* the target is a file of the source */
    cm_store_path against; /* that of the terms, with its node */
    cm_into into;
    cm_output out;
    cm_store *store; /* where chunks go; from begin on */
    void *own;       /* the sink's state, from begin to leave */
};

/* By OPTIONS, which stay the caller's; the terms of the job are those of its sink. */
void cm_sink_choose(cm_sink *s, cm_transform_options *options, cm_terms *terms);
/*
 * The target of S is complete already, and nothing is to be written: S becomes the sink that
 * compares it with the source, and its layout with what was asked for.
 */
int cm_sink_finished(cm_sink *s, cm_job *job, cm_error *err);
/* From a job that has a layout to a target that is verified. */
int cm_sink_fill(cm_sink *s, cm_job *job, cm_error *err);
void cm_sink_release(cm_sink *s);

/* ---- place.c ---- */

/*
 * CM_EINVAL where the target is the source, lies in it or around it: overwriting would take the
 * source away.
 */
int cm_sink_check_apart(const cm_sink *s, const cm_job *job, cm_error *err);
/* The nearest folder above PATH that is there; to be freed. */
char *cm_sink_folder_above(const char *path, cm_error *err);
/* "STORE::NODE" in its parts; the target becomes that folder. */
int cm_sink_find_into(cm_sink *s, cm_error *err);
/* The target gets the format of the store that it lies in; CM_EINVAL: another was asked for. */
int cm_sink_take_format(cm_sink *s, cm_error *err);

/* ---- for sinks ---- */

/* The metadata, and what is told before anything is written; PLACE: of statistics, or NULL. */
int cm_sink_describe(cm_job *job, const char *place, cm_error *err);
/* Compares STORE, which is complete and goes by NAME; counts the time. */
int cm_sink_verify(cm_job *job, cm_store *store, const char *name, cm_error *err);
/* The end of that, where another comparison began at START_NS and returned RC. */
int cm_sink_verified(cm_job *job, int rc, uint64_t start_ns, const char *name, cm_error *err);
/* Gives the lock of the output back: the sentence of what stays, or NULL. */
const char *cm_sink_end_output(cm_sink *s);

extern const cm_sink_ops cm_sink_store;
extern const cm_sink_ops cm_sink_part;
extern const cm_sink_ops cm_sink_growth;
extern const cm_sink_ops cm_sink_growth_part; /* several processes add to a store */
extern const cm_sink_ops cm_sink_growth_foreseen;
extern const cm_sink_ops cm_sink_references;
extern const cm_sink_ops cm_sink_references_foreseen;
extern const cm_sink_ops cm_sink_icechunk;      /* a commit to a repository */
extern const cm_sink_ops cm_sink_icechunk_part; /* a part of one */
extern const cm_sink_ops cm_sink_icechunk_foreseen;
extern const cm_sink_ops cm_sink_icechunk_growth; /* arrays of it grow, or are replaced in part */
extern const cm_sink_ops cm_sink_icechunk_growth_part; /* by several processes */
extern const cm_sink_ops cm_sink_icechunk_growth_foreseen;
extern const cm_sink_ops cm_sink_virtual_foreseen;
extern const cm_sink_ops cm_sink_virtual; /* whose chunks stay in their files */
extern const cm_sink_ops cm_sink_nothing;
extern const cm_sink_ops cm_sink_compared;

#endif
