/*
 * Predicts and measures the time of a batch that one thread reads alone, without cache, plan or
 * step:
 *
 *     wall = calls x call + requests x request + stored bytes x byte + chunks x chunk
 *
 * A call asks for several chunks at once; it has a cost of its own only where its requests run
 * concurrently.  The reader counts its requests (cm_reader_count); costs are probed on chunks that
 * the batches ask for (watch/costs.h).  A chunk's is decoding and going to the samples.
 */
#ifndef CM_BENCH_FORESEE_H
#define CM_BENCH_FORESEE_H

#include "watch/costs.h"

/* Share of one array in a batch, all samples together. */
typedef struct cm_batch_work {
    uint64_t calls, requests, stored_nbytes; /* stored bytes 0: storage alone knows them */
    uint64_t chunks;                         /* met, those met twice counted twice */
    uint64_t distinct;                       /* of them */
} cm_batch_work;

/* How slow the storage is made; latency 0 and bandwidth 0: not at all. */
typedef struct cm_slowed {
    double latency, bandwidth;
} cm_slowed;

/*
 * Seconds of WORK.  AGAIN are the costs of chunks that the batch met before, COSTS those of the
 * first meeting: they differ where storage is cold.
 */
cm_seconds cm_foresee(const cm_batch_work *work, const cm_chunk_costs *costs,
                      const cm_chunk_costs *again, const cm_slowed *slowed);

#endif
