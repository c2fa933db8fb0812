/*
 * The verb behind nc2zarr and rechunk: a dataset (NetCDF or Zarr) becomes a Zarr store.
 *
 * Texts in the options are what a user types (nc2zarr(1)); they are resolved against
 * the variables of the source.  CM_EINVAL means that the options are wrong or ask
 * for what is not built: nothing was written.
 */
#ifndef CHUNKMILL_TRANSFORM_H
#define CHUNKMILL_TRANSFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <chunkmill/census.h>
#include <chunkmill/error.h>
#include <chunkmill/monitor.h>
#include <chunkmill/net.h>
#include <chunkmill/texts.h>

typedef enum cm_char_mode {
    CM_CHAR_KEEP,
    CM_CHAR_JOIN,
    CM_CHAR_UINT8
} cm_char_mode;

/* A number that a smaller type does not hold. */
typedef enum cm_overflow {
    CM_OVERFLOW_ERROR,   /* stops the run, with its place */
    CM_OVERFLOW_SATURATE /* becomes the end of the type's range */
} cm_overflow;

typedef enum cm_verify {
    CM_VERIFY_NONE,
    CM_VERIFY_SAMPLE,
    CM_VERIFY_FULL
} cm_verify;

/* The default for settings that no option gives. */
typedef enum cm_defaults {
    CM_DEFAULTS_CHOOSE, /* nc2zarr: chunks, shards and codecs are chosen */
    CM_DEFAULTS_KEEP    /* rechunk: they stay as the source has them */
} cm_defaults;

/* Which part of the work this process does, where several make one target: docs/scale.md. */
typedef struct cm_part_choice {
    bool on;
    uint64_t nparts; /* 0: as many as the plan has that is there */
    bool by_index;   /* else NUMBER counts */
    uint64_t number; /* of the part, from 0 */
    /* Of a launcher; the plan keeps FIRST and STEP of who made it, whatever a rerun says. */
    uint64_t index, first, step;
    const char *launcher; /* for who looks at the plan; NULL: by hand */
    const char *command;  /* the same: without what names the part; or NULL */
} cm_part_choice;

/* A variable of another store that the same options make. */
typedef struct cm_other_variable {
    const char *name;
    unsigned rank;
    char *const *dim_name;
} cm_other_variable;

typedef enum cm_grid_choice {
    CM_GRID_REGULAR,
    CM_GRID_RECTILINEAR /* Zarr 3: where chunks of the source differ in length, they stay so */
} cm_grid_choice;

typedef struct cm_transform_options {
    cm_defaults defaults;
    const char *source; /* a file, a folder, "file://...", or any of them with "::group/array" */
    struct cm_dataset *dataset; /* or what is open already, borrowed; NULL: SOURCE is opened */
    struct cm_append *append;   /* append.h: TARGET is this store, which grows; or NULL */
    /* the same, a folder, or "icechunk:PATH", a repository; NULL with dry_run */
    const char *target;
    int zarr_format; /* 3 or 2; 0: the source's, 3 for NetCDF */
    cm_texts chunks; /* "[VAR:]SHAPE", "auto", "auto:SIZE", "source" */
    cm_texts shards; /* "[VAR:]SHAPE", "auto", "auto:SIZE", "none", "source" */
    cm_texts codec;  /* "[VAR:]SPEC" */
    cm_grid_choice grid;
    const char *sample;   /* SHAPE, or NULL */
    cm_texts variable;    /* "A,B" */
    cm_texts exclude;     /* "A,B" */
    cm_texts rename;      /* "OLD=NEW" */
    cm_texts stack;       /* "NAME=A,B@DIM,C@DIM=V/V": one array of several variables */
    cm_texts merge_along; /* "DIM=V,V": of that dimension the first that is not missing */
    cm_texts subset;      /* "DIM=START:STOP[:STEP]", "DIM=2000-01-01..2009-12-31" */
    cm_texts dtype;       /* "[VAR:]TYPE" */
    cm_texts unpack;      /* "VAR", "all" */
    cm_texts keepbits;    /* "[VAR:]N" */
    cm_overflow overflow; /* of dtype and unpack */
    cm_texts fill_value;  /* "VAR:X" */
    /* An option for one of these, or a dimension of theirs, is not refused for want of it here. */
    const cm_other_variable *other;
    size_t nothers;
    cm_char_mode char_mode;
    bool skip_unsupported;
    bool overwrite;
    bool resume;
    bool break_lock; /* take over the lock of a run that cannot be seen from here */
    bool dry_run;
    bool durable;
    bool no_consolidate;
    cm_part_choice part;
    bool statistics;           /* counted, and written beside the target */
    cm_texts statistics_range; /* "DIM=FROM..TO": what is counted */
    const char *statistics_by; /* dimension whose places are levels; NULL: the vertical one's */
    /* The page that the caller makes of the report's passport; NULL: none is counted. */
    const char *report;
    /*
     * "json": TARGET is a file of references to the chunks of the source; "icechunk": a repository
     * gets them, or, with APPEND, more of them; NULL: a store
     */
    const char *refer;
    const char *base_url; /* of the folder that all files lie in, for these; NULL: their paths */
    /* Of a target "icechunk:PATH", a repository: */
    const char *branch;     /* NULL: main; one that is not there is made */
    const char *message;    /* of the commit; NULL: the command */
    uint64_t object_nbytes; /* files of chunks are up to that long; 0: 16 MiB */
    cm_verify verify;
    bool check;              /* compare source with target, write nothing */
    const char *certificate; /* file to write, or NULL */
    const char *scratch;     /* folder for intermediate bytes; NULL: beside the target */
    const char *trace;       /* Chrome trace to write, or NULL */
    const char *command;     /* the command line, for the certificate */
    unsigned nthreads;       /* 0: the CPUs that this process may use */
    uint64_t
        memory; /* bytes; 0: what decoding everything once needs, half of what is free at most */
    cm_monitor *monitor; /* or NULL */
    cm_net *net;         /* for stores behind a network; NULL: there is none */
    /* Called before anything is written, each time with the warnings that are new; or NULL. */
    void (*warn)(void *context, char *const *warning, size_t n);
    void *warn_context;
} cm_transform_options;

/* The defaults of nc2zarr or of rechunk. */
void cm_transform_options_init(cm_transform_options *options, cm_defaults defaults);

/* How a variable's elements get from one chunk grid to the other. */
typedef enum cm_plan_kind {
    CM_PLAN_COPY,   /* chunks and codecs stay: stored bytes pass through */
    CM_PLAN_SWEEP,  /* one pass, every source chunk decoded once */
    CM_PLAN_COLUMN, /* the cross-section in tiles: some chunks are read again at the seams */
    CM_PLAN_SPILL,  /* one pass, part of the targets by way of a scratch file */
    CM_PLAN_REREAD  /* several passes over the source */
} cm_plan_kind;

/* Exact counts: predicted by the plan, and counted after the run. */
typedef struct cm_plan_counts {
    uint64_t chunk_reads; /* stored chunks fetched, inner ones where there are shards */
    uint64_t chunk_decodes;
    uint64_t chunk_writes;           /* put or, when they hold only the fill value, left out */
    uint64_t element_nbytes_read;    /* decoded bytes of what was read */
    uint64_t element_nbytes_written; /* decoded bytes of what was written, without padding */
    uint64_t scratch_nbytes;         /* written to and read back from scratch, each */
} cm_plan_counts;

/* The result for one variable, or the planned result with dry_run. */
typedef struct cm_transform_variable {
    char *name;         /* in the target, with its group */
    char *source;       /* in the source */
    char *decoded_from; /* the text that the source has in its place; NULL: the source has it */
    char *type;         /* as stored: "float32", "string", ... */
    char *codec_before, *codec; /* "blosc:zstd:2:shuffle", ...; before: NULL where not known */
    char *access; /* how its bytes are reached, with the reason where it is the slow way */
    unsigned rank;
    uint64_t shape[32];
    char *dim_name[32];
    bool unlimited[32];
    uint64_t chunk_before[32], chunk[32];
    /* Less than those where chunks differ in length. */
    uint64_t shortest_chunk_before[32], shortest_chunk[32];
    bool rectilinear;                     /* the grid that is written */
    uint64_t shard_before[32], shard[32]; /* all 0: not sharded */
    uint64_t nchunks_before, nchunks;
    uint64_t missing_before;  /* source chunks that are absent: fill value */
    uint64_t nobjects;        /* files: planned, or made */
    uint64_t nskipped;        /* chunks left out because they hold only the fill value */
    uint64_t source_nbytes;   /* stored in the source; 0: not known */
    uint64_t decoded_nbytes;  /* in memory, whole */
    uint64_t stored_nbytes;   /* written, or expected (an estimate under dry_run; 0: none) */
    uint64_t memory_nbytes;   /* that moving it holds at most */
    double decodes_per_chunk; /* mean over source chunks; 1 is ideal, 0: nothing to decode */
    bool passed_through;      /* stored bytes unchanged */
    bool compared;            /* of a replacement: these elements had other values before, */
    uint64_t nchanged;
    double largest_change; /* and this is the largest change; NaN: none is a number */
    char *digest;          /* 32 hex digits after --verify full, else NULL */
    char *readers;         /* who opens it, where that is not everyone; else NULL */

    cm_plan_kind plan;
    char *plan_reason;       /* one sentence: why this plan */
    unsigned order[32];      /* of the sweep, outermost first */
    uint64_t bound_nbytes;   /* least traffic (decoded bytes read, written and spilled) here */
    uint64_t planned_nbytes; /* the plan's */
    cm_plan_counts planned, counted;
    double planned_seconds; /* from the probe of this machine */
} cm_transform_variable;

typedef struct cm_stage_time { /* seconds of all workers together */
    const char *name;          /* "read", "decode", "scatter", "encode", "write", "wait" */
    double seconds;
    uint64_t calls;
} cm_stage_time;

/* The work of a part, and the state of the others. */
typedef struct cm_part_report {
    bool on;
    uint64_t number, nparts; /* number from 0 */
    bool was_done;           /* before: nothing was written */
    uint64_t ndone;          /* parts, this one counted */
    uint64_t nrunning;
    char *missing; /* numbers from 1 that are neither: "3,7-9"; "": none */
    bool complete; /* the target has its metadata: all parts are done */
    bool finished; /* and this process wrote them */
} cm_part_report;

/* The growth of a store. */
typedef struct cm_append_report {
    bool on;
    char *dimension;
    uint64_t was, length; /* elements along it, before and after */
    uint64_t nheld;       /* elements that are held back: they do not fill a chunk, or shard */
    size_t nlisted;       /* files that the ledger listed, and that were not read */
} cm_append_report;

/* The range of a store that is rewritten. */
typedef struct cm_replace_report {
    bool on;
    char *dimension;
    uint64_t first, end; /* elements along it, END not included */
} cm_replace_report;

/* Files and folders of the target, counted before it is written. */
typedef struct cm_transform_inodes {
    uint64_t nfiles; /* at most: chunks that hold only the fill value have none */
    uint64_t nfolders;
    uint64_t nin_shards; /* files, were all arrays stored in shards of about 256 MiB */
    bool many;           /* files: shards are worth thinking of */
    bool knows_free;     /* the file system says how many more it can hold: */
    uint64_t nfree;
    bool short_of; /* the file system has too few */
} cm_transform_inodes;

typedef struct cm_transform_report {
    char *source_format;                       /* "NetCDF-4", "Zarr 3", ... */
    int zarr_format_before, zarr_format_after; /* before: 0 for NetCDF */
    char *target;
    cm_part_report part;
    cm_append_report append; /* off where a part is replaced */
    cm_replace_report replace;
    bool resumable;    /* stopped half-way: resume finishes what is there */
    bool written;      /* the target is complete, whatever went wrong after that */
    bool unverified;   /* it is, and its verification was asked for and did not come to an end */
    const char *clash; /* what differs between files of a joined dataset; its own word, or NULL */
    const char *clash_path[2]; /* these files, by the dataset's own words; or NULL */
    bool finished;             /* resume found the target complete and did nothing */
    bool blocks; /* the last warning: what could not be removed beside it stops the next run */
    cm_transform_variable *variable;
    size_t nvariables;
    bool has_census;
    cm_census census; /* of the arrays that were read of a Zarr source */
    char **warning;   /* sentences a user should read */
    size_t nwarnings;
    size_t nwarned; /* the first of them, which `warn` was called with */
    char **note;    /* details for -v */
    size_t nnotes;
    char **skipped; /* "obs: compound type obs_t", left out by skip_unsupported or by choice */
    size_t nskipped;
    char **difference; /* what verification found: "tas: element 3,4,5: 1.5 became 2.5" */
    size_t ndifferences;
    uint64_t nverified;         /* elements compared */
    bool not_compared;          /* some variables could not be, as warnings say */
    uint64_t nobjects;          /* files in the target, metadata counted */
    cm_transform_inodes inodes; /* zeros where a target is no store of its own */
    uint64_t source_nbytes;     /* of a file, or of all files */
    uint64_t nreferences;       /* of a target of references: chunks in files, */
    uint64_t ninline;           /* and chunks in the document, or the repository's own */
    uint64_t nfiles;            /* of a source that is many files; else 0 */
    uint64_t nfiles_opened;     /* of these, to survey them: set by who did that */
    uint64_t decoded_nbytes;
    uint64_t stored_nbytes;
    uint64_t scratch_needed; /* at most at one time */
    double probe_read_rate, probe_write_rate, probe_decode_rate,
        probe_encode_rate; /* bytes a second, decoded; 0: not probed */
    unsigned nthreads;
    uint64_t memory_limit;   /* in force */
    uint64_t memory_planned; /* what the plan needs at most */
    uint64_t memory_peak;    /* of this process, measured */
    double seconds;          /* opening to the last rename, verification apart */
    double verify_seconds;
    cm_stage_time stage[8];
    size_t nstages;
    char *snapshot;     /* of a repository, that was compared or committed: its id; or NULL */
    char *statistics;   /* the folder that they were written to; NULL: none */
    size_t nstatistics; /* variables */
    double statistics_seconds;    /* that counting took, all threads together */
    double statistics_share;      /* of all work; decoding that they alone asked for is not in it */
    struct cm_passport *passport; /* passport.h; NULL: not asked for, or nothing was moved */
} cm_transform_report;

/*
 * CM_EDIFFER when the target is complete but verification found a difference.
 * REPORT is valid, and to be released, whatever is returned.
 */
int cm_transform(const cm_transform_options *options, cm_transform_report *report, cm_error *err);
void cm_transform_report_release(cm_transform_report *report);

#endif
