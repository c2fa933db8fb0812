#include "archive/survey/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive/survey/ahead.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/heap.h"
#include "format/nc/lock.h"
#include "format/nc/trial.h"

enum {
    MAX_PROCESSES = 64,
    LOOK_MS = 100, /* between two looks whether the job is still wanted */
    READ_NBYTES = 256 << 10,
    FILES_A_LOOK = 50,     /* between two looks at the memory of a child */
    SEND_NBYTES = 32 << 10 /* frames are sent together, up to about so many bytes */
};

#define NONE UINT64_MAX
/* A child whose memory has grown by more ends, and another goes on: some libraries leak. */
#define MOST_GROWN (UINT64_C(2) << 20)
/* A record is longer than what a survey reads of a file by little. */
#define MAX_FRAME (UINT64_C(1) << 30)

/*
 * Whatever is allowed, a child may take the half of this: a file that needs more for its metadata
 * and the coordinates that are read of it is damaged.
 */
#define LEAST_MEMORY (UINT64_C(512) << 20)

/* Shared by parent and children. */
typedef struct board {
    atomic_size_t next;                   /* position in the list that nobody has taken */
    atomic_size_t current[MAX_PROCESSES]; /* that each child works on */
    /* When it has to have an end, of the monotonic clock; NONE: it waits for the parent. */
    atomic_ullong deadline[MAX_PROCESSES];
} board;

typedef struct child {
    pid_t pid;
    int fd;
    cm_buf got;
    size_t alone; /* the position that it has for itself; NONE: it takes from the board */
    bool late;    /* and killed for that */
} child;

typedef struct pool {
    const cm_survey_job *job;
    board *board;
    const size_t *todo; /* positions in the job that are to be looked at now */
    size_t ntodo;
    bool *done; /* one for each file */
    size_t ndone;
    cm_ahead ahead;
    child child[MAX_PROCESSES];
    unsigned nchildren;
} pool;

/* ---- the child ---- */

static bool send_all(int fd, cm_buf *out)
{
    bool sent = cm_fd_write(fd, out->data, out->nbytes) == 0;
    out->nbytes = 0;
    return sent;
}

static uint64_t memory_of(const pool *p)
{
    const uint64_t most = p->job->memory;
    return most == 0 || most > LEAST_MEMORY ? most : LEAST_MEMORY;
}

static bool look_at(pool *p, cm_looker *l, unsigned me, size_t at)
{
    cm_trial_limits limits;
    char lies[CM_COPY_PATH_SIZE];
    const cm_look_file file = {.path = p->job->path[at], .copy = p->job->copy[at], .lies = lies};
    if (file.copy != NULL && !cm_ahead_wait(&p->ahead, at, lies))
        return true; /* the parent says why */
    cm_nc_trial_limits(file.copy != NULL ? lies : file.path, 0, NULL, NULL, &limits);
    cm_trial_renew_limits(limits.cpu_s, 0);
    atomic_store(&p->board->deadline[me], cm_trial_deadline(&limits));
    bool looked = cm_look(l, &file, p->job->number[at], NULL) == CM_OK;
    atomic_store(&p->board->deadline[me], NONE);
    return looked;
}

/* As look_at, which dies where libraries damaged the heap: of that file, and not of a later one. */
static bool look_well(pool *p, cm_looker *l, unsigned me, size_t at, const cm_heap *heap)
{
    const unsigned long before = cm_nc_times_locked();
    bool looked = look_at(p, l, me, at);
    if (cm_nc_times_locked() != before)
        cm_heap_check(heap);
    return looked;
}

/*
 * libhdf5 takes blocks of half a MiB for each file that it opens, and gives them back when that is
 * closed: from the system and to it, 260 pages are cleared and mapped for each, a quarter of the
 * time of a small file.
 */
static void keep_freed_memory(void)
{
    enum {
        LARGEST = 4 << 20, /* more is given back: what one large coordinate took */
        MOST = 16 << 20
    };
    (void)mallopt(M_MMAP_THRESHOLD, LARGEST);
    (void)mallopt(M_TRIM_THRESHOLD, MOST);
}

/* Bytes of this process that are in memory; 0: not known. */
static uint64_t resident_nbytes(void)
{
    char text[64] = "";
    unsigned long pages = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    return n > 0 && sscanf(text, "%*u %lu", &pages) == 1
               ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE)
               : 0;
}

/* *FIRST is what it was at the first look. */
static bool has_grown(unsigned nfiles, uint64_t *first)
{
    if (nfiles == 0 || nfiles % FILES_A_LOOK != 0)
        return false;
    uint64_t now = resident_nbytes();
    if (*first == 0)
        *first = now;
    return now > *first + MOST_GROWN;
}

static _Noreturn void be_child(pool *p, unsigned me, pid_t parent, int fd, size_t alone)
{
    cm_looker l = {0};
    cm_trial_limits limits;
    cm_nc_trial_limits("", memory_of(p), NULL, NULL, &limits);
    limits.cpu_s = 0; /* each file has its own */
    const cm_heap heap = cm_heap_find();
    cm_trial_settle(parent, &limits);
    keep_freed_memory();
    uint64_t first = 0;
    for (unsigned n = 0; !has_grown(n, &first); n++) {
        size_t i = alone != NONE ? alone : atomic_fetch_add(&p->board->next, 1);
        if (i >= p->ntodo && alone == NONE)
            break;
        size_t at = alone != NONE ? alone : p->todo[i];
        atomic_store(&p->board->current[me], at);
        /* A copy that was looked at takes the room that the next may wait for. */
        if (cm_ahead_must_wait(&p->ahead, at) && l.out.nbytes > 0 && !send_all(fd, &l.out))
            _exit(1);
        if (!look_well(p, &l, me, at, &heap))
            _exit(2);
        if ((l.out.nbytes >= SEND_NBYTES || alone != NONE) && !send_all(fd, &l.out))
            _exit(1);
        if (alone != NONE)
            break;
    }
    _exit(send_all(fd, &l.out) ? 0 : 1);
}

/* ---- the parent ---- */

static int start_child(pool *p, size_t alone, cm_error *err)
{
    int fd[2];
    sigset_t all, before;
    const pid_t parent = getpid();
    if (pipe2(fd, O_CLOEXEC) != 0)
        return cm_fail_errno(err, errno, "a child process cannot be made");
    unsigned me = p->nchildren;
    atomic_store(&p->board->current[me], NONE);
    atomic_store(&p->board->deadline[me], NONE);
    /* A handler of the parent must not run in the child. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        close(fd[0]);
        for (unsigned i = 0; i < me; i++)
            close(p->child[i].fd);
        be_child(p, me, parent, fd[1], alone);
    }
    int failed = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(fd[1]);
    if (pid < 0) {
        close(fd[0]);
        return cm_fail_errno(err, failed, "a child process cannot be made");
    }
    p->child[p->nchildren++] = (child){.pid = pid, .fd = fd[0], .alone = alone};
    return CM_OK;
}

static void count_file(pool *p, const uint8_t *payload, uint64_t nbytes)
{
    if (nbytes < sizeof(uint64_t))
        return;
    uint64_t number = cm_load_le64(payload);
    /* NUMBER ascends in the job, so that its place is found by bisection. */
    size_t low = 0, high = p->job->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->job->number[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < p->job->n && p->job->number[low] == number && !p->done[low]) {
        p->done[low] = true;
        p->ndone++;
        cm_ahead_done(&p->ahead, low);
        cm_monitor_add(p->job->monitor, 1);
    }
}

/* The whole frames that C sent; *BAD when they are none. */
static int take_frames(pool *p, child *c, bool *bad, cm_error *err)
{
    size_t at = 0;
    int rc = CM_OK;
    cm_frame f;
    while (rc == CM_OK && !*bad && c->got.nbytes - at >= sizeof(f)) {
        memcpy(&f, c->got.data + at, sizeof(f));
        *bad = (f.kind != CM_FRAME_SHARED && f.kind != CM_FRAME_FILE) || f.nbytes > MAX_FRAME;
        if (*bad || c->got.nbytes - at - sizeof(f) < f.nbytes)
            break;
        const uint8_t *payload = c->got.data + at + sizeof(f);
        *bad = cm_frame_check(payload, f.nbytes) != f.check;
        if (*bad)
            break;
        rc = p->job->take(p->job->context, &f, payload, err);
        if (rc == CM_OK && f.kind == CM_FRAME_FILE)
            count_file(p, payload, f.nbytes);
        at += sizeof(f) + f.nbytes;
    }
    memmove(c->got.data, c->got.data + at, c->got.nbytes - at);
    c->got.nbytes -= at;
    return rc;
}

/* Reads once from C; *ENDED when nothing more comes. */
static int hear(pool *p, child *c, bool *ended, cm_error *err)
{
    size_t had = c->got.nbytes;
    int rc = cm_buf_resize(&c->got, had + READ_NBYTES, err);
    if (rc != CM_OK)
        return rc;
    ssize_t n = read(c->fd, c->got.data + had, READ_NBYTES);
    c->got.nbytes = had + (n > 0 ? (size_t)n : 0);
    *ended = n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
    return n > 0 ? take_frames(p, c, ended, err) : CM_OK;
}

/* How C ended; it is killed where it has not. */
static cm_trial_fate reap(child *c)
{
    cm_trial_fate fate = cm_trial_reap(c->pid, true);
    close(c->fd);
    cm_buf_release(&c->got);
    return fate;
}

/*
 * Waits until C has ended by itself, so that killing it is not taken for its fate.  Its end of the
 * pipe closes some microseconds before that: to wait 10 ms at once was a fifth of a survey of 400
 * files.
 */
static void wait_for_end(const child *c)
{
    enum {
        FIRST_US = 50,
        MOST_US = 10000,
        ALL_US = 500000
    };
    siginfo_t info;
    for (long us = FIRST_US, waited = 0; waited < ALL_US; us = us < MOST_US ? 2 * us : us) {
        info.si_pid = 0;
        if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == c->pid)
            return;
        (void)ppoll(NULL, 0, &(struct timespec){.tv_nsec = us * 1000}, NULL);
        waited += us;
    }
}

static void end_children(pool *p)
{
    for (unsigned i = 0; i < p->nchildren; i++)
        if (p->child[i].fd >= 0)
            (void)reap(&p->child[i]);
    p->nchildren = 0;
}

/* The record of a file that says WHY there is no more. */
static int take_failure(pool *p, size_t at, const cm_error *why, cm_error *err)
{
    cm_looker l = {0};
    bool bad = false;
    const cm_look_file file = {.path = p->job->path[at], .copy = p->job->copy[at]};
    int rc = cm_look_failed(&l, &file, p->job->number[at], why, err);
    child c = {.got = l.out};
    if (rc == CM_OK)
        rc = take_frames(p, &c, &bad, err);
    l.out = c.got;
    cm_looker_release(&l);
    return rc;
}

/* Takes the records of files that could not be fetched. */
static int take_failures(pool *p, cm_error *err)
{
    int rc = cm_ahead_check(&p->ahead, err);
    for (cm_ahead_failure *f = cm_ahead_failed(&p->ahead), *next; f != NULL; f = next) {
        next = f->next;
        if (rc == CM_OK)
            rc = take_failure(p, f->at, &f->why, err);
        free(f);
    }
    return rc;
}

/* The record of a file that ended its process: twice, or by a limit that is its own. */
static int blame(pool *p, size_t at, const cm_trial_fate *fate, cm_error *err)
{
    cm_error why = {0};
    cm_trial_limits limits;
    const char *path = p->job->path[at];
    cm_nc_trial_limits(path, memory_of(p), NULL, NULL, &limits);
    cm_trial_fate end = *fate;
    if (end.end == CM_TRIAL_RETURNED) /* it said nothing */
        end = (cm_trial_fate){.end = CM_TRIAL_CRASHED};
    (void)cm_nc_trial_failed(path, "opening it", &limits, &end, &why);
    return take_failure(p, at, &why, err);
}

/* Whoever waits for a file that does not come is killed. */
static void kill_late(pool *p)
{
    const uint64_t now = cm_now_ns();
    for (unsigned i = 0; i < p->nchildren; i++) {
        child *c = &p->child[i];
        if (c->fd < 0 || c->late || now < atomic_load(&p->board->deadline[i]))
            continue;
        c->late = true;
        (void)kill(c->pid, SIGKILL);
    }
}

/* One turn of all children that there are, until the last has ended. */
static int attend(pool *p, bool *suspect, cm_error *err)
{
    struct pollfd fds[MAX_PROCESSES];
    unsigned left = p->nchildren;
    int rc = CM_OK;
    while (rc == CM_OK && left > 0) {
        for (unsigned i = 0; i < p->nchildren; i++)
            fds[i] = (struct pollfd){.fd = p->child[i].fd, .events = POLLIN};
        int n = poll(fds, p->nchildren, LOOK_MS);
        if (n < 0 && errno != EINTR)
            rc = cm_fail_errno(err, errno, "child processes cannot be waited for");
        if (cm_monitor_canceled(p->job->monitor))
            rc = cm_fail(err, CM_ECANCELED, "stopped by request");
        if (rc == CM_OK)
            rc = take_failures(p, err);
        kill_late(p);
        for (unsigned i = 0; rc == CM_OK && n > 0 && i < p->nchildren; i++) {
            child *c = &p->child[i];
            bool ended = false;
            if (c->fd < 0 || fds[i].revents == 0)
                continue;
            rc = hear(p, c, &ended, err);
            if (rc != CM_OK || !ended)
                continue;
            size_t at = atomic_load(&p->board->current[i]);
            wait_for_end(c);
            cm_trial_fate fate = reap(c);
            if (c->late)
                fate = (cm_trial_fate){.end = CM_TRIAL_LATE};
            c->fd = -1;
            left--;
            /* One that ended as it should has sent the record of the last file that it took. */
            rc = take_failures(p, err);
            if (at == NONE || p->done[at])
                continue;
            suspect[at] = true;
            cm_ahead_undo(&p->ahead, at);
            bool limited = fate.end == CM_TRIAL_LATE || fate.end == CM_TRIAL_ENDLESS;
            if (rc == CM_OK && (c->alone != NONE || limited))
                rc = blame(p, at, &fate, err);
        }
    }
    return rc;
}

static int look_at_all(pool *p, size_t *todo, bool *suspect, cm_error *err)
{
    unsigned n = p->job->nprocesses;
    n = n < 1 ? 1 : n > MAX_PROCESSES ? MAX_PROCESSES : n;
    while (p->ndone < p->job->n) {
        int rc = CM_OK;
        p->todo = todo;
        p->ntodo = 0;
        size_t alone = NONE, before = p->ndone, nsuspects = 0;
        for (size_t i = 0; i < p->job->n; i++) {
            if (!p->done[i] && suspect[i] && alone == NONE)
                alone = i;
            else if (!p->done[i] && !suspect[i])
                todo[p->ntodo++] = i;
            nsuspects += suspect[i];
        }
        atomic_store(&p->board->next, 0);
        rc = p->ntodo > 0 ? cm_ahead_start(&p->ahead, todo, p->ntodo, err)
                          : cm_ahead_start(&p->ahead, &alone, 1, err);
        if (rc == CM_OK && p->ntodo == 0)
            rc = start_child(p, alone, err);
        for (size_t i = 0; rc == CM_OK && i < n && i < p->ntodo; i++) {
            rc = start_child(p, NONE, err);
            /* Fewer children than wished for do as well. */
            if (rc != CM_OK && p->nchildren > 0)
                break;
        }
        rc = p->nchildren > 0 ? attend(p, suspect, err) : rc;
        end_children(p);
        cm_ahead_stop(&p->ahead);
        if (rc != CM_OK)
            return rc;
        for (size_t i = 0; i < p->job->n; i++)
            nsuspects -= suspect[i];
        if (p->ndone == before && nsuspects == 0)
            return cm_fail(err, CM_EIO, "child processes end before they have looked at a file");
    }
    return CM_OK;
}

int cm_survey_pool_run(const cm_survey_job *job, cm_error *err)
{
    pool p = {.job = job, .done = cm_calloc(job->n + 1, sizeof(bool), err)};
    bool *suspect = cm_calloc(job->n + 1, sizeof(bool), err);
    size_t *todo = cm_calloc(job->n + 1, sizeof(size_t), err);
    int rc = p.done == NULL || suspect == NULL || todo == NULL ? CM_ENOMEM : CM_OK;
    void *shared =
        mmap(NULL, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rc == CM_OK && shared == MAP_FAILED)
        rc = cm_fail_errno(err, errno, "no memory to survey %zu files", job->n);
    p.board = shared;
    if (rc == CM_OK)
        rc = cm_ahead_init(&p.ahead, job->copies, job->copy, job->n, err);
    cm_nc_handle_forks();
    if (rc == CM_OK)
        rc = look_at_all(&p, todo, suspect, err);
    if (shared != MAP_FAILED)
        munmap(shared, sizeof(board));
    cm_ahead_release(&p.ahead);
    free(todo);
    free(suspect);
    free(p.done);
    return rc;
}
