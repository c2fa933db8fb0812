#include "exec/load/expected.h"

#include <stdlib.h>

void cm_expecting_init(cm_expecting *e)
{
    pthread_mutex_init(&e->lock, NULL);
    TAILQ_INIT(&e->queued);
    TAILQ_INIT(&e->idle);
}

void cm_expecting_release(cm_expecting *e)
{
    pthread_mutex_destroy(&e->lock);
}

static cm_expected *take_idle(cm_expecting *e, const cm_load_arrays *arrays)
{
    cm_expected *x;
    pthread_mutex_lock(&e->lock);
    TAILQ_FOREACH(x, &e->idle, next) if (x->arrays == arrays) break;
    if (x != NULL)
        TAILQ_REMOVE(&e->idle, x, next);
    pthread_mutex_unlock(&e->lock);
    return x;
}

static cm_expected *new_expected(const cm_load_arrays *arrays)
{
    cm_expected *x = cm_calloc(1, sizeof(*x), NULL);
    if (x == NULL)
        return NULL;
    x->arrays = arrays;
    if (cm_lookahead_list_create(arrays->ahead, &x->list, NULL) == CM_OK)
        return x;
    free(x);
    return NULL;
}

static cm_expected *begin(cm_expecting *e, const cm_load_arrays *arrays, const cm_load_task *task,
                          cm_lookahead_box *box)
{
    cm_expected *x = take_idle(e, arrays);
    if (x == NULL)
        x = new_expected(arrays);
    if (x == NULL)
        return NULL;
    x->task = task;
    cm_lookahead_begin(x->list, (uint64_t)task->npieces * arrays->nparts, box, x);
    return x;
}

void cm_expecting_add(cm_expecting *e, const cm_load_arrays *arrays, const cm_load_task *task,
                      cm_lookahead_box *box)
{
    cm_expected *x = begin(e, arrays, task, box);
    if (x == NULL)
        return;
    pthread_mutex_lock(&e->lock);
    TAILQ_INSERT_TAIL(&e->queued, x, next);
    pthread_mutex_unlock(&e->lock);
}

/* TASK's, which is in no list from now on; NULL: it is not expected. */
static cm_expected *find(cm_expecting *e, const cm_load_task *task)
{
    cm_expected *x;
    pthread_mutex_lock(&e->lock);
    TAILQ_FOREACH(x, &e->queued, next) if (x->task == task) break;
    if (x != NULL)
        TAILQ_REMOVE(&e->queued, x, next);
    pthread_mutex_unlock(&e->lock);
    return x;
}

void cm_expecting_drop(cm_expecting *e, const cm_load_task *task)
{
    cm_expecting_done(e, find(e, task));
}

cm_expected *cm_expecting_take(cm_expecting *e, const cm_load_arrays *arrays,
                               const cm_load_task *task, cm_lookahead_box *box)
{
    cm_expected *x = find(e, task);
    return x != NULL ? x : begin(e, arrays, task, box);
}

void cm_expecting_done(cm_expecting *e, cm_expected *x)
{
    if (x == NULL)
        return;
    cm_lookahead_end(x->list);
    x->task = NULL;
    pthread_mutex_lock(&e->lock);
    TAILQ_INSERT_HEAD(&e->idle, x, next);
    pthread_mutex_unlock(&e->lock);
}

/* One of ARRAYS that is queued; NULL: there is none. */
static cm_expected *find_of(cm_expecting *e, const cm_load_arrays *arrays)
{
    cm_expected *x;
    pthread_mutex_lock(&e->lock);
    TAILQ_FOREACH(x, &e->queued, next) if (x->arrays == arrays) break;
    if (x != NULL)
        TAILQ_REMOVE(&e->queued, x, next);
    pthread_mutex_unlock(&e->lock);
    return x;
}

void cm_expecting_close(cm_expecting *e, const cm_load_arrays *arrays)
{
    cm_expected *x;
    while ((x = find_of(e, arrays)) != NULL)
        cm_expecting_done(e, x);
    while ((x = take_idle(e, arrays)) != NULL) {
        cm_lookahead_list_free(x->list);
        free(x);
    }
}
