/* Running functions on other threads. */
#ifndef CM_BASE_THREADS_H
#define CM_BASE_THREADS_H

#include <chunkmill/error.h>
#include <pthread.h>

typedef void cm_thread_fn(void *context, unsigned worker);

/*
 * Calls FN(CONTEXT, 0 .. N-1), each on its own thread (number 0 on the caller's), and returns when
 * all have.  If a thread cannot be started, fewer run, with the lowest numbers: FN must take its
 * work from a shared place.  Signals stay with the caller's thread.
 */
void cm_threads_run(unsigned n, cm_thread_fn *fn, void *context);

/*
 * Runs FN(CONTEXT) on a thread that takes no signals; returns when the thread runs: a fork while a
 * thread is being created would leave locks held for ever in the child (AddressSanitizer's
 * allocator has one).  Returns 0 or an errno.
 */
int cm_thread_begin(pthread_t *thread, void *(*fn)(void *), void *context);

#endif
