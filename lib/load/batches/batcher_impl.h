/*
 * Shared by the files of the batcher, for them alone.
 *
 * A slot is free; or it is being filled for one batch; or it is ready; or the
 * caller has it.  Tasks of the map loader are numbered by their slot.
 */
#ifndef CM_LOAD_BATCHES_BATCHER_IMPL_H
#define CM_LOAD_BATCHES_BATCHER_IMPL_H

#include <pthread.h>

#include "load/batches/batcher.h"

enum {
    CM_BATCHER_NONE = UINT32_MAX /* no slot */
};

typedef enum cm_batcher_slot_state {
    CM_SLOT_FREE,
    CM_SLOT_FILLING,
    CM_SLOT_READY,
    CM_SLOT_TAKEN
} cm_batcher_slot_state;

typedef struct cm_batcher_slot {
    cm_batcher_slot_state state;
    cm_load_batch batch; /* as far as it is known */
    uint64_t *sample;    /* what batch.sample points to */
    size_t sample_capacity;
    uint64_t came; /* unordered: which of the ready ones was first */
} cm_batcher_slot;

typedef struct cm_planned cm_planned; /* an epoch of the planned loader */

struct cm_batcher {
    cm_pool *pool;
    cm_arena *arena;
    cm_batcher_options options;
    size_t *part_nbytes; /* own copy */
    size_t part_total;   /* their sum */
    bool sync;
    pthread_mutex_t lock; /* guards what follows; taken before the pool's */
    cm_batcher_slot *slot;
    uint32_t *free_slot; /* a stack */
    unsigned nfree;
    /* for each worker: map loader, batches that it has and that are not taken; planned, tasks */
    unsigned *given;
    cm_load_task *task; /* where tasks are put together */
    const cm_epoch_share *share;
    uint64_t epoch;
    uint64_t nbatches;
    uint64_t next; /* batch to hand out; planned: or in part handed out */
    uint64_t taken;
    uint64_t came;
    unsigned outstanding; /* tasks */
    cm_planned *planned;  /* NULL: map loader */
};

/* ---- batcher_slots.c ---- */

/*
 * A free slot for batch NUMBER of NSAMPLES, its offset in the arena and its samples to be
 * filled in; CM_BATCHER_NONE: none is free.
 */
int cm_batcher_slot_get(cm_batcher *l, uint64_t number, uint64_t nsamples, uint32_t *out,
                        cm_error *err);
void cm_batcher_slot_put(cm_batcher *l, uint32_t slot);
/* Bytes from the arena's beginning. */
size_t cm_batcher_slot_offset(const cm_batcher *l, uint32_t slot);
/* The loader's worker that has the fewest. */
unsigned cm_batcher_idlest(const cm_batcher *l);
void cm_load_batch_fail(cm_load_batch *batch, int status, const char *text);

/* The slot of the batch that comes next and is ready; CM_BATCHER_NONE: it is not. */
uint32_t cm_batcher_slot_ready(const cm_batcher *l);

/* ---- batcher_map.c ---- */

int cm_batcher_map_dispatch(cm_batcher *l, cm_error *err);
void cm_batcher_map_result(cm_batcher *l, const cm_load_result *r);

/* ---- planned.c ---- */

int cm_planned_begin(cm_batcher *l, cm_error *err);
void cm_planned_end(cm_batcher *l); /* frees it; nothing is outstanding */
int cm_planned_dispatch(cm_batcher *l, cm_error *err);
void cm_planned_result(cm_batcher *l, const cm_load_result *r);
/* Results of chunks before which none of them lets a run be cut; at least 1. */
unsigned cm_planned_wanted(const cm_batcher *l);

#endif
