/*
 * Tasks of a source whose chunks are asked for ahead (lookahead.h): from when they are queued, so
 * that requests are under way however few threads there are, and one batch after the other.
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

/* Any thread may call what takes one. */
typedef struct cm_expecting {
    pthread_mutex_t lock;
    struct cm_expected_list queued; /* whose task nobody has begun */
    struct cm_expected_list idle;   /* for later tasks */
} cm_expecting;

void cm_expecting_init(cm_expecting *e);
void cm_expecting_release(cm_expecting *e);

/*
 * TASK, a batch or a chunk, will be loaded from ARRAYS or forgotten, and stays where it is until
 * then.  BOX is called with the cm_expected, as cm_lookahead_box says.  Without memory nothing is
 * asked for.
 */
void cm_expecting_add(cm_expecting *e, const cm_load_arrays *arrays, const cm_load_task *task,
                      cm_lookahead_box *box);
/* Nobody will load TASK, which may not be expected. */
void cm_expecting_drop(cm_expecting *e, const cm_load_task *task);
/* ARRAYS are to be closed: what was asked for of them is waited for. */
void cm_expecting_close(cm_expecting *e, const cm_load_arrays *arrays);

/* TASK is begun, whether it was expected or not; NULL: there is no memory. */
cm_expected *cm_expecting_take(cm_expecting *e, const cm_load_arrays *arrays,
                               const cm_load_task *task, cm_lookahead_box *box);
void cm_expecting_done(cm_expecting *e, cm_expected *x); /* NULL accepted */

#endif
