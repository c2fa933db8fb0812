/*
 * The state of one conversion, passed from step to step:
 *
 *     open -> select -> view (subset, type) -> layout -> plan -> write -> verify
 *
 * Each step is a file of this folder and fills in its part of every cm_job_var.
 */
#ifndef CM_JOB_JOB_H
#define CM_JOB_JOB_H

#include <chunkmill/convert.h>

#include "exec/engine/engine.h"
#include "format/dataset.h"
#include "format/zarr/open.h"
#include "job/codec_option.h"

typedef struct cm_job_var {
    cm_variable *source;
    char *name; /* in the store, with its groups */
    bool renamed;

    /* view.c: the target's elements */
    cm_dtype type;
    bool as_strings; /* variable-length text: moved by strings.c */
    bool join;       /* NC_CHAR whose last dimension becomes the text */
    bool converts;
    cm_conversion conversion;
    unsigned rank;
    uint64_t shape[CM_MAX_RANK];
    uint64_t start[CM_MAX_RANK]; /* target element i is source element start + step * i */
    uint64_t step[CM_MAX_RANK];

    /* layout.c */
    uint64_t chunk[CM_MAX_RANK];
    uint64_t shard[CM_MAX_RANK];
    bool sharded;
    cm_codec_choice codec;
    cm_pass pass; /* keep.c: stored bytes go through */

    /* zarr_rules.c */
    cm_zarr_meta meta;
    bool fill_survives; /* readers get meta.fill bit for bit */
    bool
        fill_stays; /* what was never written becomes meta.fill, which readers see without chunks */
    /* budget.c */
    bool absent; /* the file stores none of it and nothing needs to be written: no transfer */
    cm_zarr_writer *writer;
    struct cm_journal *journal; /* of the job */
    const char *output;         /* the store's path, for messages */
    size_t index;               /* in the job */

    atomic_bool repaired;   /* text that was no UTF-8 has become U+FFFD */
    atomic_bool found_fill; /* a stored element is what readers take for NoData */
} cm_job_var;

typedef struct cm_job {
    const cm_convert_options *options;
    cm_convert_report *report;
    cm_dataset *source;
    const char *path;   /* of the file */
    const char *group;  /* of the file, what is converted: "" or "a/b" */
    const char *chosen; /* the variable that the input's name ends in, or NULL */
    cm_job_var *var;
    size_t nvars;
    cm_transfer *transfer; /* of the fixed-size ones */
    size_t ntransfers;
    unsigned nthreads;
    uint64_t held; /* by the process, before anything is moved */
    uint64_t memory_limit;
    size_t slots_nbytes;
    const char *guarded[2]; /* what no file that the options name may be */
    cm_outfile trace;       /* claimed where the options ask for one */
    cm_error trace_error;   /* a trace that failed does not cost the store */
    bool metadata_repaired; /* metadata_text.c found text that was no UTF-8 */
} cm_job;

/* report.c.  Sentences for the user; out of memory is an error like any other. */
int cm_job_warn(cm_job *job, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int cm_job_note(cm_job *job, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int cm_job_skip(cm_job *job, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int cm_job_differ(cm_job *job, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fills the report's variables from what is planned, or, WRITTEN, from what was made. */
int cm_job_report(cm_job *job, bool written, cm_error *err);

/* select.c: which variables, under which names. */
int cm_job_select(cm_job *job, cm_error *err);
/* subset.c and view.c: which elements, of which type. */
int cm_job_view(cm_job *job, cm_error *err);
int cm_job_subset(cm_job *job, cm_error *err);
/* layout.c: chunks, shards, codecs. */
int cm_job_layout(cm_job *job, cm_error *err);
/* zarr_rules.c: metadata by the rules of semantics.md. */
int cm_job_describe(cm_job *job, cm_error *err);
/* metadata_text.c: warns of text in it that JSON cannot hold as it is. */
int cm_job_check_text(cm_job *job, cm_error *err);
/* budget.c: writers, transfers and their plans within the memory. */
int cm_job_plan(cm_job *job, cm_store *store, cm_error *err);
/* strings.c: moves variables of variable-length text. */
int cm_job_move_strings(cm_job *job, cm_error *err);
/* A box of V (positions of the target) as text, from the file, by whichever way; LIBRARY: through libnetcdf alone. */
int cm_job_read_strings(cm_job *job, cm_job_var *v, const cm_box *box, bool library,
                        cm_strings *out, cm_error *err);
/* estimate.c: the bytes that each variable of the report will take. */
int cm_job_estimate(cm_job *job, cm_error *err);
/* convert.c: whether the file's group PATH is described in the store. */
bool cm_job_wants_group(const cm_job *job, const char *path);
/* compare_meta.c: adds to the report's differences where TREE says something else than the file. */
int cm_job_compare_meta(cm_job *job, const cm_zarr_tree *tree, cm_error *err);
/* verify.c: compares STORE with the file read through libnetcdf; CM_EDIFFER when they differ. */
int cm_job_verify(cm_job *job, cm_store *store, cm_error *err);
/* check.c: the same against a store that is already there, whose format *ZARR_FORMAT, the options' own, becomes. */
int cm_job_check(cm_job *job, int *zarr_format, cm_error *err);
/* certificate.c: about the input at PATH, into FILE, claimed as CM_KIND_CERTIFICATE. */
int cm_job_certify(const cm_job *job, const char *path, cm_outfile *file, cm_error *err);

#endif
