/*
 * Target chunks on their way out: converted, padded, encoded, and put.
 */
#ifndef CM_ENGINE_DELIVER_H
#define CM_ENGINE_DELIVER_H

#include "engine/worker.h"

/*
 * Target chunk COORD, number NUMBER, whose elements inside the array are VALID, is
 * ELEMENTS: whole, in the source's type, changed here.  Put before cm_worker_flush
 * has returned.
 */
int cm_worker_deliver(cm_worker *w, const cm_transfer *t, uint64_t number, const uint64_t *coord,
                      const cm_box *valid, uint8_t *elements, cm_error *err);
/* Leaves target chunk NUMBER out, which holds nothing but the fill value. */
int cm_worker_skip(cm_worker *w, const cm_transfer *t, uint64_t number, cm_error *err);
/* Delivers a chunk that is encoded already. */
int cm_worker_put(cm_worker *w, const cm_transfer *t, uint64_t number, const uint8_t *data,
                  size_t nbytes, cm_error *err);
/* cm_worker_put without a copy: DATA must stay until cm_worker_flush returns. */
void cm_worker_post(cm_worker *w, uint64_t number, const void *data, size_t nbytes);
int cm_worker_flush(cm_worker *w, const cm_transfer *t, cm_error *err);

/* Converts, pads, encodes and puts, or skips, the target chunks in w->target. */
int cm_worker_targets(cm_worker *w, cm_error *err);

#endif
