/*
 * Workers that make batches: threads, or processes that share memory.
 *
 * A *task* says what to make and in which slot of the arena to put it; workers
 * answer with a *result*.  The pool knows neither arrays nor files: a cm_load_source
 * does the work, and is opened by each worker for itself.  Several clients (the
 * ranks of a training) may share a pool; each gets the results of its own tasks.
 *
 * A process that dies is reported, started again, and its tasks are done again;
 * the result says how often.  A task that kills its worker CM_POOL_MAX_DEATHS
 * times fails with a sentence.
 */
#ifndef CM_LOAD_WORKERS_POOL_H
#define CM_LOAD_WORKERS_POOL_H

#include "base/mem.h"
#include "base/stop.h"

enum {
    CM_POOL_MAX_DEATHS = 3,
    CM_LOAD_ERROR_SIZE = 512
};

/* Longer than a program of the user is given to begin (load/workers/load_exec.h). */
#define CM_POOL_READY_NS (UINT64_C(180) * 1000000000)
#define CM_POOL_GRACE_NS UINT64_C(1000000000)

typedef enum cm_pool_mode {
    CM_POOL_SYNC, /* in the caller's thread, when the result is asked for */
    CM_POOL_THREADS,
    CM_POOL_PROCESSES /* copies of this one */
} cm_pool_mode;

/* One piece of a task: a sample, or where a chunk's flag lies. */
typedef struct cm_load_piece {
    uint64_t sample; /* number in the epoch */
    /*
     * In the arena, bytes.  CM_LOAD_BATCH: where part 0 goes; CM_LOAD_CUT: the frame with the
     * chunks of the sample's block (plan/blocks.h); CM_LOAD_CHUNK: the byte that says that the
     * chunk is missing.
     */
    uint64_t offset;
    uint32_t part;  /* CM_LOAD_CHUNK: one whose elements the chunk has; otherwise 0 */
    uint32_t place; /* in its batch */
} cm_load_piece;

typedef enum cm_load_kind {
    CM_LOAD_BATCH, /* the pieces are the samples of batch `number`, each read for itself */
    CM_LOAD_CHUNK, /* chunk `number` of array `array` is decoded to `offset`; one piece */
    CM_LOAD_CUT    /* the pieces are samples of batch `number`, cut out of decoded chunks */
} cm_load_kind;

typedef struct cm_load_task {
    uint64_t id; /* the client's */
    uint64_t epoch;
    uint64_t number;
    uint64_t offset; /* in the arena, of the batch or the chunk */
    uint32_t kind;
    uint32_t array;  /* CM_LOAD_CHUNK */
    uint32_t nbatch; /* samples in the batch; CM_LOAD_CHUNK: 0 */
    uint32_t npieces;
    cm_load_piece piece[];
} cm_load_task;

enum {
    CM_LOAD_STORAGE, /* waiting for storage */
    CM_LOAD_DECODE,
    CM_LOAD_ASSEMBLE, /* copying elements into the sample */
    CM_LOAD_CONVERT,  /* casting and unpacking */
    CM_LOAD_NSTAGES
};

/* Counts over all reads of a task. */
typedef struct cm_load_counts {
    uint64_t stage_ns[CM_LOAD_NSTAGES];
    uint64_t stage_calls[CM_LOAD_NSTAGES];
    uint64_t cpu_ns;         /* of the threads that did it; left 0 by a source: the worker's own */
    uint64_t chunks;         /* met by reads: what chunkcalc predicts */
    uint64_t decoded;        /* chunks that were decoded */
    uint64_t requests;       /* to storage, not those that the cache on a faster disk answered */
    uint64_t stored_nbytes;  /* that storage gave */
    uint64_t decoded_nbytes; /* of whole chunks */
    uint64_t logical_nbytes; /* of samples delivered */
    uint64_t cache_hits, cache_misses, cache_evictions; /* chunks, decoded */
    uint64_t disk_hits, disk_misses, disk_evictions;    /* objects, stored, on the faster disk */
    uint64_t disk_nbytes;                               /* that it gave */
    uint64_t missing_chunks; /* not stored: fill values, without any reading */
    uint64_t missing_nbytes; /* of logical_nbytes, those that came from them */
    uint64_t failed_chunks;  /* that could not be read or decoded */
} cm_load_counts;

void cm_load_counts_add(cm_load_counts *to, const cm_load_counts *more);

typedef struct cm_load_result {
    uint64_t id;
    uint32_t worker;
    uint32_t deaths;           /* workers that died on the way */
    int status;                /* cm_status; then `error` is a sentence */
    uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC, when the worker took and finished it */
    uint64_t nbytes;           /* delivered at the task's offset, after conversion; of a chunk 0 */
    bool has_crc32c;           /* of those bytes: from a source whose bytes do not come here */
    uint32_t crc32c;
    uint64_t rss_nbytes; /* of the worker's process */
    cm_load_counts counts;
    char error[CM_LOAD_ERROR_SIZE];
} cm_load_result;

/*
 * Functions that do the work.  open, load and close are called in the worker, one after the other
 * for each state.
 */
typedef struct cm_load_source {
    void *context;
    int (*open)(void *context, unsigned worker, void **state, cm_error *err);
    /*
     * TASK was queued for a thread, and stays where it is until it is loaded or forgotten; called
     * by the clients.  Both NULL, or none.
     */
    void (*expect)(void *context, const cm_load_task *task);
    void (*forget)(void *context, const cm_load_task *task);
    /* Fills in result's nbytes, crc32c and counts.  ARENA is where offsets count from. */
    int (*load)(void *state, const cm_load_task *task, uint8_t *arena, cm_load_result *result,
                cm_error *err);
    void (*close)(void *state); /* NULL accepted */
    bool sees_its_end; /* a worker whose parent has gone ends by itself, and is not killed */
} cm_load_source;

/* Memory that workers fill. */
typedef struct cm_arena {
    uint8_t *data; /* page-aligned, zero at first */
    size_t nbytes;
    bool shared; /* a process that is forked writes to the same pages */
} cm_arena;

/* RESIDENT: no batch waits for a page, and the memory taken is the memory planned, from now on. */
int cm_arena_create(size_t nbytes, bool shared, bool resident, cm_arena *out, cm_error *err);
void cm_arena_release(cm_arena *arena);

typedef struct cm_pool_options {
    cm_pool_mode mode;
    unsigned nworkers; /* >= 1; 1 with CM_POOL_SYNC */
    unsigned nclients; /* >= 1 */
    size_t max_pieces; /* of a task */
    /*
     * Bytes that a process may allocate above what it begins with; 0: no limit.  Not for
     * threads.
     */
    uint64_t worker_memory;
    /* Ends the wait for workers that begin, and processes with all their tasks, which fail. */
    cm_stop stop;
    uint64_t ready_timeout_ns; /* of a process that begins; 0: CM_POOL_READY_NS */
    uint64_t
        grace_ns; /* for a process to end by itself, before it is killed; 0: CM_POOL_GRACE_NS */
} cm_pool_options;

typedef struct cm_pool cm_pool;

/*
 * Starts all workers and waits until each has opened its source; the first error
 * stops all, and so does a process that takes too long (CM_EIO) or options' STOP
 * (CM_ECANCELED).  SOURCE and ARENA are borrowed, OPTIONS are copied.
 *
 * A process is forked: it has the caller's memory as it was, and one thread: what
 * source->open needs must not be locked by another thread of the caller.
 */
int cm_pool_create(const cm_pool_options *options, const cm_load_source *source, cm_arena *arena,
                   cm_pool **out, cm_error *err);
/*
 * Stops the workers; tasks that are not done are forgotten.  A thread ends after
 * the task that it is at, a process that has not ended within a second is killed.
 * NULL accepted.
 */
void cm_pool_free(cm_pool *pool);

/* Queues a copy of TASK for WORKER (below nworkers).  Never waits for a worker. */
int cm_pool_submit(cm_pool *pool, unsigned client, unsigned worker, const cm_load_task *task,
                   cm_error *err);
/*
 * Waits, at most TIMEOUT_NS, until CLIENT has a result of a batch or a cut, or as many of chunks as
 * it has a use for (at least 1), or all of its tasks are done.
 */
void cm_pool_wait(cm_pool *pool, unsigned client, unsigned nchunks, uint64_t timeout_ns);
/*
 * The next result of one of CLIENT's tasks, waiting at most TIMEOUT_NS (UINT64_MAX:
 * for ever): false when none came, at once when CLIENT has no task in the pool.
 */
bool cm_pool_receive(cm_pool *pool, unsigned client, uint64_t timeout_ns, cm_load_result *out);

/* Forgets CLIENT's tasks that no worker has begun; no result comes for them.  Returns how many. */
size_t cm_pool_drop(cm_pool *pool, unsigned client);
/* CLIENT's tasks that are queued or under way, and results that wait to be received. */
void cm_pool_pending(const cm_pool *pool, unsigned client, unsigned *underway, unsigned *ready);
/* As they were given; the pool's own copy. */
const cm_pool_options *cm_pool_get_options(const cm_pool *pool);

typedef struct cm_pool_worker_info {
    int64_t pid;       /* of a process; 0 for threads */
    uint64_t start_ns; /* when it was begun, and when it was ready */
    uint64_t ready_ns;
    uint32_t deaths;
} cm_pool_worker_info;
void cm_pool_worker(const cm_pool *pool, unsigned worker, cm_pool_worker_info *out);

/*
 * In a worker that is a process: true once its pool has closed its end, so that nobody waits for
 * what it does.  It has a second then to end what it began.  Elsewhere false.
 */
bool cm_pool_worker_is_unwanted(void);

#endif
