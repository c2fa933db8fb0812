/* Running one function on several threads. */
#ifndef CM_BASE_THREADS_H
#define CM_BASE_THREADS_H

#include <chunkmill/error.h>

typedef void cm_thread_fn(void *context, unsigned worker);

/*
 * Calls FN(CONTEXT, 0 .. N-1), each on its own thread (number 0 on the caller's),
 * and returns when all have.  Where a thread cannot be made, fewer run, with the
 * lowest numbers: FN takes its work from a common place.  Signals stay with the
 * caller's thread.
 */
void cm_threads_run(unsigned n, cm_thread_fn *fn, void *context);

#endif
