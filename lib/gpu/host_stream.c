#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/threads.h"
#include "gpu/host_impl.h"

static host_device *device_of(const cm_stream *s)
{
    return (host_device *)s->device;
}

/* ---- the thread of a stream ----------------------------------------------------------------- */

static void sleep_until(uint64_t ns)
{
    const struct timespec at = {.tv_sec = (time_t)(ns / 1000000000),
                                .tv_nsec = (long)(ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

/* Called without the lock. */
static void run_work(const host_work *w)
{
    switch (w->kind) {
    case HOST_COPY:
        memcpy(w->dst, w->src, w->nbytes);
        break;
    case HOST_FILL:
        memset(w->dst, (int)w->value, w->nbytes);
        break;
    case HOST_CHECKSUM: {
        const cm_checksum c = cm_checksum_of(w->src, w->nbytes);
        memcpy(w->dst, &c, sizeof c);
        break;
    }
    case HOST_BUSY:
        sleep_until(cm_now_ns() + w->value);
        break;
    case HOST_RECORD:
    case HOST_AFTER:
        break;
    }
}

/* Called with the lock held. */
static void finish_work(host_device *h, const host_work *w)
{
    if (w->event == NULL)
        return;
    if (w->kind == HOST_RECORD) {
        w->event->time_ns = cm_now_ns();
        w->event->nreached++;
    } else
        while (w->event->nreached < w->value)
            pthread_cond_wait(&h->changed, &h->lock);
    w->event->nqueued--;
}

static void *stream_main(void *arg)
{
    host_stream *s = arg;
    host_device *h = device_of(&s->base);
    pthread_mutex_lock(&h->lock);
    for (;;) {
        while (s->ndone == s->nput && !s->stop)
            pthread_cond_wait(&h->changed, &h->lock);
        if (s->ndone == s->nput)
            break;
        const host_work *w = &s->queue[s->ndone % HOST_QUEUE];
        pthread_mutex_unlock(&h->lock);
        run_work(w);
        pthread_mutex_lock(&h->lock);
        finish_work(h, w);
        s->ndone++;
        pthread_cond_broadcast(&h->changed);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

int cm_host_stream_open(cm_device *d, cm_stream **out, cm_error *err)
{
    host_stream *s = cm_calloc(1, sizeof *s, err);
    if (s == NULL)
        return CM_ENOMEM;
    s->base.device = d;
    const int rc = cm_thread_begin(&s->thread, stream_main, s);
    if (rc != 0) {
        free(s);
        return cm_fail_errno(err, rc, "host: no thread for copying");
    }
    *out = &s->base;
    return CM_OK;
}

void cm_host_stream_close(cm_stream *base)
{
    host_stream *s = (host_stream *)base;
    host_device *h = device_of(base);
    pthread_mutex_lock(&h->lock);
    s->stop = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    pthread_join(s->thread, NULL);
    free(s);
}

/* Called with the lock held. */
static void put_locked(host_stream *s, const host_work *work)
{
    host_device *h = device_of(&s->base);
    while (s->nput - s->ndone == HOST_QUEUE)
        pthread_cond_wait(&h->changed, &h->lock);
    s->queue[s->nput++ % HOST_QUEUE] = *work;
    pthread_cond_broadcast(&h->changed);
}

void cm_host_put(host_stream *s, host_work work)
{
    host_device *h = device_of(&s->base);
    pthread_mutex_lock(&h->lock);
    put_locked(s, &work);
    pthread_mutex_unlock(&h->lock);
}

int cm_host_sync(cm_stream *base, cm_error *err)
{
    (void)err;
    host_stream *s = (host_stream *)base;
    host_device *h = device_of(base);
    pthread_mutex_lock(&h->lock);
    const uint64_t all = s->nput;
    while (s->ndone < all)
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
    return CM_OK;
}

int cm_host_after(cm_stream *base, const cm_event *event, cm_error *err)
{
    (void)err;
    host_device *h = device_of(base);
    host_work work = {.kind = HOST_AFTER, .event = (host_event *)event};
    pthread_mutex_lock(&h->lock);
    work.value = work.event->nrecorded;
    work.event->nqueued++;
    put_locked((host_stream *)base, &work);
    pthread_mutex_unlock(&h->lock);
    return CM_OK;
}

/* ---- events --------------------------------------------------------------------------------- */

int cm_host_event_open(cm_device *d, bool timed, cm_event **out, cm_error *err)
{
    host_event *e = cm_calloc(1, sizeof *e, err);
    if (e == NULL)
        return CM_ENOMEM;
    e->base = (cm_event){.device = d, .timed = timed};
    *out = &e->base;
    return CM_OK;
}

void cm_host_event_close(cm_event *base)
{
    host_event *e = (host_event *)base;
    host_device *h = (host_device *)base->device;
    pthread_mutex_lock(&h->lock);
    while (e->nqueued)
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
    free(e);
}

int cm_host_record(cm_event *base, cm_stream *stream, cm_error *err)
{
    (void)err;
    host_device *h = device_of(stream);
    host_stream *s = (host_stream *)stream;
    host_event *e = (host_event *)base;
    const host_work work = {.kind = HOST_RECORD, .event = e};
    pthread_mutex_lock(&h->lock);
    e->nrecorded++;
    e->nqueued++;
    /* On an idle stream it is reached now, not when the thread comes to run. */
    if (s->ndone == s->nput) {
        finish_work(h, &work);
        pthread_cond_broadcast(&h->changed);
    } else
        put_locked(s, &work);
    pthread_mutex_unlock(&h->lock);
    return CM_OK;
}

int cm_host_wait(cm_event *base, cm_error *err)
{
    (void)err;
    host_event *e = (host_event *)base;
    host_device *h = (host_device *)base->device;
    pthread_mutex_lock(&h->lock);
    while (e->nreached < e->nrecorded)
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
    return CM_OK;
}

int cm_host_time(cm_event *e, uint64_t *ns, cm_error *err)
{
    (void)err;
    host_device *h = (host_device *)e->device;
    pthread_mutex_lock(&h->lock);
    *ns = ((host_event *)e)->time_ns;
    pthread_mutex_unlock(&h->lock);
    return CM_OK;
}

int cm_host_span(cm_event *a, cm_event *b, uint64_t *ns, cm_error *err)
{
    uint64_t from, to;
    (void)cm_host_time(a, &from, err);
    (void)cm_host_time(b, &to, err);
    *ns = to > from ? to - from : 0;
    return CM_OK;
}
