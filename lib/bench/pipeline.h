/*
 * A training whose batches workers make ahead of it, simulated: batch K is made by worker K modulo
 * their number, as soon as that is free and batch K - AHEAD was taken; steps take batches in order.
 * Pure.
 */
#ifndef CM_BENCH_PIPELINE_H
#define CM_BENCH_PIPELINE_H

#include <stddef.h>

enum {
    CM_PIPELINE_MOST = 256 /* workers */
};

typedef struct cm_pipeline {
    const double *service; /* seconds that a worker takes for each batch, of a session as it ran */
    size_t n;
    double slower;    /* times these */
    double step;      /* seconds */
    unsigned workers; /* 0: the thread that steps makes them itself */
    unsigned ahead;   /* batches that are made or waiting, at most */
} cm_pipeline;

/* From the first batch's beginning to the last step's end. */
double cm_pipeline_seconds(const cm_pipeline *p);

#endif
