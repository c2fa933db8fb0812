/*
 * The cost of reading a part of a variable through a library.
 *
 * HDF5 plans a read with some KiB for every stored chunk that it meets (6 KiB in
 * 1.10: a million chunks of 8 bytes took 6 GiB), and a subset with a step is read
 * with its gaps.  So what is read at once is bounded by both.
 */
#ifndef CM_CONVERT_SOURCE_SPAN_H
#define CM_CONVERT_SOURCE_SPAN_H

#include "convert/job.h"

enum {
    CM_SPAN_MAX_CHUNKS = 1024 /* stored chunks of one read: 6 MiB, and 1 ms at least */
};

/* Source elements from the first to the last of a box of SHAPE of V's target, gaps counted. */
double cm_span_nelem(const cm_job_var *v, const uint64_t *shape);
/* Stored chunks that it meets where it begins with one. */
double cm_span_nchunks(const cm_job_var *v, const uint64_t *shape);

/* Halves SHAPE along its first dimension that can be; false when it is one element. */
bool cm_span_halve(const cm_job_var *v, uint64_t *shape);

#endif
