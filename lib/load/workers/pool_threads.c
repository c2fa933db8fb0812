/* A worker that is a thread of this process. */
#include "load/workers/pool_impl.h"

/* Waits for a job; NULL: the pool stops. */
static cm_pool_job *wait_for_job(cm_pool_member *m)
{
    cm_pool *pool = m->pool;
    pthread_mutex_lock(&pool->lock);
    while (m->queue.first == NULL && !atomic_load(&pool->stop))
        pthread_cond_wait(&m->wake, &pool->lock);
    cm_pool_job *job = atomic_load(&pool->stop) ? NULL : cm_pool_jobs_take(&m->queue);
    pthread_mutex_unlock(&pool->lock);
    return job;
}

void *cm_pool_thread_main(void *member)
{
    cm_pool_member *m = member;
    cm_pool_runner runner = {
        .source = &m->pool->source, .arena = m->pool->arena->data, .worker = m->number};
    cm_error err = {0};
    cm_pool_member_wait(m);
    int rc = cm_pool_runner_open(&runner, &err);
    cm_pool_member_ready(m, rc, &err);
    if (rc != CM_OK)
        return NULL;
    for (cm_pool_job *job; (job = wait_for_job(m)) != NULL;) {
        cm_pool_runner_load(&runner, job->task, &job->result);
        cm_pool_deliver(m->pool, job);
    }
    cm_pool_runner_close(&runner);
    return NULL;
}
