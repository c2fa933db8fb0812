/*
 * Tasks of a source whose chunks are requested ahead (lookahead.h).  Requests begin when a task is
 * queued: many are under way however few threads there are, one batch after the other.
 */
#ifndef CM_LOAD_BATCHES_EXPECTED_H
#define CM_LOAD_BATCHES_EXPECTED_H

#include <pthread.h>
#include <sys/queue.h>

#include "load/batches/load_source.h"
#include "load/reader/lookahead.h"
#include "load/workers/pool.h"

typedef struct cm_expected {
    TAILQ_ENTRY(cm_expected) next;
    const cm_load_arrays *arrays;
    const cm_load_task *task;
    cm_lookahead_list *list;
} cm_expected;

TAILQ_HEAD(cm_expected_list, cm_expected);

/* Thread-safe, but for init and release. */
typedef struct cm_expecting {
    pthread_mutex_t lock;
    struct cm_expected_list queued; /* whose task nobody has begun */
    struct cm_expected_list idle;   /* for later tasks */
} cm_expecting;

void cm_expecting_init(cm_expecting *e);
void cm_expecting_release(cm_expecting *e);

/*
 * Expects TASK, a batch or a chunk, to be loaded from ARRAYS or dropped; until then it stays where
 * it is.  BOX is called with the cm_expected, as cm_lookahead_box says.  Requests nothing when
 * memory is short.
 */
void cm_expecting_add(cm_expecting *e, const cm_load_arrays *arrays, const cm_load_task *task,
                      cm_lookahead_box *box);
/* Drops TASK, which nobody will load; it need not be expected. */
void cm_expecting_drop(cm_expecting *e, const cm_load_task *task);
/* Waits for all requests of ARRAYS, before they are closed. */
void cm_expecting_close(cm_expecting *e, const cm_load_arrays *arrays);

/* Begins TASK, expected or not; NULL: there is no memory. */
cm_expected *cm_expecting_take(cm_expecting *e, const cm_load_arrays *arrays,
                               const cm_load_task *task, cm_lookahead_box *box);
void cm_expecting_done(cm_expecting *e, cm_expected *x); /* NULL accepted */

#endif
