#include "base/trial.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

enum {
    LOOK_MS = 100, /* between two looks whether it is still there, and still wanted */
    READ_NBYTES = 65536
};

/* Header of the child's answer on the socket; the record follows. */
typedef struct answer {
    int32_t status;
    uint32_t complete; /* COMPLETE: what a child that ran wild wrote is not taken for an answer */
    uint64_t nrecord;
    cm_error error;
} answer;

#define COMPLETE UINT32_C(0x7472796f)

/* ---- the child ---- */

/* Nothing that it says reaches anyone: what malloc prints before it aborts, for instance. */
static void fall_silent(void)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0)
        return;
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
}

/* Memory of this process, bytes; read in the child, that of its parent. */
typedef struct memory_use {
    uint64_t space, resident, data; /* all zero: not known */
} memory_use;

static memory_use read_memory_use(void)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long space, resident, data;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL)
        return (memory_use){0};
    int n = fscanf(f, "%llu %llu %*u %*u %*u %llu", &space, &resident, &data);
    fclose(f);
    return n == 3 ? (memory_use){space * page, resident * page, data * page} : (memory_use){0};
}

/*
 * To SOFT, and for good where LASTING.  A limit that cannot be set is one that the user has set
 * lower.
 */
static void limit(int resource, rlim_t soft, bool lasting)
{
    struct rlimit now;
    if (getrlimit(resource, &now) != 0)
        return;
    now.rlim_cur = soft < now.rlim_max ? soft : now.rlim_max;
    /* Where SIGXCPU at the first is blocked, SIGKILL comes at the second. */
    if (lasting && soft < now.rlim_max)
        now.rlim_max = resource == RLIMIT_CPU ? soft + 1 : soft;
    (void)setrlimit(resource, &now);
}

static void set_limits(const cm_trial_limits *limits, bool lasting)
{
    const memory_use now = read_memory_use();
    if (limits->memory > 0 && now.space > 0)
        limit(RLIMIT_AS, now.space + limits->memory, lasting);
    if (limits->data > 0 && now.space > 0)
        limit(RLIMIT_DATA, now.data + limits->data, lasting);
    if (limits->cpu_s > 0)
        limit(RLIMIT_CPU, limits->cpu_s, lasting);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    (void)prctl(PR_SET_DUMPABLE, 0); /* core files that go to a program know no limit */
}

void cm_trial_renew_limits(unsigned cpu_s, uint64_t memory)
{
    struct rusage used;
    const memory_use now = memory > 0 ? read_memory_use() : (memory_use){0};
    if (now.space > 0) {
        limit(RLIMIT_AS, now.space + memory, false);
        limit(RLIMIT_DATA, now.data + memory, false);
    }
    if (cpu_s > 0 && getrusage(RUSAGE_SELF, &used) == 0)
        limit(RLIMIT_CPU, (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 2 + cpu_s, false);
}

/* A terminal's signals are for the parent; what tells of a crash stays, and ends the child. */
static void set_signals(void)
{
    static const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGXCPU};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        sigdelset(&blocked, kept[i]);
        /* A program's handlers speak for the parent; a sanitizer's report must come. */
        if (!SANITIZED || kept[i] == SIGXCPU)
            signal(kept[i], SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* A task for the child. */
typedef struct task {
    cm_trial_fn *fn;
    cm_trial_serve *serve; /* NULL: the child does not stay */
    void *context;
    const cm_trial_limits *limits;
} task;

static void settle(pid_t parent, const cm_trial_limits *limits, bool once)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    set_signals();
    fall_silent();
    set_limits(limits, once);
}

void cm_trial_settle(pid_t parent, const cm_trial_limits *limits)
{
    settle(parent, limits, false);
}

/*
 * A child that stays must not keep open what the process closes: whoever is at the other end of a
 * socket or pipe would wait for it.  Files stay: libraries may have them open.
 */
static void drop_streams(int kept)
{
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL)
        return;
    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        struct stat st;
        const int fd = atoi(e->d_name);
        if (fd > STDERR_FILENO && fd != kept && fd != dirfd(folder) && fstat(fd, &st) == 0 &&
            (S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode)))
            close(fd);
    }
    closedir(folder);
}

static _Noreturn void be_child(const task *t, size_t max_record, pid_t parent, int fd)
{
    answer a = {.complete = COMPLETE};
    cm_buf record;
    const cm_heap heap = cm_heap_find(); /* later the system tells less of this process */
    settle(parent, t->limits, t->serve == NULL);
    if (t->serve != NULL)
        drop_streams(fd);
    cm_buf_init(&record, max_record);
    cm_heap_fill(true);
    a.status = t->fn(t->context, &record, &a.error);
    a.nrecord = record.nbytes;
    cm_heap_fill(false); /* what follows is data */
    /* Here nothing may have died of it yet; in the parent something would. */
    cm_heap_check(&heap);
    bool stays = t->serve != NULL && a.status == CM_OK;
    /* That signal comes when the thread ends that forked; the end of the stream tells more. */
    if (stays)
        (void)prctl(PR_SET_PDEATHSIG, 0);
    bool told = cm_fd_send(fd, &a, sizeof a) && cm_fd_send(fd, record.data, record.nbytes);
    if (told && stays)
        t->serve(t->context, fd);
    _exit(told ? 0 : 1); /* no atexit, and no stdio: both are the parent's */
}

/* ---- the parent ---- */

typedef struct child {
    pid_t pid;
    int fd;
    const cm_trial_limits *limits;
    uint64_t deadline; /* of the monotonic clock; UINT64_MAX: none */
    bool canceled;
    bool late;
    cm_buf got;        /* what came through the socket */
    uint64_t resident; /* of the parent when it was made, which the child has from the beginning */
} child;

uint64_t cm_trial_deadline(const cm_trial_limits *l)
{
    return l->wall_s == 0 ? UINT64_MAX : cm_now_ns() + (uint64_t)l->wall_s * 1000000000u;
}

static bool is_canceled(child *c)
{
    const cm_trial_limits *l = c->limits;
    c->canceled = c->canceled || (l->canceled != NULL && l->canceled(l->context));
    return c->canceled;
}

static bool is_dead(const child *c)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == c->pid;
}

static bool has_answered(const child *c)
{
    answer a;
    if (c->got.nbytes < sizeof a)
        return false;
    memcpy(&a, c->got.data, sizeof a);
    return a.complete == COMPLETE && c->got.nbytes - sizeof a >= a.nrecord;
}

/*
 * Reads until all is there, or nothing more can come.  Another child that was forked
 * meanwhile holds a copy of the socket's end, so that its closing alone does not tell.
 */
static int hear(child *c, cm_error *err)
{
    for (bool dead = false; !has_answered(c);) {
        struct pollfd p = {.fd = c->fd, .events = POLLIN};
        int n = poll(&p, 1, dead ? 0 : LOOK_MS);
        if (n < 0 && errno != EINTR)
            return cm_fail_errno(err, errno, "a child process cannot be waited for");
        if (is_canceled(c))
            return CM_OK;
        if ((c->late = n <= 0 && cm_now_ns() > c->deadline))
            return CM_OK;
        if (n <= 0) {
            if (dead)
                return CM_OK;
            dead = is_dead(c); /* what it wrote before is read first */
            continue;
        }
        size_t had = c->got.nbytes;
        int rc = cm_buf_resize(&c->got, had + READ_NBYTES, err);
        if (rc != CM_OK)
            return rc;
        ssize_t got = read(c->fd, c->got.data + had, READ_NBYTES);
        c->got.nbytes = had + (got > 0 ? (size_t)got : 0);
        if (got == 0 || (got < 0 && errno == ECONNRESET))
            return CM_OK;
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return cm_fail_errno(err, errno, "a child process cannot be heard");
    }
    return CM_OK;
}

/* *PEAK is what the child had in memory at most, bytes. */
static cm_trial_fate reap(pid_t pid, bool kill_it, uint64_t *peak)
{
    struct rusage used = {0};
    int status = 0;
    pid_t reaped;
    if (kill_it)
        (void)kill(pid, SIGKILL);
    do {
        reaped = wait4(pid, &status, 0, &used);
    } while (reaped < 0 && errno == EINTR);
    *peak = (uint64_t)used.ru_maxrss << 10;
    if (reaped == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return (cm_trial_fate){.end = CM_TRIAL_RETURNED};
    if (reaped != pid || !WIFSIGNALED(status)) /* or someone else has reaped it */
        return (cm_trial_fate){.end = CM_TRIAL_CRASHED};
    if (WTERMSIG(status) == SIGXCPU)
        return (cm_trial_fate){.end = CM_TRIAL_ENDLESS};
    return (cm_trial_fate){.end = CM_TRIAL_CRASHED, .signal = WTERMSIG(status)};
}

cm_trial_fate cm_trial_reap(pid_t pid, bool kill_it)
{
    uint64_t peak;
    return reap(pid, kill_it, &peak);
}

static int take_answer(const child *c, cm_buf *record, cm_error *err)
{
    answer a;
    memcpy(&a, c->got.data, sizeof a);
    if (a.status != CM_OK && err != NULL)
        *err = a.error;
    int rc = record == NULL || a.nrecord == 0
                 ? CM_OK
                 : cm_buf_append(record, c->got.data + sizeof a, (size_t)a.nrecord, err);
    return rc == CM_OK ? a.status : rc;
}

/* KEPT (NULL: it does not stay) is the child where it goes on. */
static int attend(child *c, cm_buf *record, cm_trial_fate *fate, cm_trial_child *kept,
                  cm_error *err)
{
    /* One more read than the longest answer, so that the last one fits. */
    size_t most = record == NULL ? 0 : record->max_nbytes;
    bool bounded = record == NULL || most > 0;
    cm_buf_init(&c->got,
                bounded && cm_add_size(most, sizeof(answer) + READ_NBYTES, &most) ? most : 0);
    int rc = hear(c, err);
    bool answered = rc == CM_OK && !c->canceled && has_answered(c);
    int read = answered ? take_answer(c, record, err) : rc;
    if (answered && read == CM_OK && kept != NULL) {
        *kept = (cm_trial_child){.pid = c->pid, .fd = c->fd};
        *fate = (cm_trial_fate){.end = CM_TRIAL_RETURNED};
    } else {
        /* One that would stay, and is not wanted, waits for nothing that could come. */
        uint64_t peak;
        *fate = reap(c->pid, rc != CM_OK || c->canceled || c->late || (answered && kept != NULL),
                     &peak);
        fate->starved = c->limits->data > 0 && peak > c->resident + c->limits->data / 2;
        if (answered)
            fate->end = CM_TRIAL_RETURNED;
        else if (c->canceled)
            fate->end = CM_TRIAL_CANCELED;
        else if (c->late)
            fate->end = CM_TRIAL_LATE;
        else if (fate->end == CM_TRIAL_RETURNED) /* it said nothing */
            fate->end = CM_TRIAL_CRASHED;
    }
    cm_buf_release(&c->got);
    return read;
}

static int run(const task *t, cm_buf *record, cm_trial_fate *fate, cm_trial_child *kept,
               cm_error *err)
{
    int fd[2];
    sigset_t all, before;
    *fate = (cm_trial_fate){.end = CM_TRIAL_NONE};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
        return CM_OK;
    const pid_t parent = getpid();
    /* A handler of the parent must not run in the child. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    child c = {.fd = fd[0],
               .limits = t->limits,
               .deadline = cm_trial_deadline(t->limits),
               .resident = read_memory_use().resident};
    c.pid = fork();
    if (c.pid == 0) {
        close(fd[0]);
        be_child(t, record == NULL ? 1 : record->max_nbytes, parent, fd[1]);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(fd[1]);
    int rc = c.pid < 0 ? CM_OK : attend(&c, record, fate, kept, err);
    if (kept == NULL || kept->pid == 0)
        close(fd[0]);
    return rc;
}

int cm_trial_run(cm_trial_fn *fn, void *context, const cm_trial_limits *limits, cm_buf *record,
                 cm_trial_fate *fate, cm_error *err)
{
    const task t = {.fn = fn, .context = context, .limits = limits};
    return run(&t, record, fate, NULL, err);
}

int cm_trial_keep(cm_trial_fn *fn, cm_trial_serve *serve, void *context,
                  const cm_trial_limits *limits, cm_buf *record, cm_trial_fate *fate,
                  cm_trial_child *kept, cm_error *err)
{
    const task t = {.fn = fn, .serve = serve, .context = context, .limits = limits};
    *kept = (cm_trial_child){.fd = -1};
    return run(&t, record, fate, kept, err);
}

/* ---- a child that stays ---- */

/* Whether something came, or nothing more will; false: it is not wanted any more. */
static bool wait_for_words(cm_trial_child *kept, const cm_trial_limits *limits)
{
    const uint64_t deadline = cm_trial_deadline(limits);
    for (bool dead = false;;) {
        struct pollfd ready = {.fd = kept->fd, .events = POLLIN};
        if (poll(&ready, 1, LOOK_MS) > 0)
            return true;
        kept->late = !dead && cm_now_ns() > deadline;
        if (dead || kept->late || (limits->canceled != NULL && limits->canceled(limits->context)))
            return false;
        dead = is_dead(&(child){.pid = kept->pid});
    }
}

bool cm_trial_receive(cm_trial_child *from, void *data, size_t nbytes,
                      const cm_trial_limits *limits)
{
    for (uint8_t *p = data; nbytes > 0;)
        if (!wait_for_words(from, limits) || !cm_fd_recv_some(from->fd, &p, &nbytes))
            return false;
    return true;
}

cm_trial_fate cm_trial_part(cm_trial_child *kept, bool kill_it)
{
    if (kept->pid == 0)
        return (cm_trial_fate){.end = CM_TRIAL_NONE};
    /* Before it finds the end of its stream. */
    if (kill_it || kept->late)
        (void)kill(kept->pid, SIGKILL);
    close(kept->fd);
    cm_trial_fate fate = cm_trial_reap(kept->pid, false);
    if (kept->late)
        fate = (cm_trial_fate){.end = CM_TRIAL_LATE};
    *kept = (cm_trial_child){.fd = -1};
    return fate;
}
