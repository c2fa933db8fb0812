/* Plans a transfer: the order of its pieces, and the memory for slots, batches and buffers. */
#ifndef CM_ENGINE_PLAN_H
#define CM_ENGINE_PLAN_H

#include "engine/transfer.h"

/* Bytes of each of a worker's own buffers. */
typedef struct cm_worker_need {
    size_t reading; /* that read_box takes besides its destination */
    size_t stored, decoded, encoded, converted, spilled;
    size_t batch, packed;      /* several tiny chunks as stored: of the source, of a shard */
    size_t decoding, encoding; /* what codecs take beside them */
    struct {
        bool stored, decoded, encoded, converted;
    } sends;          /* what is handed over to the target, where it sends */
    size_t sent_slot; /* of the slots that are */
} cm_worker_need;

/*
 * Raises NEED to what T needs, before any plan: one worker's buffers serve all transfers of a
 * run.
 */
void cm_transfer_worker_need(const cm_transfer *t, size_t piece_nbytes, cm_worker_need *need);
size_t cm_worker_need_nbytes(const cm_worker_need *need);
/* Memory of a chunk that is handed over, if it has no slot. */
size_t cm_worker_sent_nbytes(const cm_worker_need *need);
/* Bytes of one slot for a whole target chunk, whole pages. */
size_t cm_transfer_slot_nbytes(const cm_transfer *t);

/* T reads its source by SWEEP; worker_nbytes is for the caller to set. */
void cm_transfer_adopt(cm_transfer *t, const cm_sweep *sweep);
/*
 * How many shards of the target are written at once by NTHREADS workers with slots as SWEEP
 * has them.
 */
uint64_t cm_transfer_open_shards(const cm_transfer *t, const cm_sweep *sweep, unsigned nthreads);

/* How many chunks of the source, and of the target, a worker takes at once. */
size_t cm_transfer_source_batch(const cm_transfer *t);
size_t cm_transfer_target_batch(const cm_transfer *t);
/* True when encoded chunks are put side by side before they go into a shard. */
bool cm_transfer_packs(const cm_transfer *t);
/* True when the source can be cut anywhere. */
bool cm_transfer_is_sliceable(const cm_transfer *t);

#endif
