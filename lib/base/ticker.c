#include "base/ticker.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/threads.h"

static void *tick(void *context)
{
    cm_ticker *t = context;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        uint64_t due = cm_now_ns() + t->pause_ns;
        struct timespec until = {.tv_sec = (time_t)(due / 1000000000),
                                 .tv_nsec = (long)(due % 1000000000)};
        while (!t->stop && pthread_cond_timedwait(&t->wake, &t->lock, &until) != ETIMEDOUT)
            continue;
        if (t->stop)
            break;
        pthread_mutex_unlock(&t->lock);
        t->pause_ns = t->fn(t->context);
        pthread_mutex_lock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void release(cm_ticker *t)
{
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    *t = (cm_ticker){0};
}

int cm_ticker_start(cm_ticker *t, uint64_t pause_ns, cm_tick_fn *fn, void *context, cm_error *err)
{
    pthread_condattr_t monotonic;
    *t = (cm_ticker){.fn = fn, .context = context, .pause_ns = pause_ns};
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int errnum = cm_thread_begin(&t->thread, tick, t);
    if (errnum != 0) {
        release(t);
        return cm_fail_errno(err, errnum, "cannot start a thread");
    }
    t->running = true;
    return CM_OK;
}

void cm_ticker_stop(cm_ticker *t)
{
    if (!t->running)
        return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    release(t);
}
