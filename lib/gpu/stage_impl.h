/* A stage: a ring of buffers on the device, used and freed in the order of submission. */
#ifndef CM_GPU_STAGE_IMPL_H
#define CM_GPU_STAGE_IMPL_H

#include "gpu/stage.h"

typedef struct stage_buffer {
    cm_device_memory *memory;
    cm_event *copied; /* untimed: what is waited for */
    cm_event *copy_start, *copy_end;
    cm_staged batch;
} stage_buffer;

typedef struct stage_region {
    uint8_t *memory;
    size_t nbytes;
} stage_region;

struct cm_stage {
    cm_stage_options options; /* nbuffers as used */
    cm_validate validate;
    cm_stream *copying, *computing;
    cm_event *step_start, *step_end;
    stage_buffer buffers[CM_STAGE_MAX_BUFFERS];
    stage_region locked[CM_STAGE_MAX_LOCKED];
    size_t nlocked;
    cm_lock_report lock_report;
    uint8_t *back; /* page-locked, batch_nbytes: a batch that came back */

    /* Batches of the pass; number n is in buffers[n % nbuffers]. */
    uint64_t nsubmitted, nreleased;
    bool waited;  /* batch nreleased is on the device */
    bool stepped; /* and its step was begun */
    cm_stage_step_times step;
    /* The latest steps: a copy is on its way during as many as there are buffers. */
    cm_stage_step_times steps[CM_STAGE_MAX_BUFFERS];
    uint64_t nsteps;
    cm_stage_report report;
};

static inline stage_buffer *stage_buffer_of(cm_stage *s, uint64_t n)
{
    return &s->buffers[n % s->options.nbuffers];
}

#endif
