/*
 * The target chunks that are in memory: found by number, handed to whoever
 * encodes them when their last piece has come.  Not thread-safe: the engine
 * calls it under its own lock; `left` alone is counted down outside.
 */
#ifndef CM_ENGINE_SLOTS_H
#define CM_ENGINE_SLOTS_H

#include <stdatomic.h>

#include "engine/buffers.h"
#include "engine/transfer.h"

typedef struct cm_slot {
    const cm_transfer *transfer;
    uint64_t number;       /* of the target chunk */
    _Atomic uint64_t left; /* pieces that have not come yet */
    size_t nbytes;         /* of data */
    uint8_t *data;
    struct cm_slot *next;       /* in its hash chain, or in the list of unused slots */
    struct cm_slot *next_ready; /* in the list of those whose pieces have all come */
} cm_slot;

typedef struct cm_slots {
    cm_slot **bucket;
    size_t nbuckets; /* a power of two */
    size_t count;
    cm_slot *unused;
} cm_slots;

int cm_slots_init(cm_slots *s, cm_error *err);
void cm_slots_release(cm_slots *s, cm_buffers *buffers);

cm_slot *cm_slots_find(const cm_slots *s, const cm_transfer *t, uint64_t number);
/* A new slot with a buffer of NBYTES; LEFT pieces are to come. */
cm_slot *cm_slots_add(cm_slots *s, cm_buffers *buffers, const cm_transfer *t, uint64_t number,
                      size_t nbytes, uint64_t left, cm_error *err);
/* Takes SLOT out and gives its buffer back. */
void cm_slots_remove(cm_slots *s, cm_buffers *buffers, cm_slot *slot);

#endif
