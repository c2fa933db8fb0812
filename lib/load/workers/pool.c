#include "load/workers/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads.h"
#include "load/workers/pool_impl.h"

enum {
    MAX_WORKERS = 4096,
    MAX_CLIENTS = 4096
};

/* ---- lists ---- */

void cm_pool_jobs_append(cm_pool_jobs *list, cm_pool_job *job)
{
    job->next = NULL;
    if (list->first == NULL)
        list->first = job;
    else
        list->last->next = job;
    list->last = job;
}

cm_pool_job *cm_pool_jobs_take(cm_pool_jobs *list)
{
    cm_pool_job *job = list->first;
    if (job != NULL)
        list->first = job->next;
    return job;
}

static void free_jobs(cm_pool_jobs *list)
{
    for (cm_pool_job *job; (job = cm_pool_jobs_take(list)) != NULL;)
        free(job);
}

/* ---- what the members call ---- */

void cm_pool_member_wait(cm_pool_member *m)
{
    pthread_mutex_lock(&m->pool->start_lock);
    pthread_mutex_unlock(&m->pool->start_lock);
}

void cm_pool_member_ready(cm_pool_member *m, int status, const cm_error *err)
{
    cm_pool *pool = m->pool;
    pthread_mutex_lock(&pool->lock);
    m->info.ready_ns = cm_now_ns();
    if (status == CM_OK) {
        pool->nready++;
    } else if (pool->nfailed++ == 0) {
        pool->error = *err;
        pool->error.status = (cm_status)status;
    }
    pthread_cond_signal(&pool->started);
    pthread_mutex_unlock(&pool->lock);
}

cm_pool_job *cm_pool_member_take(cm_pool_member *m)
{
    pthread_mutex_lock(&m->pool->lock);
    cm_pool_job *job = cm_pool_jobs_take(&m->queue);
    pthread_mutex_unlock(&m->pool->lock);
    return job;
}

void cm_pool_deliver(cm_pool *pool, cm_pool_job *job)
{
    cm_pool_client *c = &pool->client[job->client];
    job->result.deaths = job->deaths;
    pthread_mutex_lock(&pool->lock);
    cm_pool_jobs_append(&c->results, job);
    c->nresults++;
    c->nbatches += job->task->kind != CM_LOAD_CHUNK;
    if (cm_pool_client_has_enough(c))
        pthread_cond_signal(&c->came);
    pthread_mutex_unlock(&pool->lock);
}

void cm_pool_forget(cm_pool *pool, cm_pool_job *job)
{
    if (pool->options.mode == CM_POOL_THREADS && pool->source.forget != NULL)
        pool->source.forget(pool->source.context, job->task);
}

/* ---- beginning and end ---- */

static int check_options(const cm_pool_options *o, const cm_load_source *source,
                         const cm_arena *arena, cm_error *err)
{
    if (o->nworkers < 1 || o->nworkers > MAX_WORKERS)
        return cm_fail(err, CM_EINVAL, "%u workers: 1 to %d are possible", o->nworkers,
                       MAX_WORKERS);
    if (o->mode == CM_POOL_SYNC && o->nworkers != 1)
        return cm_fail(err, CM_EINVAL, "%u workers: without threads or processes there is 1",
                       o->nworkers);
    if (o->nclients < 1 || o->nclients > MAX_CLIENTS)
        return cm_fail(err, CM_EINVAL, "%u clients of a pool: 1 to %d are possible", o->nclients,
                       MAX_CLIENTS);
    if (o->max_pieces > UINT32_MAX)
        return cm_fail(err, CM_EINVAL, "tasks of %zu pieces are too large", o->max_pieces);
    if (source == NULL || source->open == NULL || source->load == NULL)
        return cm_fail(err, CM_EINVAL, "the pool has no source");
    if (o->mode == CM_POOL_PROCESSES && !arena->shared)
        return cm_fail(err, CM_EINVAL, "worker processes need shared memory");
    return CM_OK;
}

static int make_lists(cm_pool *pool, cm_error *err)
{
    const cm_pool_options *o = &pool->options;
    unsigned nmembers = o->mode == CM_POOL_SYNC ? 0 : o->nworkers;
    pool->client = cm_calloc(o->nclients, sizeof(pool->client[0]), err);
    if (pool->client == NULL)
        return CM_ENOMEM;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    for (unsigned i = 0; i < o->nclients; i++)
        pthread_cond_init(&pool->client[i].came, &monotonic);
    pthread_condattr_destroy(&monotonic);

    pool->member = cm_calloc(nmembers, sizeof(pool->member[0]), err);
    if (pool->member == NULL)
        return CM_ENOMEM;
    for (unsigned i = 0; i < nmembers; i++) {
        cm_pool_member *m = &pool->member[i];
        *m = (cm_pool_member){.pool = pool, .number = i, .wake_fd = -1, .fd = -1};
        pthread_cond_init(&m->wake, NULL);
    }
    return CM_OK;
}

/*
 * Waits, with the lock held, until a member is ready or failed, or the pool is not wanted any more.
 */
static void wait_a_while(cm_pool *pool)
{
    const uint64_t end_ns = cm_now_ns() + UINT64_C(100000000);
    const struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000u),
                                 .tv_nsec = (long)(end_ns % 1000000000u)};
    (void)pthread_cond_timedwait(&pool->started, &pool->lock, &end);
}

static int start_members(cm_pool *pool, cm_error *err)
{
    const cm_pool_options *o = &pool->options;
    bool processes = o->mode == CM_POOL_PROCESSES;
    unsigned started = 0;
    int rc = CM_OK, failed = 0;
    for (unsigned i = 0; i < o->nworkers && processes; i++)
        if ((pool->member[i].wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
            return cm_fail_errno(err, errno, "worker %u cannot be started", i);
    /*
     * Members go on once all threads exist.  A fork while a thread is being made could copy a
     * locked allocator into the child, where nobody unlocks it.
     */
    pthread_mutex_lock(&pool->start_lock);
    for (; started < o->nworkers; started++) {
        cm_pool_member *m = &pool->member[started];
        m->info.start_ns = cm_now_ns();
        failed =
            cm_thread_begin(&m->thread, processes ? cm_pool_process_main : cm_pool_thread_main, m);
        if (failed)
            break;
        m->has_thread = true;
    }
    pthread_mutex_unlock(&pool->start_lock);
    if (failed)
        return cm_fail_errno(err, failed, "worker %u cannot be started", started);

    pthread_mutex_lock(&pool->lock);
    while (pool->nready < o->nworkers && pool->nfailed == 0 && rc == CM_OK)
        if ((rc = cm_stop_check(&o->stop, err)) == CM_OK)
            wait_a_while(pool);
    if (rc == CM_OK && pool->nfailed > 0)
        rc = cm_fail(err, pool->error.status, "%s", pool->error.text);
    pthread_mutex_unlock(&pool->lock);
    return rc;
}

int cm_pool_create(const cm_pool_options *options, const cm_load_source *source, cm_arena *arena,
                   cm_pool **out, cm_error *err)
{
    *out = NULL;
    int rc = check_options(options, source, arena, err);
    if (rc != CM_OK)
        return rc;
    cm_pool *pool = cm_calloc(1, sizeof(*pool), err);
    if (pool == NULL)
        return CM_ENOMEM;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_mutex_init(&pool->sync_lock, NULL);
    pthread_mutex_init(&pool->start_lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->started, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pool->arena = arena;
    pool->source = *source;
    pool->sync = (cm_pool_runner){.source = &pool->source, .arena = arena->data, .statm_fd = -1};
    pool->options = *options;
    rc = make_lists(pool, err);
    if (rc == CM_OK && options->mode == CM_POOL_SYNC) {
        rc = cm_pool_runner_open(&pool->sync, err);
        pool->nready = rc == CM_OK;
    } else if (rc == CM_OK) {
        rc = start_members(pool, err);
    }
    if (rc != CM_OK) {
        cm_pool_free(pool);
        return rc;
    }
    *out = pool;
    return CM_OK;
}

void cm_pool_member_wake(cm_pool_member *m)
{
    /* A failed write means that the counter is full, which wakes as well. */
    if (m->wake_fd >= 0)
        (void)!write(m->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
    else
        pthread_cond_signal(&m->wake);
}

static void stop_members(cm_pool *pool)
{
    unsigned nmembers = pool->options.mode == CM_POOL_SYNC ? 0 : pool->options.nworkers;
    pthread_mutex_lock(&pool->lock);
    pool->stop_ns = cm_now_ns();
    atomic_store(&pool->stop, true);
    for (unsigned i = 0; i < nmembers; i++)
        cm_pool_member_wake(&pool->member[i]);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < nmembers; i++) {
        cm_pool_member *m = &pool->member[i];
        if (m->has_thread)
            pthread_join(m->thread, NULL);
    }
    for (unsigned i = 0; i < nmembers; i++) {
        cm_pool_member *m = &pool->member[i];
        if (m->wake_fd >= 0)
            close(m->wake_fd);
        pthread_cond_destroy(&m->wake);
        for (cm_pool_job *job = m->queue.first; job != NULL; job = job->next)
            cm_pool_forget(pool, job);
        free_jobs(&m->queue);
        free_jobs(&m->sent);
    }
}

void cm_pool_free(cm_pool *pool)
{
    if (pool == NULL)
        return;
    if (pool->member != NULL)
        stop_members(pool);
    if (pool->options.mode == CM_POOL_SYNC && pool->nready > 0)
        cm_pool_runner_close(&pool->sync);
    for (unsigned i = 0; pool->client != NULL && i < pool->options.nclients; i++) {
        free_jobs(&pool->client[i].results);
        free_jobs(&pool->client[i].queue);
        pthread_cond_destroy(&pool->client[i].came);
    }
    free_jobs(&pool->idle);
    pthread_cond_destroy(&pool->started);
    pthread_mutex_destroy(&pool->start_lock);
    pthread_mutex_destroy(&pool->sync_lock);
    pthread_mutex_destroy(&pool->lock);
    free(pool->member);
    free(pool->client);
    free(pool);
}
