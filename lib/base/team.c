#include "base/team.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

typedef struct member {
    cm_team *team;
    unsigned index;
    pthread_t thread;
} member;

struct cm_team {
    pthread_mutex_t lock;
    pthread_cond_t called, done;
    uint64_t calls; /* so far: a member runs when it has seen fewer */
    unsigned running;
    bool stop;
    cm_thread_fn *fn;
    void *context;
    unsigned nmembers; /* threads of our own */
    member member[];
};

static void *serve(void *arg)
{
    member *m = arg;
    cm_team *t = m->team;
    uint64_t seen = 0;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (!t->stop && t->calls == seen)
            pthread_cond_wait(&t->called, &t->lock);
        if (t->stop)
            break;
        seen = t->calls;
        pthread_mutex_unlock(&t->lock);
        t->fn(t->context, m->index);
        pthread_mutex_lock(&t->lock);
        if (--t->running == 0)
            pthread_cond_signal(&t->done);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

int cm_team_create(unsigned n, cm_team **out, cm_error *err)
{
    cm_team *t = cm_calloc(1, sizeof(*t) + n * sizeof(member), err);
    if (t == NULL)
        return CM_ENOMEM;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->called, NULL);
    pthread_cond_init(&t->done, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = 0;
    for (unsigned i = 1; i < n && failed == 0; i++) {
        member *m = &t->member[t->nmembers];
        *m = (member){.team = t, .index = i};
        failed = pthread_create(&m->thread, NULL, serve, m);
        t->nmembers += failed == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        unsigned made = t->nmembers + 1;
        cm_team_free(t);
        return cm_fail_errno(err, failed, "only %u of %u threads of a worker can be made", made, n);
    }
    *out = t;
    return CM_OK;
}

void cm_team_free(cm_team *team)
{
    if (team == NULL)
        return;
    pthread_mutex_lock(&team->lock);
    team->stop = true;
    pthread_cond_broadcast(&team->called);
    pthread_mutex_unlock(&team->lock);
    for (unsigned i = 0; i < team->nmembers; i++)
        pthread_join(team->member[i].thread, NULL);
    pthread_cond_destroy(&team->called);
    pthread_cond_destroy(&team->done);
    pthread_mutex_destroy(&team->lock);
    free(team);
}

void cm_team_run(cm_team *team, cm_thread_fn *fn, void *context)
{
    if (team->nmembers > 0) {
        pthread_mutex_lock(&team->lock);
        team->fn = fn;
        team->context = context;
        team->running = team->nmembers;
        team->calls++;
        pthread_cond_broadcast(&team->called);
        pthread_mutex_unlock(&team->lock);
    }
    fn(context, 0);
    if (team->nmembers > 0) {
        pthread_mutex_lock(&team->lock);
        while (team->running > 0)
            pthread_cond_wait(&team->done, &team->lock);
        pthread_mutex_unlock(&team->lock);
    }
}
