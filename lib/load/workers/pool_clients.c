/* The clients' side of a pool: tasks in, results out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "load/workers/pool_impl.h"

/* A job that holds NPIECES: one that was used before, or a new one. */
static cm_pool_job *get_job(cm_pool *pool, size_t npieces, cm_error *err)
{
    pthread_mutex_lock(&pool->lock);
    cm_pool_job *job = cm_pool_jobs_take(&pool->idle);
    pthread_mutex_unlock(&pool->lock);
    if (job != NULL && job->capacity >= npieces)
        return job;
    free(job);
    job = cm_calloc(1, sizeof(*job) + sizeof(cm_load_task) + npieces * sizeof(cm_load_piece), err);
    if (job != NULL) {
        job->capacity = npieces;
        job->task = (cm_load_task *)(job + 1);
    }
    return job;
}

/* A cut before all chunks: its batch is wanted, and the CPU's cache may still have its chunks. */
static void queue_job(cm_pool_jobs *queue, cm_pool_job *job)
{
    if (job->task->kind == CM_LOAD_CUT && queue->first != NULL) {
        job->next = queue->first;
        queue->first = job;
    } else
        cm_pool_jobs_append(queue, job);
}

int cm_pool_submit(cm_pool *pool, unsigned client, unsigned worker, const cm_load_task *task,
                   cm_error *err)
{
    const cm_pool_options *o = &pool->options;
    if (client >= o->nclients || worker >= o->nworkers)
        return cm_fail(err, CM_EINVAL, "client %u, worker %u: the pool has %u and %u", client,
                       worker, o->nclients, o->nworkers);
    if (task->npieces > o->max_pieces)
        return cm_fail(err, CM_EINVAL, "a task has %u pieces, at most %zu are possible",
                       task->npieces, o->max_pieces);
    cm_pool_job *job = get_job(pool, task->npieces, err);
    if (job == NULL)
        return CM_ENOMEM;
    job->client = client;
    job->deaths = 0;
    memcpy(job->task, task, sizeof(*task) + task->npieces * sizeof(task->piece[0]));
    if (o->mode == CM_POOL_THREADS && pool->source.expect != NULL)
        pool->source.expect(pool->source.context, job->task);

    cm_pool_client *c = &pool->client[client];
    pthread_mutex_lock(&pool->lock);
    c->outstanding++;
    if (o->mode == CM_POOL_SYNC) {
        cm_pool_jobs_append(&c->queue, job);
    } else {
        cm_pool_member *m = &pool->member[worker];
        bool was_empty = m->queue.first == NULL;
        queue_job(&m->queue, job);
        if (was_empty)
            cm_pool_member_wake(m);
    }
    pthread_mutex_unlock(&pool->lock);
    return CM_OK;
}

/* One task of C made here and now; NULL: it has none. */
static cm_pool_job *make_result(cm_pool *pool, cm_pool_client *c)
{
    pthread_mutex_lock(&pool->lock);
    cm_pool_job *job = cm_pool_jobs_take(&c->queue);
    pthread_mutex_unlock(&pool->lock);
    if (job == NULL)
        return NULL;
    pthread_mutex_lock(&pool->sync_lock);
    cm_pool_runner_load(&pool->sync, job->task, &job->result);
    pthread_mutex_unlock(&pool->sync_lock);
    return job;
}

/* Waits, with the lock held, until C has enough results or TIMEOUT_NS have gone by. */
static void wait_for_results(cm_pool *pool, cm_pool_client *c, unsigned nchunks,
                             uint64_t timeout_ns)
{
    uint64_t end_ns = cm_now_ns() + timeout_ns;
    struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000u),
                           .tv_nsec = (long)(end_ns % 1000000000u)};
    bool for_ever = timeout_ns > UINT64_MAX / 2, late = timeout_ns == 0;
    c->wanted = nchunks;
    while (!cm_pool_client_has_enough(c) && !late) {
        if (for_ever)
            pthread_cond_wait(&c->came, &pool->lock);
        else
            late = pthread_cond_timedwait(&c->came, &pool->lock, &end) == ETIMEDOUT;
    }
}

void cm_pool_wait(cm_pool *pool, unsigned client, unsigned nchunks, uint64_t timeout_ns)
{
    if (pool->options.mode == CM_POOL_SYNC)
        return;
    pthread_mutex_lock(&pool->lock);
    wait_for_results(pool, &pool->client[client], nchunks, timeout_ns);
    pthread_mutex_unlock(&pool->lock);
}

bool cm_pool_receive(cm_pool *pool, unsigned client, uint64_t timeout_ns, cm_load_result *out)
{
    cm_pool_client *c = &pool->client[client];
    bool sync = pool->options.mode == CM_POOL_SYNC;
    cm_pool_job *job = sync ? make_result(pool, c) : NULL;
    pthread_mutex_lock(&pool->lock);
    if (!sync) {
        wait_for_results(pool, c, 1, timeout_ns);
        job = cm_pool_jobs_take(&c->results);
        c->nresults -= job != NULL;
        c->nbatches -= job != NULL && job->task->kind != CM_LOAD_CHUNK;
    }
    if (job != NULL) {
        *out = job->result;
        c->outstanding--;
        cm_pool_jobs_append(&pool->idle, job);
    }
    pthread_mutex_unlock(&pool->lock);
    return job != NULL;
}

/* Moves CLIENT's jobs from LIST to DROPPED. */
static size_t drop_jobs(cm_pool_jobs *list, unsigned client, cm_pool_jobs *dropped)
{
    cm_pool_jobs kept = {0};
    size_t n = 0;
    for (cm_pool_job *job; (job = cm_pool_jobs_take(list)) != NULL;) {
        bool drop = job->client == client;
        cm_pool_jobs_append(drop ? dropped : &kept, job);
        n += drop;
    }
    *list = kept;
    return n;
}

size_t cm_pool_drop(cm_pool *pool, unsigned client)
{
    cm_pool_client *c = &pool->client[client];
    unsigned nmembers = pool->options.mode == CM_POOL_SYNC ? 0 : pool->options.nworkers;
    cm_pool_jobs dropped = {0};
    pthread_mutex_lock(&pool->lock);
    size_t n = drop_jobs(&c->queue, client, &dropped);
    for (unsigned i = 0; i < nmembers; i++)
        n += drop_jobs(&pool->member[i].queue, client, &dropped);
    c->outstanding -= (unsigned)n;
    pthread_mutex_unlock(&pool->lock);
    for (cm_pool_job *job; (job = cm_pool_jobs_take(&dropped)) != NULL;) {
        cm_pool_forget(pool, job);
        pthread_mutex_lock(&pool->lock);
        cm_pool_jobs_append(&pool->idle, job);
        pthread_mutex_unlock(&pool->lock);
    }
    return n;
}

/* Locking changes nothing that a caller can see in a const pool. */
static pthread_mutex_t *lock_of(const cm_pool *pool)
{
    return (pthread_mutex_t *)&pool->lock;
}

void cm_pool_pending(const cm_pool *pool, unsigned client, unsigned *underway, unsigned *ready)
{
    const cm_pool_client *c = &pool->client[client];
    pthread_mutex_lock(lock_of(pool));
    *underway = c->outstanding - c->nresults;
    *ready = c->nresults;
    pthread_mutex_unlock(lock_of(pool));
}

const cm_pool_options *cm_pool_get_options(const cm_pool *pool)
{
    return &pool->options;
}

void cm_pool_worker(const cm_pool *pool, unsigned worker, cm_pool_worker_info *out)
{
    pthread_mutex_lock(lock_of(pool));
    *out = pool->member != NULL && pool->options.mode != CM_POOL_SYNC ? pool->member[worker].info
                                                                      : (cm_pool_worker_info){0};
    pthread_mutex_unlock(lock_of(pool));
}
