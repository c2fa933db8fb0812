#include "load/batches/expected.h"

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

/* Takes the first of ARRAYS and TASK out of LIST, where NULL is any; NULL: there is none. */
static cm_expected *take_from(cm_expecting *e, struct cm_expected_list *list,
                              const cm_load_arrays *arrays, const cm_load_task *task)
{
    pthread_mutex_lock(&e->lock);
    cm_expected *x = TAILQ_FIRST(list);
    while (x != NULL &&
           ((arrays != NULL && x->arrays != arrays) || (task != NULL && x->task != task)))
        x = TAILQ_NEXT(x, next);
    if (x != NULL)
        TAILQ_REMOVE(list, x, next);
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
    cm_expected *x = take_from(e, &e->idle, arrays, NULL);
    if (x == NULL)
        x = new_expected(arrays);
    if (x == NULL)
        return NULL;
    x->task = task;
    const uint64_t n = task->kind == CM_LOAD_CHUNK ? 1 : (uint64_t)task->npieces * arrays->nparts;
    cm_lookahead_begin(x->list, n, box, x);
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

void cm_expecting_drop(cm_expecting *e, const cm_load_task *task)
{
    cm_expecting_done(e, take_from(e, &e->queued, NULL, task));
}

cm_expected *cm_expecting_take(cm_expecting *e, const cm_load_arrays *arrays,
                               const cm_load_task *task, cm_lookahead_box *box)
{
    cm_expected *x = take_from(e, &e->queued, NULL, task);
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

void cm_expecting_close(cm_expecting *e, const cm_load_arrays *arrays)
{
    cm_expected *x;
    while ((x = take_from(e, &e->queued, arrays, NULL)) != NULL)
        cm_expecting_done(e, x);
    while ((x = take_from(e, &e->idle, arrays, NULL)) != NULL) {
        cm_lookahead_list_free(x->list);
        free(x);
    }
}
