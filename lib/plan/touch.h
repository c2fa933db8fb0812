/*
 * How many chunks one read meets: the exact distribution, in closed form.
 *
 * In one dimension a sample takes S elements, STEP apart, at an offset that is
 * uniform over those where the sample fits.  Where STEP is at most the chunk
 * length C, it meets the chunks of a window of W = (S-1)*STEP + 1 elements; with
 * W-1 = a*C + b that is a+1 chunks, or a+2 where offset mod C >= C - b.  Where
 * STEP is larger every element lies in a chunk of its own.  Counting the offsets
 * of the second kind is a division when offsets are consecutive, and a sum of
 * floors (in O(log C)) when they are EVERY elements apart.
 *
 * Dimensions are independent, so chunks multiply; the bytes read are the chunks
 * met times a chunk's bytes, edge chunks being stored whole.  Where chunks are of several lengths
 * the chunks that are met are counted from place to place (touch_cut.h), not in closed form.  A
 * sharded read asks once for each shard's index and once for each inner chunk.  Neither
 * neighbouring ranges nor cached indices are assumed: this counts requests of a cold reader of
 * shards whose inner chunks lie in any order.
 *
 * Counts are integers and exact; only probabilities are rounded.  Pure
 * arithmetic, any thread.
 */
#ifndef CM_PLAN_TOUCH_H
#define CM_PLAN_TOUCH_H

#include <stddef.h>
#include <stdint.h>

#include "model/cuts.h"
#include "model/dtype.h"

typedef enum cm_align {
    CM_ALIGN_RANDOM, /* samples start anywhere */
    CM_ALIGN_CHUNK,  /* on chunk boundaries */
    CM_ALIGN_EVERY   /* at multiples of EVERY elements */
} cm_align;

/* One dimension of a read.  All lengths in elements. */
typedef struct cm_touch_axis {
    uint64_t length; /* of the array; 0: endless */
    uint64_t sample; /* elements taken, at least 1 */
    uint64_t step;   /* from one to the next, at least 1 */
    uint64_t chunk;  /* at least 1 */
    uint64_t shard;  /* a multiple of chunk; 0: not sharded */
    cm_align align;
    uint64_t every; /* CM_ALIGN_EVERY: at least 1 */
    /* Chunks, or shards, of several lengths, the longest of which is above; borrowed; or NULL. */
    const cm_cuts *cuts, *shard_cuts;
} cm_touch_axis;

/* CM_EINVAL: as for cm_touch_count_axis. */
int cm_touch_check_axis(const cm_touch_axis *axis, cm_error *err);

/*
 * Chunks and shards that the read touches along one dimension: CHUNKS + i chunks and SHARDS + j
 * shards at WEIGHT[i][j] of TOTAL offsets.  SHARDS is 0 when not sharded.
 */
typedef struct cm_touch_count {
    uint64_t chunks;
    uint64_t shards;
    uint64_t weight[2][2];
    uint64_t total;
} cm_touch_count;

/*
 * Of chunks of one length.  CM_EINVAL: a length is 0 or exceeds 2^62, the sample does not fit the
 * array, or SHARD is no multiple; CM_EUNSUPPORTED: a shard whose offsets would take more than 2^24
 * steps to count (CM_ALIGN_EVERY on a bounded array only).
 */
int cm_touch_count_axis(const cm_touch_axis *axis, cm_touch_count *out, cm_error *err);

/* The mean number of chunks alone, of one length: what an optimiser asks for, often. */
double cm_touch_mean(const cm_touch_axis *axis);

/* Elements of one dimension that some reads took. */
typedef struct cm_touch_place {
    uint64_t first, count; /* COUNT at least 1 */
    uint64_t weight;       /* how many reads: at least 1 */
} cm_touch_place;

/* The same of reads that were made: of N places, at least 1, with chunks of CHUNK. */
double cm_touch_places_mean(const cm_touch_place *place, size_t n, uint64_t chunk);

/*
 * floor((a*0 + b) / m) + ... + floor((a*(n-1) + b) / m) modulo 2^128, in O(log m); all below
 * 2^63.
 */
unsigned __int128 cm_floor_sum(uint64_t n, uint64_t m, uint64_t a, uint64_t b);

typedef struct cm_touch_stat {
    uint64_t min, max; /* reached by some offset */
    double mean;
    uint64_t p50, p95; /* the least value that at least 50 % (95 %) of the reads do not exceed */
} cm_touch_stat;

typedef struct cm_touch_stats {
    cm_touch_stat chunks;
    cm_touch_stat shards;   /* all 0 when not sharded */
    cm_touch_stat bytes;    /* decoded */
    cm_touch_stat requests; /* chunks, and one for the index of each shard */
    /*
     * Of a sharded read: the mean number of requests for chunks where those that lie side by side
     * in a shard, in the order of their numbers, come with one.
     */
    double runs;
} cm_touch_stats;

/*
 * A read of RANK dimensions, sharded in all of them or in none.  CM_EINVAL also
 * when a count of chunks or bytes exceeds 64 bits; CM_EUNSUPPORTED when the
 * distribution has more than 2^20 distinct values.
 */
int cm_touch_read(unsigned rank, const cm_touch_axis *axis, uint64_t itemsize, cm_touch_stats *out,
                  cm_error *err);

/*
 * The mean number of distinct chunks that BATCH independent reads meet together:
 * the sum of 1 - (1 - p)^BATCH over all chunks, p being the probability that one
 * read meets the chunk.  In an endless array no two reads meet: BATCH times the
 * mean.  CM_EUNSUPPORTED for chunks of several lengths.  Chunks with equal p are counted together;
 * CM_EUNSUPPORTED when more than 2^22 groups, or 2^22 chunks along a dimension that need counting
 * one by one.
 */
int cm_touch_batch(unsigned rank, const cm_touch_axis *axis, uint64_t batch, double *nchunks,
                   cm_error *err);

#endif
