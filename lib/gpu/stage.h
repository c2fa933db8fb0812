/*
 * From ready batches in memory to the device, with the next batch on its way
 * while the step runs on the last.
 *
 *     cm_stage_open, cm_stage_lock(the memory in which batches will lie)
 *     cm_stage_begin(NONE)                                        a pass
 *         while there are batches
 *             while cm_stage_room: take a batch, cm_stage_submit
 *             cm_stage_wait           the oldest is on the device
 *             cm_stage_step           the step begins on it
 *                 (more may be submitted here)
 *             cm_stage_release        the step has ended
 *     cm_stage_begin(FULL)           the same batches again, not timed:
 *         ... cm_stage_wait, cm_stage_validate, cm_stage_release ...
 *
 * Batches are waited for and released in the order in which they were submitted.
 * Calls out of order are CM_EINVAL and change nothing.  After any other failure
 * the stage can only be freed.
 *
 * Threads: a stage and its device belong to one thread at a time, the consumer of
 * one rank.  Each rank opens its own.  The batches may have been written by other
 * threads that the consumer has synchronised with, as by taking them from a queue.
 */
#ifndef CM_GPU_STAGE_H
#define CM_GPU_STAGE_H

#include "gpu/device.h"

typedef struct cm_stage cm_stage;

typedef enum cm_staging {
    CM_STAGING_PINNED,  /* batches lie in page-locked memory: the device fetches them itself */
    CM_STAGING_PAGEABLE /* they do not: the driver copies them first */
} cm_staging;

typedef enum cm_validate {
    CM_VALIDATE_NONE,
    CM_VALIDATE_CHECKSUM, /* computed on the device; copied back only to find where it differs */
    CM_VALIDATE_FULL      /* copied back and compared byte by byte */
} cm_validate;

typedef enum cm_step {
    CM_STEP_TIME,  /* the consumer sleeps */
    CM_STEP_DEVICE /* the device is kept busy (on host: a thread sleeps) */
} cm_step;

enum {
    CM_STAGE_MAX_BUFFERS = 64,
    CM_STAGE_MAX_LOCKED = 64,
    CM_STAGE_POISON = 0xa5 /* what a buffer of the device holds before a batch that is validated */
};

typedef struct cm_stage_options {
    cm_device *device; /* not owned; must outlive the stage */
    cm_staging staging;
    bool synchronous;    /* one batch at a time: none is on its way during a step */
    unsigned nbuffers;   /* on the device, 1 ... CM_STAGE_MAX_BUFFERS; 0: 2.  Synchronous uses 1 */
    size_t batch_nbytes; /* the largest batch */
    cm_step step;
    uint64_t step_ns;
} cm_stage_options;

/* CM_ENOMEM when the device has no room for the buffers. */
int cm_stage_open(const cm_stage_options *options, cm_stage **out, cm_error *err);
/* Waits for copies under way, unlocks memory, frees everything.  NULL is accepted. */
void cm_stage_free(cm_stage *s);

/*
 * Page-locks NBYTES at MEMORY, in which batches will lie, until the stage is freed;
 * what it took is added to the report.  Where staging is pageable nothing is done.
 */
int cm_stage_lock(cm_stage *s, void *memory, size_t nbytes, cm_error *err);
/* Page-locking so far, all calls together. */
const cm_lock_report *cm_stage_locked(const cm_stage *s);

/* Begins a pass with counts from 0, when no batch is on its way. */
int cm_stage_begin(cm_stage *s, cm_validate validate, cm_error *err);

/* True when a buffer of the device is free. */
bool cm_stage_room(const cm_stage *s);

/*
 * Starts copying the NBYTES at HOST, batch number TAG.  They must stay as they are until the batch
 * is released.  With pinned staging they lie in locked memory.
 */
int cm_stage_submit(cm_stage *s, uint64_t tag, const void *host, size_t nbytes, cm_error *err);

/* Times are those of cm_now_ns(). */
typedef struct cm_staged {
    uint64_t tag;
    const void *host;
    size_t nbytes;
    uint64_t queued_ns;                  /* submitted */
    uint64_t copy_start_ns, copy_end_ns; /* by the device's clock */
    uint64_t ready_ns;                   /* the consumer knew */
    uint64_t wait_ns;                    /* for which it was blocked */
} cm_staged;

/* Blocks until the oldest batch is on the device. */
int cm_stage_wait(cm_stage *s, cm_staged *out, cm_error *err);

/* Begins the step on the batch that was waited for.  Returns at once. */
int cm_stage_step(cm_stage *s, cm_error *err);

typedef struct cm_stage_step_times {
    uint64_t start_ns, end_ns; /* by the device's clock with CM_STEP_DEVICE; 0 without a step */
} cm_stage_step_times;

/* Blocks until the step has ended, if one was begun, and frees the buffer.  OUT may be NULL. */
int cm_stage_release(cm_stage *s, cm_stage_step_times *out, cm_error *err);

/* A part of a batch that has a name: a variable. */
typedef struct cm_stage_span {
    const char *name;
    uint64_t offset, nbytes; /* within the batch */
} cm_stage_span;

typedef struct cm_mismatch {
    uint64_t tag;
    const char *name;     /* of the first span that holds the byte; NULL: none does */
    uint64_t offset;      /* of the first byte that differs, in the batch */
    uint64_t span_offset; /* and in the span */
    uint8_t expected, found;
    uint64_t nbytes; /* that differ, in the whole batch; 0: only the checksum does */
} cm_mismatch;

/*
 * Compares the batch that was waited for, as it is on the device, with what was submitted, in the
 * way that cm_stage_begin was told.  CM_EDIFFER names the batch, variable and offset, and fills
 * OUT, which may be NULL; the stage may be used further.
 */
int cm_stage_validate(cm_stage *s, const cm_stage_span *spans, size_t nspans, cm_mismatch *out,
                      cm_error *err);

/* Of the pass, so far.  Sums over batches that were waited for. */
typedef struct cm_stage_report {
    uint64_t nbatches;
    uint64_t nbytes;
    uint64_t queue_ns;  /* between submitting and the start of the copy */
    uint64_t copy_ns;   /* from start to end of each copy */
    uint64_t hidden_ns; /* of that, while a step ran: overlap achieved is hidden_ns / copy_ns */
    uint64_t wait_ns;   /* the consumer was blocked in cm_stage_wait */
    uint64_t step_ns;   /* from start to end of each step */
    uint64_t validated_nbytes;
    uint64_t nmismatches; /* batches that differed */
} cm_stage_report;

const cm_stage_report *cm_stage_get_report(const cm_stage *s);

/* Expected rates in bytes/s, of one size, measured with buffers of the probe's own. */
typedef struct cm_link_rates {
    double pinned;   /* host to device, page-locked, copies back to back */
    double pageable; /* the same from memory that is not */
    double memory;   /* memcpy on one core, from memory to memory */
    size_t nbytes;   /* of one copy */
    unsigned ncopies;
    cm_device_link link; /* just after copying */
} cm_link_rates;

/* Copies NBYTES (at least 1) a number of times each way, for about a fifth of a second each. */
int cm_probe_link(cm_device *d, size_t nbytes, cm_link_rates *out, cm_error *err);

#endif
