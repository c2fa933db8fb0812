/*
 * Settings of a loader, as the user of a verb types them: chunkmill/loader.h has its own, and
 * what measures a loader has its own, and both are mapped to these.
 *
 * Texts belong to the caller and outlive the run.  A message names a setting by its field here.
 */
#ifndef CM_LOAD_OPTIONS_H
#define CM_LOAD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <chunkmill/net.h>
#include <chunkmill/texts.h>

#include "gpu/device.h"
#include "model/feed.h"

/* Elements of a dimension in which samples lie, with their lags. */
typedef struct cm_load_range {
    const char *dim;
    uint64_t first, count;
} cm_load_range;

/* Mean and standard deviation of a variable's decoded values. */
typedef struct cm_load_normal {
    const char *variable;
    cm_feed_normal all;
    const char *dim; /* along which they were counted for each place; NULL: there are no levels */
    cm_feed_normal *level;
    double *coordinate; /* of each level, NaN: no finite number; NULL: not known, or texts */
    char **label;       /* of each level, NULL: not known; NULL: of none, or numbers */
    const char *units;  /* of these; NULL: not known */
    size_t nlevels;
} cm_load_normal;

/* Reads that somebody else made, in the order in which they began. */
typedef struct cm_load_boxes {
    unsigned rank;
    uint64_t n;
    /* Of each its first elements, then its lengths, along the dimensions of the variable with most
       of them. */
    const uint64_t *box;
} cm_load_boxes;

typedef struct cm_load_options {
    cm_texts variables;         /* names or globs; none: the largest that is no coordinate */
    const char *lags;           /* "-6,0": steps along `time`, or the first dimension; NULL: 0 */
    const char *sample;         /* SHAPE in elements; NULL: only with orders that say it */
    const cm_load_range *range; /* at most one of a dimension; the others are whole */
    size_t nranges;
    uint64_t batch;        /* samples; 32 */
    uint64_t batches;      /* of an epoch and rank; 0: all */
    uint64_t leaves_after; /* batches that a rank takes of such an epoch; 0: all */
    uint64_t seed;
    bool drop_last;
    const char *order; /* "random", "strided:4", ...; NULL: random */
    /* In place of `sample` and `order`, none asked for before a worker begins it; NULL. */
    const cm_load_boxes *boxes;
    bool one_shape;      /* of all samples of a batch, also where chunks differ in length */
    const char *loader;  /* "map", "planned"; NULL: map */
    uint64_t window;     /* of the planned loader, blocks; 0: to be chosen */
    uint64_t world_size; /* 1 */
    uint64_t rank;
    unsigned ranks; /* that this run makes batches for; 1 */

    const char *mode;        /* "sync", "threads", "processes"; NULL: threads */
    unsigned workers;        /* of a rank; 0: by the CPUs */
    unsigned worker_threads; /* of each of them; 0: by the CPUs */
    unsigned nthreads;       /* limit of workers x worker threads; 0: none */
    unsigned prefetch;       /* batches under way for each worker; 2 */
    unsigned reserve;        /* CPUs that each rank keeps for itself; 2 */
    bool unordered;          /* batches come as they are ready */
    const char *pool;        /* "rank", "shared"; NULL: rank */
    uint64_t worker_memory;  /* bytes that a worker process may take; 0: no limit */
    uint64_t memory;         /* limit in bytes; 0: half of what is free */

    const char *engine; /* "native", "netcdf", "exec:CMD"; NULL: native */
    const char *io;     /* "auto", "pread", "mmap", "uring", "direct"; NULL: auto */
    uint64_t cache_nbytes;
    const char *cache_policy; /* "lru", "fifo"; NULL: lru */
    const char *cache_dir;
    uint64_t cache_dir_nbytes; /* 0: half of what is free there */
    const char *emulate;       /* "local", "nfs", "s3", "latency=T,bandwidth=R,concurrency=N" */
    cm_net *net;               /* for stores behind a network; NULL: there is none */

    /* "float64", "float32", "float16", "bfloat16"; "xarray": as xarray decodes it; NULL: none */
    const char *cast;
    bool unpack;
    bool fill_to_nan;
    const cm_load_normal *normal; /* of each variable; NULL: values stay as they are decoded */
    size_t nnormals;

    const char *device;  /* "none", "host", "cuda[:N]"; NULL: none */
    const char *staging; /* "pinned", "pageable"; NULL: pinned */
    unsigned slots;      /* batches that there is memory for; 0: what those under way need */
    uint64_t slot_nbytes;
    const cm_device_hooks *device_hooks; /* of tests; NULL */
} cm_load_options;

void cm_load_options_init(cm_load_options *options);

#endif
