/* How worker processes begin, and how they are found to have ended. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/workers/pool_impl.h"

enum {
    CHECK_MS = 250, /* between two looks whether a silent process is still there */
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

/* ---- the three ways ---- */

/*
 * The child keeps nobody else's socket: its end would not be noticed while the child holds a
 * copy.
 */
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

/* This program anew, with the number of FD as its last argument. */
static int spawn_program(cm_pool *pool, int fd, pid_t *pid, cm_error *err)
{
    char number[16];
    size_t n = 0;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    snprintf(number, sizeof(number), "%d", fd);
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGCHLD);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGTERM);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    /* Onto itself: the child's copy stays open at exec. */
    int failed = posix_spawn_file_actions_adddup2(&actions, fd, fd);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    while (pool->argv[n] != NULL)
        n++;
    pool->argv[n] = number;
    if (!failed)
        failed = posix_spawnp(pid, pool->argv[0], &actions, &attributes, pool->argv, environ);
    pool->argv[n] = NULL;
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed ? cm_fail_errno(err, failed, "%s cannot be started", pool->argv[0]) : CM_OK;
}

static bool say_hello(const cm_pool *pool, int fd, uint32_t role, unsigned worker, pid_t parent)
{
    const cm_pool_options *o = &pool->options;
    cm_pool_hello hello = {.nbytes = sizeof(hello) + sizeof(cm_load_result),
                           .version = CM_POOL_WIRE_VERSION,
                           .role = role,
                           .worker = worker,
                           .parent = parent,
                           .setup_nbytes = o->setup_nbytes,
                           .arena_nbytes = pool->arena->nbytes,
                           .max_pieces = o->max_pieces,
                           .worker_memory = o->worker_memory};
    return cm_wire_send_fd(fd, &hello, sizeof(hello), pool->arena->fd) &&
           cm_fd_send(fd, pool->setup, o->setup_nbytes);
}

/* ---- the fork server ---- */

/* Waits until the server answers; false: it takes too long, or nobody wants it any more. */
static bool server_answers(const cm_pool *pool)
{
    const uint64_t begin_ns = cm_now_ns(), grace_ns = cm_pool_grace_ns(pool);
    for (;;) {
        struct pollfd wait = {.fd = pool->server_fd, .events = POLLIN};
        if (poll(&wait, 1, CHECK_MS) > 0)
            return true;
        if (cm_now_ns() - begin_ns > (is_unwanted(pool) ? grace_ns : ready_ns(pool)))
            return false;
    }
}

int cm_pool_server_start(cm_pool *pool, cm_error *err)
{
    int fd[2];
    cm_pool_ready ready;
    int rc = cm_wire_pair(fd, err);
    if (rc != CM_OK)
        return rc;
    rc = spawn_program(pool, fd[1], &pool->server_pid, err);
    close(fd[1]);
    if (rc != CM_OK) {
        close(fd[0]);
        return rc;
    }
    pool->server_fd = fd[0];
    if (!say_hello(pool, fd[0], CM_POOL_AS_SERVER, 0, 0) || !server_answers(pool) ||
        !cm_fd_recv(fd[0], &ready, sizeof(ready))) {
        cm_pool_server_stop(pool);
        rc = cm_stop_check(&pool->options.stop, err);
        if (rc != CM_OK)
            return rc;
        return cm_fail(err, CM_EIO, "%s does not answer as a fork server", pool->argv[0]);
    }
    return CM_OK;
}

void cm_pool_server_stop(cm_pool *pool)
{
    if (pool->server_fd < 0)
        return;
    close(pool->server_fd);
    pool->server_fd = -1;
    /* It holds nothing that an orderly end would save. */
    kill(pool->server_pid, SIGKILL);
    while (waitpid(pool->server_pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* With start_lock held. */
static bool ask_server(cm_pool *pool, const cm_pool_request *request, int passed,
                       cm_pool_reply *reply)
{
    return pool->server_fd >= 0 &&
           cm_wire_send_fd(pool->server_fd, request, sizeof(*request), passed) &&
           server_answers(pool) && cm_fd_recv(pool->server_fd, reply, sizeof(*reply));
}

static int fork_in_server(cm_pool_member *m, int fd, pid_t *pid, cm_error *err)
{
    cm_pool *pool = m->pool;
    const cm_pool_request request = {0};
    cm_pool_reply reply;
    if (!ask_server(pool, &request, fd, &reply)) {
        cm_pool_server_stop(pool);
        int rc = cm_pool_server_start(pool, err);
        if (rc != CM_OK)
            return rc;
        if (!ask_server(pool, &request, fd, &reply))
            return cm_fail(err, CM_EIO, "the fork server ended");
    }
    if (reply.pid <= 0)
        return cm_fail_errno(err, reply.errnum, "worker %u cannot be forked", m->number);
    *pid = (pid_t)reply.pid;
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

/* 1: ended, and STATUS says how; 0: it lives; -1: ended, nobody knows how. */
static int wait_for_end(cm_pool_member *m, bool kill_it, int *status)
{
    cm_pool *pool = m->pool;
    if (pool->options.start != CM_START_FORKSERVER) {
        pid_t pid;
        if (kill_it)
            kill(m->pid, SIGKILL);
        while ((pid = waitpid(m->pid, status, kill_it ? 0 : WNOHANG)) < 0 && errno == EINTR)
            continue;
        return pid > 0 ? 1 : pid;
    }
    /* Its parent alone can kill it without fear that the number is another's by now. */
    cm_pool_request request = {.pid = m->pid, .kill_it = kill_it};
    cm_pool_reply reply = {.pid = -1};
    pthread_mutex_lock(&pool->start_lock);
    bool answered = ask_server(pool, &request, -1, &reply);
    pthread_mutex_unlock(&pool->start_lock);
    *status = reply.status;
    return !answered || reply.pid < 0 ? -1 : reply.pid > 0;
}

bool cm_pool_process_reap(cm_pool_member *m, bool kill_it, char *text, size_t size)
{
    int status = 0;
    int ended = wait_for_end(m, kill_it, &status);
    if (ended == 0)
        return false;
    if (ended > 0)
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

/* Makes process and socket; M has both. */
static int begin(cm_pool_member *m, cm_error *err)
{
    cm_pool *pool = m->pool;
    int fd[2];
    pid_t pid = 0;
    pthread_mutex_lock(&pool->start_lock);
    int rc = cm_wire_pair(fd, err);
    if (rc != CM_OK)
        goto out;
    if (pool->options.start == CM_START_FORK)
        rc = fork_worker(m, fd, &pid, err);
    else if (pool->options.start == CM_START_SPAWN)
        rc = spawn_program(pool, fd[1], &pid, err);
    else
        rc = fork_in_server(m, fd[1], &pid, err);
    close(fd[1]);
    if (rc == CM_OK)
        m->fd = fd[0];
    else
        close(fd[0]);
    m->pid = pid;
out:
    pthread_mutex_unlock(&pool->start_lock);
    return rc;
}

typedef enum beginning {
    READY, /* or it says why not */
    DIED,
    LATE,
    UNWANTED /* the pool stops */
} beginning;

/* TEXT says how it DIED.  A process that does not become ready is ended. */
static beginning wait_until_ready(cm_pool_member *m, cm_pool_ready *ready, char *text, size_t size)
{
    const uint64_t late_ns = cm_now_ns() + ready_ns(m->pool);
    bool late = false;
    while (!is_unwanted(m->pool) && !late) {
        struct pollfd wait = {.fd = m->fd, .events = POLLIN};
        int n = poll(&wait, 1, CHECK_MS);
        if (n > 0 && cm_fd_recv(m->fd, ready, sizeof(*ready)))
            return READY;
        /* What closed its socket is as good as dead. */
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
    int rc = begin(m, err);
    if (rc != CM_OK)
        return rc;
    /* That nobody listens shows when the answer is waited for. */
    if (pool->options.start == CM_START_SPAWN)
        (void)say_hello(pool, m->fd, CM_POOL_AS_WORKER, m->number, getpid());
    else if (pool->options.start == CM_START_FORKSERVER)
        (void)say_hello(pool, m->fd, CM_POOL_AS_WORKER, m->number, 0);
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
