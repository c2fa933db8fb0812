/*
 * chunkcalc's verb: what reads cost with which chunks, and which chunks to take.
 *
 * Texts in the options are what a user types (chunkcalc(1)).  CM_EINVAL means that the
 * options are wrong: one sentence names the option and the number.
 */
#ifndef CHUNKMILL_CHUNKCALC_H
#define CHUNKMILL_CHUNKCALC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <chunkmill/census.h>
#include <chunkmill/error.h>
#include <chunkmill/net.h>
#include <chunkmill/texts.h>

typedef enum cm_chunkcalc_objective {
    CM_CHUNKCALC_COST,
    CM_CHUNKCALC_BYTES,
    CM_CHUNKCALC_REQUESTS,
    CM_CHUNKCALC_REGRET
} cm_chunkcalc_objective;

typedef enum cm_chunkcalc_audit {
    CM_CHUNKCALC_AUDIT_NONE,
    CM_CHUNKCALC_AUDIT,     /* judges the chunks for reads, if there are any; and counts them */
    CM_CHUNKCALC_AUDIT_FULL /* and decodes every one */
} cm_chunkcalc_audit;

typedef struct cm_chunkcalc_options {
    const char *store;    /* Zarr or NetCDF, PATH or PATH::NODE; or NULL */
    const char *variable; /* NULL: the largest that is no coordinate; without a read, all */
    const char *sample;   /* SHAPE, lengths may have a stride: "time=8:6"; or NULL */
    cm_texts read;        /* "[WEIGHT@]SHAPE" */
    const char *access;   /* a log of chunkmill.record: its reads, in place of those; or NULL */
    cm_texts against;     /* SHAPE: chunks whose rate with the reads of `access` is predicted */
    cm_texts chunks;      /* SHAPE; none: the default candidates */
    const char *shards;   /* SHAPE, "auto", "none"; or NULL */
    const char *shape;    /* SHAPE of the array; NULL: the store's, or endless */
    const char *dtype;    /* or NULL */
    uint64_t itemsize;    /* 0: from dtype, the store, or 1 */
    const char *align;    /* "random", "chunk", N; NULL: random */
    uint64_t batch;       /* samples a step; 0: not asked for */
    double step_time;     /* seconds; 0: not asked for */
    bool recommend;
    int audit;   /* cm_chunkcalc_audit */
    bool census; /* chunks of a Zarr store are counted also where one array alone is looked at */
    /* Seconds are looked at: costs are measured, as `recommend` and `audit` do in any case.  Else
       only the ratio is, on chunks of the store, and seconds are by the preset. */
    bool seconds;
    cm_chunkcalc_objective objective;
    uint64_t min_nbytes, max_nbytes; /* 0: 256 KiB and 64 MiB */
    /* "local", "nfs", "s3"; NULL: measured on the store, or local */
    const char *storage;
    double latency, bandwidth, decode, concurrency, ratio; /* negative: the preset's, or measured */
    uint64_t worker_memory; /* bytes; 0: what is available, divided by the CPUs */
    unsigned nthreads;      /* that look at chunks; 0: the CPUs that this process may use */
    cm_net *net;            /* for stores behind a network; NULL: there is none */
} cm_chunkcalc_options;

void cm_chunkcalc_options_init(cm_chunkcalc_options *options);

typedef struct cm_chunkcalc_stat {
    uint64_t min, max, p50, p95;
    double mean;
} cm_chunkcalc_stat;

/* One way of reading with one layout. */
typedef struct cm_chunkcalc_result {
    cm_chunkcalc_stat chunks;
    cm_chunkcalc_stat bytes; /* stored: decoded divided by the ratio */
    cm_chunkcalc_stat requests;
    double decoded_nbytes; /* mean */
    double amplification;  /* decoded bytes over the bytes that the read wants */
    double seconds;        /* mean, by the cost model */
    double pays; /* seconds over those with the shape best for this read alone; 0: not computed */
} cm_chunkcalc_result;

typedef struct cm_chunkcalc_layout {
    const char *rule; /* "listed", "against", "recommended", "rew", "zarr-python", "present" */
    uint64_t chunk[32];
    uint64_t shard[32]; /* all 0: not sharded */
    bool sharded;
    uint64_t chunk_nbytes;
    cm_chunkcalc_result *result;             /* one for each read */
    double seconds, bytes, requests, regret; /* weighted means; regret 0: not computed */
    double waiting, moving;                  /* of the seconds: for requests, of stored bytes */
    double rate;        /* reads a second, as many at a time as there were; 0: no log was given */
    bool has_footprint; /* the array's shape is known */
    uint64_t nchunks, nobjects, padding_nbytes, index_nbytes;
    double stored_nbytes;
    double batch_chunks; /* distinct chunks of a batch of the first read, mean; 0: not asked for */
    double batch_requests;
    double batch_nbytes; /* decoded, of those chunks */
    bool batch_exact;    /* false: too many to count, overlaps between samples are ignored */
} cm_chunkcalc_layout;

typedef struct cm_chunkcalc_read {
    char *text;
    double weight;
    uint64_t sample[32], step[32];
    double nbytes;          /* that the read wants, decoded */
    uint64_t own_chunk[32]; /* the shape best for it alone, after --recommend or --audit */
    double own_seconds;
} cm_chunkcalc_read;

typedef struct cm_chunkcalc_point { /* of the Pareto front */
    uint64_t chunk[32];
    double bytes, requests, seconds; /* weighted means */
} cm_chunkcalc_point;

typedef struct cm_chunkcalc_array { /* an array of the store, described */
    char *name, *type, *codec;      /* codec NULL: not known */
    unsigned rank;
    uint64_t shape[32], chunk[32], shard[32];
    char *dim_name[32];
    bool chunked, sharded;
    /* Chunks, or shards, are of several lengths along a dimension, from `shortest` to those. */
    bool cut;
    uint64_t shortest[32];
    uint64_t chunk_nbytes, nchunks, nobjects, decoded_nbytes, padding_nbytes;
    uint64_t measured_chunks; /* looked at for the next two; 0: not measured */
    double ratio;             /* decoded bytes a stored byte; 0: nothing is stored */
    double decode;            /* decoded bytes a second of one thread; 0: stored raw */
} cm_chunkcalc_array;

/* Reads of a log, of the variable that most was read of. */
typedef struct cm_chunkcalc_access {
    uint64_t reads;    /* 0: no log was given */
    unsigned together; /* under way at once, at most */
    unsigned processes;
    unsigned streams; /* of these, as many as there are CPUs here */
    double seconds;   /* from the first to the end of the last, when they were recorded */
    uint64_t requests, stored_nbytes; /* for its chunks, and what they gave */
    bool wanted; /* the log says which elements were wanted; false: which chunks were read */
    double measured_rate; /* reads a second with the present chunks; 0: rates are the model's */
} cm_chunkcalc_access;

typedef struct cm_chunkcalc_report {
    unsigned rank;
    char *dim_name[32]; /* NULL: no names */
    uint64_t shape[32]; /* 0: endless */
    bool bounded;
    char *path; /* path or URL of the store or file that was opened, without a node; NULL: none */
    bool is_netcdf;  /* it is a NetCDF file */
    int zarr_format; /* of the store; 0: there is none */
    char *variable;  /* of the store, or NULL */
    /* The same as VAR of an option "VAR:VALUE", unescaped; "": the option needs none. */
    char *pattern;
    char *type; /* or NULL */
    uint64_t itemsize;
    bool assumed_itemsize; /* nobody said it: one byte */
    char *storage;         /* preset, or "own" */
    char *storage_source;
    double latency, bandwidth, decode, concurrency, ratio;
    double range;             /* seconds a request for a part of an object that is open */
    double chunk_seconds;     /* that a chunk takes whatever its size */
    bool measured, cold;      /* latency, range and bandwidth: on the store, on the disk */
    bool cached;              /* bandwidth: that of the page cache, not of storage */
    uint64_t measured_chunks; /* of the store, for ratio and decode rate; 0: not measured */
    char *align;
    cm_chunkcalc_access access;
    cm_chunkcalc_read *read;
    size_t nreads;
    cm_chunkcalc_layout *layout;
    size_t nlayouts;
    size_t recommended; /* index of the layout; SIZE_MAX: none */
    size_t present;     /* the same for the store's own */
    const char *objective;
    uint64_t min_nbytes, max_nbytes;
    uint64_t nevaluated;
    char *reason;
    char *chunks_option; /* "time=24,lat=64,lon=64", ready for --chunks; after a recommendation */
    char *shards_option; /* the same, or "none" */
    uint64_t sharded_objects; /* files with those shards; 0: none are recommended */
    char *present_option;     /* the present chunks in that form; NULL: there are none */
    bool keep; /* the present chunks are the best, or as good as the model can tell */
    cm_chunkcalc_point *front;
    size_t nfront;
    char *verdict;  /* of the audit: "good", "fair", "poor" */
    char *audit;    /* its sentence */
    char *compared; /* the gain in words: "cost 3.1 times as high"; NULL: not compared */
    double gain;    /* cost of the present chunks over that of the recommended; 0: not compared */
    uint64_t batch;
    double step_time;
    cm_chunkcalc_array *array;
    size_t narrays;
    bool has_census; /* of a Zarr store that is described or audited, or was asked for: */
    cm_census census;
    char **warning; /* sentences a user should read */
    size_t nwarnings;
    char **note;
    size_t nnotes;
} cm_chunkcalc_report;

/* REPORT is valid, and to be released, whatever is returned. */
int cm_chunkcalc(const cm_chunkcalc_options *options, cm_chunkcalc_report *report, cm_error *err);
void cm_chunkcalc_report_release(cm_chunkcalc_report *report);

#endif
