/* Starts worker processes, and notices when they end. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/workers/pool_impl.h"

enum {
    CHECK_MS = 250, /* between two checks that a silent process lives */
    END_CHECK_MS = 20,
    END_TEXT = 128
};

static bool is_unwanted(const cm_pool *pool)
{
    return atomic_load(&pool->stop) || cm_stop_wanted(&pool->options.stop);
}

static uint64_t ready_ns(const cm_pool *pool)
{
    const uint64_t asked = pool->options.ready_timeout_ns;
    return asked > 0 ? asked : CM_POOL_READY_NS;
}

/* Closes the sockets of other members in the child: a copy would hide their end. */
static void close_sockets(const cm_pool *pool)
{
    for (unsigned i = 0; i < pool->options.nworkers; i++) {
        if (pool->member[i].fd >= 0)
            close(pool->member[i].fd);
        close(pool->member[i].wake_fd);
    }
}

static int fork_worker(const cm_pool_member *m, const int fd[2], pid_t *pid, cm_error *err)
{
    const cm_pool *pool = m->pool;
    const pid_t parent = getpid();
    *pid = fork();
    if (*pid < 0)
        return cm_fail_errno(err, errno, "worker %u cannot be forked", m->number);
    if (*pid == 0) {
        close(fd[0]);
        close_sockets(pool);
        cm_pool_become_worker(parent);
        cm_pool_work(fd[1], &pool->source, pool->arena->data, m->number, pool->options.max_pieces,
                     pool->options.worker_memory);
        _exit(0);
    }
    return CM_OK;
}

/* ---- the end of a process ---- */

static void describe_end(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "ended with status %d", WEXITSTATUS(status));
}

bool cm_pool_process_reap(cm_pool_member *m, bool kill_it, char *text, size_t size)
{
    int status = 0;
    pid_t pid;
    if (kill_it)
        kill(m->pid, SIGKILL);
    while ((pid = waitpid(m->pid, &status, kill_it ? 0 : WNOHANG)) < 0 && errno == EINTR)
        continue;
    if (pid == 0)
        return false;
    if (pid > 0)
        describe_end(status, text, size);
    else
        snprintf(text, size, "is gone");
    pthread_mutex_lock(&m->pool->start_lock);
    close(m->fd);
    m->fd = -1;
    pthread_mutex_unlock(&m->pool->start_lock);
    pthread_mutex_lock(&m->pool->lock);
    m->info.pid = 0;
    pthread_mutex_unlock(&m->pool->lock);
    return true;
}

void cm_pool_process_end(cm_pool_member *m, uint64_t last_ns)
{
    char how[END_TEXT];
    shutdown(m->fd, SHUT_WR);
    while (cm_now_ns() < last_ns) {
        struct pollfd wait = {.fd = m->fd, .events = POLLIN};
        char unwanted[512];
        int n = poll(&wait, 1, END_CHECK_MS);
        if (n > 0 && recv(m->fd, unwanted, sizeof(unwanted), MSG_DONTWAIT) <= 0)
            break;
        if (n == 0 && cm_pool_process_reap(m, false, how, sizeof(how)))
            return;
    }
    cm_pool_process_reap(m, true, how, sizeof(how));
}

/* ---- the beginning ---- */

/* Makes process and socket, with start_lock held; M has both. */
static int begin(cm_pool_member *m, cm_error *err)
{
    int fd[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
        return cm_fail_errno(err, errno, "no socket for a worker process");
    m->pid = 0;
    int rc = fork_worker(m, fd, &m->pid, err);
    close(fd[1]);
    if (rc == CM_OK)
        m->fd = fd[0];
    else
        close(fd[0]);
    return rc;
}

typedef enum beginning {
    READY, /* or it says why not */
    DIED,
    LATE,
    UNWANTED /* the pool stops */
} beginning;

/* Waits for M's process; one that is late or unwanted is ended.  DIED: TEXT says how. */
static beginning wait_until_ready(cm_pool_member *m, cm_pool_ready *ready, char *text, size_t size)
{
    const uint64_t late_ns = cm_now_ns() + ready_ns(m->pool);
    bool late = false;
    while (!is_unwanted(m->pool) && !late) {
        struct pollfd wait = {.fd = m->fd, .events = POLLIN};
        int n = poll(&wait, 1, CHECK_MS);
        if (n > 0 && cm_fd_recv(m->fd, ready, sizeof(*ready)))
            return READY;
        /* A process that closed its socket is as good as dead. */
        if (cm_pool_process_reap(m, n > 0, text, size))
            return DIED;
        late = cm_now_ns() > late_ns;
    }
    cm_pool_process_end(m, cm_now_ns() + cm_pool_grace_ns(m->pool));
    return late ? LATE : UNWANTED;
}

int cm_pool_process_start(cm_pool_member *m, bool *died, cm_error *err)
{
    cm_pool *pool = m->pool;
    char text[128];
    cm_pool_ready ready;
    *died = false;
    pthread_mutex_lock(&pool->lock);
    m->info.start_ns = cm_now_ns();
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_lock(&pool->start_lock);
    int rc = begin(m, err);
    pthread_mutex_unlock(&pool->start_lock);
    if (rc != CM_OK)
        return rc;
    switch (wait_until_ready(m, &ready, text, sizeof(text))) {
    case READY:
        break;
    case DIED:
        *died = true;
        return cm_fail(err, CM_EIO, "worker %u %s before it was ready", m->number, text);
    case LATE:
        return cm_fail(err, CM_EIO, "worker %u was not ready within %.3g s", m->number,
                       (double)ready_ns(pool) / 1e9);
    case UNWANTED:
        return cm_fail(err, CM_ECANCELED, "worker %u was stopped before it was ready", m->number);
    }
    if (ready.status != CM_OK) {
        ready.text[sizeof(ready.text) - 1] = '\0';
        cm_pool_process_reap(m, true, text, sizeof(text));
        return cm_fail(err, (cm_status)ready.status, "%s", ready.text);
    }
    pthread_mutex_lock(&pool->lock);
    m->info.pid = m->pid;
    m->info.ready_ns = cm_now_ns();
    pthread_mutex_unlock(&pool->lock);
    return CM_OK;
}
