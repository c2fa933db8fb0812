/*
 * nc2zarr's verb: one NetCDF file to one Zarr store.
 *
 * Texts in the options are what a user types (cli.md); they are resolved
 * against the variables of the input.  CM_EINVAL means that the options are
 * wrong or ask for what is not built: nothing was written.
 */
#ifndef CHUNKMILL_CONVERT_H
#define CHUNKMILL_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <chunkmill/error.h>
#include <chunkmill/monitor.h>

typedef struct cm_texts { /* an option that may be repeated, in the order given */
    const char *const *text;
    size_t n;
} cm_texts;

typedef enum cm_char_mode {
    CM_CHAR_KEEP,
    CM_CHAR_JOIN,
    CM_CHAR_UINT8
} cm_char_mode;
typedef enum cm_verify {
    CM_VERIFY_NONE,
    CM_VERIFY_SAMPLE,
    CM_VERIFY_FULL
} cm_verify;

typedef struct cm_convert_options {
    const char *input;
    const char *output;  /* a directory, or file://... */
    int zarr_format;     /* 3 or 2 */
    cm_texts chunks;     /* "[VAR:]SHAPE", "auto", "auto:SIZE", "source" */
    cm_texts shards;     /* "[VAR:]SHAPE", "auto", "auto:SIZE", "none" */
    cm_texts codec;      /* "[VAR:]SPEC" */
    const char *sample;  /* SHAPE, or NULL */
    cm_texts variable;   /* "A,B" */
    cm_texts exclude;    /* "A,B" */
    cm_texts rename;     /* "OLD=NEW" */
    cm_texts subset;     /* "DIM=START:STOP[:STEP]", "DIM=2000-01-01..2009-12-31" */
    cm_texts dtype;      /* "[VAR:]TYPE" */
    cm_texts unpack;     /* "VAR", "all" */
    cm_texts keepbits;   /* "[VAR:]N" */
    cm_texts fill_value; /* "VAR:X" */
    cm_char_mode char_mode;
    bool skip_unsupported;
    bool overwrite;
    bool resume;
    bool break_lock; /* take over the lock of a run that cannot be seen from here */
    bool dry_run;
    bool durable;
    bool no_consolidate;
    cm_verify verify;
    bool check;              /* compare INPUT with OUTPUT, write nothing */
    const char *certificate; /* file to write, or NULL */
    const char *trace;       /* Chrome trace to write, or NULL */
    const char *command;     /* the command line, for the certificate */
    unsigned nthreads;       /* 0: the CPUs that this process may use */
    uint64_t memory;         /* bytes; 0: the default of cli.md */
    cm_monitor *monitor;     /* or NULL */
} cm_convert_options;

void cm_convert_options_init(cm_convert_options *options); /* the defaults of cli.md */

/* What was, or with dry_run would be, made of one variable. */
typedef struct cm_convert_variable {
    char *name;   /* in the store, with its group */
    char *source; /* in the file */
    char *type;   /* as stored: "float32", "string", ... */
    char *codec;  /* "blosc:zstd:2:shuffle", ... */
    char *access; /* how its bytes are reached, with the reason where it is the slow way */
    unsigned rank;
    uint64_t shape[32];
    uint64_t chunk[32];
    uint64_t shard[32]; /* all 0: not sharded */
    char *dim_name[32];
    bool unlimited[32];
    uint64_t nchunks;
    uint64_t nobjects;       /* files: planned, or made */
    uint64_t nskipped;       /* chunks left out because they hold only the fill value */
    uint64_t source_nbytes;  /* stored in the input; 0: not known */
    uint64_t decoded_nbytes; /* in memory, whole */
    uint64_t stored_nbytes;  /* written, or expected (an estimate under dry_run) */
    uint64_t memory_nbytes;  /* that moving it holds at most */
    double
        decodes_per_chunk; /* how often each source chunk is decoded, mean; 1 is ideal, 0: nothing to decode */
    bool passed_through; /* stored bytes unchanged */
    char *digest;        /* 32 hex digits after --verify full, else NULL */
    char *readers;       /* who opens it, where that is not everyone; else NULL */
} cm_convert_variable;

typedef struct cm_stage_time { /* seconds of all workers together */
    const char *name;          /* "read", "decode", "scatter", "encode", "write", "wait" */
    double seconds;
    uint64_t calls;
} cm_stage_time;

typedef struct cm_convert_report {
    char *input_format; /* "NetCDF-4", ... */
    char *output;
    bool resumable;  /* stopped half-way: resume finishes what is there */
    bool written;    /* the store is complete, whatever went wrong after that */
    bool unverified; /* it is, and its verification was asked for and did not come to an end */
    bool finished;   /* resume found the store complete and did nothing */
    cm_convert_variable *variable;
    size_t nvariables;
    char **warning; /* sentences a user should read */
    size_t nwarnings;
    char **note; /* details for -v */
    size_t nnotes;
    char **skipped; /* "obs: compound type obs_t", left out by skip_unsupported or by choice */
    size_t nskipped;
    char **difference; /* what verification found: "tas: element 3,4,5: 1.5 became 2.5" */
    size_t ndifferences;
    uint64_t nverified; /* elements compared */
    uint64_t nobjects;  /* files in the store, metadata counted */
    uint64_t input_nbytes;
    uint64_t decoded_nbytes;
    uint64_t stored_nbytes;
    unsigned nthreads;
    uint64_t memory_limit;   /* in force */
    uint64_t memory_planned; /* what the plan needs at most */
    uint64_t memory_peak;    /* of this process, measured */
    double seconds;          /* opening to the last rename, verification apart */
    double verify_seconds;
    cm_stage_time stage[8];
    size_t nstages;
} cm_convert_report;

/*
 * Converts.  CM_EDIFFER when the store is complete but verification found a
 * difference.  REPORT is valid, and to be released, whatever is returned.
 */
int cm_convert(const cm_convert_options *options, cm_convert_report *report, cm_error *err);
void cm_convert_report_release(cm_convert_report *report);

#endif
