/*
 * Costs of reading and decoding stored chunks, measured on chunks of the array itself.
 *
 * The caller says which calls it makes, each for some chunks at once, and the probe makes them in
 * that order, so that chunks at an array's edge, missing ones and shards whose index is not at hand
 * are met as often.  Every fourth time it asks for one chunk of a call alone: where the two differ
 * in bytes a request, they separate the time of a request from that of a byte; elsewhere all time
 * counts as the request's.  Where the requests of one call run concurrently, a third call asks for
 * chunks of several calls, which separates the time of a call from that of one more request.  What
 * happens to a chunk that was fetched is timed as a whole: decoding, and going where it belongs.
 * Call cm_cost_probe_round several times, in turn with the measurement that the costs explain: then
 * a machine that slows down slows both, and rounds that were disturbed do not count.  CPU time is
 * that of the calling thread.
 */
#ifndef CM_WATCH_COSTS_H
#define CM_WATCH_COSTS_H

#include "format/array.h"
#include "store/store.h"

typedef struct cm_seconds {
    double wall, cpu;
} cm_seconds;

typedef struct cm_chunk_costs {
    cm_seconds call;      /* of cm_array_fetch_many; 0 but where requests are under way together */
    cm_seconds request;   /* to storage */
    cm_seconds byte;      /* that storage gives */
    cm_seconds chunk;     /* of a chunk that was fetched: decoding, and going where it belongs */
    double stored_nbytes; /* of a chunk, a mean; 0 for one that is not stored */
    uint64_t nchunks;     /* looked at; 0: none, and all costs are 0 */
} cm_chunk_costs;

/* The calls to make, and where their chunks go. */
typedef struct cm_cost_calls {
    void *context;
    uint64_t ncalls; /* from 1 */
    size_t most;     /* chunks of one, at most */
    /* Begins call number CALL; writes the numbers of its chunks, and returns how many. */
    size_t (*begin)(void *context, uint64_t call, uint64_t *number);
    /* Where chunk NUMBER of the call that began is decoded to, or NULL: anywhere. */
    uint8_t *(*place)(void *context, uint64_t number);
    /* Elements of chunk NUMBER, not decoded to a place, go where they belong; DATA NULL: it is not
       stored. */
    void (*deliver)(void *context, uint64_t number, const uint8_t *data);
} cm_cost_calls;

typedef enum cm_cost_kind {
    CM_COST_WARM,
    CM_COST_COLD,    /* no chunk is read twice in a round; before it, what is stored was evicted */
    CM_COST_TOGETHER /* requests of a call are under way together */
} cm_cost_kind;

/* For one thread.  A, which is stored in chunks, and what CALLS points to are borrowed. */
typedef struct cm_cost_probe cm_cost_probe;
int cm_cost_probe_create(cm_array *a, cm_cost_kind kind, const cm_cost_calls *calls,
                         cm_cost_probe **out, cm_error *err);
void cm_cost_probe_free(cm_cost_probe *probe); /* NULL accepted */

/* Bytes that a probe of A takes at most, the codec's contexts among them; calls fetch up to
   GROUP_NBYTES, or one chunk. */
uint64_t cm_cost_probe_nbytes(const cm_array *a, cm_cost_kind kind, uint64_t group_nbytes);

/* Goes on where the round before ended, for about SECONDS. */
int cm_cost_probe_round(cm_cost_probe *probe, double seconds, cm_error *err);
/* Makes the calls that FIRST, with the same calls, made in its last round. */
int cm_cost_probe_again(cm_cost_probe *probe, const cm_cost_probe *first, cm_error *err);
cm_chunk_costs cm_cost_probe_result(const cm_cost_probe *probe);

/* The mean of VALUE, its quarters of the least and the largest left out; sorts them. */
double cm_cost_middle(double *value, size_t n);

/*
 * Costs of chunks of any size with a codec, from elements of A encoded at two sizes, 16 KiB and 1
 * MiB; in seconds of CPU time.  nchunks 0: A has no elements, or needs more than the limits allow.
 */
typedef struct cm_cost_limits { /* 0: any */
    uint64_t nbytes;            /* of memory */
    /* For A's own chunks, one after the other; the larger size is as small as 64 KiB then. */
    uint64_t requests;
} cm_cost_limits;
typedef struct cm_codec_costs {
    double chunk, byte;         /* seconds of a chunk, and of each decoded byte of it */
    double stored, stored_byte; /* the same in stored bytes */
    uint64_t nchunks;
    uint64_t
        needs; /* bytes of memory that measuring takes at most; 0: there is nothing to measure */
} cm_codec_costs;
int cm_cost_probe_codec(cm_array *a, const cm_codec_spec *spec, size_t nspec,
                        const cm_cost_limits *limits, cm_codec_costs *out, cm_error *err);

/*
 * The same of chunks of SHAPE, which lie where chunks of A would: seconds of CPU time and stored
 * bytes of one, means over some that do not reach past A's edge.  nchunks 0: there is none, or it
 * needs more than NBYTES of memory (0: any).
 */
typedef struct cm_shape_costs {
    double seconds, stored;
    uint64_t nchunks;
} cm_shape_costs;
int cm_cost_probe_shape(cm_array *a, const cm_codec_spec *spec, size_t nspec, const uint64_t *shape,
                        uint64_t nbytes, cm_shape_costs *out, cm_error *err);

/*
 * The storage of a file, or of the files below a folder, read at two sizes, 4 KiB and 256 KiB.
 * COLD: pages that are read are dropped first, and seconds are those of the clock; else they are
 * in memory, and seconds are those of CPU.  ntries 0: there is no file to read.
 */
typedef struct cm_storage_costs {
    double open;    /* opening and closing an object */
    double request; /* reading a part of an open one, */
    double byte;    /* and each byte of it */
    uint64_t ntries;
} cm_storage_costs;
int cm_cost_probe_files(const char *path, bool cold, cm_storage_costs *out, cm_error *err);

/*
 * The storage behind STORE, where an object or a part of one is a request: the first 4 KiB of
 * objects, and up to 1 MiB of them, for about SECONDS and one pair of requests at least.  Seconds
 * are those of the clock, opening is the request's.  NEXT gives the key of object number I, false
 * past the last; objects that are not there are passed over.  ntries 0: none could be read.
 */
enum {
    CM_COST_KEY_SIZE = 4096
};
typedef bool cm_cost_key(void *context, unsigned i, char *key);
int cm_cost_probe_store(cm_store *store, cm_cost_key *next, void *context, double seconds,
                        cm_storage_costs *out, cm_error *err);

#endif
