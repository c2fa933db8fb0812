/*
 * Advice: changes are simulated on the batches that a session made, and the one that is predicted
 * to make its samples come fastest is proposed.  None is proposed whose gain is below
 * CM_RULE_PROPOSED, or CM_RULE_REWRITTEN where the store has to be written anew for it.
 *
 * The time of a batch with other chunks or another codec is that of the cost model (plan/cost.h),
 * which is held against the batch as it was measured: where it promises too little time for the
 * present chunks, it is as wrong for others, and copying elements into samples stays.  More workers
 * are no gain beyond the CPUs that are left, the streams of an emulated storage, and the rate that
 * storage gave to more threads.  Pure.
 */
#ifndef CM_BENCH_PROPOSE_H
#define CM_BENCH_PROPOSE_H

#include "bench/facts.h"

int cm_readbench_propose(const cm_readbench_session *s, const cm_readbench_facts *f,
                         cm_readbench_proposal *out, cm_error *err);

#endif
