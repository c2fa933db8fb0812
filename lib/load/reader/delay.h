/*
 * A slower storage, imitated.
 *
 * A request takes LATENCY and NBYTES / BANDWIDTH, and at most CONCURRENCY of them
 * are under way, over all threads and processes that share the memory that a
 * cm_delay lies in.  Each of the CONCURRENCY places is the time at which it is
 * free again; a request takes the place that is free first, moves that time, and
 * sleeps until then.  Nobody holds anything while asleep, so a process that dies
 * leaves nothing locked, and places are taken in the order in which requests come.
 */
#ifndef CM_LOAD_READER_DELAY_H
#define CM_LOAD_READER_DELAY_H

#include "base/mem.h"

enum {
    CM_DELAY_MAX_CONCURRENCY = 4096
};

typedef struct cm_delay cm_delay;

typedef struct cm_delay_model {
    double latency;       /* seconds a request, >= 0 */
    double bandwidth;     /* bytes a second of one stream, > 0; INFINITY: no limit */
    unsigned concurrency; /* 1 .. CM_DELAY_MAX_CONCURRENCY */
} cm_delay_model;

/* In memory that child processes share.  CM_EINVAL for numbers outside these ranges. */
int cm_delay_create(const cm_delay_model *model, cm_delay **out, cm_error *err);
/* Of this process; children unmap theirs when they end.  NULL accepted. */
void cm_delay_free(cm_delay *delay);

/*
 * Makes NREQUESTS requests of NBYTES in all, one after the other as one thread
 * makes them, which really took the IO_NS before now, take as long as they would;
 * returns the time that it added.
 */
uint64_t cm_delay_wait(cm_delay *delay, uint64_t nrequests, uint64_t nbytes, uint64_t io_ns);

#endif
