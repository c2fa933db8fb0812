/*
 * Source pieces on their way in: fetched, decoded, scattered into slots.
 */
#ifndef CM_ENGINE_PIECES_H
#define CM_ENGINE_PIECES_H

#include "engine/worker.h"

/* Fetches, decodes and scatters w->piece into their slots. */
int cm_worker_pieces(cm_worker *w, cm_error *err);

#endif
