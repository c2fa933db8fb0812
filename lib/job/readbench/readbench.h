/*
 * The state of one measurement: one store under one setting.
 *
 *     setting -> data -> space -> memory -> open -> epoch, epoch, ... -> close
 *
 * The setting is what the options' texts mean.  Data are the opened arrays, the
 * space says where samples lie, memory fits slots and buffers into the limit; then
 * a pool of workers and a loader for each rank are made, and each epoch is run by a
 * thread for each rank.  The numbers are computed from the records at the end.
 */
#ifndef CM_JOB_READBENCH_READBENCH_H
#define CM_JOB_READBENCH_READBENCH_H

#include <chunkmill/readbench.h>

#include "exec/load/batcher.h"
#include "exec/load/load_exec.h"
#include "exec/load/load_source.h"
#include "exec/load/pack.h"
#include "exec/load/reader.h"
#include "exec/watch/resources.h"
#include "format/nc/nc.h"
#include "format/zarr/open.h"
#include "gpu/stage.h"
#include "model/feed.h"
#include "plan/epoch.h"
#include "store/io.h"

enum {
    CM_BENCH_MAX_PARTS = 64
};

typedef enum cm_bench_engine {
    CM_BENCH_NATIVE,
    CM_BENCH_NETCDF,
    CM_BENCH_EXEC
} cm_bench_engine;

/* What tests put in an option's hook. */
struct cm_readbench_hook {
    const cm_device_hooks *device;
    bool no_probe; /* this machine's raw rates stay unknown: a session then takes no second */
};

/* setting.c: what the texts of the options mean. */
typedef struct cm_bench_setting {
    cm_order order;
    uint64_t parameter; /* of the order */
    bool planned;
    cm_pool_mode mode;
    cm_pool_start start;
    bool shared_pool;
    unsigned ranks;   /* that run here */
    unsigned workers; /* a rank, or of the shared pool; 0 only with CM_POOL_SYNC */
    unsigned worker_threads;
    unsigned prefetch;
    cm_bench_engine engine;
    const char *command; /* CM_BENCH_EXEC */
    cm_io io;
    bool io_auto;
    cm_cache_policy policy;
    size_t index_nbytes; /* of shards, that an array may keep in one process */
    bool emulated;
    cm_delay_model delay;
    double step_ns, step_per_sample_ns;
    uint64_t lag[CM_BENCH_MAX_PARTS];
    unsigned nlags;
    bool uses_device;
    bool pinned;
    bool device_decode; /* batches are packed, and decoded on the device */
    cm_feed_to to;
    cm_readbench_validate validate; /* never CM_READBENCH_VALIDATE_DEFAULT */
} cm_bench_setting;

int cm_bench_setting_parse(const cm_readbench_options *options, cm_bench_setting *out,
                           cm_readbench_advice *advice, cm_error *err);
const char *cm_bench_order_name(cm_order order);
const char *cm_bench_io_name(cm_io io);
const char *cm_bench_mode_name(cm_pool_mode mode);
const char *cm_bench_start_name(cm_pool_start start);

/* data.c: a store and the arrays of it that are read, opened by one process. */
typedef struct cm_bench_data {
    char *path; /* of the store, without "file://" */
    char *node; /* below it; "" for all */
    bool is_nc;
    cm_store *slow;    /* the store itself */
    cm_store *delayed; /* that, slowed down below the cache; or NULL */
    cm_store *store;   /* that, or the cache on a faster disk above it */
    cm_zarr_tree tree;
    cm_nc_file *file;
    cm_array **array;
    bool *owned; /* by us; those of a file are the file's */
    size_t narrays;
    size_t index_nbytes; /* as the setting has it */
} cm_bench_data;

/* Opens STORE in a child process first, where it is a file: libraries crash on damaged ones. */
int cm_bench_data_try(const char *store, cm_monitor *monitor, cm_error *err);

/*
 * STORE as the user named it, the variables of OPTIONS in it.  A DELAY (or NULL) is
 * put below a cache on disk, whose hits are not slow; without one it is the reader's.
 * Many threads may read what was opened. */
int cm_bench_data_open(const cm_readbench_options *options, const cm_bench_setting *setting,
                       const char *store, cm_delay *delay, cm_bench_data *out, cm_error *err);
void cm_bench_data_release(cm_bench_data *data);
/* What messages call A: an array that is the root of its store has no name. */
const char *cm_bench_array_name(const cm_array *a);
/* Shape of the shards of array I; false: not sharded. */
bool cm_bench_data_shard(const cm_bench_data *data, size_t i, uint64_t *shard);

/* space.c: where samples lie, and what each array gives to them. */
typedef struct cm_bench_space {
    cm_sample_space space;
    char *dim_name[CM_MAX_RANK];
    cm_sample_part part[CM_BENCH_MAX_PARTS];
    cm_feed feed[CM_BENCH_MAX_PARTS];
    size_t part_nbytes[CM_BENCH_MAX_PARTS]; /* of one sample, as delivered */
    uint64_t part_nelem[CM_BENCH_MAX_PARTS];
    size_t nparts;
    cm_sample_part fixed[CM_BENCH_MAX_PARTS]; /* read once by each worker */
    size_t nfixed;
    size_t sample_nbytes;
    uint64_t nsamples; /* of an epoch, all ranks */
} cm_bench_space;

int cm_bench_space_make(const cm_readbench_options *options, const cm_bench_setting *setting,
                        const cm_bench_data *data, cm_bench_space *out, cm_error *err);
void cm_bench_space_release(cm_bench_space *space);

/* feed.c: what is done to A's elements on the way. */
int cm_bench_feed_make(const cm_readbench_options *options, const cm_bench_setting *setting,
                       const cm_bench_data *data, const cm_array *a, cm_feed *out, cm_error *err);

/* source.c: what one process has open. */
typedef struct cm_bench_shared {
    cm_bench_data data;
    cm_bench_space space;
} cm_bench_shared;

int cm_bench_shared_open(const cm_readbench_options *options, const cm_bench_setting *setting,
                         const char *store, cm_delay *delay, cm_bench_shared *out, cm_error *err);
void cm_bench_shared_release(cm_bench_shared *shared); /* zeroed memory is fine */

/* Where a source comes from: what each process that reads opens for itself. */
typedef struct cm_bench_origin {
    const cm_readbench_options *options;
    const cm_bench_setting *setting;
    const char *store;
    cm_delay *delay;       /* in memory that forked processes share; or NULL */
    cm_monitor *monitor;   /* NULL in a process that was begun anew */
    const cm_proof *proof; /* batches are packed, into slots of that size; or NULL */
    size_t slot_nbytes;

    cm_bench_shared described; /* CM_BENCH_EXEC: what the program is told */
    const char *variable[CM_BENCH_MAX_PARTS];
} cm_bench_origin;

/* Stored bytes that a reader asks for at once, beyond its usual buffer. */
size_t cm_bench_group_nbytes(const cm_bench_setting *setting);
/* ORIGIN is borrowed until release. */
int cm_bench_source_make(cm_bench_origin *origin, cm_load_source *out, cm_error *err);
void cm_bench_source_release(cm_bench_origin *origin, cm_load_source *source);

/* setup.c: what a process that is begun anew needs to make the same source; a document of JSON. */
typedef struct cm_bench_setup {
    cm_readbench_options options; /* its texts lie in the document */
    const char *store;
    cm_json *document;
    const char **variable;
} cm_bench_setup;

int cm_bench_setup_write(const cm_readbench_options *options, const char *store, cm_buf *out,
                         cm_error *err);
/* OUT is to be released whatever is returned. */
int cm_bench_setup_read(const void *text, size_t nbytes, cm_bench_setup *out, cm_error *err);
void cm_bench_setup_release(cm_bench_setup *setup);

/* The measurement. */
typedef struct cm_bench cm_bench;

typedef struct cm_bench_rank {
    cm_bench *bench;
    unsigned index;
    cm_epoch_share share;
    cm_batcher *loader;
    cm_epoch_plan plan;
    uint64_t distinct_chunks; /* of all plans so far */
    cm_device *device;
    cm_decoder *decoder; /* NULL: batches are decoded here */
    cm_stage *stage;     /* NULL: no device */
    cm_stage_report timed;
    bool has_timed;
    cm_readbench_batch *record; /* of all epochs */
    size_t nrecords;
    cm_readbench_sample *logged;
    size_t nlogged;
    uint64_t nvalidated_batches, nvalidated, nmismatches;
    uint64_t validated_ns;
    char *first_failure;
    int status;
    cm_error err;
} cm_bench_rank;

struct cm_bench {
    const cm_readbench_options *options;
    cm_readbench_session *session;
    cm_readbench_report *report;
    cm_monitor *monitor;
    uint64_t origin_ns;   /* of all times in the report */
    uint64_t peak_before; /* resident, of this process until the session began */
    unsigned nsharing;    /* sessions that are open at once, and share the memory */
    cm_bench_setting setting;
    cm_bench_shared shared; /* this process's */

    /* prove.c */
    cm_proof *proof; /* NULL: batches are decoded here */
    cm_pack_bounds bounds;

    /* memory.c */
    uint64_t memory_limit;
    uint64_t batch;  /* samples of the largest one: no more than an epoch has */
    unsigned nslots; /* of one rank */
    size_t slot_nbytes;
    uint64_t nstash, max_stash;    /* samples, of one rank */
    uint64_t window, max_meetings; /* of the planned loader */
    size_t max_pieces;             /* of a task */
    size_t rank_nbytes;            /* of the arena */
    uint64_t fixed_nbytes;         /* all but arena and plans */
    uint64_t plan_nbytes;          /* of one rank, while it is made */
    cm_arena arena;

    /* workers.c */
    cm_buf setup;
    cm_bench_origin origin;
    cm_load_source source;
    cm_pool **pool; /* one, or one a rank */
    unsigned npools;
    cm_resources *resources;

    cm_bench_rank *rank;
    uint64_t setup_start_ns, setup_end_ns;
    uint64_t *epoch_start_ns, *epoch_end_ns;
    uint64_t nepochs; /* run so far */
    double cpu_seconds;
};

/* describe.c.  Sentences for the user; out of memory is an error like any other. */
int cm_bench_warn(cm_bench *b, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int cm_bench_note(cm_bench *b, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The setting as it is run, and the parts of a sample, for the report. */
int cm_bench_describe(cm_bench *b, const char *store, cm_error *err);

/* needs.c: bytes besides the batches; UINT64_MAX: too many to count. */
enum {
    CM_BENCH_MEETING_NBYTES = 16 /* of a sample and a chunk, while a plan is made */
};
uint64_t cm_bench_workers_nbytes(const cm_bench *b); /* this process, and all that read */
/* CM_EBUDGET where a process that reads needs more than the options allow it. */
int cm_bench_check_worker_memory(const cm_bench *b, cm_error *err);
uint64_t cm_bench_room(const cm_bench *b); /* that this process may take yet, its workers gone */
uint64_t cm_bench_other_nbytes(const cm_bench *b); /* records, device, validation */
uint64_t cm_bench_plan_nbytes(const cm_epoch_plan *plan);

/* memory.c: slots and stash within the limit; makes the arena. */
int cm_bench_memory(cm_bench *b, cm_error *err);
int cm_bench_plan_epoch(const cm_bench *b, const cm_bench_rank *rank, uint64_t epoch,
                        cm_epoch_plan *plan, cm_error *err);

/* workers.c: pools, loaders, and who watches them. */
int cm_bench_start_workers(cm_bench *b, cm_error *err);
void cm_bench_stop_workers(cm_bench *b);
/* After the workers are stopped. */
void cm_bench_free_source(cm_bench *b);
/*
 * The lives of workers into the session's events, until the last epoch's end; before they are
 * stopped.
 */
int cm_bench_note_lives(cm_bench *b, cm_error *err);
/* That, and what was seen of the machine. */
int cm_bench_note_workers(cm_bench *b, cm_error *err);

/* session.c.  *OUT is to be closed whatever is returned. */
int cm_bench_open(const cm_readbench_options *options, const char *store, unsigned nsharing,
                  cm_monitor *monitor, uint64_t origin_ns, cm_readbench_report *report,
                  cm_readbench_session *session, cm_bench **out, cm_error *err);
/* Nanoseconds of cm_now_ns since the session's origin, 0 for what was before it. */
uint64_t cm_bench_since(const cm_bench *b, uint64_t at_ns);
uint64_t cm_bench_now(const cm_bench *b);
/* Of all ranks' batches in an epoch, as delivered: for progress. */
uint64_t cm_bench_epoch_nbytes(const cm_bench *b);
int cm_bench_epoch(cm_bench *b, uint64_t epoch, cm_error *err);
/*
 * Stops the workers and whatever watches them, closes the device, and gives the batches'
 * memory back.
 */
int cm_bench_stop(cm_bench *b, cm_error *err);
/* Fills in the numbers where it was MEASURED, and frees B in any case; NULL accepted. */
int cm_bench_close(cm_bench *b, bool measured, cm_error *err);

/* rank.c: plans EPOCH where that is asked for, and sets the loader to work. */
int cm_bench_rank_begin(cm_bench_rank *rank, uint64_t epoch);
typedef int cm_bench_batch_fn(void *context, const cm_load_batch *batch);
/* The first epoch's batches made once more, for EACH that is whole; counts them and their time. */
int cm_bench_rank_again(cm_bench_rank *rank, cm_bench_batch_fn *each, void *context);
/* One rank's epoch; sets rank->status. */
void cm_bench_rank_epoch(cm_bench_rank *rank, uint64_t epoch);

/* prove.c: where the device decodes, each chunk that will be met is decoded here once before. */
int cm_bench_prove(cm_bench *b, cm_error *err);
/* How large parcels can be. */
int cm_bench_pack_bounds(cm_bench *b, cm_error *err);
uint64_t cm_bench_proof_nbytes(const cm_bench *b);
void cm_bench_decode_summarise(cm_bench *b);

/* stage.c: batches on their way to the device. */
int cm_bench_stage_open(cm_bench *b, cm_error *err);
void cm_bench_stage_close(cm_bench *b);
int cm_bench_stage_submit(cm_bench_rank *rank, const cm_load_batch *batch, uint64_t epoch);
/* Until the oldest one is there.  CM_EFORMAT: it was not decoded; the next one may be. */
int cm_bench_stage_wait(cm_bench_rank *rank, cm_staged *staged);
int cm_bench_stage_step(cm_bench_rank *rank);
int cm_bench_stage_stepped(cm_bench_rank *rank, cm_stage_step_times *times);
int cm_bench_stage_validate(cm_bench_rank *rank);
int cm_bench_stage_summarise(cm_bench *b, cm_error *err);

/* report.c */
void cm_bench_session_release(cm_readbench_session *session);

/*
 * validate.c: the batches of the first epoch once more, against what is read
 * directly: box by box, by another way through the code.
 */
typedef struct cm_bench_direct {
    cm_bench_rank *rank;
    cm_codec_ctx *ctx;
    cm_buf raw, fed, batch;
    uint64_t nbytes; /* read so far, as delivered */
} cm_bench_direct;

int cm_bench_direct_open(cm_bench_rank *rank, cm_bench_direct *out);
void cm_bench_direct_release(cm_bench_direct *d);
/* What the slot of BATCH, of the first epoch, would hold, into d->batch. */
int cm_bench_direct_read(cm_bench_direct *d, const cm_load_batch *batch);
int cm_bench_validate(cm_bench *b, cm_error *err);
/* temperature.c: cold or warm as asked for; what came of it goes into the session. */
int cm_bench_temperature(cm_bench *b, cm_error *err);
int cm_bench_evict(const cm_bench *b, cm_error *err);
/*
 * Bytes of the files that are read (0: too many to look at all) and which share is in memory;
 * negative: not known.
 */
int cm_bench_residency(const cm_bench *b, uint64_t *nbytes, double *share, cm_error *err);
/* predict.c */
int cm_bench_predict(cm_bench *b, cm_error *err);
/* probe.c: raw rates of this machine, after the epochs. */
int cm_bench_probe(cm_bench *b, cm_error *err);
/* summary.c: every number of the session that follows from its records. */
int cm_bench_summarise(cm_bench *b, cm_error *err);
/* Logical bytes of batches that did not fail, without those of missing chunks. */
uint64_t cm_bench_read_nbytes(const cm_readbench_counts *counts);
/* record.c */
int cm_bench_event(cm_bench *b, const cm_readbench_event *event, cm_error *err);
cm_readbench_batch *cm_bench_record(cm_bench_rank *rank, cm_error *err);
cm_readbench_sample *cm_bench_log(cm_bench_rank *rank, cm_error *err);
cm_readbench_times cm_bench_times(double *seconds, size_t n); /* sorts SECONDS */

#endif
