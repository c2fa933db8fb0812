/*
 * rechunk's verb: a Zarr array or hierarchy to other chunks, shards or codecs.
 *
 * What is not named is carried over as it is.  Texts in the options are what a
 * user types (cli.md).  CM_EINVAL means that the options are wrong or ask for
 * what is not built: nothing was written.
 */
#ifndef CHUNKMILL_RECHUNK_H
#define CHUNKMILL_RECHUNK_H

#include <chunkmill/convert.h>

typedef struct cm_rechunk_options {
    const char *source; /* a folder, "file://...", or either with "::group/array" */
    const char *target;
    int zarr_format; /* 3 or 2; 0: the source's */
    cm_texts chunks; /* "[VAR:]SHAPE", "auto", "auto:SIZE", "source" */
    cm_texts
        shards; /* "[VAR:]SHAPE", "auto", "auto:SIZE", "none"; none given: as the source has them where chunks stay */
    cm_texts codec;    /* "[VAR:]SPEC", "same" (the default) */
    cm_texts variable; /* "A,B": only these arrays and the groups that hold them */
    bool overwrite;
    bool resume;
    bool break_lock; /* take over the lock of a run that cannot be seen from here */
    bool dry_run;
    bool durable;
    cm_verify verify;
    const char *scratch; /* folder for intermediate bytes; NULL: beside the target */
    const char *trace;
    unsigned nthreads; /* 0: the CPUs that this process may use */
    uint64_t memory;   /* bytes; 0: the default of cli.md */
    cm_monitor *monitor;
} cm_rechunk_options;

void cm_rechunk_options_init(cm_rechunk_options *options);

typedef enum cm_rechunk_plan {
    CM_RECHUNK_COPY,  /* chunks and codecs stay: stored bytes pass through */
    CM_RECHUNK_SWEEP, /* one pass, every source chunk decoded once */
    CM_RECHUNK_COLUMN, /* the cross-section in tiles, each swept: some chunks are read again at the seams */
    CM_RECHUNK_SPILL, /* one pass, part of the targets by way of scratch files */
    CM_RECHUNK_REREAD /* several passes over the source */
} cm_rechunk_plan;

/* Exact counts: predicted by the plan, and counted after the run. */
typedef struct cm_rechunk_counts {
    uint64_t chunk_reads; /* stored chunks fetched, inner ones where there are shards */
    uint64_t chunk_decodes;
    uint64_t chunk_writes;           /* put or, when they hold only the fill value, left out */
    uint64_t element_nbytes_read;    /* decoded bytes of what was read */
    uint64_t element_nbytes_written; /* decoded bytes of what was written, without padding */
    uint64_t scratch_nbytes;         /* written to and read back from scratch files, each */
} cm_rechunk_counts;

typedef struct cm_rechunk_array {
    char *name;
    char *type;
    char *codec_before, *codec_after;
    char *plan_reason; /* one sentence: why this plan */
    cm_rechunk_plan plan;
    unsigned rank;
    uint64_t shape[32];
    uint64_t chunk_before[32], chunk_after[32];
    uint64_t shard_before[32], shard_after[32]; /* all 0: not sharded */
    char *dim_name[32];
    unsigned order[32]; /* of the sweep, outermost first */
    uint64_t nchunks_before, nchunks_after;
    uint64_t objects_after;  /* planned, or made */
    uint64_t nskipped;       /* target chunks left out because they are empty */
    uint64_t missing_before; /* source chunks that are absent: fill value */
    uint64_t decoded_nbytes; /* of the whole array */
    uint64_t stored_before;  /* bytes, where known without reading everything; else 0 */
    uint64_t stored_after;   /* 0 under dry_run */
    uint64_t memory_nbytes;  /* peak that the plan needs, workers counted */
    uint64_t
        bound_nbytes; /* least traffic (decoded bytes read, written and spilled) that this memory allows */
    uint64_t planned_nbytes; /* the plan's */
    cm_rechunk_counts planned, counted;
    double planned_seconds; /* from the probe of this machine */
    char *digest;           /* after verify full */
} cm_rechunk_array;

typedef struct cm_rechunk_report {
    int zarr_format_before, zarr_format_after;
    char *target;
    bool written;    /* the target is complete, whatever went wrong after that */
    bool unverified; /* it is, and its verification was asked for and did not come to an end */
    bool resumable;
    bool finished; /* resume found the target complete and did nothing */
    cm_rechunk_array *array;
    size_t narrays;
    char **warning;
    size_t nwarnings;
    char **note;
    size_t nnotes;
    char **difference;
    size_t ndifferences;
    uint64_t nverified;
    uint64_t nobjects;
    uint64_t stored_nbytes;
    uint64_t decoded_nbytes;
    uint64_t scratch_needed; /* at most at one time */
    double probe_read_rate, probe_write_rate, probe_decode_rate,
        probe_encode_rate; /* bytes a second, decoded; 0: not probed */
    unsigned nthreads;
    uint64_t memory_limit;
    uint64_t memory_planned;
    uint64_t memory_peak;
    double seconds;
    double verify_seconds;
    cm_stage_time stage[8];
    size_t nstages;
} cm_rechunk_report;

/* As cm_convert. */
int cm_rechunk(const cm_rechunk_options *options, cm_rechunk_report *report, cm_error *err);
void cm_rechunk_report_release(cm_rechunk_report *report);

/*
 * `rechunk --digest STORE`: the digest of every array of a Zarr store or NetCDF
 * file (or of the one after "::").  VISIT gets each in turn, and what there is to
 * warn of before; a non-zero value that it returns ends the walk and is passed on.
 */
typedef struct cm_digest_row {
    const char *warning; /* a sentence about the store, and nothing else is set; or NULL */
    const char *name;
    const char *type;
    uint64_t nelem;
    const char *digest;     /* NULL: */
    const char *undigested; /* why there is none */
} cm_digest_row;

typedef int cm_digest_visit(void *context, const cm_digest_row *row, cm_error *err);
/* MEMORY: of the whole process, in bytes; 0: up to 1 GiB, and half of what is available. */
int cm_digest_store(const char *path, unsigned nthreads, uint64_t memory, cm_monitor *monitor,
                    cm_digest_visit *visit, void *context, cm_error *err);

#endif
