#include "load/workers/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pipe.h"

enum {
    READ_NBYTES = 4096,
    PATIENCE_MS = 500,
    LOOK_MS = 5,     /* between two checks whether it has ended */
    CANCEL_MS = 200, /* between two checks whether it is still wanted */
};

/* ---- beginning and ending ---- */

static int spawn(cm_child *child, const char *command, int in, int out)
{
    char *const argv[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, pipe_signal;
    sigemptyset(&none);
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    /* Our threads block signals; the user's command gets the usual mask. */
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &pipe_signal);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETPGROUP);
    int failed = posix_spawn(&child->pid, "/bin/sh", &files, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

/* A pipe that no other program inherits; its end OURS is non-blocking. */
static int make_pipe(int fd[2], int ours, cm_error *err)
{
    if (pipe2(fd, O_CLOEXEC) != 0)
        return cm_fail_errno(err, errno, "no pipe to a loader");
    int flags = fcntl(fd[ours], F_GETFL);
    if (flags < 0 || fcntl(fd[ours], F_SETFL, flags | O_NONBLOCK) != 0) {
        int saved = errno;
        close(fd[0]);
        close(fd[1]);
        return cm_fail_errno(err, saved, "no pipe to a loader");
    }
    return CM_OK;
}

int cm_child_begin(cm_child *child, const char *command, cm_error *err)
{
    int in[2], out[2];
    int rc = make_pipe(in, 1, err);
    if (rc != CM_OK)
        return rc;
    if ((rc = make_pipe(out, 0, err)) != CM_OK) {
        close(in[0]);
        close(in[1]);
        return rc;
    }
    int failed = spawn(child, command, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    child->in = in[1];
    child->out = out[0];
    child->taken = 0;
    cm_buf_init(&child->buf, CM_CHILD_MAX_LINE);
    if (failed == 0)
        return CM_OK;
    child->pid = 0;
    close(in[1]);
    close(out[0]);
    return cm_fail_errno(err, failed, "'%s' cannot be begun", command);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/*
 * Waits at most MS for its end, without reaping it: its process id must not pass to another before
 * the group is killed.
 */
static bool has_ended(const cm_child *child, unsigned ms, siginfo_t *info)
{
    const uint64_t end_ns = cm_now_ns() + (uint64_t)ms * 1000000u;
    for (;;) {
        memset(info, 0, sizeof(*info));
        if (waitid(P_PID, (id_t)child->pid, info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info->si_pid == child->pid)
            return true;
        if (cm_now_ns() >= end_ns)
            return false;
        sleep_ms(LOOK_MS);
    }
}

void cm_child_end(cm_child *child, bool patient)
{
    siginfo_t info;
    if (child->pid == 0)
        return;
    close(child->in);
    if (patient)
        (void)has_ended(child, PATIENCE_MS, &info);
    kill(-child->pid, SIGKILL); /* also processes that it left behind */
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    close(child->out);
    cm_buf_release(&child->buf);
    *child = (cm_child){0};
}

uint64_t cm_child_cpu_ns(const cm_child *child)
{
    clockid_t clock;
    struct timespec t;
    if (child->pid == 0 || clock_getcpuclockid(child->pid, &clock) != 0 ||
        clock_gettime(clock, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- lines ---- */

/* Says why the command reads or writes no more, as far as is known. */
static int gone(cm_child *child, cm_error *err)
{
    siginfo_t info;
    if (!has_ended(child, PATIENCE_MS, &info))
        return cm_fail(err, CM_EIO, "the loader closed its output");
    if (info.si_code == CLD_EXITED)
        return cm_fail(err, CM_EIO, "the loader ended with status %d", info.si_status);
    return cm_fail(err, CM_EIO, "the loader was killed by signal %d (%s)", info.si_status,
                   strsignal(info.si_status));
}

/* Waits until FD is ready for EVENTS. */
static int wait_for(int fd, short events, const cm_child_patience *patience, const char *what,
                    cm_error *err)
{
    for (;;) {
        uint64_t now = cm_now_ns();
        if (now >= patience->deadline_ns)
            return cm_fail(err, CM_EIO, "the loader %s in time", what);
        if (patience->canceled != NULL && patience->canceled(patience->context))
            return cm_fail(err, CM_ECANCELED, "the loader was stopped by request");
        uint64_t left_ms = (patience->deadline_ns - now) / 1000000 + 1;
        struct pollfd p = {.fd = fd, .events = events};
        int n = poll(&p, 1, left_ms > CANCEL_MS ? CANCEL_MS : (int)left_ms);
        if (n > 0)
            return CM_OK;
        if (n < 0 && errno != EINTR)
            return cm_fail_errno(err, errno, "waiting for the loader");
    }
}

int cm_child_write(cm_child *child, const void *data, size_t nbytes,
                   const cm_child_patience *patience, cm_error *err)
{
    const char *p = data;
    while (nbytes > 0) {
        int rc = wait_for(child->in, POLLOUT, patience, "does not read its requests", err);
        if (rc != CM_OK)
            return rc;
        ssize_t n = cm_pipe_write(child->in, p, nbytes);
        if (n >= 0) {
            p += n;
            nbytes -= (size_t)n;
        } else if (errno == EPIPE)
            return gone(child, err);
        else if (errno != EAGAIN && errno != EINTR)
            return cm_fail_errno(err, errno, "writing to the loader");
    }
    return CM_OK;
}

int cm_child_read_line(cm_child *child, const cm_child_patience *patience, const char **line,
                       size_t *nbytes, cm_error *err)
{
    cm_buf *buf = &child->buf;
    if (child->taken > 0) {
        memmove(buf->data, buf->data + child->taken, buf->nbytes - child->taken);
        buf->nbytes -= child->taken;
        child->taken = 0;
    }
    for (size_t seen = 0;;) {
        char *end = buf->nbytes > seen ? memchr(buf->data + seen, '\n', buf->nbytes - seen) : NULL;
        if (end != NULL) {
            *end = '\0';
            *line = (char *)buf->data;
            *nbytes = (size_t)(end - *line);
            child->taken = *nbytes + 1;
            return CM_OK;
        }
        seen = buf->nbytes;
        int rc = wait_for(child->out, POLLIN, patience, "does not answer", err);
        if (rc != CM_OK)
            return rc;
        if (cm_buf_reserve(buf, seen + READ_NBYTES, err) != CM_OK)
            return cm_fail(err, CM_EFORMAT, "the loader's answer is longer than %d bytes",
                           CM_CHILD_MAX_LINE);
        ssize_t n = read(child->out, buf->data + seen, READ_NBYTES);
        if (n == 0)
            return gone(child, err);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return cm_fail_errno(err, errno, "reading from the loader");
        buf->nbytes += n > 0 ? (size_t)n : 0;
    }
}
