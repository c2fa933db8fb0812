/*
 * The calls that a reader makes for the first batches: which chunks each asks for, and where they
 * go in a batch.
 */
#ifndef CM_BENCH_FORESEE_CALLS_H
#define CM_BENCH_FORESEE_CALLS_H

#include "bench/readbench.h"
#include "load/reader/feed_copy.h"
#include "watch/costs.h"

/* Of one array; one thread's. */
typedef struct cm_batch_calls {
    cm_array *array;
    const cm_load_space *space;
    struct call_box *box;
    size_t nboxes, group; /* chunks of a call, at most */
    uint64_t ncalls;
    uint8_t *arena; /* of a batch; borrowed */
    cm_feed_scratch scratch;
    cm_box now; /* of the call that began */
    uint8_t *dst;
    const cm_feed *feed; /* NULL: elements pass unchanged */
    bool in_place;
} cm_batch_calls;

/*
 * Calls of array number WHICH in the first NBATCHES batches of rank 0, with requests of up to
 * GROUP_NBYTES.  Release in any case.
 */
int cm_batch_calls_make(const cm_bench *b, unsigned which, uint64_t nbatches, size_t group_nbytes,
                        uint8_t *arena, cm_batch_calls *out, cm_error *err);
void cm_batch_calls_release(cm_batch_calls *calls); /* zeroed memory is fine */

/* As a probe takes them; CALLS is borrowed. */
cm_cost_calls cm_batch_calls_costs(cm_batch_calls *calls);

/* Bytes that the calls of all arrays take at most. */
uint64_t cm_batch_calls_nbytes(const cm_bench *b, uint64_t nbatches);

#endif
