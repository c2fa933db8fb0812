/*
 * The planned loader where a device decodes: which chunk travels with which batch.
 *
 * Each chunk of an epoch's plan (plan/epoch.h) travels once and is decoded once, into a *frame*, a
 * place of the device's scratch.  It stays there until the last batch that needs it is made; boxes
 * of all those batches are copied from the frame.
 *
 * The chunks that travel for one batch are its *load*.  Chunks travel as late as possible, so that
 * few frames are needed, but no load exceeds the mean of all loads by more than one chunk.  Loads
 * that come before the first batch have chunks alone; then each batch comes with its load.
 *
 * Loads are decoded in order.  If a chunk cannot be packed or its load does not reach the device,
 * the chunk fails, and every batch that needs it; other batches do not.
 *
 * Threads: a load's chunks belong to the worker that packs it, until its result was received.
 */
#ifndef CM_LOAD_BATCHES_CARRY_H
#define CM_LOAD_BATCHES_CARRY_H

#include "load/batches/pack.h"
#include "plan/epoch.h"

#define CM_CARRY_NO_FRAME UINT64_MAX

typedef struct cm_carry_chunk {
    uint64_t number; /* in its array's grid */
    uint32_t array;
    uint32_t load;        /* that it travels with */
    uint32_t first, last; /* loads whose batches need it */
    uint64_t frame;       /* offset in the scratch; CM_CARRY_NO_FRAME: only its own load needs it */
    bool missing;         /* it is not stored */
    int status;           /* CM_OK, or it is not on the device, and `why` says why not */
    char *why;            /* NULL: there was no memory to say it */
} cm_carry_chunk;

typedef struct cm_carry_use { /* one part of one sample of a batch needs one chunk */
    uint32_t chunk, part, piece;
} cm_carry_use;

struct cm_carry {
    const cm_epoch_plan *plan;
    uint64_t batch, first_batch; /* samples; the first that is made */
    uint32_t nloads, nbefore;    /* of them, those that come before a batch */
    cm_carry_chunk *chunk;
    size_t nchunks;
    uint32_t *carried;  /* chunks by load; */
    size_t *carried_at; /* load l has carried[carried_at[l]] up to carried_at[l + 1] */
    cm_carry_use *use;  /* by load, of its batch */
    size_t *use_at;
    uint64_t frames_nbytes; /* at the beginning of the scratch */
    cm_pack_tally most;     /* of a load, without its frames */
};

typedef struct cm_carry cm_carry;

/*
 * The loads of PLAN, which begins with FIRST_BATCH (cm_epoch_plan_skip) and is borrowed; of IN only
 * arrays and parts are looked at.  OUT is valid, and to be released, whatever is returned.
 */
int cm_carry_make(const cm_epoch_plan *plan, const cm_epoch_share *share, uint64_t first_batch,
                  const cm_load_arrays *in, const cm_proof *proof, cm_carry *out, cm_error *err);
void cm_carry_release(cm_carry *carry);
/* What making and keeping it takes, beside the plan. */
uint64_t cm_carry_nbytes(const cm_epoch_plan *plan);

/* That chunk failed, by the worker that packs it. */
void cm_carry_fail(cm_carry_chunk *chunk, int status, const char *why);
/* A load did not reach the device, or was not decoded: its chunks failed. */
void cm_carry_lose(cm_carry *carry, uint32_t load, int status, const char *why);
/* Of the batch of LOAD, a chunk that failed; NULL: none.  *MISSING: one is not stored. */
const cm_carry_chunk *cm_carry_check(const cm_carry *carry, uint32_t load, bool *missing);

#endif
