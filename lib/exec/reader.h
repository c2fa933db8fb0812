/*
 * Reading boxes of an array as a training loader does: through a cache of decoded
 * chunks where there is one, with every chunk, request and byte counted, and
 * slowed down where a slower storage is to be imitated.
 */
#ifndef CM_EXEC_READER_H
#define CM_EXEC_READER_H

#include "exec/pool.h"
#include "format/array.h"
#include "model/feed.h"

/* ---- decoded chunks in memory ---- */

typedef struct cm_chunk_cache cm_chunk_cache;

typedef enum cm_cache_policy {
    CM_CACHE_LRU,
    CM_CACHE_FIFO
} cm_cache_policy;

/* Holds at most NBYTES of decoded chunks, its own lists counted.  All threads of a process share one. */
int cm_chunk_cache_create(size_t nbytes, cm_cache_policy policy, cm_chunk_cache **out,
                          cm_error *err);
void cm_chunk_cache_free(cm_chunk_cache *cache); /* NULL accepted */

/* ---- a slower storage, imitated ---- */

/*
 * Each request takes LATENCY and NBYTES / BANDWIDTH, and at most CONCURRENCY are
 * under way: counted over all threads and processes that share the memory that
 * cm_delay lies in.
 */
typedef struct cm_delay cm_delay;

typedef struct cm_delay_model {
    double latency;   /* seconds a request */
    double bandwidth; /* bytes a second of one stream */
    unsigned concurrency;
} cm_delay_model;

/* In memory that child processes share. */
int cm_delay_create(const cm_delay_model *model, cm_delay **out, cm_error *err);
void cm_delay_free(cm_delay *delay);
/* Makes NREQUESTS requests of NBYTES in all, which really took IO_NS, take as long as they would; returns the time that it added. */
uint64_t cm_delay_wait(cm_delay *delay, uint64_t nrequests, uint64_t nbytes, uint64_t io_ns);

/* ---- readers ---- */

typedef struct cm_reader_options {
    cm_chunk_cache *cache; /* or NULL */
    cm_delay *delay;       /* or NULL */
    bool library;          /* boxes by read_box, also of chunked arrays */
} cm_reader_options;

/* One thread's.  Allocates when it meets an array for the first time, and not afterwards. */
typedef struct cm_reader cm_reader;

int cm_reader_create(const cm_reader_options *options, cm_reader **out, cm_error *err);
void cm_reader_free(cm_reader *reader);

/*
 * BOX of A into DST, C order, through FEED (NULL: as it is), and adds to COUNTS.
 * A chunk that is missing gives fill values and is counted as missing.  A chunk
 * that cannot be read or decoded is counted as failed, and the call fails with the
 * first one's sentence.
 */
int cm_reader_box(cm_reader *reader, cm_array *a, const cm_box *box, const cm_feed *feed, void *dst,
                  cm_load_counts *counts, cm_error *err);

/* Where a part of a decoded chunk goes: the elements that the chunk shares with BOX, into DST, which holds BOX in C order. */
typedef struct cm_chunk_target {
    cm_box box;
    void *dst;
} cm_chunk_target;

/* Reads and decodes chunk NUMBER once and gives each of N targets its share. */
int cm_reader_chunk(cm_reader *reader, cm_array *a, uint64_t number, const cm_feed *feed,
                    const cm_chunk_target *target, size_t n, cm_load_counts *counts, cm_error *err);

#endif
