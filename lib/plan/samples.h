/*
 * Where the samples of a training epoch lie.  Sample I of an epoch is computed
 * from its number, so that every worker knows it without a list.
 *
 * The sample space has the dimensions of all arrays that are read together, by
 * name.  An array takes of a sample what the dimensions that it has say; lags
 * move it along one dimension.
 *
 * Random order draws without replacement: the offsets are numbered, and their
 * numbers go through a keyed permutation (a Feistel network over the next even
 * number of bits, walked until it falls into the range), keyed by seed and epoch.
 * Pure arithmetic, any thread.
 */
#ifndef CM_PLAN_SAMPLES_H
#define CM_PLAN_SAMPLES_H

#include "model/box.h"

typedef enum cm_order {
    CM_ORDER_RANDOM,        /* any offset, each at most once an epoch */
    CM_ORDER_SEQUENTIAL,    /* side by side, in C order */
    CM_ORDER_STRIDED,       /* every N-th of those, then those after them, ... */
    CM_ORDER_BLOCK_SHUFFLE, /* runs of K of those: runs shuffled, and the samples within each */
    CM_ORDER_CHUNKS,        /* those whose first element lies in chunk 0, then chunk 1, ... */
    CM_ORDER_MAP,           /* all of the other dimensions at one place of dimension 0, shuffled */
    CM_ORDER_SERIES,        /* all of dimension 0 at one place of the others, shuffled */
    CM_ORDER_ALL,           /* every element once, the last samples clipped at the edges */
    CM_ORDER_LIST           /* boxes that are listed, in that order, each of its own shape */
} cm_order;

typedef struct cm_sample_space {
    unsigned rank;
    /*
     * Samples lie, with their lags, in LENGTH elements from ORIGIN on: a place counts from there,
     * and the box of a sample from the dimension's beginning.
     */
    uint64_t origin[CM_MAX_RANK];
    uint64_t length[CM_MAX_RANK];
    uint64_t sample[CM_MAX_RANK]; /* elements a sample takes; MAP and SERIES set theirs, LIST the
                                     longest of each dimension */
    uint64_t chunk[CM_MAX_RANK];  /* CM_ORDER_CHUNKS; >= 1 */
    /* CM_ORDER_CHUNKS: chunks of several lengths, `chunk` at most; borrowed; NULL: of one. */
    const cm_cuts *cuts[CM_MAX_RANK];
    /* CHUNKS and ALL: along dimensions with cuts each sample is a chunk, `sample` at most; without
       lags and origins. */
    bool whole_chunks;
    uint64_t reach;  /* the greatest lag: */
    unsigned lagged; /* that dimension is so much shorter */
    cm_order order;
    uint64_t parameter; /* N of STRIDED, K of BLOCK_SHUFFLE; >= 1 */
    uint64_t seed;
    bool by_number; /* sample I is number I in C order: somebody else orders them */
    /* CM_ORDER_LIST, borrowed: of each box its first elements, then its lengths, `rank` numbers
       each; without lags and origins. */
    const uint64_t *list;
    uint64_t nlisted;

    /* Set by init. */
    uint64_t count[CM_MAX_RANK]; /* places along each dimension */
    uint64_t nsamples;           /* of an epoch that takes all */
} cm_sample_space;

/*
 * Checks and completes SPACE.  CM_EINVAL: a sample (with the reach) is longer
 * than its dimension, or the number of samples exceeds 2^62; the sentence calls
 * dimension j by NAME[j], or by its number where that is NULL.
 */
int cm_sample_space_init(cm_sample_space *space, char *const *name, cm_error *err);

/*
 * The first element and the lengths of sample I (below nsamples) of EPOCH.  Lengths are
 * `sample`, less only with CM_ORDER_ALL, whose last ones are clipped, with CM_ORDER_LIST, and with
 * whole chunks.
 */
void cm_sample_at(const cm_sample_space *space, uint64_t epoch, uint64_t i, cm_box *out);

/* True where samples may start at any element, false where they lie side by side. */
bool cm_sample_starts_anywhere(cm_order order);

/*
 * The number of the same sample when all (of an epoch that takes all) are counted in C order
 * of their first elements; with CM_ORDER_LIST its place in the list.
 */
uint64_t cm_sample_number(const cm_sample_space *space, uint64_t epoch, uint64_t i);

/*
 * One array's share of every sample.  Dimension d of the array is dimension
 * axis[d] of the space, or -1: taken whole.
 */
typedef struct cm_sample_part {
    unsigned array; /* number of the array that it reads */
    unsigned rank;
    int axis[CM_MAX_RANK];
    uint64_t shape[CM_MAX_RANK]; /* of the array */
    uint64_t lag;                /* elements along */
    unsigned lagged;             /* that dimension of the space */
} cm_sample_part;

/* Box that PART reads for SAMPLE, a box that cm_sample_at gave. */
void cm_sample_part_box(const cm_sample_part *part, const cm_box *sample, cm_box *out);

/*
 * How an epoch is shared: NSAMPLES of it (at most the space's) among WORLD ranks
 * in batches, as DataLoader and DistributedSampler do it.  Rank r takes samples
 * r, r + WORLD, ...; where they do not come out even the first ones are taken
 * again, or with DROP_LAST the last ones left out, and so is a last batch that is
 * not full.  A rank that leaves the epoch early takes the same samples until then.
 */
typedef struct cm_epoch_share {
    uint64_t nsamples; /* of the epoch, all ranks */
    uint64_t world;
    uint64_t rank;
    uint64_t batch;
    bool drop_last;
    uint64_t leaves_after; /* batches; 0: at the end */

    /* Set by init. */
    uint64_t whole;    /* samples of each rank in the whole epoch */
    uint64_t per_rank; /* of these, what this rank delivers */
    uint64_t nbatches; /* of this rank */
} cm_epoch_share;

/*
 * CM_EINVAL: a number is 0 or exceeds 2^62, RANK is not below WORLD, or nothing is left to
 * deliver.
 */
int cm_epoch_share_init(cm_epoch_share *share, cm_error *err);
/* Number in the epoch of sample K (0 <= K < per_rank) of this rank. */
uint64_t cm_epoch_share_sample(const cm_epoch_share *share, uint64_t k);
/*
 * Place of sample K in the order where each rank has a run of the epoch, so that chunks that
 * several samples need are needed by one rank.  Behind the last place the order begins anew.
 */
uint64_t cm_epoch_share_place(const cm_epoch_share *share, uint64_t k);
/* Samples of batch B: `batch`, fewer for the last. */
uint64_t cm_epoch_share_batch(const cm_epoch_share *share, uint64_t b);

/*
 * How far EPOCH's order (its first N samples; at most 2^20 are looked at, evenly)
 * is from reading in C order: the mean of |place delivered - place in C order| / N.
 * 0 is sequential, 1/3 what a full shuffle gives.  Negative: there was no memory
 * to sort them.
 */
double cm_sample_displacement(const cm_sample_space *space, uint64_t epoch, uint64_t n);

/* A permutation of 0 .. N-1 keyed by KEY: where number I goes.  For shuffles without a list. */
uint64_t cm_permute(uint64_t n, uint64_t key, uint64_t i);

#endif
