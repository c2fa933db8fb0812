/* The life of a worker process. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "load/workers/pool_impl.h"

void cm_pool_become_worker(pid_t parent)
{
    static const int usual[] = {SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD};
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* The parent may have died before the call above. */
    if (getppid() != parent)
        _exit(0);
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        signal(usual[i], SIG_DFL);
    /* Ctrl-C and a hang-up reach the whole process group, but only the parent stops its workers. */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Bytes of private writable memory now, which RLIMIT_DATA counts: VmData; 0: not known. */
static uint64_t data_nbytes(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *line = strstr(text, "\nVmData:");
    return line == NULL ? 0 : strtoull(line + strlen("\nVmData:"), NULL, 10) * 1024;
}

static int limit_memory(uint64_t nbytes, cm_error *err)
{
    uint64_t now = data_nbytes();
    struct rlimit limit;
    if (nbytes == 0 || nbytes > INT64_MAX - now)
        return CM_OK;
    if (getrlimit(RLIMIT_DATA, &limit) != 0)
        return cm_fail_errno(err, errno, "the memory of a worker cannot be limited");
    limit.rlim_cur = now + nbytes < limit.rlim_max ? now + nbytes : limit.rlim_max;
    if (setrlimit(RLIMIT_DATA, &limit) != 0)
        return cm_fail_errno(err, errno, "the memory of a worker cannot be limited");
    return CM_OK;
}

static bool say_ready(int fd, int status, const cm_error *err)
{
    cm_pool_ready ready = {.status = status};
    if (status != CM_OK)
        snprintf(ready.text, sizeof(ready.text), "%s", err->text);
    return cm_fd_send(fd, &ready, sizeof(ready));
}

/* Reads and discards, for lack of memory. */
static bool skip(int fd, size_t nbytes)
{
    char some[4096];
    while (nbytes > 0) {
        size_t n = nbytes < sizeof(some) ? nbytes : sizeof(some);
        if (!cm_fd_recv(fd, some, n))
            return false;
        nbytes -= n;
    }
    return true;
}

typedef struct inbox {
    cm_load_task *task;
    size_t capacity; /* pieces */
} inbox;

/*
 * The next task; false: no more will come.  Where there is no memory for it only its fixed
 * part is there, and FITS is false.
 */
static bool next_task(int fd, size_t max_pieces, inbox *in, bool *fits)
{
    cm_load_task head;
    if (!cm_fd_recv(fd, &head, sizeof(head)) || head.npieces > max_pieces)
        return false;
    *fits = head.npieces <= in->capacity;
    if (!*fits) {
        size_t nbytes = sizeof(head) + head.npieces * sizeof(cm_load_piece);
        cm_load_task *larger = realloc(in->task, nbytes);
        if (larger != NULL) {
            *in = (inbox){.task = larger, .capacity = head.npieces};
            *fits = true;
        }
    }
    memcpy(in->task, &head, sizeof(head));
    size_t nbytes = head.npieces * sizeof(cm_load_piece);
    return *fits ? cm_fd_recv(fd, in->task->piece, nbytes) : skip(fd, nbytes);
}

/* Socket of this process, if it is a worker; else -1. */
static int pool_fd = -1;

bool cm_pool_worker_is_unwanted(void)
{
    struct pollfd look = {.fd = pool_fd, .events = POLLRDHUP};
    return pool_fd >= 0 && poll(&look, 1, 0) > 0;
}

void cm_pool_work(int fd, const cm_load_source *source, uint8_t *arena, unsigned worker,
                  size_t max_pieces, uint64_t memory)
{
    cm_pool_runner runner = {.source = source, .arena = arena, .worker = worker};
    cm_load_result result;
    cm_error err = {0};
    bool fits;
    inbox in = {.task = cm_calloc(1, sizeof(cm_load_task), &err)};
    pool_fd = fd;
    if (source->sees_its_end)
        prctl(PR_SET_PDEATHSIG, 0);
    int rc = in.task == NULL ? CM_ENOMEM : limit_memory(memory, &err);
    if (rc == CM_OK)
        rc = cm_pool_runner_open(&runner, &err);
    bool going = say_ready(fd, rc, &err) && rc == CM_OK;
    while (going && next_task(fd, max_pieces, &in, &fits)) {
        if (fits) {
            cm_pool_runner_load(&runner, in.task, &result);
        } else {
            memset(&result, 0, sizeof(result));
            result.worker = worker;
            cm_load_result_fail(&result, in.task->id, CM_ENOMEM, "no memory for a task");
        }
        going = cm_fd_send(fd, &result, sizeof(result));
    }
    if (rc == CM_OK)
        cm_pool_runner_close(&runner);
    free(in.task);
}
