/*
 * Arrays read box by box by many threads: two against each other, or one for its
 * digest, which needs each of its chunks once, however another is cut.
 */
#ifndef CM_DIGEST_PAIRS_H
#define CM_DIGEST_PAIRS_H

#include "format/array.h"
#include "model/digest.h"
#include "watch/monitor.h"

enum {
    CM_PAIR_DIFFERENCES = 10 /* told of one pair */
};

typedef struct cm_pair {
    cm_array *want, *got; /* of one type and shape; GOT NULL: only the digest of WANT */
    bool sample;          /* a few boxes, where the array is large */
    /* GOT NULL: shown each box of WANT's elements once, by any thread; NULL: nobody asks. */
    void (*see)(void *context, const cm_box *box, const uint8_t *elements);
    void *see_context;

    /* set by cm_pairs_run */
    cm_digest digest; /* of WANT, where GOT is NULL */
    uint64_t nverified;
    unsigned ndifferences;
    char *difference[CM_PAIR_DIFFERENCES]; /* "element 3,4: 1.5 became 2.5; ..." */
    cm_grid boxes;
    uint64_t nboxes, first;
} cm_pair;

/* NBYTES of memory for all buffers, NTHREADS workers at most. */
int cm_pairs_run(cm_pair *pair, size_t n, unsigned nthreads, uint64_t nbytes, cm_monitor *monitor,
                 cm_error *err);
/* A chunk of CHAIN, stored and decoded, and its elements: what one thread takes to digest it. */
size_t cm_pairs_digest_nbytes(const cm_chain *chain);
/*
 * Bytes that the process has, and takes besides to digest A by one thread; 0: A has no chunks, or
 * texts, whose lengths are known only once they are read.
 */
uint64_t cm_pairs_digest_least(const cm_array *a);
void cm_pair_release(cm_pair *pair); /* not the arrays */

#endif
