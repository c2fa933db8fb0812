#include "base/threads.h"

#include <signal.h>
#include <stdbool.h>

enum {
    MAX_THREADS = 1024
};

typedef struct task {
    cm_thread_fn *fn;
    void *context;
    unsigned worker;
    pthread_t thread;
} task;

static void *thread_main(void *arg)
{
    task *t = arg;
    t->fn(t->context, t->worker);
    return NULL;
}

void cm_threads_run(unsigned n, cm_thread_fn *fn, void *context)
{
    task tasks[MAX_THREADS];
    unsigned started = 0;
    sigset_t all, before;
    if (n > MAX_THREADS)
        n = MAX_THREADS;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    for (; started + 1 < n; started++) {
        task *t = &tasks[started];
        *t = (task){.fn = fn, .context = context, .worker = started + 1};
        if (pthread_create(&t->thread, NULL, thread_main, t) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    fn(context, 0);
    for (unsigned i = 0; i < started; i++)
        pthread_join(tasks[i].thread, NULL);
}

typedef struct beginning {
    void *(*fn)(void *);
    void *context;
    bool begun;
    pthread_mutex_t lock; /* guards begun */
    pthread_cond_t changed;
} beginning;

static void *begin(void *arg)
{
    beginning *b = arg;
    void *(*fn)(void *) = b->fn;
    void *context = b->context;
    pthread_mutex_lock(&b->lock);
    b->begun = true;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
    return fn(context);
}

int cm_thread_begin(pthread_t *thread, void *(*fn)(void *), void *context)
{
    beginning b = {.fn = fn, .context = context};
    sigset_t all, before;
    pthread_mutex_init(&b.lock, NULL);
    pthread_cond_init(&b.changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = pthread_create(thread, NULL, begin, &b);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_lock(&b.lock);
    while (errnum == 0 && !b.begun)
        pthread_cond_wait(&b.changed, &b.lock);
    pthread_mutex_unlock(&b.lock);
    pthread_cond_destroy(&b.changed);
    pthread_mutex_destroy(&b.lock);
    return errnum;
}
