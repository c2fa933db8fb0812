/*
 * The source (load/workers/pool.h) that makes batches of a store's arrays.
 *
 * A batch lies in its slot part after part, and each part is [batch, sample...]:
 * of N samples, part p of the one at place k begins at
 *
 *     N * (part_nbytes[0] + ... + part_nbytes[p - 1]) + k * part_nbytes[p]
 *
 * A sample that is clipped at the array's edge lies at the beginning of its place
 * in the C order of its own shape; the rest of the place is zero.
 *
 * CM_LOAD_BATCH reads every sample for itself; the parts of the samples are shared
 * out among the worker's threads.  CM_LOAD_CHUNK decodes one chunk, as it is delivered, and
 * CM_LOAD_CUT makes samples of such chunks; each in one thread.
 */
#ifndef CM_LOAD_BATCHES_LOAD_SOURCE_H
#define CM_LOAD_BATCHES_LOAD_SOURCE_H

#include "base/stop.h"
#include "load/reader/reader.h"
#include "plan/blocks.h"
#include "store/store.h"

enum {
    CM_LOAD_MAX_THREADS = 256
};

/* Arrays to read, and their feeds.  Everything is the opener's, and stays valid until close. */
typedef struct cm_load_arrays {
    const char *store; /* for messages */
    cm_array *const *array;
    size_t narrays;
    const cm_sample_space *space;
    const cm_sample_part *part; /* of every sample */
    const cm_feed *feed; /* of each part, the same for all parts of an array; NULL: all unchanged */
    const size_t *part_nbytes; /* of each part: one whole sample, as fed */
    size_t nparts;
    /* has no dimension of the space: read once, when a worker opens, and not delivered */
    const cm_sample_part *fixed;
    size_t nfixed;
    const cm_blocks *blocks;    /* whose chunks samples are cut out of; or NULL */
    cm_chunk_cache *cache;      /* of this process, or NULL */
    cm_lookahead *ahead;        /* of this process, where there is no cache; or NULL */
    bool when_begun;            /* it asks for nothing before a worker begins a task */
    cm_delay *delay;            /* or NULL */
    bool library;               /* boxes through the format's library */
    size_t group_nbytes;        /* as in cm_reader_options */
    const cm_store *disk_cache; /* its hits, misses and evictions go into the counts; or NULL */
    void *handle;               /* what the opener wants to keep */
} cm_load_arrays;

typedef struct cm_load_opener {
    void *context;
    /* In the process that reads, once for each worker, or once for all workers of it. */
    int (*open)(void *context, cm_load_arrays *out, cm_error *err);
    void (*close)(void *context, cm_load_arrays *arrays); /* NULL: nothing to do */
} cm_load_opener;

typedef struct cm_load_source_options {
    cm_load_opener opener;
    /* opens for itself; false: the workers of a process share what the first one opened */
    bool each_worker;
    unsigned worker_threads; /* 1 .. CM_LOAD_MAX_THREADS, kept from task to task */
    /* Asked for each sample of a batch: nobody waits for it any more. */
    cm_stop stop;
} cm_load_source_options;

/*
 * A source for a pool.  A process that was forked after a worker opened in its parent opens
 * anew.
 */
int cm_load_source_create(const cm_load_source_options *options, cm_load_source *out,
                          cm_error *err);
/* After the pool is gone; zeroed memory is fine. */
void cm_load_source_release(cm_load_source *source);

/*
 * Where part P of the sample at PLACE of a batch of NBATCH begins in its slot; P = the number
 * of parts: the length of the batch.
 */
size_t cm_load_offset(const size_t *part_nbytes, size_t nbatch, size_t p, size_t place);

#endif
