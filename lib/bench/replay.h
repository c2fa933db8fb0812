/* Reads that another program made, as the samples of a session. */
#ifndef CM_BENCH_REPLAY_H
#define CM_BENCH_REPLAY_H

#include <chunkmill/readbench.h>

typedef struct cm_bench_replay cm_bench_replay;

/*
 * The reads in the log `replay` of OPTIONS, of their first store.  OPTIONS then say what follows
 * from the log where they said nothing: variables, workers, mode; and sentences about it go into
 * REPORT.  *OUT outlives the sessions and is to be freed whatever is returned.
 */
int cm_bench_replay_open(cm_readbench_options *options, cm_readbench_report *report,
                         cm_bench_replay **out, cm_error *err);
void cm_bench_replay_free(cm_bench_replay *replay); /* NULL accepted */

#endif
