/* Facts of a session that several rules ask for, computed once. */
#ifndef CM_BENCH_FACTS_H
#define CM_BENCH_FACTS_H

#include <chunkmill/readbench.h>

typedef struct cm_readbench_facts {
    double stage_share[CM_READBENCH_STAGES]; /* of the loader's time; all 0: not known */
    int largest_stage;                       /* -1: not known */
    double one_core;             /* share of the looks at which one core alone was busy */
    double all_cores;            /* at which all were; both 0 where none was looked at */
    uint64_t nthreads;           /* that read */
    double own_cpus, other_cpus; /* busy, means over the looks; both negative: not known */
    bool contended;              /* by other programs */
    double others_explain;       /* of the loader's time: what they may have taken, at the most */
    /* Decoded bytes over those that the best chunks for these samples need; 0: not known. */
    double excess;
    /* Share of the time of reading and decoding that those would save; negative: not known. */
    double spared;
    cm_readbench_cause cause;

    /* Resident memory: how it went from the second epoch to the last, if it always rose. */
    bool grows;
    uint64_t grew_from, grew_to;
} cm_readbench_facts;

/* All but the cause, which is cm_readbench_find_cause's. */
int cm_readbench_facts_find(const cm_readbench_session *s, cm_readbench_facts *out, cm_error *err);

#endif
