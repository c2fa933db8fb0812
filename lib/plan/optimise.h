/*
 * The chunk shape that costs least for the reads that will be made.
 *
 * Every read has its own sample and weight; a shape is worth the weighted mean of
 * the reads' cost, bytes or requests, each taken from the exact mean number of
 * chunks met (touch.h), or, for regret, the largest ratio of a read's cost to what
 * it would pay with the shape that is best for it alone.
 *
 * The search.  A dimension's lengths are cut down to at most L sensible ones:
 * all integers where the dimension has no more than L, otherwise powers of two and
 * their triples, equal pieces, and multiples and fractions of the samples; L is
 * such that all combinations are at most 2^17, and all are tried.  From the best
 * of them, and from a shape grown greedily, one and two dimensions at a time are
 * then moved over neighbouring integers, to round fractions, and to fill the
 * bounds, until nothing gets better.  With the smooth approximation E = (s+c-1)/c
 * the cost is a posynomial, convex in the logarithms of the lengths, so a descent
 * from near the optimum ends at it but for the wiggles that edges make.  Where the
 * array has at most 2^17 shapes the result is the optimum over all integers.
 *
 * Pure arithmetic, deterministic, any thread; a few milliseconds.
 */
#ifndef CM_PLAN_OPTIMISE_H
#define CM_PLAN_OPTIMISE_H

#include "plan/cost.h"
#include "plan/touch.h"

enum {
    CM_MAX_READS = 64
};

typedef enum cm_objective {
    CM_OBJECTIVE_COST,
    CM_OBJECTIVE_BYTES,
    CM_OBJECTIVE_REQUESTS,
    CM_OBJECTIVE_REGRET
} cm_objective;

typedef struct cm_read { /* one way of reading */
    uint64_t sample[CM_MAX_RANK];
    uint64_t step[CM_MAX_RANK]; /* 0 counts as 1 */
    double weight;              /* more than 0; only ratios matter */
    /* Of each dimension, where such reads were made; nplaces 0: anywhere.  Dimensions count as
       independent. */
    const cm_touch_place *place[CM_MAX_RANK];
    size_t nplaces[CM_MAX_RANK];
} cm_read;

typedef struct cm_optimise_spec {
    unsigned rank;
    uint64_t shape[CM_MAX_RANK]; /* 0: endless */
    uint64_t itemsize;
    cm_align align;
    uint64_t every;
    const cm_read *read;
    size_t nreads; /* 1 to CM_MAX_READS */
    cm_cost_model cost;
    cm_objective objective;
    uint64_t min_nbytes; /* of a chunk, decoded; an array that is smaller counts as its own bound */
    uint64_t max_nbytes;
    uint64_t fixed[CM_MAX_RANK];          /* lengths not to be chosen; 0: free */
    const uint64_t (*extra)[CM_MAX_RANK]; /* shapes to be considered too */
    size_t nextra;
    /*
     * A shape that makes more chunks of the array than this is stored in shards, and a chunk costs
     * a range, not an object; 0: never.  Only for bounded arrays.
     */
    uint64_t most_objects;
} cm_optimise_spec;

/* A shape and what it is worth: weighted means over the reads. */
typedef struct cm_choice {
    uint64_t chunk[CM_MAX_RANK];
    uint64_t chunk_nbytes;
    double seconds;
    double bytes; /* decoded */
    double requests;
    double regret; /* 1: every read has its own best */
} cm_choice;

typedef struct cm_optimum {
    cm_choice best;
    /* what each read would pay with the shape best for it alone */
    double own_seconds[CM_MAX_READS];
    uint64_t own_chunk[CM_MAX_READS][CM_MAX_RANK];
    cm_choice *front; /* fewest bytes first: no shape tried has fewer bytes and fewer requests */
    size_t nfront;
    uint64_t nevaluated;
} cm_optimum;

/*
 * CM_EINVAL: a read does not fit the array, a weight or the model is senseless, or no shape has
 * between min_nbytes and max_nbytes.  *OUT is valid and to be released whatever is returned.
 */
int cm_optimise(const cm_optimise_spec *spec, cm_optimum *out, cm_error *err);
void cm_optimum_release(cm_optimum *optimum);

/* Evaluates CHUNK.  OWN_SECONDS may be NULL: regret is then 0. */
int cm_optimise_evaluate(const cm_optimise_spec *spec, const double *own_seconds,
                         const uint64_t *chunk, cm_choice *out, cm_error *err);

/* One read alone, with chunks of CHUNK: mean requests, decoded bytes, seconds. */
typedef struct cm_read_cost {
    double requests, bytes, seconds;
} cm_read_cost;
cm_read_cost cm_optimise_read_cost(const cm_optimise_spec *spec, size_t read,
                                   const uint64_t *chunk);

/* True where chunks of NBYTES are so many that they lie in shards. */
bool cm_optimise_shards(const cm_optimise_spec *spec, double nbytes);

/* The value that the spec's objective minimises. */
double cm_choice_value(const cm_choice *choice, cm_objective objective);

/* Below the first, per-chunk overheads (a file, a request, a codec call) outweigh the data. */
#define CM_DEFAULT_MIN_NBYTES (UINT64_C(256) << 10)
#define CM_DEFAULT_MAX_NBYTES (UINT64_C(64) << 20)

#endif
