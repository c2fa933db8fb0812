/*
 * Chunks that are the same in source and target: no worker waits for another,
 * and nothing is scattered.
 */
#ifndef CM_ENGINE_DIRECT_H
#define CM_ENGINE_DIRECT_H

#include "engine/worker.h"

/* Fetches w->same and puts them, as stored or coded anew. */
int cm_worker_same(cm_worker *w, cm_error *err);

#endif
