/*
 * The ranks that srun or mpirun started, each a process that measures with a pool of its own.
 * With a folder that all of them see (--out), each leaves its report in DIR/rank-K, they begin
 * every epoch together, and rank 0 adds up what all of them say: whether the storage feeds so
 * many nodes.
 *
 * A rank that comes to an epoch makes the file DIR/rank-K/epoch-E.here; it begins when all have.
 * DIR/rank-K/failed is the sentence of a rank that ended, and for a rank that says nothing
 * there is a deadline.
 */
#ifndef CM_READBENCH_RANKS_H
#define CM_READBENCH_RANKS_H

#include "readbench.h"

typedef struct readbench_ranks {
    bool on;
    char *folder; /* of all */
    char *own;    /* of this rank */
    uint64_t n, rank;
    double wait_s; /* for another rank, at most */
    uint64_t turn; /* epochs that this rank came to */
    cm_monitor *monitor;
} readbench_ranks;

/*
 * With ranks of a launcher and --out: V's own folder becomes DIR/rank-K, and each epoch waits for
 * the others.  CM_EINVAL, naming the option, where options do not go with that.
 */
int readbench_ranks_begin(readbench_ranks *r, readbench_values *v, cm_monitor *monitor,
                          cm_error *err);
/*
 * Tells the others that this rank failed with FAILURE (NULL: it did not).  Rank 0 waits for the
 * others' reports, prints what they say together, unless QUIET or JSON, and writes it to
 * DIR/ranks.json.
 */
int readbench_ranks_end(readbench_ranks *r, const cm_error *failure, bool quiet, bool json,
                        cm_error *err);
void readbench_ranks_release(readbench_ranks *r);

#endif
