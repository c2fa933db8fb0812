/* The life of a worker process, and of a process that forks them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load/workers/pool_impl.h"

enum {
    MAX_SETUP = 256 << 20 /* bytes; real ones are kilobytes */
};

/* ---- a worker ---- */

void cm_pool_become_worker(pid_t parent)
{
    static const int usual[] = {SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD};
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* It may have died before it was asked to tell. */
    if (parent != 0 && getppid() != parent)
        _exit(0);
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        signal(usual[i], SIG_DFL);
    /*
     * An interrupt at the terminal, and its end, reach the whole group: it is the parent who stops
     * the workers.
     */
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

/* Reads and forgets, for want of memory. */
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

/* Of this process, when it is a worker; -1: it is none. */
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

/* ---- a process that was begun anew ---- */

typedef struct served {
    cm_pool_make_source *make;
    void (*release)(cm_load_source *source);
} served;

static int serve(int fd, const served *s, cm_error *err);

static int serve_worker(int fd, const served *s, const cm_pool_hello *hello, const void *setup,
                        int arena_fd, cm_error *err)
{
    cm_load_source source = {0};
    void *arena = MAP_FAILED;
    int rc = CM_OK;
    cm_pool_become_worker((pid_t)hello->parent);
    if (arena_fd >= 0)
        arena = mmap(NULL, hello->arena_nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena_fd, 0);
    if (arena == MAP_FAILED)
        rc = cm_fail_errno(err, arena_fd < 0 ? EBADF : errno, "no shared memory of %llu bytes",
                           (unsigned long long)hello->arena_nbytes);
    if (rc == CM_OK)
        rc = s->make(setup, hello->setup_nbytes, &source, err);
    if (rc == CM_OK) {
        cm_pool_work(fd, &source, arena, hello->worker, hello->max_pieces, hello->worker_memory);
        if (s->release != NULL)
            s->release(&source);
    } else {
        (void)say_ready(fd, rc, err);
    }
    if (arena != MAP_FAILED)
        munmap(arena, hello->arena_nbytes);
    return rc;
}

/* Forks a worker for the socket PASSED; the child does not return. */
static cm_pool_reply fork_one(int control, int passed, const served *s)
{
    const pid_t server = getpid();
    pid_t pid = passed < 0 ? -1 : fork();
    if (pid == 0) {
        cm_error err;
        close(control);
        cm_pool_become_worker(server);
        _exit(serve(passed, s, &err) == CM_OK ? 0 : 1);
    }
    return (cm_pool_reply){.pid = pid, .errnum = pid < 0 ? (passed < 0 ? EBADF : errno) : 0};
}

static cm_pool_reply reap_one(const cm_pool_request *request)
{
    cm_pool_reply reply = {0};
    pid_t pid = (pid_t)request->pid;
    int status = 0;
    /* 0 and below are groups, to waitpid and to kill. */
    if (pid <= 0 || pid != request->pid)
        return (cm_pool_reply){.pid = -1, .errnum = ECHILD};
    do
        reply.pid = waitpid(pid, &status, WNOHANG);
    while (reply.pid < 0 && errno == EINTR);
    /* What a server before this one forked is no child: its number may be anybody's by now. */
    if (reply.pid == 0 && request->kill_it) {
        kill(pid, SIGKILL);
        do
            reply.pid = waitpid(pid, &status, 0);
        while (reply.pid < 0 && errno == EINTR);
    }
    reply.status = status;
    reply.errnum = reply.pid < 0 ? errno : 0;
    return reply;
}

static int serve_forks(int fd, const served *s)
{
    cm_pool_request request;
    int passed;
    if (!say_ready(fd, CM_OK, NULL))
        return CM_OK;
    while (cm_wire_recv_fd(fd, &request, sizeof(request), &passed)) {
        cm_pool_reply reply = request.pid == 0 ? fork_one(fd, passed, s) : reap_one(&request);
        if (passed >= 0)
            close(passed);
        if (!cm_fd_send(fd, &reply, sizeof(reply)))
            break;
    }
    return CM_OK;
}

static int serve(int fd, const served *s, cm_error *err)
{
    cm_pool_hello hello;
    int arena_fd = -1, rc;
    if (!cm_wire_recv_fd(fd, &hello, sizeof(hello), &arena_fd))
        return cm_fail(err, CM_EIO, "descriptor %d is not the socket of a pool of workers", fd);
    uint8_t *setup = NULL;
    if (hello.nbytes != sizeof(hello) + sizeof(cm_load_result) ||
        hello.version != CM_POOL_WIRE_VERSION)
        rc = cm_fail(err, CM_EFORMAT, "the pool of workers belongs to another version");
    else if (hello.setup_nbytes > MAX_SETUP)
        rc = cm_fail(err, CM_EFORMAT, "the pool of workers has a setup of %llu bytes",
                     (unsigned long long)hello.setup_nbytes);
    else if ((setup = cm_calloc(hello.setup_nbytes, 1, err)) == NULL)
        rc = CM_ENOMEM;
    else if (!cm_fd_recv(fd, setup, hello.setup_nbytes))
        rc = cm_fail(err, CM_EIO, "the pool of workers ended");
    else if (hello.role == CM_POOL_AS_SERVER)
        rc = serve_forks(fd, s);
    else
        rc = serve_worker(fd, s, &hello, setup, arena_fd, err);
    free(setup);
    if (arena_fd >= 0)
        close(arena_fd);
    return rc;
}

int cm_pool_serve(int fd, cm_pool_make_source *make, void (*release)(cm_load_source *source),
                  cm_error *err)
{
    const served s = {.make = make, .release = release};
    /* Programs that the source runs do not get it. */
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    return serve(fd, &s, err);
}
