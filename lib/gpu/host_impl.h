/*
 * The device `host`: its streams are threads that take work from a queue.  One
 * lock and one condition guard all queues and events of a device; there are few.
 */
#ifndef CM_GPU_HOST_IMPL_H
#define CM_GPU_HOST_IMPL_H

#include <pthread.h>

#include "gpu/device_impl.h"

enum {
    HOST_QUEUE = 64 /* pieces of work on a stream; who puts more waits */
};

typedef struct host_device {
    cm_device base;
    uint64_t memory_nbytes; /* 0: what is free */
    uint64_t used_nbytes;
    bool refuse_lock;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} host_device;

typedef struct host_memory {
    cm_device_memory base;
    uint8_t *data;
} host_memory;

typedef struct host_event {
    cm_event base;
    uint64_t nrecorded; /* times that it was put on a stream */
    uint64_t nreached;
    uint64_t nqueued; /* pieces of work that name it */
    uint64_t time_ns;
} host_event;

typedef enum host_work_kind {
    HOST_COPY,
    HOST_FILL,
    HOST_CHECKSUM, /* dst: a cm_checksum */
    HOST_BUSY,
    HOST_RECORD,
    HOST_AFTER
} host_work_kind;

typedef struct host_work {
    host_work_kind kind;
    void *dst;
    const void *src;
    size_t nbytes;
    uint64_t value; /* pattern, nanoseconds, or the nrecorded to wait for */
    host_event *event;
} host_work;

typedef struct host_stream {
    cm_stream base;
    pthread_t thread;
    host_work queue[HOST_QUEUE];
    uint64_t nput, ndone; /* the work at ndone % HOST_QUEUE is under way */
    bool stop;
} host_stream;

/* Puts WORK on S; waits while the queue is full. */
void cm_host_put(host_stream *s, host_work work);

int cm_host_stream_open(cm_device *d, cm_stream **out, cm_error *err);
void cm_host_stream_close(cm_stream *s);
int cm_host_sync(cm_stream *s, cm_error *err);
int cm_host_after(cm_stream *s, const cm_event *e, cm_error *err);
int cm_host_event_open(cm_device *d, bool timed, cm_event **out, cm_error *err);
void cm_host_event_close(cm_event *e);
int cm_host_record(cm_event *e, cm_stream *s, cm_error *err);
int cm_host_wait(cm_event *e, cm_error *err);
int cm_host_time(cm_event *e, uint64_t *ns, cm_error *err);
int cm_host_span(cm_event *a, cm_event *b, uint64_t *ns, cm_error *err);

#endif
