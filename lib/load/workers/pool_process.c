/*
 * A worker that is a process, looked after by a thread of this process: it sends
 * the tasks, collects the results, and begins another process when one dies.
 *
 * The process is sent one task more than it is at, so that it need not wait for
 * the next.  When it dies the task that it was at is blamed; all that it had are
 * queued again, in their order.
 *
 * The thread that made a process lives until the process is reaped: the kernel's
 * signal at the parent's death comes at the death of that thread.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/workers/pool_impl.h"

enum {
    DEPTH = 2,      /* tasks that a process has at once */
    CHECK_MS = 250, /* between two checks that a silent process lives */
    END_TEXT = 128
};

static bool is_unwanted(const cm_pool *pool)
{
    return atomic_load(&pool->stop) || cm_stop_wanted(&pool->options.stop);
}

static void fail_job(cm_pool_member *m, cm_pool_job *job, int status, const char *text)
{
    memset(&job->result, 0, sizeof(job->result));
    job->result.worker = m->number;
    job->result.begin_ns = job->result.end_ns = cm_now_ns();
    cm_load_result_fail(&job->result, job->task->id, status, text);
    cm_pool_deliver(m->pool, job);
}

/*
 * Counts a death against JOB, and HOW is its sentence; true when it was one too many: JOB has
 * failed.
 */
static bool blame(cm_pool_member *m, cm_pool_job *job, const char *how)
{
    if (++job->deaths < CM_POOL_MAX_DEATHS)
        return false;
    char text[CM_LOAD_ERROR_SIZE];
    const cm_load_task *task = job->task;
    const char *what = task->kind == CM_LOAD_CHUNK ? "chunk" : "batch";
    snprintf(text, sizeof(text), "%s %llu: %s; %u workers died on it, so it is given up", what,
             (unsigned long long)task->number, how, job->deaths);
    fail_job(m, job, CM_EIO, text);
    return true;
}

/* Tasks that were sent go in front of those queued. */
static void queue_again(cm_pool_member *m)
{
    if (m->sent.first == NULL)
        return;
    pthread_mutex_lock(&m->pool->lock);
    m->sent.last->next = m->queue.first;
    if (m->queue.first == NULL)
        m->queue.last = m->sent.last;
    m->queue.first = m->sent.first;
    pthread_mutex_unlock(&m->pool->lock);
    m->sent.first = NULL;
    m->nsent = 0;
}

static void count_death(cm_pool_member *m)
{
    pthread_mutex_lock(&m->pool->lock);
    m->info.deaths++;
    pthread_mutex_unlock(&m->pool->lock);
}

/* The process is reaped; the first of its tasks is to blame. */
static void process_died(cm_pool_member *m, const char *how)
{
    count_death(m);
    cm_pool_job *job = m->sent.first;
    if (job != NULL) {
        cm_pool_job *next = job->next;
        char sentence[END_TEXT + 32];
        snprintf(sentence, sizeof(sentence), "worker %u %s", m->number, how);
        if (blame(m, job, sentence)) {
            m->sent.first = next;
            m->nsent--;
        }
    }
    queue_again(m);
}

static void lose_process(cm_pool_member *m)
{
    char how[END_TEXT];
    if (cm_pool_process_reap(m, true, how, sizeof(how)))
        process_died(m, how);
}

/*
 * True: there is a process.  Otherwise JOB, for which it is needed, was given up or queued
 * again.
 */
static bool have_process(cm_pool_member *m, cm_pool_job *job)
{
    cm_error err = {0};
    bool died;
    if (m->fd >= 0)
        return true;
    int rc = cm_pool_process_start(m, &died, &err);
    if (rc == CM_OK)
        return true;
    if (!died) {
        fail_job(m, job, rc, err.text);
        return false;
    }
    count_death(m);
    if (!blame(m, job, err.text)) {
        cm_pool_jobs_append(&m->sent, job);
        queue_again(m);
    }
    return false;
}

/*
 * Sends the last of the jobs in m->sent.  A process that is at a task does not read,
 * and a large task is more than a socket holds: whoever waits for it must still
 * notice that the pool stops, or that there is no process any more.
 */
static void send_job(cm_pool_member *m)
{
    const cm_load_task *task = m->sent.last->task;
    const char *at = (const char *)task;
    size_t left = sizeof(*task) + task->npieces * sizeof(task->piece[0]);
    char how[END_TEXT];
    while (left > 0 && !is_unwanted(m->pool)) {
        ssize_t n = send(m->fd, at, left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            at += n;
            left -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = m->fd, .events = POLLOUT};
            if (poll(&wait, 1, CHECK_MS) == 0 && cm_pool_process_reap(m, false, how, sizeof(how))) {
                process_died(m, how);
                return;
            }
        } else if (n == 0 || errno != EINTR) {
            lose_process(m);
            return;
        }
    }
}

/* Sends tasks while the process may have more. */
static void send_jobs(cm_pool_member *m)
{
    while (m->nsent < DEPTH && !is_unwanted(m->pool)) {
        cm_pool_job *job = cm_pool_member_take(m);
        if (job == NULL)
            return;
        if (!have_process(m, job))
            continue;
        cm_pool_jobs_append(&m->sent, job);
        m->nsent++;
        send_job(m);
    }
}

static void collect_result(cm_pool_member *m)
{
    cm_pool_job *job = m->sent.first;
    cm_load_result result;
    if (!cm_fd_recv(m->fd, &result, sizeof(result)) || job == NULL || result.id != job->task->id) {
        lose_process(m);
        return;
    }
    result.error[sizeof(result.error) - 1] = '\0';
    job->result = result;
    cm_pool_jobs_take(&m->sent);
    m->nsent--;
    cm_pool_deliver(m->pool, job);
}

/* Waits until there is something to do. */
static void wait_and_collect(cm_pool_member *m)
{
    struct pollfd wait[2] = {{.fd = m->wake_fd, .events = POLLIN},
                             {.fd = m->fd, .events = POLLIN}}; /* -1 is passed over */
    char how[END_TEXT];
    int n = poll(wait, 2, m->nsent > 0 ? CHECK_MS : -1);
    if (n > 0 && (wait[0].revents & POLLIN)) {
        uint64_t count;
        (void)!read(m->wake_fd, &count, sizeof(count));
    }
    if (n > 0 && wait[1].revents != 0)
        collect_result(m);
    else if (n == 0 && m->fd >= 0 && cm_pool_process_reap(m, false, how, sizeof(how)))
        /* A socket stays open where somebody forked by another hand holds its end. */
        process_died(m, how);
}

/* All processes have the same time, from when the pool stopped. */
static uint64_t pool_end_ns(const cm_pool *pool)
{
    return pool->stop_ns + cm_pool_grace_ns(pool);
}

/*
 * Nobody wants the work any more: the process is ended, whatever it hangs in, and all jobs fail,
 * those that come later too, so that no client waits for them.
 */
static void give_up(cm_pool_member *m)
{
    static const char why[] = "stopped by request";
    struct pollfd wait = {.fd = m->wake_fd, .events = POLLIN};
    uint64_t count;
    if (m->fd >= 0)
        cm_pool_process_end(m, cm_now_ns() + cm_pool_grace_ns(m->pool));
    m->nsent = 0;
    for (cm_pool_job *job; (job = cm_pool_jobs_take(&m->sent)) != NULL;)
        fail_job(m, job, CM_ECANCELED, why);
    for (cm_pool_job *job; (job = cm_pool_member_take(m)) != NULL;)
        fail_job(m, job, CM_ECANCELED, why);
    if (poll(&wait, 1, CHECK_MS) > 0)
        (void)!read(m->wake_fd, &count, sizeof(count));
}

void *cm_pool_process_main(void *member)
{
    cm_pool_member *m = member;
    cm_error err = {0};
    bool died;
    cm_pool_member_wait(m);
    int rc = cm_pool_process_start(m, &died, &err);
    cm_pool_member_ready(m, rc, &err);
    if (rc != CM_OK)
        return NULL;
    while (!atomic_load(&m->pool->stop)) {
        if (cm_stop_wanted(&m->pool->options.stop)) {
            give_up(m);
            continue;
        }
        send_jobs(m);
        if (!is_unwanted(m->pool))
            wait_and_collect(m);
    }
    if (m->fd >= 0)
        cm_pool_process_end(m, pool_end_ns(m->pool));
    return NULL;
}
