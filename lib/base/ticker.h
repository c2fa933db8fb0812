/* Calls a function periodically on a thread of its own. */
#ifndef CM_BASE_TICKER_H
#define CM_BASE_TICKER_H

#include <chunkmill/error.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the pause before the next call. */
typedef uint64_t cm_tick_fn(void *context);

/* Zeroed: not running. */
typedef struct cm_ticker {
    cm_tick_fn *fn;
    void *context;
    uint64_t pause_ns; /* before the next call */
    bool running;
    bool stop;
    pthread_t thread;
    pthread_mutex_t lock; /* guards stop */
    pthread_cond_t wake;
} cm_ticker;

/*
 * Calls FN(CONTEXT) first after PAUSE_NS.  The thread runs when this returns (cm_thread_begin).
 * Fails if no thread can be started.
 */
int cm_ticker_start(cm_ticker *t, uint64_t pause_ns, cm_tick_fn *fn, void *context, cm_error *err);
/*
 * When this returns, no call is under way and none will follow.  Does nothing if it is not running.
 */
void cm_ticker_stop(cm_ticker *t);

#endif
