/*
 * Samples the resources that a measurement uses, in a thread of its own: each core, this process
 * and all processes that it started, and GPUs through NVML if that is installed.
 *
 * The record is bounded: when it is full, neighbouring samples are merged in pairs, and sampling
 * continues at half the rate.
 */
#ifndef CM_WATCH_RESOURCES_H
#define CM_WATCH_RESOURCES_H

#include "base/mem.h"

enum {
    CM_RESOURCES_MAX_GPUS = 16
};

typedef struct cm_resources cm_resources;

typedef struct cm_resources_options {
    uint64_t interval_ns; /* 0: 100 ms */
    size_t max_samples;   /* >= 2; 0: 4096 */
    bool gpus;            /* NVML may take half a second to begin */
} cm_resources_options;

typedef struct cm_gpu_use {
    float busy;             /* share of the time that a kernel ran, 0 .. 1; negative: not told */
    uint64_t memory_nbytes; /* used, by anyone */
} cm_gpu_use;

/* An interval of time: shares are means, amounts of memory the greatest. */
typedef struct cm_resource_sample {
    uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
    float cpus;          /* that this process and its children kept busy: 1.5 is one and a half */
    uint32_t nprocesses; /* this one among them */
    uint64_t rss_nbytes; /* of all: each one's own pages, and the largest one's shared ones */
    const float *core;   /* share of the time that each was busy, with anyone's work, 0 .. 1 */
    const cm_gpu_use *gpu;
} cm_resource_sample;

int cm_resources_start(const cm_resources_options *options, cm_resources **out, cm_error *err);
/* Ends the thread; what was recorded is there afterwards and not before. */
void cm_resources_stop(cm_resources *r);
void cm_resources_free(cm_resources *r); /* stops; NULL accepted */

/* Cores that this process may run on, and the system's number of each. */
unsigned cm_resources_ncores(const cm_resources *r);
unsigned cm_resources_ngpus(const cm_resources *r); /* 0 without NVML */
/* The number of the GPU at PCI ("0000:3b:00.0"); cm_resources_ngpus: it is not watched. */
unsigned cm_resources_find_gpu(const cm_resources *r, const char *pci);
uint64_t cm_resources_gpu_memory(const cm_resources *r, unsigned i); /* in all, bytes */

/* After stop. */
size_t cm_resources_count(const cm_resources *r);
void cm_resources_at(const cm_resources *r, size_t i, cm_resource_sample *out);

#endif
