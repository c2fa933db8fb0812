/* Statistics from inside: what statistics.c counts and statistics_write.c writes. */
#ifndef CM_CONVERT_STATISTICS_STATISTICS_IMPL_H
#define CM_CONVERT_STATISTICS_STATISTICS_IMPL_H

#include <limits.h>
#include <pthread.h>

#include "convert/statistics/statistics.h"
#include "model/tally.h"

enum {
    CM_STATISTICS_BLOCK = 1024 /* chunks whose tallies are kept until all of them are there */
};

/* Neighbouring chunks of one level. */
typedef struct cm_statistics_block {
    cm_tally *leaf; /* of each, until all are there; or NULL */
    bool *there;    /* which of them have come */
    uint32_t left;  /* chunks that have not come */
    cm_tally sum;
} cm_statistics_block;

struct cm_statistics {
    cm_tally_rule rule;
    int level; /* the vertical dimension; -1: none */
    uint64_t nlevels;
    cm_box range; /* elements of the target that are counted */
    uint64_t nplaces, nblocks;
    cm_statistics_block *block; /* NBLOCKS of each level */
    pthread_mutex_t lock;       /* guards the blocks */
    _Atomic uint64_t ns;        /* that counting took, all threads */

    /* statistics_nodes.c: what parts of the store counted, once it was heard of one. */
    struct cm_statistics_node *node;
    size_t nnodes;
    bool heard, sorted;
};
typedef struct cm_statistics_node cm_statistics_node;

/* Sets the numbers of places and blocks from V's layout. */
int cm_statistics_measure(cm_job_var *v, cm_error *err);
uint64_t cm_statistics_block_length(const cm_statistics *s, uint64_t block);
/* The tallies that parts made of LEVEL, as it is stored. */
int cm_statistics_join(const cm_job_var *v, uint64_t level, cm_tally *out, cm_error *err);

/* The tally of LEVEL of V, in the values that readers show. */
int cm_statistics_level(const cm_job_var *v, uint64_t level, cm_tally *out, cm_error *err);

#endif
