/* Statistics from inside: what statistics.c counts and statistics_write.c writes. */
#ifndef CM_JOB_STATISTICS_IMPL_H
#define CM_JOB_STATISTICS_IMPL_H

#include <limits.h>
#include <pthread.h>

#include "job/transform/statistics/statistics.h"
#include "model/tally.h"

/* Neighbouring chunks of one level. */
typedef struct cm_statistics_block {
    cm_tally *leaf; /* of each, until all are there; or NULL */
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
};

/* What was counted of LEVEL of V, as readers show it. */
int cm_statistics_level(const cm_job_var *v, uint64_t level, cm_tally *out, cm_error *err);
void cm_statistics_reset(cm_statistics *s);
/* CM_EEXIST where something lies where they will. */
int cm_statistics_check_place(const cm_job *job, const char *target, cm_error *err);

#endif
