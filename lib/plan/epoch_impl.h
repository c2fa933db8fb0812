/*
 * The steps of an epoch's plan: which samples meet which chunks, then in which order chunks
 * come.
 */
#ifndef CM_PLAN_EPOCH_IMPL_H
#define CM_PLAN_EPOCH_IMPL_H

#include "plan/epoch.h"

typedef struct cm_epoch_meeting { /* one part of a sample needs one chunk */
    uint32_t chunk;               /* its number among the distinct ones, in C order */
    uint32_t part;
} cm_epoch_meeting;

typedef struct cm_epoch_distinct {
    uint64_t number; /* in its array's grid */
    uint32_t array;
} cm_epoch_distinct;

typedef struct cm_epoch_meetings {
    uint32_t nsamples;
    uint32_t *begin; /* nsamples + 1: where the meetings of sample K of the rank begin */
    cm_epoch_meeting *meeting;
    uint32_t nmeetings;
    cm_epoch_distinct *chunk;
    uint32_t nchunks;
} cm_epoch_meetings;

/* epoch_meetings.c.  To be released whatever is returned. */
int cm_epoch_meetings_find(const cm_epoch_request *request, cm_epoch_meetings *out, cm_error *err);
void cm_epoch_meetings_release(cm_epoch_meetings *meetings);

/* epoch_sort.c: puts the distinct chunks in C order. */
int cm_epoch_meetings_sort(const cm_epoch_request *request, cm_epoch_meetings *meetings,
                           cm_error *err);

/* One order of chunks, and when its samples are begun and complete. */
typedef struct cm_epoch_order {
    cm_chunk_order order;
    uint32_t *chunk; /* by position */
    uint32_t *first; /* by sample of the rank: positions of its first and last chunk */
    uint32_t *last;
    uint64_t peak_stash;
} cm_epoch_order;

/* epoch_order.c: the first order whose stash fits.  To be released whatever is returned. */
int cm_epoch_order_choose(const cm_epoch_request *request, const cm_epoch_meetings *meetings,
                          cm_epoch_order *out, cm_error *err);
void cm_epoch_order_release(cm_epoch_order *order);

/*
 * The greatest number of the N intervals begin[i] .. end[i] (below NPOSITIONS) that share a
 * position.
 */
int cm_epoch_peak(const uint32_t *begin, const uint32_t *end, size_t n, size_t npositions,
                  uint64_t *peak, cm_error *err);

#endif
