/*
 * Measures this machine's limits in the same run: copying memory, and reading stored bytes without
 * decoding them.
 */
#ifndef CM_WATCH_PROBE_H
#define CM_WATCH_PROBE_H

#include "format/array.h"

/*
 * Bytes a second that one thread copies in about SECONDS, from one half of NBYTES
 * (at least 2 MiB) to the other.  Beyond the caches only where NBYTES is several
 * times as large as they are: 512 MiB is, on any machine.
 */
int cm_probe_memory(size_t nbytes, double seconds, double *rate, cm_error *err);

/* A stored chunk by its number, or of an array that is not chunked a box. */
typedef struct cm_probe_item {
    cm_array *array;
    uint64_t number;
    cm_box box;
} cm_probe_item;

typedef struct cm_probe_result {
    double seconds;
    uint64_t nbytes; /* that storage gave */
    uint64_t nrequests;
    uint64_t nchunks; /* read, missing ones not counted */
} cm_probe_result;

/*
 * Reads ITEMs, in their order, with NTHREADS threads that take some at a time,
 * until all are read or SECONDS (0: no limit) are over.
 */
int cm_probe_storage(const cm_probe_item *item, size_t n, unsigned nthreads, double seconds,
                     cm_probe_result *out, cm_error *err);

/* Bytes that each of its threads takes for stored chunks of A, at most. */
uint64_t cm_probe_fetch_nbytes(const cm_array *a);

#endif
