#include "format/multi/ahead.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/threads.h"

enum {
    THREADS = 4,
    WINDOW = 8 /* files, of which those that fit into the budget are fetched */
};

struct cm_multi_ahead {
    const cm_multi_file *file;
    size_t n;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread[THREADS];
    unsigned nthreads;
    size_t next, end; /* files not fetched yet */
    bool started, stop;
};

/* Fetches files until stopped.  Errors are ignored: whoever reads the file meets them. */
static void *run(void *context)
{
    cm_multi_ahead *a = context;
    pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        char path[CM_COPY_PATH_SIZE];
        bool taken;
        if (a->next >= a->end) {
            pthread_cond_wait(&a->wake, &a->lock);
            continue;
        }
        cm_copy *copy = a->file[a->next++].copy;
        pthread_mutex_unlock(&a->lock);
        if (copy != NULL)
            (void)cm_copy_take(copy, CM_COPY_AHEAD, &taken, path, NULL);
        pthread_mutex_lock(&a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

int cm_multi_ahead_create(const cm_multi_file *file, size_t n, cm_multi_ahead **out, cm_error *err)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || file[i].copy != NULL;
    *out = NULL;
    if (!any)
        return CM_OK;
    cm_multi_ahead *a = *out = cm_calloc(1, sizeof(*a), err);
    if (a == NULL)
        return CM_ENOMEM;
    a->file = file;
    a->n = n;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->wake, NULL);
    return CM_OK;
}

/* With the lock held.  If no thread can be started, files are fetched when they are read. */
static void start(cm_multi_ahead *a)
{
    a->started = true;
    while (a->nthreads < THREADS && cm_thread_begin(&a->thread[a->nthreads], run, a) == 0)
        a->nthreads++;
}

void cm_multi_ahead_of(cm_multi_ahead *a, uint32_t i)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    if (!a->started)
        start(a);
    size_t end = a->n - i - 1 < WINDOW ? a->n : (size_t)i + 1 + WINDOW;
    /* Reading on continues the window; a jump, or a restart from the beginning, moves it. */
    if (i >= a->end || end < a->end)
        a->next = (size_t)i + 1;
    a->end = end;
    pthread_cond_broadcast(&a->wake);
    pthread_mutex_unlock(&a->lock);
}

void cm_multi_ahead_free(cm_multi_ahead *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_broadcast(&a->wake);
    pthread_mutex_unlock(&a->lock);
    while (a->nthreads > 0)
        pthread_join(a->thread[--a->nthreads], NULL);
    pthread_cond_destroy(&a->wake);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
