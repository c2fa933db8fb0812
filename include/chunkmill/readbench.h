/*
 * readbench's verb: will this storage feed the training?
 *
 * A *session* measures one store under one setting: it starts a loader, takes
 * batches as a training would, and records when each was wanted and when it came.
 * cm_readbench runs one or more of them, in turn or one for each point of a sweep.
 *
 * Texts in the options are what a user types (readbench(1)).  CM_EINVAL means that the
 * options are wrong: one sentence names the option.  All times are nanoseconds of
 * CLOCK_MONOTONIC since the run began, unless a name says otherwise.
 */
#ifndef CHUNKMILL_READBENCH_H
#define CHUNKMILL_READBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <chunkmill/census.h>
#include <chunkmill/error.h>
#include <chunkmill/monitor.h>
#include <chunkmill/net.h>
#include <chunkmill/texts.h>

enum {
    CM_READBENCH_STAGES = 4, /* of a worker: storage, decode, assemble, convert */
    CM_READBENCH_ROUNDS = 3  /* of settings that a sweep or tuning must choose between */
};

typedef enum cm_readbench_validate {
    CM_READBENCH_VALIDATE_DEFAULT, /* full with a device, none without */
    CM_READBENCH_VALIDATE_NONE,
    CM_READBENCH_VALIDATE_CHECKSUM,
    CM_READBENCH_VALIDATE_FULL
} cm_readbench_validate;

typedef struct cm_readbench_options {
    cm_texts store;     /* Zarr or NetCDF, PATH or PATH::NODE */
    cm_texts variables; /* names or globs; none: the largest that is no coordinate */
    const char *lags;   /* "-6,0"; NULL: 0 */
    const char *sample; /* SHAPE; NULL: only with orders that say it */
    uint64_t batch;     /* 32 */
    /*
     * An epoch; 0: all of them, of which the first 50 are taken, or with the order all everything.
     * By default an epoch is that of chunkmill/loader.h, in the same order.
     */
    uint64_t batches;
    uint64_t epochs; /* 2 */
    uint64_t seed;
    bool drop_last;
    const char *order; /* "random", "strided:4", ...; NULL: random */
    /*
     * A log of chunkmill.record, whose reads are the samples, in the order in which they began, as
     * many at a time as there were; in place of `sample`, `order` and `lags`.  NULL: none.
     */
    const char *replay;
    const struct cm_load_boxes *boxes; /* those reads; set by the verb */
    const char *loader;                /* "map", "planned"; NULL: map */
    uint64_t window;                   /* of the planned loader, blocks; 0: chosen, and reported */
    const char *mode;                  /* "sync", "threads", "processes"; NULL: threads */
    unsigned workers;                  /* a rank; 0: by advice */
    unsigned worker_threads;           /* 1 */
    unsigned prefetch;                 /* 2 */
    bool unordered;
    bool no_persistent;
    uint64_t worker_memory;
    const char *pool;    /* "rank", "shared"; NULL: rank */
    uint64_t world_size; /* 1 */
    uint64_t rank;
    unsigned accelerators; /* ranks that run at once here; 1 */
    unsigned reserve;      /* CPUs kept for each of them by the advice; 2 */
    double step_forward, step_backward, step_other; /* seconds a step; all negative: 100 ms */
    double step_per_sample;                         /* seconds, added for each sample */
    const char *engine; /* "native", "netcdf", "exec:CMD"; NULL: native */
    const char *io;     /* "auto", "pread", "mmap", "uring", "direct"; NULL: auto */
    bool cold, warm;
    uint64_t cache_nbytes;
    const char *cache_policy; /* "lru", "fifo"; NULL: lru */
    const char *cache_dir;
    uint64_t cache_dir_nbytes; /* 0: half of what is free there */
    const char *emulate;       /* "local", "nfs", "s3", "latency=T,bandwidth=R,concurrency=N" */
    const char *device;        /* "none", "host", "cuda[:N]"; NULL: none */
    const char *staging;       /* "pinned", "pageable"; NULL: pinned */
    bool no_overlap;      /* copy, then step; otherwise the next batch is copied during the step */
    bool device_step;     /* the step is a kernel that keeps the device busy */
    unsigned slots;       /* 0: 4, or what the batches under way need */
    uint64_t slot_nbytes; /* 0: 16 MiB */
    const char *cast;     /* "float64", "float32", "float16", "bfloat16", "xarray"; NULL: none */
    bool unpack;
    bool fill_to_nan;
    cm_readbench_validate validate;
    bool log_samples; /* keep where each delivered sample lies and its bytes' CRC32C */
    const struct cm_readbench_point
        *point; /* a sweep: these are run instead, one after the other */
    size_t npoints;
    bool tune;
    uint64_t memory;    /* limit; 0: chosen */
    unsigned nthreads;  /* limit of workers x worker threads; 0: none */
    unsigned sample_ms; /* between two looks at CPUs and memory; 0: 100 */
    cm_net *net;        /* for stores behind a network; NULL: there is none */
    /* Before each epoch, where other processes measure too; fails as they do.  NULL: none do. */
    int (*meet)(void *context, cm_error *err);
    void *meet_context;
    struct cm_readbench_hook *hook; /* of tests; NULL */
} cm_readbench_options;

/* One setting of a sweep: options that have no points themselves, for the same stores. */
typedef struct cm_readbench_point {
    const cm_readbench_options *options;
    const char *label; /* "workers=4,prefetch=2" */
} cm_readbench_point;

void cm_readbench_options_init(cm_readbench_options *options);

/* ---- what is recorded ---- */

typedef struct cm_readbench_batch {
    uint32_t epoch, rank, number, nsamples;
    int64_t worker;                       /* of its pool; -1: planned loader, made by several */
    uint64_t queued_ns, begin_ns, end_ns; /* handed out, begun and ready in the loader */
    uint64_t want_ns;  /* when the step before ended, or the epoch began: late from here on */
    uint64_t got_ns;   /* when the loader gave it */
    uint64_t ready_ns; /* when it was on the device; got_ns without one */
    uint64_t done_ns;  /* when its step ended */
    uint64_t stage_ns[CM_READBENCH_STAGES];
    uint64_t copy_start_ns, copy_ns; /* to the device, by the device's clock; 0 without one */
    uint64_t chunks, decoded, requests;
    uint64_t stored_nbytes, decoded_nbytes, logical_nbytes;
    uint64_t cache_hits, cache_misses, cache_evictions;
    uint64_t disk_hits, disk_misses, disk_evictions, disk_nbytes;
    uint64_t missing_chunks, missing_nbytes, failed_chunks;
    uint64_t rss_nbytes; /* of the worker's process */
    uint32_t deaths;     /* workers that died on it */
    bool first;          /* that its rank took: its step is told apart */
    bool failed;         /* not stepped on, and in no statistics of waits and steps */
} cm_readbench_batch;

typedef enum cm_readbench_event_kind { /* names in events.log, in this order */
    CM_EVENT_RUN,                      /* "run" */
    CM_EVENT_SETUP,                    /* "setup": opening, starting workers */
    CM_EVENT_EPOCH,                    /* "epoch" */
    CM_EVENT_TRAINING,                 /* "training": one step */
    CM_EVENT_GET_BATCH,                /* "get-batch": waiting for one */
    CM_EVENT_WORKER,    /* "worker": the life of a worker; in events_workers.log, like the next */
    CM_EVENT_MAKE_BATCH /* "make-batch": a worker at work on one */
} cm_readbench_event_kind;

typedef struct cm_readbench_event {
    cm_readbench_event_kind kind;
    uint32_t epoch, rank, batch; /* UINT32_MAX: of none */
    int64_t worker;              /* -1: none */
    int64_t pid;                 /* of a worker process; 0 otherwise */
    uint64_t start_ns, end_ns;
} cm_readbench_event;

typedef struct cm_readbench_look { /* at the machine, every sample_ms */
    uint64_t at_ns;
    uint64_t rss_nbytes;   /* of this process and its workers */
    float process_cpu;     /* CPUs that they used since the look before */
    float gpu, gpu_memory; /* 0 to 1; negative: not known */
    float *cpu;            /* 0 to 1, one for each of `ncpus` */
} cm_readbench_look;

typedef struct cm_readbench_sample { /* delivered, in order; with log_samples */
    uint32_t epoch, rank, batch, place;
    uint64_t number; /* in the epoch */
    uint32_t part;   /* of the sample: a variable at a lag */
    uint64_t start[32];
    uint64_t shape[32];
    uint32_t crc32c; /* of its bytes as delivered */
} cm_readbench_sample;

/* ---- numbers ---- */

/* Seconds.  A percentile is NaN where no value lies above it: 20 values have no p99. */
typedef struct cm_readbench_times {
    uint64_t n;
    double total, mean, p50, p95, p99, p999, max;
} cm_readbench_times;

typedef struct cm_readbench_part {
    char *variable;
    char *type; /* as delivered */
    char *stored_type;
    unsigned rank;
    char *dim_name[32];
    uint64_t shape[32]; /* of the array */
    uint64_t sample[32];
    uint64_t chunk[32], shard[32];
    uint64_t best_chunk[32]; /* that suit these samples best; 0: not known */
    /* The same where they are compressed by CM_READBENCH_LIGHT_CODEC; 0: not asked. */
    uint64_t light_chunk[32];
    bool best_in_shards, light_in_shards; /* so many chunks that shards hold them */
    bool chunked, sharded;
    int64_t lag;
    bool is_static;  /* read once by each worker */
    uint64_t nbytes; /* of one sample, as delivered */
} cm_readbench_part;

typedef struct cm_readbench_predicted { /* by chunkcalc's arithmetic, all parts together */
    bool known; /* the means: false where an array has no chunks, or offsets are not uniform */
    double chunks, decoded_nbytes, requests; /* of one sample: means over all offsets */
    double fewest_chunks;                    /* that one sample of this shape could do with */
    /*
     * With the chunks that suit these samples best, by costs that were measured here as chunkcalc
     * measures them; 0: not known.  Seconds are those of the model, of one sample.
     */
    double best_decoded_nbytes;
    double read_seconds, best_read_seconds; /* as it is stored, and with those chunks */
    /* Their ratio with the costs of each of the rounds in which they were measured. */
    double least_times, most_times;
    double light_read_seconds; /* with the best chunks for the light codec; 0: not asked */
    /* Chunks that `loader` planned decodes for a sample, over a whole epoch; 0: not known. */
    double planned_per_sample;
    char *costs; /* where the costs come from; or NULL */
    uint64_t planned_chunks,
        planned_decoded_nbytes; /* of the samples drawn, all epochs; 0: too many to count */
    /* One batch alone, as cm_readbench_measured has it, from probed costs; negative: not known. */
    double batch_seconds, batch_cpu_seconds;
    double batch_requests; /* as the reader merges them */
    double batch_chunks;   /* that it meets */
} cm_readbench_predicted;

/*
 * A batch read alone by one thread after the epochs, as with mode "sync": no cache, no step.
 * Of the means of all rounds the middle half, averaged; negative: not measured.
 */
typedef struct cm_readbench_measured {
    double batch_seconds, batch_cpu_seconds;
    uint64_t batches; /* of a round */
    unsigned rounds;  /* at most 9; 0: not measured */
} cm_readbench_measured;

typedef struct
    cm_readbench_counts { /* decoded, requests and stored bytes are 0 where libnetcdf reads */
    uint64_t batches, samples, failed_batches;
    uint64_t chunks, decoded, requests;
    uint64_t stored_nbytes, decoded_nbytes, logical_nbytes;
    uint64_t cache_hits, cache_misses, cache_evictions;
    uint64_t disk_hits, disk_misses, disk_evictions, disk_nbytes;
    uint64_t missing_chunks, missing_nbytes, failed_chunks;
    uint64_t deaths;
} cm_readbench_counts;

typedef struct cm_readbench_rates { /* bytes a second, but for `samples` and `efficiency` */
    /* of samples delivered, over all epochs; without what missing chunks stand for */
    double logical;
    double decoded;  /* of whole chunks, over all epochs */
    double physical; /* that storage gave, over all epochs */
    /* and the cache on disk, over the time spent asking for it, times the threads that asked */
    double asked;
    /*
     * The same chunks read without decoding, by as many threads, in this run: the median of its
     * rounds, and the least and most; by `more_threads`, in turn with them.  0: not probed.
     */
    double storage, storage_least, storage_most;
    double storage_more;
    unsigned more_threads;
    double memory;          /* memory copied by one thread */
    double efficiency;      /* asked over storage; 0: not known, or UNCOMPARED says why not */
    bool from_memory;       /* STORAGE was measured where the page cache held the store */
    const char *uncompared; /* why storage is no bound of what was asked; or NULL */
    /*
     * logical bytes over the time at work, times the threads: what the loader gives when it
     * need not wait
     */
    double capacity;
    double samples; /* a second, over all epochs */
} cm_readbench_rates;

typedef struct cm_readbench_device {
    bool used;
    char *kind, *name, *driver, *link; /* link: "PCIe 5.0 x16", or NULL */
    double lock_seconds, locked_nbytes;
    double link_pinned, link_pageable; /* bytes a second of plain copies in this run */
    double copied;                     /* bytes a second of batches, by the device's clock */
    double overlap;                    /* share of the copying during steps */
    cm_readbench_times wait; /* for copies that were not there when the step wanted them */
    /* With validation, also where no device is used: then against what is read directly. */
    uint64_t validated_batches, validated_nbytes, mismatches;
    double validated_rate;
} cm_readbench_device;

typedef struct cm_readbench_accelerators {
    unsigned n;
    unsigned fed; /* of them at 90 % */
    /*
     * logical bytes a second of all together, for steps as long as asked for, and over all
     * epochs; needed 0: steps take no time
     */
    double needed, got;
} cm_readbench_accelerators;

typedef struct cm_readbench_finding {
    /*
     * "contended", "loader-waits", "io-bound", "one-core", "cpu-bound", "saturated",
     * "memory-grows", "amplification", "fits-in-memory", ...
     */
    char *rule;
    char *sentence;
} cm_readbench_finding;

/* Why steps waited: one of them, the one whose removal would save the most time. */
typedef enum cm_readbench_cause {
    CM_CAUSE_UNKNOWN,    /* too few steps, or nothing was measured */
    CM_CAUSE_FAILURES,   /* batches failed */
    CM_CAUSE_NOTHING,    /* no chunk that was met is stored */
    CM_CAUSE_CONTENTION, /* other programs used the CPUs: the times are not this store's */
    CM_CAUSE_STEP,       /* none: the loader keeps up */
    CM_CAUSE_DEVICE_COPY,
    CM_CAUSE_CHUNK_SHAPE,
    CM_CAUSE_USER_LOADER,  /* behind the exec engine */
    CM_CAUSE_LIBRARY,      /* libnetcdf */
    CM_CAUSE_STORAGE,      /* and it gives no more */
    CM_CAUSE_FEW_REQUESTS, /* storage would give more than it is asked for */
    CM_CAUSE_CPUS,         /* all busy with this loader */
    CM_CAUSE_FEW_WORKERS,  /* CPUs are idle */
    CM_CAUSE_WORK,         /* as many threads as CPUs, and they work */
    CM_CAUSE_UNEVEN        /* the loader's capacity is enough, but batches come late all the same */
} cm_readbench_cause;

/* A change that would make the samples come faster. */
typedef enum cm_readbench_change {
    CM_CHANGE_NONE,
    CM_CHANGE_CHUNKS,   /* the best_chunk of each part */
    CM_CHANGE_CODEC,    /* the light_chunk of each part, and the light codec */
    CM_CHANGE_WORKERS,  /* VALUE of them; of a loader without any: worker threads */
    CM_CHANGE_PREFETCH, /* VALUE batches */
    CM_CHANGE_STAGING   /* page-locked */
} cm_readbench_change;

#define CM_READBENCH_LIGHT_CODEC "blosc:lz4"

typedef struct cm_readbench_proposal {
    bool simulated; /* changes were, */
    bool layouts;   /* of chunks and codecs, too */
    cm_readbench_change change;
    double gain; /* samples a second with it over those without, as simulated */
    unsigned value;
    double planned_gain; /* the most that `loader` planned gives over a whole epoch; 0: not known */
} cm_readbench_proposal;

/* "contention", "chunk-shape", ...: stable names, for documents. */
const char *cm_readbench_cause_name(cm_readbench_cause cause);
/* "chunks", "codec", "workers", "prefetch", "staging"; NULL of none. */
const char *cm_readbench_change_name(cm_readbench_change change);

typedef struct cm_readbench_setting { /* as it was run, chosen values included */
    char *name, *value;
} cm_readbench_setting;

/* One store under one setting. */
typedef struct cm_readbench_session {
    cm_census census; /* of the variables that are read; empty for a NetCDF file */
    char *label;      /* unique in the report, fit for a folder's name: "era5.zarr", "workers=4" */
    char *store, *format, *engine, *io, *order, *loader, *mode, *pool;
    bool emulated;
    char *emulation;  /* "s3: 30 ms a request, 90 MB/s a stream, 64 at a time"; or NULL */
    unsigned streams; /* of these at a time; 0: not emulated */
    cm_readbench_setting *setting;
    size_t nsettings;
    cm_readbench_part *part;
    size_t nparts;
    unsigned workers;      /* of each pool; 1 with "sync" */
    unsigned pool_workers; /* of all pools together */
    unsigned worker_threads, prefetch, ranks;
    uint64_t batch, batch_nbytes, window;
    unsigned batches_in_flight; /* at most, all ranks */
    uint64_t in_flight_nbytes;
    unsigned cpus;
    uint64_t memory_limit, memory_planned;
    uint64_t memory_free; /* of this machine, when the session began */

    double setup_seconds;       /* opening and starting workers */
    double first_batch_seconds; /* from the beginning of the first epoch */
    double first_step_seconds;  /* from want to done of the first step */
    double epoch_seconds[2];    /* the first and the mean of the others; 0: none */
    double wall_seconds;        /* of all epochs */
    cm_readbench_times wait;    /* of all steps but the first of each rank */
    cm_readbench_times step;
    cm_readbench_times batch_time;                 /* from want to done */
    cm_readbench_times stage[CM_READBENCH_STAGES]; /* of all batches */
    double wait_share;  /* of waiting and stepping, first steps left out */
    double utilisation; /* of the accelerator: 1 - wait_share */
    cm_readbench_predicted predicted;
    cm_readbench_measured measured;
    cm_readbench_counts counts;
    /* decoded bytes over logical ones; chunks over the fewest that do; requests over chunks */
    double amplification[3];
    cm_readbench_rates rates;
    /* Samples a second of each round, this one first; more than one where settings were close. */
    double round[CM_READBENCH_ROUNDS];
    unsigned nrounds;
    double cpu_seconds,
        cpu_seconds_per_gb; /* of this process and its workers, a GB of logical bytes */
    uint64_t peak_nbytes;   /* resident, this process and its workers */
    uint64_t store_nbytes;  /* of all its files */
    double resident_before,
        resident_after;  /* share of the store in the page cache; negative: not known */
    char *temperature;   /* "cold", "warm", "as found" */
    double displacement; /* of the order, or of the planned loader's delivery */
    /* Planned loader: how often a chunk is decoded in a whole epoch; blocks a batch meets. */
    double decodes_per_chunk, blocks_mixed;
    /*
     * Planned loader: samples a second that its threads would make in a whole epoch, by the time
     * that chunks and samples took here; 0: not known.
     */
    double epoch_rate;
    cm_readbench_device device;
    cm_readbench_accelerators accelerators;
    cm_readbench_finding *finding;
    size_t nfindings;
    double own_cpus;   /* kept busy by this process and its workers, a mean over the epochs */
    double other_cpus; /* and by everything else on the same CPUs; both negative: not known */
    cm_readbench_cause cause;
    cm_readbench_proposal proposal; /* simulated, and predicted to help; or none */
    char *sentence;                 /* the bottleneck, and the proposal */
    char *first_failure;            /* of a batch; or NULL */

    cm_readbench_batch *record;
    size_t nrecords;
    cm_readbench_event *event;
    size_t nevents;
    cm_readbench_look *look;
    size_t nlooks;
    unsigned ncpus; /* of each look */
    cm_readbench_sample *logged;
    size_t nlogged;
} cm_readbench_session;

typedef struct cm_readbench_advice {
    unsigned cpus, accelerators, reserve;
    unsigned workers; /* for each accelerator */
    unsigned threads; /* each */
    char *warning;    /* or NULL */
} cm_readbench_advice;

typedef struct cm_readbench_report {
    cm_readbench_session *session; /* in the order in which they were begun */
    size_t nsessions;
    /*
     * Of each session's samples/s to the first one's: median, least and most over pairs of epochs.
     * After a sweep or tuning there are no pairs, and the three are the same.
     */
    double *ratio, *least_ratio, *most_ratio;
    cm_readbench_advice advice;
    size_t best;       /* after a sweep or tuning; SIZE_MAX: none */
    size_t baseline;   /* of tuning; SIZE_MAX: none */
    char *reason;      /* why the best is the best; of several stores: how they compare */
    char *data_loader; /* "DataLoader(num_workers=4, ...)"; or NULL */
    char **warning;
    size_t nwarnings;
    char **note;
    size_t nnotes;
} cm_readbench_report;

/*
 * CM_EDIFFER: validation found a difference, or what was delivered differs; CM_EFORMAT
 * or CM_EIO when batches failed: the report is complete all the same.  REPORT is
 * valid, and to be released, whatever is returned.  MONITOR may be NULL.
 */
int cm_readbench(const cm_readbench_options *options, cm_monitor *monitor,
                 cm_readbench_report *report, cm_error *err);
void cm_readbench_report_release(cm_readbench_report *report);

/*
 * Workers for each accelerator: (CPUS - RESERVE x ACCELERATORS) / ACCELERATORS, at
 * least 1; where that is less than 2 the worker gets 2 threads, with a warning.
 * CPUS 0: those this process may use.
 */
int cm_readbench_advise(unsigned cpus, unsigned accelerators, unsigned reserve,
                        cm_readbench_advice *out, cm_error *err);
void cm_readbench_advice_release(cm_readbench_advice *advice);

#endif
