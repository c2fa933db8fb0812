/*
 * Costs of a layout: the time of a read by a simple model, and the storage of
 * a whole array.
 *
 *     seconds = (latency * objects + range * ranges + chunk * chunks
 *                + stored / bandwidth + decoded / decode) / concurrency
 *
 * with stored = decoded / ratio.  A request of an empty object costs the latency, one for a part of
 * an object that is open (chunks of a shard) RANGE.  Each stream moves and decodes at its own rate,
 * and CONCURRENCY of them run side by side without slowing each other.
 *
 * So it is where there is always more to ask for.  Where only some READS are under way at once,
 * each waits for requests of its own alone, as many at a time as it has, and one thread decodes
 * what they give.
 */
#ifndef CM_PLAN_COST_H
#define CM_PLAN_COST_H

#include <stddef.h>

#include "model/box.h"

typedef struct cm_cost_model {
    double latency;     /* seconds a request for an object */
    double range;       /* seconds a request for a part of an open one */
    double chunk;       /* seconds that a chunk takes whatever its size: the codec's beginning */
    double bandwidth;   /* stored bytes a second, of one stream */
    double decode;      /* decoded bytes a second, of one thread */
    double concurrency; /* requests at a time */
    double ratio;       /* decoded bytes a stored byte */
    double reads;       /* at a time; 0: any number */
} cm_cost_model;

typedef struct cm_cost_preset {
    const char *name;
    cm_cost_model model;
    const char *source; /* where the numbers come from, sentences without a final full stop */
} cm_cost_preset;

/* "local", "nfs", "s3"; NULL past the end and for unknown names. */
const cm_cost_preset *cm_cost_preset_at(size_t i);
const cm_cost_preset *cm_cost_preset_find(const char *name);

/* CM_EINVAL unless latency >= 0 and everything else > 0, all finite. */
int cm_cost_model_check(const cm_cost_model *model, cm_error *err);

/* The work of one read. */
typedef struct cm_cost_work {
    double objects, ranges; /* requests */
    double chunks, decoded; /* bytes */
} cm_cost_work;
double cm_cost_work_seconds(const cm_cost_model *model, const cm_cost_work *work);
/* Of these, what passes waiting for requests, and moving stored bytes. */
double cm_cost_work_waiting(const cm_cost_model *model, const cm_cost_work *work);
double cm_cost_work_moving(const cm_cost_model *model, const cm_cost_work *work);

/*
 * M with the time of a chunk rounded to a power of four of the time of a byte.  Which shape costs
 * least follows from that ratio, so that two measurements that differ by little choose alike; near
 * its least the cost is flat, and a ratio that is off by two costs some per cent.
 */
cm_cost_model cm_cost_rounded(const cm_cost_model *m);

/* Storage for a whole array, every chunk written. */
typedef struct cm_footprint {
    uint64_t nchunks;
    uint64_t nobjects; /* shards, or chunks without them */
    uint64_t array_nbytes;
    uint64_t chunk_nbytes;   /* one, decoded */
    uint64_t decoded_nbytes; /* all chunks, edges whole */
    uint64_t padding_nbytes; /* of those, outside the array */
    uint64_t index_nbytes;   /* of all shards: 16 a chunk and 4 for the checksum */
    double stored_nbytes;    /* decoded_nbytes / ratio and the indices */
} cm_footprint;

/* SHARD may be NULL.  CM_EINVAL when a number exceeds 64 bits or a length is 0 or no multiple. */
int cm_footprint_count(unsigned rank, const uint64_t *shape, const uint64_t *chunk,
                       const uint64_t *shard, uint64_t itemsize, double ratio, cm_footprint *out,
                       cm_error *err);

/*
 * The same of an array whose CHUNKS lie in OBJECTS (the same grid without shards), of any lengths.
 */
int cm_footprint_of_grid(const cm_grid *chunks, const cm_grid *objects, uint64_t itemsize,
                         double ratio, cm_footprint *out, cm_error *err);

#endif
