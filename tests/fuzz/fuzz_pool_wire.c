/*
 * Messages to a process of the pool: any bytes end the connection or are answered, one
 * result for each task, and never more pieces than it was told of.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "load/workers/pool_impl.h"

enum {
    MAX_PIECES = 8,
    MAX_NBYTES = 16384 /* what a socket holds for certain */
};

/* A worker changes its process; here that is the fuzzer's. */
int prctl(int option, ...)
{
    (void)option;
    return 0;
}

__sighandler_t signal(int number, __sighandler_t handler)
{
    (void)number;
    (void)handler;
    return SIG_DFL;
}

int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    (void)resource;
    (void)limit;
    return 0;
}

/* There are no children here: whom it kills is somebody else. */
int kill(pid_t pid, int number)
{
    (void)number;
    (void)pid;
    abort();
    return 0;
}

static unsigned nloads, nopen;

static int open_state(void *context, unsigned worker, void **state, cm_error *err)
{
    (void)context;
    (void)worker;
    (void)err;
    *state = NULL;
    nopen++;
    return CM_OK;
}

static int load(void *state, const cm_load_task *task, uint8_t *arena, cm_load_result *result,
                cm_error *err)
{
    uint64_t sum = 0;
    (void)state;
    (void)arena;
    REQUIRE(task->npieces <= MAX_PIECES);
    for (uint32_t i = 0; i < task->npieces; i++)
        sum += task->piece[i].sample + task->piece[i].offset + task->piece[i].place;
    result->nbytes = sum;
    nloads++;
    return sum % 5 == 4 ? cm_fail(err, CM_EIO, "no such sample") : CM_OK;
}

static void close_state(void *state)
{
    (void)state;
    nopen--;
}

/* Reads the answers: the ready message, then whole results. */
static void read_answers(int fd, unsigned nresults)
{
    cm_pool_ready ready;
    cm_load_result result;
    unsigned n = 0;
    if (!cm_fd_recv(fd, &ready, sizeof ready)) {
        REQUIRE(nresults == 0);
        return;
    }
    while (cm_fd_recv(fd, &result, sizeof result)) {
        REQUIRE(result.status == CM_OK || memchr(result.error, '\0', sizeof result.error));
        n++;
    }
    REQUIRE(n == nresults);
}

static void work(const uint8_t *data, size_t nbytes)
{
    static const cm_load_source source = {.open = open_state, .load = load, .close = close_state};
    int fd[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    REQUIRE(cm_fd_send(fd[0], data, nbytes) && shutdown(fd[0], SHUT_WR) == 0);
    nloads = nopen = 0;
    cm_pool_work(fd[1], &source, NULL, 3, MAX_PIECES, 0);
    close(fd[1]);
    REQUIRE(nopen == 0);
    read_answers(fd[0], nloads);
    close(fd[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    if (nbytes > MAX_NBYTES)
        return 0;
    uint8_t *copy = fuzz_copy(data, nbytes);
    work(copy, nbytes);
    free(copy);
    return 0;
}
