/*
 * Large buffers under a limit: the blocks of a transfer.
 *
 * Buffers come from the system page by page and go back when another size
 * needs their room, so that what is counted is what is resident.  Not
 * thread-safe: the engine calls it under its own lock.
 */
#ifndef CM_ENGINE_BUFFERS_H
#define CM_ENGINE_BUFFERS_H

#include "base/mem.h"

typedef struct cm_buffers {
    size_t limit; /* bytes, handed out and kept for reuse together */
    size_t held;
    size_t idle_nbytes; /* of those held, kept for reuse */
    struct cm_idle_buffer *idle;
} cm_buffers;

/* Real size of a buffer of NBYTES: whole pages. */
size_t cm_buffers_nbytes(size_t nbytes);

void cm_buffers_init(cm_buffers *b, size_t limit);
/* True when COUNT more buffers of NBYTES can be had. */
bool cm_buffers_have(const cm_buffers *b, size_t nbytes, uint64_t count);
/* NULL and an error when the system gives no memory; the caller asked cm_buffers_have. */
void *cm_buffers_get(cm_buffers *b, size_t nbytes, cm_error *err);
void cm_buffers_put(cm_buffers *b, void *data, size_t nbytes);
/* Frees what is idle; all buffers have been put back. */
void cm_buffers_release(cm_buffers *b);

#endif
