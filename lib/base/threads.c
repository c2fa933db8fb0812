#include "base/threads.h"

#include <pthread.h>
#include <signal.h>

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
