/*
 * Batches of samples of a Zarr store or a NetCDF file, for a training.
 *
 *     cm_loader_options o;
 *     cm_loader_options_init(&o, sizeof o);
 *     o.sample = "time=4,lat=64,lon=64";
 *     o.batch = 32;
 *     cm_loader_open("era5.zarr", &o, &loader, &err);
 *     for (uint64_t epoch = 0; epoch < 10; epoch++) {
 *         cm_loader_begin(loader, epoch, &err);
 *         while (cm_loader_next(loader, CM_LOADER_FOR_EVER, &batch, &err) == CM_OK && batch) {
 *             const cm_tensor *t = cm_batch_tensor(batch, 0);
 *             ...
 *             cm_batch_release(batch);
 *         }
 *     }
 *     cm_loader_close(loader);
 *
 * Order: which samples come, and in which batch, follows from seed, epoch, world_size,
 * rank and the options that say what a sample is; the planned loader's also from window
 * and, where it is given, memory, less the cache: ranks of one training have to give the same.  A
 * position (cm_loader_save) brings the rest of an epoch back.
 *
 * Memory: a batch lies in a slot.  Its memory stays as it is until the batch is released
 * and every tensor exported from it was deleted, also when the loader was closed before.
 * Then the slot is filled again.  A caller that holds more batches than `held` says slows
 * the workers down; one that holds all slots gets CM_EINVAL from cm_loader_next, not a
 * wait for ever.
 *
 * Devices: with device "cuda:0" cm_loader_next copies the batch to one of `held` + 1 buffers of
 * the device, waits for the copy, and the slot is filled again; what the device is computing goes
 * on meanwhile.  Kernels may still be reading a buffer when its batch is released, so it is filled
 * again after all that was put on the streams named by cm_batch_stream; where none was named, after
 * all that this process put on the device.  The calling thread's context of CUDA stays what it was.
 * "host" copies to a second memory of this machine, which is memory of the CPU like any other.
 * No figures: this was not yet run on a GPU.
 *
 * Threads: calls that take a loader may come from any thread, one at a time; those that
 * come meanwhile wait.  cm_loader_close is the last.  Batches and tensors may be released
 * by any thread at any time.  Workers are threads that block all signals; the library sets
 * no handler, never exits, prints nothing, and reads no variable of the environment.
 *
 * Fork: a child that inherited a loader gets CM_EINVAL from every call, and may open its
 * own; releasing, deleting and closing do nothing there.
 */
#ifndef CHUNKMILL_LOADER_H
#define CHUNKMILL_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <chunkmill/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

enum {
    CM_LOADER_VERSION = 4, /* of this interface; grows with its structs */
    CM_LOADER_MAX_DIMS = 32,
    CM_LOADER_POSITION_NBYTES = 64
};

#define CM_LOADER_FOR_EVER UINT32_MAX

/* Elements FIRST to FIRST + COUNT - 1 of dimension DIM, counted from its beginning. */
typedef struct cm_loader_range {
    const char *dim;
    uint64_t first, count;
} cm_loader_range;

typedef struct cm_loader cm_loader;
typedef struct cm_batch cm_batch;

/* Texts are copied by cm_loader_open. */
typedef struct cm_loader_options {
    size_t size;      /* of this struct, as the caller knows it: set by init */
    uint32_t version; /* CM_LOADER_VERSION of the caller: set by init */

    const char *const *variable; /* names or globs; none: the largest that is no coordinate */
    size_t nvariables;
    /* "time=4,lat=64,lon=64"; "full": whole arrays; NULL: only with orders that say it */
    const char *sample;
    const char *lags;  /* "-6,0": steps along `time`, or the first dimension where none is named so,
                           from one in it; NULL: 0 */
    uint64_t batch;    /* samples; 32 */
    uint64_t batches;  /* of an epoch and rank; 0: all */
    bool drop_last;    /* leaves out a last batch that is not full, and samples that ranks do not
                           share evenly; otherwise the first ones are taken again for that */
    const char *order; /* "random", "sequential", "strided:4", "block-shuffle:8", "chunks", "map",
                           "series"; NULL: random.  The planned loader takes from it where samples
                           lie, and not when they come: it shuffles them */
    uint64_t seed;
    uint64_t world_size; /* 1 */
    uint64_t rank;

    const char *loader; /* "map", "planned"; NULL: map */
    uint64_t
        window; /* of the planned loader, blocks of chunks; 0: 64, fewer where memory is short */
    unsigned workers;        /* threads that make batches; 0: by the CPUs, 1 for each rank here */
    unsigned worker_threads; /* of each of them, map loader; 0: by the CPUs */
    unsigned local_ranks;    /* that share this machine's CPUs; 0: 1 */
    unsigned prefetch;       /* batches under way for each worker; 2 */
    unsigned held;           /* batches that the caller holds when it asks for the next; 2 */
    bool sync;               /* no threads: batches are made inside cm_loader_next */
    uint64_t memory;         /* bytes that the loader may take; 0: half of what is free */

    /* "float64", "float32", "float16", "bfloat16"; "xarray": as xarray decodes it; NULL: none */
    const char *cast;
    bool unpack; /* value * scale_factor + add_offset */
    bool fill_to_nan;

    const char *io;        /* "auto", "pread", "mmap", "uring", "direct"; NULL: auto */
    uint64_t cache_nbytes; /* of decoded chunks in memory; 0: none */
    const char *cache_policy;
    const char *cache_dir; /* of stored chunks on a faster disk */
    uint64_t cache_dir_nbytes;
    const char *device; /* "none", "host", "cuda", "cuda:1"; NULL: none */

    /*
     * For URLs: where credentials and settings of object stores are looked up, as getenv() has
     * them, which may be given; NULL: there are none.
     */
    const char *(*environment)(const char *name);
    bool anonymous; /* requests are not signed */

    /* Since version 2: what a device copies from; "pinned", "pageable"; NULL: pinned. */
    const char *staging;

    /*
     * Since version 3: what a document of references may point to beside what lies where it lies,
     * as `allow` of cm_net_settings.
     */
    const char *const *allow;
    size_t nallow;

    /*
     * Since version 4: elements in which all samples lie, with their lags; dimensions that are not
     * named are whole.  Two loaders whose ranges of one dimension do not overlap have no element in
     * common.
     */
    const cm_loader_range *range;
    size_t nranges;
    /*
     * Since version 4: a Zarr group of statistics, as nc2zarr writes it beside a store; each value
     * is delivered as (value - mean) / std, by the mean and the standard deviation of its variable
     * and, where the statistics have a dimension that the variable has, of its place along that:
     * each level by itself.  Needs `unpack` and `fill_to_nan`, for statistics are of decoded
     * values, and a type with fractions.  NULL: values stay as they are decoded.
     */
    const char *normalize;
    /*
     * Since version 4: opens the store for cm_loader_describe and what describes dimensions alone:
     * no memory is taken, no worker started, and no epoch can be begun.
     */
    bool describe_only;
} cm_loader_options;

void cm_loader_options_init(cm_loader_options *options, size_t size);

/*
 * STORE is a path or URL of a Zarr store or a NetCDF file, PATH::NODE for a node of it.
 * Opens it, starts the workers, and fits everything into the memory (CM_EBUDGET says what would
 * do).  *OUT is NULL after an error.
 */
int cm_loader_open(const char *store, const cm_loader_options *options, cm_loader **out,
                   cm_error *err);
/*
 * Stops the workers, after the chunk that each is at.  Batches and tensors that are held stay
 * valid.  NULL is accepted.
 */
void cm_loader_close(cm_loader *loader);

/* ---- what was opened ---- */

typedef struct cm_loader_dim {
    const char *name;   /* NULL: it has none */
    uint64_t length;    /* elements of the whole dimension */
    uint64_t sample;    /* elements that a sample takes */
    const char *type;   /* of the coordinates: "float64", ...; NULL: there are none */
    const void *coords; /* `length` of them, as they are stored; of type "string" each is a
                           `const char *` to UTF-8 that ends with NUL */
} cm_loader_dim;

typedef struct cm_loader_variable {
    const char *name;
    int64_t lag;
    const char *type;        /* as delivered: "float32", "int16", "bfloat16", ... */
    const char *stored_type; /* before cast and unpack */
    unsigned ndims;
    uint32_t dim[CM_LOADER_MAX_DIMS];   /* numbers of the loader's dimensions, in order */
    uint64_t shape[CM_LOADER_MAX_DIMS]; /* of one sample */
    uint64_t nbytes;                    /* of one sample */
} cm_loader_variable;

typedef struct cm_loader_info {
    size_t size;       /* set by the caller */
    uint64_t nsamples; /* of an epoch, all ranks */
    uint64_t nbatches; /* of an epoch, this rank */
    uint64_t batch_nbytes;
    const cm_loader_dim *dim;
    size_t ndims;
    const cm_loader_variable *variable; /* the tensors of a batch, in order */
    size_t nvariables;
    unsigned workers, worker_threads;
    unsigned slots;         /* batches that there is memory for */
    uint64_t memory_nbytes; /* that the loader takes at most */
    uint64_t window;        /* of the planned loader, as it was chosen; 0 */
    const char *device;     /* "none", "host", "cuda:0" */
} cm_loader_info;

/* INFO's pointers belong to the loader, and are valid until it is closed. */
int cm_loader_describe(cm_loader *loader, cm_loader_info *info, cm_error *err);
/*
 * The attributes of the variable that the coordinates of dimension DIM are read from, among them
 * `units` and `calendar` of times: a JSON object, valid until the loader is closed.  NULL where
 * there are no coordinates, and in a forked child.
 */
const char *cm_loader_dim_attributes(const cm_loader *loader, size_t dim);
/*
 * A byte for each coordinate of DIM, 1 where it is missing by the variable's attributes or its fill
 * value; until the loader is closed.  NULL: nothing says what is missing, or there are none.
 */
const uint8_t *cm_loader_dim_missing(const cm_loader *loader, size_t dim);

/*
 * One line about chunks of the variables that are not there, counted when the loader was opened:
 * "t2m: 3 of 16 chunks are absent (1/0/0, 1/0/1, ...), read as fill".  Valid until the loader is
 * closed; NULL where none is missing, on ranks but the first, and in a forked child.
 */
const char *cm_loader_holes(const cm_loader *loader);

/*
 * The elements of dimension DIM in which samples lie: all of them, or those of `range`.  False
 * where there is no such dimension, and in a forked child.
 */
bool cm_loader_dim_range(const cm_loader *loader, size_t dim, uint64_t *first, uint64_t *count);

/* ---- epochs ---- */

/* Begins EPOCH; what is left of the one before is dropped. */
int cm_loader_begin(cm_loader *loader, uint64_t epoch, cm_error *err);

/*
 * The next batch, waiting TIMEOUT_MS for it (CM_LOADER_FOR_EVER): *BATCH is NULL at the
 * epoch's end.  CM_ECANCELED: none came in that time, ask again.  CM_EINVAL: the
 * caller holds all slots, or no epoch was begun.  Where a batch could not be read the error is
 * its own, and the call after it gives the one that follows.
 */
int cm_loader_next(cm_loader *loader, uint32_t timeout_ms, cm_batch **batch, cm_error *err);

/* A place in an epoch: bytes to keep, good on any machine, in any process. */
typedef struct cm_loader_position {
    uint8_t bytes[CM_LOADER_POSITION_NBYTES];
} cm_loader_position;

/* Where the next batch will come from; also before and after an epoch. */
int cm_loader_save(cm_loader *loader, cm_loader_position *out, cm_error *err);
/* Where BATCH came from, so that it is the next one again: for one that nobody has used. */
int cm_loader_save_before(cm_loader *loader, const cm_batch *batch, cm_loader_position *out,
                          cm_error *err);
/*
 * Goes on from POSITION.  CM_EINVAL: it is of another data set, or of other options that decide
 * which samples come when.
 */
int cm_loader_restore(cm_loader *loader, const cm_loader_position *position, cm_error *err);

typedef struct cm_loader_stats {       /* since the loader was opened; times in nanoseconds */
    size_t size;                       /* set by the caller */
    uint64_t epoch, batch;             /* the next one's */
    uint64_t batches, samples, nbytes; /* delivered */
    uint64_t failed_batches;
    uint64_t wait_ns, max_wait_ns; /* in cm_loader_next */
    uint64_t since_begin_ns;       /* since the epoch began */
    uint64_t chunks, decoded, requests;
    uint64_t stored_nbytes, decoded_nbytes;
    uint64_t missing_chunks;
    uint64_t cache_hits, cache_misses;
    uint64_t storage_ns, decode_ns, assemble_ns, convert_ns; /* of all workers */
    unsigned slots, held, ready, underway;                   /* batches, now */
} cm_loader_stats;

int cm_loader_get_stats(cm_loader *loader, cm_loader_stats *out, cm_error *err);

/* ---- batches ---- */

typedef struct cm_batch_info {
    size_t size; /* set by the caller */
    uint64_t epoch, number;
    uint64_t nsamples;
    const uint64_t *sample; /* their numbers in the epoch */
    /*
     * nsamples x ndims: the first element of each along the loader's dimensions, lag 0.  It lies
     * right behind `sample`: nsamples * (1 + ndims) numbers may be copied as one.
     */
    const int64_t *index;
} cm_batch_info;

typedef struct cm_tensor {
    const cm_loader_variable *variable;
    void *data; /* of a CUDA device: an address there */
    uint64_t nbytes;
    unsigned ndims;       /* the variable's and one: samples come first */
    const int64_t *shape; /* C order, without gaps */
    int32_t device_type;  /* DLPack's: 1 CPU, 2 CUDA */
    int32_t device_number;
} cm_tensor;

/* Both point into the batch. */
int cm_batch_describe(cm_batch *batch, cm_batch_info *info, cm_error *err);
/* cm_loader_next and, if there is a batch, cm_batch_describe: one call where calls are dear. */
int cm_loader_next_described(cm_loader *loader, uint32_t timeout_ms, cm_batch **batch,
                             cm_batch_info *info, cm_error *err);
/* NULL beyond the last. */
const cm_tensor *cm_batch_tensor(cm_batch *batch, size_t i);

/*
 * Tensor I for another library, by DLPack 1.0 and by the DLPack before.  The memory is
 * held until the deleter was called.
 */
struct DLManagedTensorVersioned;
struct DLManagedTensor;
int cm_batch_dlpack(cm_batch *batch, size_t i, struct DLManagedTensorVersioned **out,
                    cm_error *err);
int cm_batch_dlpack_legacy(cm_batch *batch, size_t i, struct DLManagedTensor **out, cm_error *err);
/*
 * The first, or, where not VERSIONED, the second, as Python's libraries take it: a new PyCapsule,
 * which holds the memory until its consumer, or the capsule if it had none, is gone.  NULL after
 * an error, which is Python's ValueError, too; CM_EUNSUPPORTED where the process has no Python, or
 * DLPack no such type.  The caller holds Python's lock, which is not let go.
 */
void *cm_batch_capsule(cm_batch *batch, size_t i, bool versioned, cm_error *err);

/*
 * For Python, where Ctrl-C may fall between any two steps: a new PyCapsule with a place that calls
 * of this library write a batch or a loader to.  What lies there when the capsule goes is released
 * or closed by the capsule, so that it is never between a call and who holds it.  NULL as for
 * cm_batch_capsule; the caller holds Python's lock.
 */
void *cm_batch_holder(cm_batch ***place, cm_error *err);
void *cm_loader_holder(cm_loader ***place, cm_error *err);
/* Empties PLACE, and releases or closes what lay there; of several threads one does so. */
void cm_batch_clear(cm_batch **place);
void cm_loader_clear(cm_loader **place);

/*
 * The batch will be read by work on STREAM, named as DLPack does: CUDA's handle, or 1 for the
 * default stream.  Its memory is filled again only after what is on STREAM when the batch is given
 * back, so STREAM must be there until then.  -1: a stream that is not told, so that all of the
 * device is waited for, as it is for 2, a thread's own default stream.  CM_EINVAL: the batch does
 * not lie on a CUDA device, or STREAM is 0, which DLPack does not define.
 */
int cm_batch_stream(cm_batch *batch, int64_t stream, cm_error *err);

/* NULL is accepted. */
void cm_batch_release(cm_batch *batch);

/* "1.2.3" of this library. */
const char *cm_loader_version(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
