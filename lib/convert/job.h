/*
 * The state of one transform, passed from step to step:
 *
 *     open -> select -> view (subset, type) -> layout -> describe -> plan -> run
 *          -> metadata -> verify
 *
 * Each step is a file of this folder, and gives one value of every cm_job_var, which those behind
 * it take as const.
 */
#ifndef CM_CONVERT_JOB_H
#define CM_CONVERT_JOB_H

#include <chunkmill/transform.h>

#include "convert/beside/journal.h"
#include "convert/layout/array_doc.h"
#include "convert/layout/layout.h"
#include "convert/layout/window.h"
#include "convert/move/move.h"
#include "convert/plan/budget.h"
#include "convert/plan/share.h"
#include "convert/plan/var_plan.h"
#include "convert/select/view.h"
#include "convert/sink/store/output.h"
#include "convert/source/stored.h"
#include "convert/terms.h"
#include "format/dataset.h"
#include "format/zarr/open.h"
#include "options/varopt.h"

typedef struct cm_job_var {
    cm_variable *source;
    cm_dataset *dataset; /* that SOURCE is of; NULL: the job's */
    char *name;          /* in the target, with its groups; "" where the target is one array */
    bool renamed;
    cm_stored stored;
    cm_view view;
    cm_layout layout;
    cm_window window;
    cm_array_doc doc;
    struct cm_statistics *statistics; /* statistics.h; NULL: it is not counted */
    struct cm_job_passport *passport; /* job_passport.h; NULL: nobody asks */
    cm_move move;
    cm_var_plan plan;
    cm_share share;
    cm_moved moved;

    struct cm_journal *journal; /* of the job */
    const char *output;         /* the target's path, for messages */
    size_t index;               /* in the job */
} cm_job_var;

/* The source as it was named and opened (convert.c), or joined with a store that grows. */
typedef struct cm_job_from {
    const char *path;
    const char *group;  /* of a file, what is converted: "" or "a/b"; a store is opened there */
    const char *chosen; /* the variable that the name ends in, or NULL */
    cm_dataset *opened; /* the job's source, where it is to be closed; NULL: it is another's */
    struct cm_append_source *grown; /* append_source.h; NULL: the source is what was opened */
} cm_job_from;

/* How fast this machine is (probe.c); 0: not probed. */
typedef struct cm_job_speed {
    double read, decode, encode, write, scratch; /* decoded bytes a second, of one thread */
    cm_rates planned;                            /* of the workers that are planned for */
} cm_job_speed;

/* Where chunks wait that no memory holds (convert.c, plan.c). */
typedef struct cm_job_scratch {
    char *folder;
    cm_early *early; /* inner chunks that come before those in front of them in a shard */
} cm_job_scratch;

/* Files beside the target that the options ask for (sink/store/files.c). */
typedef struct cm_job_files {
    const char **guarded; /* what none of them may be */
    cm_outfile trace;
    cm_error trace_error; /* a trace that failed does not cost the target */
} cm_job_files;

/* Findings on the way that the certificate states (verify/certificate.c). */
typedef struct cm_job_evidence {
    bool compared;      /* the source's files with each other (clashes.c) */
    bool *agreed;       /* of each check of these: it is known to hold; NULL: of none */
    bool inputs_differ; /* where several have the same elements, and one of them is stored */
    bool witnessed;     /* witness.h: all files of a joined dataset agree to the store */
    bool repaired;      /* metadata_text.c found text that was no UTF-8 */
} cm_job_evidence;

typedef struct cm_job {
    const cm_transform_options *options;
    cm_terms terms; /* of its sink */
    cm_transform_report *report;
    cm_dataset *source;
    cm_job_from from;
    /*
     * Chunks that were chosen for `sample`, by name; from the journal where a run goes on: what was
     * measured then is not measured again, so that it makes the same chunks.  Or NULL.
     */
    cm_json *sample_chunks;
    int zarr_format; /* of the target */
    cm_job_var *var;
    size_t nvars;

    struct cm_merges *merges; /* merge_along.h; NULL: no dimension is taken out */
    struct cm_stacks *stacks; /* stack.h; NULL: nothing is stacked */
    struct cm_parts *parts;   /* parts.h; NULL: this process does all of it */
    struct cm_draft *draft;   /* of the passport; NULL: nobody asks */
    cm_job_speed speed;
    cm_budget budget;
    cm_job_scratch scratch;
    cm_job_files files;
    cm_job_evidence evidence;
} cm_job;

/* The word of messages for V's kind: a file has variables, a store arrays. */
const char *cm_job_name(const cm_job_var *v);
const char *cm_job_noun(const cm_job *job);
/* The dataset that V's source is of. */
cm_dataset *cm_job_dataset(const cm_job *job, const cm_job_var *v);
/* It is the job's, and has V as a variable of its own: nobody stacked or grew it. */
bool cm_job_is_own(const cm_job_var *v);
/* plan_send.c: as many as are asked for, or one for each CPU. */
unsigned cm_job_threads(const cm_job *job);

/* sentences.c.  Sentences for the user; out of memory is an error like any other. */
int cm_job_warn(cm_job *job, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Calls `warn` with those that it does not know. */
void cm_job_tell_warnings(cm_job *job);
int cm_job_note(cm_job *job, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int cm_job_skip(cm_job *job, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int cm_job_differ(cm_job *job, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fills the report's variables from what is planned, or, WRITTEN, from what was made. */
int cm_job_report(cm_job *job, bool written, cm_error *err);
void cm_transform_variable_release(cm_transform_variable *v);

/* select.c: which variables, under which names. */
int cm_job_select(cm_job *job, cm_error *err);
/* Whether the source's group PATH is described in the target. */
bool cm_job_wants_group(const cm_job *job, const char *path);
/* open.c: makes their arrays ready, and finds which chunks of a store are there. */
int cm_job_open_arrays(cm_job *job, cm_error *err);
/* subset.c and view.c: which elements, of which type. */
int cm_job_view(cm_job *job, cm_error *err);
int cm_job_subset(cm_job *job, cm_error *err);
/* indices.c: warns of values that count elements of dimensions of which `subset` takes a part. */
int cm_job_check_indices(cm_job *job, cm_error *err);
/* elsewhere.c: options are for several stores.  Items that name a variable of another are used. */
void cm_job_look_elsewhere(const cm_job *job, cm_varopts *opts);
bool cm_job_elsewhere(const cm_job *job, const char *pattern);
bool cm_job_dim_elsewhere(const cm_job *job, const char *name);

/*
 * The elements that TEXT, "DIM=START:STOP" or "DIM=FROM..TO", means; messages begin with OPTION.
 */
int cm_job_find_range(cm_job *job, const char *option, const char *text, uint64_t *first,
                      uint64_t *end, cm_error *err);
/* layout.c: chunks, shards, codecs. */
int cm_job_layout(cm_job *job, cm_error *err);
/* All of V is taken, in the chunks that the source has. */
bool cm_job_chunks_stay(const cm_job_var *v);
/* True when chunks of V's source differ in length along a dimension. */
bool cm_job_is_cut(const cm_job_var *v);
/* describe.c: the metadata of every array. */
int cm_job_describe(cm_job *job, cm_error *err);
/*
 * zarr_rules.c: that of V by its rules, from the model alone; ASKED is its fill
 * value or NULL.
 */
int cm_job_describe_by_rules(cm_job *job, const cm_job_var *v, const char *asked, cm_array_doc *out,
                             cm_error *err);
/* metadata_text.c: warns of text in it that JSON cannot hold as it is. */
int cm_job_check_text(cm_job *job, cm_error *err);
/* notice.c: warns of what comes out otherwise than a reader might expect. */
int cm_job_notice(cm_job *job, cm_error *err);
/* inflation.c: warns of variables that become much larger than what they are made of. */
int cm_job_notice_growth(cm_job *job, cm_error *err);
/* notice.c: warns of a Zarr source's documents that contradict each other. */
int cm_job_notice_conflicts(cm_job *job, cm_error *err);
/* prepare.c: nothing of V needs to be written. */
bool cm_job_is_absent(const cm_job_var *v);
/* V's writer into STORE, and its transfer before any plan. */
int cm_job_prepare(cm_job *job, cm_job_var *v, cm_store *store, cm_error *err);
/* Writers go before the store that they write into. */
void cm_job_release_writers(cm_job *job);
/* plan.c: writers into STORE, and the routes of all variables within the memory. */
int cm_job_plan(cm_job *job, cm_store *store, cm_error *err);
/* probe.c: how quickly this machine reads, decodes, encodes and writes V's chunks. */
int cm_job_probe(cm_job *job, cm_job_var *v, const char *folder, cm_error *err);
/* estimate.c: the bytes that each variable of the report will take. */
int cm_job_estimate(cm_job *job, cm_error *err);
/* run.c: moves everything into STORE. */
int cm_job_run(cm_job *job, cm_store *store, cm_error *err);
/* strings.c: moves V, which is variable-length text. */
int cm_job_move_strings(cm_job *job, cm_job_var *v, cm_error *err);
/* A box of V (positions of the target) as text; CHECKING: by the reader to verify with. */
int cm_job_read_strings(cm_job *job, cm_job_var *v, const cm_box *box, bool checking,
                        cm_strings *out, cm_error *err);
/* metadata.c: of all groups and arrays; the target is complete then. */
int cm_job_write_metadata(cm_job *job, cm_store *store, cm_error *err);
/* Writes the metadata into a store in memory, to be freed. */
int cm_job_describe_in_memory(cm_job *job, cm_store **out, cm_error *err);
/*
 * Writes them to memory, reads them as the verification will, and forgets them:
 * what that takes of many arrays is then in the process's peak, from which the
 * plan starts.
 */
int cm_job_rehearse_metadata(cm_job *job, cm_error *err);
/*
 * compare_meta.c: adds to the report's differences where TREE says something else than the
 * source.
 */
int cm_job_compare_meta(cm_job *job, const cm_zarr_tree *tree, cm_error *err);
/* verify.c: compares STORE with the source; CM_EDIFFER when they differ. */
int cm_job_verify(cm_job *job, cm_store *store, cm_error *err);
/* verify_digest.c: the same where source and target are Zarr and the elements stay. */
int cm_job_verify_digests(cm_job *job, cm_store *store, cm_error *err);
/* certificate.c: about the source at PATH, into FILE, claimed as CM_KIND_CERTIFICATE. */
int cm_job_certify(const cm_job *job, const char *path, cm_outfile *file, cm_error *err);

#endif
