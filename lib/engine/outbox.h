/*
 * Chunks that a worker has handed over and that are not acknowledged yet: it continues meanwhile,
 * with fresh memory in place of theirs.
 */
#ifndef CM_ENGINE_OUTBOX_H
#define CM_ENGINE_OUTBOX_H

#include "base/mem.h"
#include "engine/slots.h"

/* One chunk on its way. */
typedef struct cm_letter {
    const cm_transfer *transfer;
    cm_sent sent;
    cm_buf buf;    /* what is sent */
    cm_slot *slot; /* or this has it */
} cm_letter;

typedef struct cm_outbox {
    cm_letter *letter; /* a ring */
    unsigned room, first, n;
    cm_buf *spare; /* for what comes next */
    unsigned nspare;
    cm_slot *emptied; /* slots that were sent, by next_ready: for the engine to take back */
} cm_outbox;

int cm_outbox_init(cm_outbox *o, unsigned room, cm_error *err);
/* Nothing is on its way. */
void cm_outbox_release(cm_outbox *o);

/*
 * Hands PUT over; DATA NULL: left out.  Waits for the oldest letter where there is no room.  *slot,
 * if SLOT is not NULL, becomes NULL where PUT's data are its own: then it is the outbox's.  MINE,
 * if it is not NULL, has the data: it becomes another buffer, of the same size.  Otherwise they are
 * copied.
 */
int cm_outbox_add(cm_outbox *o, const cm_transfer *t, const cm_put *put, cm_buf *mine,
                  cm_slot **slot, cm_error *err);
/* Waits for the oldest. */
int cm_outbox_end_oldest(cm_outbox *o, cm_error *err);
/* Waits for all; the first error is returned. */
int cm_outbox_end_all(cm_outbox *o, cm_error *err);

#endif
