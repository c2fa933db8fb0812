/*
 * The source (load/workers/pool.h) that leaves the reading to a program of the user.
 *
 * Each worker begins the command once, through "sh -c", with pipes as its standard
 * input and output; its standard error is ours.  Both sides speak lines of JSON:
 *
 *     > {"protocol":1,"store":"/data/era5.zarr","variables":["t2m","u10"],
 *        "worker":0,"sample":[[1,64,64],[1,64,64]],"batch":32}
 *     < {"ready":true}
 *     > {"epoch":0,"batch":7,"samples":[[12,0,64],[3,128,0]],
 *        "parts":[{"variable":"t2m","start":[[12,0,64],[3,128,0]],
 *                  "shape":[[1,64,64],[1,64,64]]}, ...]}
 *     < {"batch":7,"nbytes":32768,"crc32c":305419896,"seconds":0.0123}
 *
 * `samples` are the first elements in the dimensions of all variables together;
 * `parts` say for each variable (and lag) what it has to read of each sample,
 * first element and lengths.  `nbytes` are what it delivered.  `crc32c`, of the
 * parts one after the other, each [batch, sample...] in C order and little-endian,
 * and `seconds`, spent reading, may be left out.  Instead it may answer
 * {"error":"a sentence"}: that batch has failed, and the next one is asked for.
 * The end of its standard input is the end of the work.
 *
 * A command that ends, takes too long or answers something else fails the batch
 * with a sentence, is killed with the processes that it began, and is begun anew
 * for the next batch.
 */
#ifndef CM_LOAD_WORKERS_LOAD_EXEC_H
#define CM_LOAD_WORKERS_LOAD_EXEC_H

#include "load/workers/pool.h"
#include "plan/samples.h"

typedef struct cm_load_exec_options {
    const char *command;
    const char *store; /* as the command is told it */
    uint64_t batch;    /* samples of a whole batch */
    const cm_sample_space *space;
    const cm_sample_part *part;
    const char *const *variable; /* of each part */
    size_t nparts;
    bool (*canceled)(
        void *context); /* NULL: never; a command that does not answer is killed then */
    void *canceled_context;
    bool processes;            /* workers are processes: one whose parent ends kills its command */
    uint64_t ready_timeout_ns; /* 0: CM_LOAD_EXEC_READY_NS */
    uint64_t batch_timeout_ns; /* 0: CM_LOAD_EXEC_BATCH_NS */
} cm_load_exec_options;

#define CM_LOAD_EXEC_READY_NS (UINT64_C(120) * 1000000000)
#define CM_LOAD_EXEC_BATCH_NS (UINT64_C(300) * 1000000000)
/*
 * Time that a pool gives its processes to end (cm_pool_options.grace_ns): each must live to kill
 * the processes that it began, after half a second of patience; a busy machine needs longer.
 */
#define CM_LOAD_EXEC_GRACE_NS (UINT64_C(30) * 1000000000)

/*
 * OPTIONS' texts are borrowed until release.  Only for CM_LOAD_BATCH: a user's program cannot
 * follow a plan of chunks.  Nothing is written to the arena.  logical_nbytes is what the program
 * reports as delivered; counts that it does not know (`requests`, `chunks`, ...) stay 0.  The
 * `seconds` that it reports are storage time and the rest is assembly; without them all of it is
 * storage time.  CPU time is that of the command's own process, not of its children.
 */
int cm_load_exec_create(const cm_load_exec_options *options, cm_load_source *out, cm_error *err);
void cm_load_exec_release(cm_load_source *source);

#endif
