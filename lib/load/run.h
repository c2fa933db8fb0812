/*
 * A run: one store opened with one setting, and the workers that make its batches.  The public
 * loader (chunkmill/loader.h) and readbench both use it.
 *
 *     cm_load_open, _memory, _start_workers, _stage_open
 *         for each epoch and rank: cm_load_begin, then cm_load_next and _release for each batch
 *     cm_load_close
 *
 * The setting is what the options' texts mean.  Data are the opened arrays, the
 * space says where samples lie, memory fits slots and buffers into the limit; then
 * a pool of workers and a batcher for each rank are made.
 */
#ifndef CM_LOAD_RUN_H
#define CM_LOAD_RUN_H

#include <stdatomic.h>

#include <chunkmill/monitor.h>

#include "format/census.h"
#include "format/dataset.h"
#include "gpu/stage.h"
#include "load/batches/batcher.h"
#include "load/batches/load_source.h"
#include "load/options.h"
#include "load/reader/reader.h"
#include "load/workers/load_exec.h"
#include "model/feed.h"
#include "plan/block_order.h"
#include "store/io.h"

enum {
    CM_LOAD_MAX_PARTS = 512
};

typedef enum cm_load_engine {
    CM_LOAD_NATIVE,
    CM_LOAD_NETCDF,
    CM_LOAD_COMMAND /* a program of the user reads */
} cm_load_engine;

/* setting.c: what the texts of the options mean. */
typedef struct cm_load_setting {
    cm_order order;
    uint64_t parameter; /* of the order */
    bool planned;
    cm_pool_mode mode;
    bool shared_pool;
    unsigned ranks;   /* that run here */
    unsigned workers; /* a rank, or of the shared pool; 0 only with CM_POOL_SYNC */
    unsigned worker_threads;
    unsigned prefetch;
    cm_load_engine engine;
    const char *command; /* CM_LOAD_COMMAND */
    cm_io io;
    bool io_auto;
    cm_cache_policy policy;
    size_t index_nbytes; /* of shards, that an array may keep in one process */
    bool emulated;
    cm_delay_model delay;
    int64_t lag[CM_LOAD_MAX_PARTS];
    unsigned nlags;
    uint64_t behind; /* elements that the least lag reaches back; 0 where none is negative */
    bool uses_device;
    bool pinned;
    cm_feed_to to;
    bool as_xarray; /* each variable to the type that xarray decodes it to, and not `to` */
} cm_load_setting;

int cm_load_setting_parse(const cm_load_options *options, cm_load_setting *out, cm_error *err);
/*
 * Workers and threads, those that the options leave open by whether a network is waited for.
 * Parsing takes a network for used where there is one: only a store that is open tells.
 */
int cm_load_choose_workers(const cm_load_options *options, bool remote, cm_load_setting *s,
                           cm_error *err);
const char *cm_load_order_name(cm_order order);
const char *cm_load_io_name(cm_io io);
const char *cm_load_mode_name(cm_pool_mode mode);

/* advise.c: workers for each of RANKS that run on CPUS (0: those this process may use). */
typedef struct cm_load_advice {
    unsigned cpus;
    unsigned left;    /* CPUs for each rank's loading, after RESERVE of them */
    unsigned workers; /* for each rank, at least 1 */
    unsigned threads; /* of each worker: 2 where fewer than 2 CPUs are left */
} cm_load_advice;
cm_load_advice cm_load_advise(unsigned cpus, unsigned ranks, unsigned reserve);

/* data.c: a store and the arrays of it that are read, opened by one process. */
typedef struct cm_load_data {
    char *path; /* of the store, without "file://" */
    char *node; /* below it; "" for all */
    bool is_nc;
    cm_store *slow;    /* the store itself */
    cm_store *delayed; /* that, slowed down below the cache; or NULL */
    cm_store *store;   /* that, or the cache on a faster disk above it */
    cm_dataset *ds;
    cm_variable **variable; /* those that are read */
    cm_array **array;       /* theirs */
    size_t narrays;
    char **witness; /* Zarr: of each array, a document that is there as long as it is; or NULL */
} cm_load_data;

typedef struct cm_load_opening {
    const char *store; /* as the user named it */
    /* Put below a cache on disk, whose hits are not slow; without one it is the reader's. */
    cm_delay *delay;     /* or NULL */
    bool tried;          /* another process opened it as a trial, and came to no harm */
    cm_monitor *monitor; /* or NULL */
} cm_load_opening;

/* The variables of OPTIONS in a store.  Many threads may read what was opened. */
int cm_load_data_open(const cm_load_options *options, const cm_load_setting *setting,
                      const cm_load_opening *opening, cm_load_data *out, cm_error *err);
void cm_load_data_release(cm_load_data *data);
/* Name of A in messages: "/" for the root array of a store, which has no name. */
const char *cm_load_array_name(const cm_array *a);
/*
 * A chunk that is not there is fill values, unless the whole array has gone: CM_EIO where its
 * metadata have since it was opened.
 */
int cm_load_data_check(cm_load_data *data, cm_error *err);
/*
 * The coordinates of dimension DIM of HAS, a variable of that name in its group, prepared until it
 * is left; *OUT is NULL where there is none that can be read.
 */
int cm_load_data_find_coordinate(cm_load_data *data, const cm_array *has, const char *dim,
                                 cm_variable **out, cm_error *err);
void cm_load_data_leave(cm_load_data *data, cm_variable *var); /* NULL accepted */

/* space.c: where samples lie, and what each array gives to them. */
typedef struct cm_load_space {
    cm_sample_space space;
    char *dim_name[CM_MAX_RANK];
    uint64_t dim_length[CM_MAX_RANK];       /* of the whole dimension, elements */
    cm_sample_part part[CM_LOAD_MAX_PARTS]; /* whose lags count from the least one */
    int64_t lag[CM_LOAD_MAX_PARTS];         /* as they were asked for */
    cm_feed feed[CM_LOAD_MAX_PARTS];
    size_t part_nbytes[CM_LOAD_MAX_PARTS]; /* of one sample, as delivered */
    uint64_t part_nelem[CM_LOAD_MAX_PARTS];
    size_t nparts;
    cm_sample_part fixed[CM_LOAD_MAX_PARTS]; /* read once by each worker */
    size_t nfixed;
    size_t sample_nbytes;
    uint64_t behind;   /* along the dimension with lags, from what cm_sample_at says to lag 0 */
    uint64_t nsamples; /* of an epoch, all ranks */
} cm_load_space;

int cm_load_space_make(const cm_load_options *options, const cm_load_setting *setting,
                       const cm_load_data *data, cm_load_space *out, cm_error *err);
void cm_load_space_release(cm_load_space *space);

/* normals.c: the statistics of a store, as nc2zarr writes them. */
typedef struct cm_load_normals {
    cm_load_normal *of;
    size_t n;
} cm_load_normals;

/* Normals, by the statistics in the group at PATH; OUT is to be released whatever is returned. */
int cm_load_normals_read(const char *path, cm_net *net, cm_load_normals *out, cm_error *err);
void cm_load_normals_release(cm_load_normals *normals); /* zeroed memory is fine */

/* levels.c: the normals of A, by its name in the store or in the node that DATA has; or NULL. */
const cm_load_normal *cm_load_normal_of(const cm_load_options *options, const cm_load_data *data,
                                        const cm_array *a);
/* The dimension of A along which N was counted; -1: it has none. */
int cm_load_level_dim(const cm_load_normal *n, const cm_array *a);
/* The places along DIM, of LENGTH, that samples have elements of. */
cm_load_range cm_load_used(const cm_load_options *options, const char *dim, uint64_t length);
/*
 * CM_EINVAL where the normals of OPTIONS were counted by levels with other coordinates
 * than those of DATA.
 */
int cm_load_levels_check(const cm_load_options *options, cm_load_data *data, cm_error *err);

/* feed.c: what is done to VAR's elements on the way. */
int cm_load_feed_make(const cm_load_options *options, const cm_load_setting *setting,
                      const cm_load_data *data, const cm_variable *var, cm_feed *out,
                      cm_error *err);

/* source.c: what one process has open. */
typedef struct cm_load_shared {
    cm_load_data data;
    cm_load_space space;
} cm_load_shared;

int cm_load_shared_open(const cm_load_options *options, const cm_load_setting *setting,
                        const cm_load_opening *opening, cm_load_shared *out, cm_error *err);
void cm_load_shared_release(cm_load_shared *shared); /* zeroed memory is fine */

/* Where a source comes from: what each process that reads opens for itself. */
typedef struct cm_load_origin {
    const cm_load_options *options;
    const cm_load_setting *setting;
    const char *store;
    cm_delay *delay; /* in memory that forked processes share; or NULL */
    cm_monitor *monitor;
    unsigned nahead;         /* places of a process that reads (load/reader/lookahead.h) */
    const cm_blocks *blocks; /* of the planned loader, or NULL */
    atomic_bool stopping;    /* of this process's threads: what they make is not wanted any more */

    cm_load_shared described; /* CM_LOAD_COMMAND: what the program is told */
    const char *variable[CM_LOAD_MAX_PARTS];
} cm_load_origin;

/* Stored bytes that a reader asks for at once, beyond its usual buffer. */
size_t cm_load_group_nbytes(const cm_load_setting *setting);
/* ORIGIN is borrowed until release. */
int cm_load_origin_source(cm_load_origin *origin, cm_load_source *out, cm_error *err);
void cm_load_origin_release(cm_load_origin *origin, cm_load_source *source);

typedef struct cm_load_run cm_load_run;

typedef struct cm_load_rank {
    cm_load_run *run;
    unsigned index;
    cm_epoch_share share;
    cm_batcher *batcher;
    cm_block_order order; /* planned: for cm_load_number, of epoch `order_of` */
    uint64_t order_of;
    cm_device *device;
    cm_stage *stage; /* NULL: no device */
    cm_error err;
} cm_load_rank;

/* Inputs of the planned loader's order, besides the samples and the seed. */
typedef struct cm_load_shape {
    uint64_t window;            /* blocks that are mixed; 0: to be chosen */
    uint8_t grown[CM_MAX_RANK]; /* cm_blocks.grown */
} cm_load_shape;

struct cm_load_run {
    const cm_load_options *options;
    const char *store;
    cm_monitor *monitor;
    unsigned nsharing;       /* runs that are open at once, and share the memory */
    uint64_t sharing_nbytes; /* arenas of those that were opened before this one */
    /* The memory is for what the run takes; otherwise for all that this process has. */
    bool apart;
    void *owner;
    /* Memory that the owner takes besides, bytes; called once slots have their size. */
    uint64_t (*other_nbytes)(void *owner);
    /* Notes for the owner's user that a setting is not as it was asked for. */
    int (*note)(void *owner, const char *sentence, cm_error *err);
    unsigned held; /* batches of a rank that its taker holds while it uses them */
    unsigned kept; /* of these, still when it asks for the next one */

    cm_load_setting setting;
    cm_load_shared shared; /* this process's */
    cm_census census;      /* of its variables, once they were counted */

    /* memory.c */
    uint64_t memory_limit, memory_free, memory_planned;
    unsigned nahead;     /* places of each process that reads; 0: nothing is asked for ahead */
    size_t batch_nbytes; /* of a whole batch, as delivered */
    uint64_t batch;      /* samples of the largest one: no more than an epoch has */
    unsigned nslots;     /* of one rank */
    size_t slot_nbytes;
    size_t rank_nbytes;    /* of the arena */
    uint64_t fixed_nbytes; /* all but the arena */
    cm_blocks blocks;      /* of the planned loader, and how many frames of them a rank has */
    unsigned nframes;
    cm_load_shape shape;
    cm_arena arena;

    /* workers.c */
    cm_load_origin origin;
    cm_load_source source;
    cm_pool **pool; /* one, or one a rank */
    unsigned npools;

    cm_load_rank *rank;
};

/* A sentence for the user. */
int cm_load_note(cm_load_run *l, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * The setting, the arrays, and what each rank takes.  L has its options, store, monitor, owner
 * and callbacks, and zeroes otherwise; it is to be closed whatever is returned.
 */
int cm_load_open(cm_load_run *l, cm_error *err);
/* holes.c: the census of the variables; nothing of a NetCDF file. */
int cm_load_count_holes(cm_load_run *l, cm_error *err);
/* Stops workers, closes devices, gives everything back. */
void cm_load_close(cm_load_run *l);

/* needs.c: bytes besides the batches; UINT64_MAX: too many to count. */
uint64_t cm_load_workers_nbytes(const cm_load_run *l); /* this process, and all that read */
uint64_t cm_load_here_nbytes(const cm_load_run *l);    /* this process now, others' arenas not */
uint64_t cm_load_open_nbytes(const cm_load_run *l);    /* of what is open */
/* CM_EBUDGET where a process that reads needs more than the options allow it. */
int cm_load_check_worker_memory(const cm_load_run *l, cm_error *err);
uint64_t cm_load_room(const cm_load_run *l); /* that this process may take yet, its workers gone */

/* lookahead.c: places within a share of the memory; and what they take in all processes. */
unsigned cm_load_lookahead_places(const cm_load_run *l);
uint64_t cm_load_lookahead_nbytes(const cm_load_run *l);
/*
 * With places: where threads find all they want asked for, and no number of them was set, those
 * that the CPUs need.
 */
void cm_load_lookahead_threads(cm_load_run *l);

/* memory.c: slots and frames within the limit; makes the arena.  Keeps `shape` where it is set. */
int cm_load_memory(cm_load_run *l, cm_error *err);
/*
 * Chunks that the planned loader would decode for a sample of L, over a whole epoch, in the blocks
 * that it would choose.  L is open, and its loader is another.  CM_EUNSUPPORTED: there are no
 * chunks to plan.
 */
int cm_load_planned_decodes(cm_load_run *l, double *out, cm_error *err);

/* workers.c: pools and batchers. */
int cm_load_start_workers(cm_load_run *l, cm_error *err);
void cm_load_stop_workers(cm_load_run *l);
/* After the workers are stopped. */
void cm_load_free_source(cm_load_run *l);

/*
 * stage.c: a device for each rank, to which its batches are copied; none without one.  STEPS says
 * what is done between copies: `synchronous`, `step` and `step_ns`.
 */
int cm_load_stage_open(cm_load_run *l, const cm_stage_options *steps, cm_error *err);
void cm_load_stage_close(cm_load_run *l);
int cm_load_stage_submit(cm_load_rank *rank, const cm_load_batch *batch, uint64_t epoch);

/*
 * epoch.c: which sample of EPOCH the K-th of BATCH is, counted as the epoch delivers them to all
 * ranks.
 */
uint64_t cm_load_place(const cm_load_rank *rank, const cm_load_batch *batch, uint64_t k);
/* The number (cm_sample_at) of sample K that the rank delivers in EPOCH; one thread. */
uint64_t cm_load_number(cm_load_rank *rank, uint64_t epoch, uint64_t k);
/*
 * How far the first rank's delivery is from reading in C order (cm_sample_displacement); negative:
 * there is no memory to sort it.
 */
double cm_load_displacement(cm_load_run *l);

/* Sets the batcher to work on EPOCH, at batch FIRST; errors into rank->err. */
int cm_load_begin(cm_load_rank *rank, uint64_t epoch, uint64_t first);
/*
 * The next batch, as cm_batcher_next has it; errors into rank->err.  Where chunks were missing
 * and the store has gone, the batch has failed.
 */
int cm_load_next(cm_load_rank *rank, bool (*stop)(void *context), void *context,
                 cm_load_batch *batch, bool *more);
void cm_load_release(cm_load_rank *rank, const cm_load_batch *batch);

#endif
