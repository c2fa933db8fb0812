/* Numbers of a session that follow from others of it. */
#ifndef CM_BENCH_SUMMARY_H
#define CM_BENCH_SUMMARY_H

#include <chunkmill/readbench.h>

/*
 * Holds what was asked of storage against what the probe gave, where both met the store in the
 * same place, disk or page cache, and the probe was the faster one: a bound that is passed is none.
 */
void cm_readbench_compare_storage(cm_readbench_session *s);

/*
 * Which accelerators are fed, each needing EACH bytes a second (0: no answer).  What they got is
 * their need for the share of time that they step, first steps left out as in the waits.
 */
void cm_readbench_feed(cm_readbench_session *s, double each);

#endif
