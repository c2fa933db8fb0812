#include "job/transform/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"

enum {
    MAX_NBYTES = 4096, /* of the file */
    MAX_TRIES = 200,   /* others come and go meanwhile */
    PAUSE_US = 5000,
    BEAT_S = 10,
    SILENCE_S = 300 /* without a beat */
};

struct cm_lock {
    int fd; /* of the file */
    char name[64];
    bool of_part;
    bool beats; /* the thread runs */
    bool stop;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards stop */
    pthread_cond_t wake;
};

/* Who holds a lock. */
typedef struct holder {
    char host[256], boot[64], machine[64], space[64], time[32];
    int64_t process;
    uint64_t start; /* of the process, in clock ticks since the boot */
    bool of_part, beats;
    int64_t beat; /* the file's time, seconds */
} holder;

typedef enum state {
    HELD,      /* the process runs */
    ENDED,     /* it does not */
    ELSEWHERE, /* it cannot be seen from here */
    UNCLEAR    /* the file does not say */
} state;

/* ---- this process, and others ---- */

/* The first line of the file PATH, cut to SIZE; "" where it cannot be read. */
static void read_line(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "re");
    out[0] = '\0';
    if (f != NULL) {
        if (fgets(out, (int)size, f) == NULL)
            out[0] = '\0';
        fclose(f);
    }
    out[strcspn(out, "\n")] = '\0';
}

/* When PROCESS was started; false where /proc does not tell.  *ended: a zombie. */
static bool start_of(int64_t process, uint64_t *start, bool *ended)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)process);
    read_line(path, text, sizeof(text));
    const char *p = strrchr(text, ')'); /* of the name, which may hold anything */
    if (p == NULL || p[1] != ' ')
        return false;
    p += 2;
    *ended = *p == 'Z' || *p == 'X';
    for (int field = 3; field < 22; field++)
        if ((p = strchr(p, ' ')) == NULL)
            return false;
        else
            p++;
    *start = strtoull(p, NULL, 10);
    return true;
}

static void describe_self(holder *h)
{
    bool ended;
    *h = (holder){.process = getpid()};
    if (gethostname(h->host, sizeof(h->host) - 1) != 0)
        h->host[0] = '\0';
    read_line("/proc/sys/kernel/random/boot_id", h->boot, sizeof(h->boot));
    read_line("/etc/machine-id", h->machine, sizeof(h->machine));
    if (readlink("/proc/self/ns/pid", h->space, sizeof(h->space) - 1) < 0)
        h->space[0] = '\0';
    start_of(h->process, &h->start, &ended);
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) != NULL)
        strftime(h->time, sizeof(h->time), "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* The process itself, seen from this host. */
static state judge_process(const holder *h)
{
    holder self;
    uint64_t start;
    bool ended = false;
    describe_self(&self);
    if (h->host[0] == '\0' || strcmp(h->host, self.host) != 0)
        return ELSEWHERE;
    if (strcmp(h->boot, self.boot) != 0) /* a host that was started again, or another of its name */
        return h->machine[0] != '\0' && strcmp(h->machine, self.machine) == 0 ? ENDED : ELSEWHERE;
    if (strcmp(h->space, self.space) != 0)
        return ELSEWHERE; /* in a container, where processes have other numbers */
    if (kill((pid_t)h->process, 0) != 0 && errno == ESRCH)
        return ENDED;
    if (!start_of(h->process, &start, &ended))
        return HELD;
    return ended || start != h->start ? ENDED : HELD;
}

/* NOW is by the clock of the file system, or the nearest to it. */
static state judge(const holder *h, int64_t now)
{
    state s = judge_process(h);
    return s == ELSEWHERE && h->beats && now - h->beat > SILENCE_S ? ENDED : s;
}

/* ---- the file ---- */

static int write_holder(bool of_part, cm_buf *text, cm_error *err)
{
    holder h;
    describe_self(&h);
    cm_json *j = cm_json_object();
    const struct {
        const char *name, *value;
    } member[] = {{"host", h.host},
                  {"boot", h.boot},
                  {"machine", h.machine},
                  {"process space", h.space},
                  {"time", h.time}};
    int rc = cm_json_set(j, "chunkmill lock", cm_json_i64(1), err);
    for (size_t i = 0; rc == CM_OK && i < sizeof(member) / sizeof(member[0]); i++)
        rc = cm_json_set(j, member[i].name, cm_json_string(member[i].value), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "process", cm_json_i64(h.process), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "process start", cm_json_u64(h.start), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "beats", cm_json_bool(true), err);
    if (rc == CM_OK && of_part)
        rc = cm_json_set(j, "part", cm_json_bool(true), err);
    if (rc == CM_OK)
        rc = cm_json_write(j, false, text, err);
    if (rc == CM_OK)
        rc = cm_buf_append(text, "\n", 1, err);
    cm_json_free(j);
    return rc;
}

static void copy_text(const cm_json *j, const char *name, char *out, size_t size)
{
    const char *text = cm_json_text(cm_json_member(j, name), NULL);
    snprintf(out, size, "%s", text == NULL ? "" : text);
}

/* UNCLEAR, or HELD with what the file says in H. */
static state read_holder(int fd, holder *h)
{
    char text[MAX_NBYTES];
    cm_json *j = NULL;
    struct stat st;
    size_t n = 0;
    *h = (holder){0};
    for (ssize_t got; n < sizeof(text); n += (size_t)got) {
        got = pread(fd, text + n, sizeof(text) - n, (off_t)n);
        if (got < 0 && errno == EINTR)
            got = 0;
        else if (got <= 0)
            break;
    }
    bool whole = n > 0 && text[n - 1] == '\n' && cm_json_parse(text, n, &j, NULL) == CM_OK &&
                 cm_json_has(j, "chunkmill lock") &&
                 cm_json_get_i64(cm_json_member(j, "process"), &h->process) && h->process > 0 &&
                 cm_json_get_u64(cm_json_member(j, "process start"), &h->start);
    copy_text(j, "host", h->host, sizeof(h->host));
    copy_text(j, "boot", h->boot, sizeof(h->boot));
    copy_text(j, "machine", h->machine, sizeof(h->machine));
    copy_text(j, "process space", h->space, sizeof(h->space));
    copy_text(j, "time", h->time, sizeof(h->time));
    (void)cm_json_get_bool(cm_json_member(j, "part"), &h->of_part);
    (void)cm_json_get_bool(cm_json_member(j, "beats"), &h->beats);
    cm_json_free(j);
    h->beat = fstat(fd, &st) == 0 ? (int64_t)st.st_mtim.tv_sec : INT64_MAX;
    return whole ? HELD : UNCLEAR;
}

/* Opens the lock that is there.  *out is -1 when there is none. */
static int open_lock(const cm_beside *b, const char *name, int *out, cm_error *err)
{
    struct stat st;
    *out = openat(b->fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (*out < 0 && errno == ENOENT)
        return CM_OK;
    if (*out < 0)
        return errno == ELOOP ? cm_fail(err, CM_EEXIST, "%s/%s: is a symbolic link", b->path, name)
                              : cm_fail_errno(err, errno, "%s/%s", b->path, name);
    if (fstat(*out, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(*out);
        *out = -1;
        return cm_fail(err, CM_EEXIST, "%s/%s: is not a regular file", b->path, name);
    }
    return CM_OK;
}

static bool is_still_there(const cm_beside *b, const char *name, int fd)
{
    struct stat named, opened;
    return fstat(fd, &opened) == 0 && fstatat(b->fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

/* Whether the lock in FD may be taken over; else an error that names the holder. */
static int check_takable(const cm_beside *b, const cm_lock_request *r, int fd, int64_t now,
                         holder *h, cm_error *err)
{
    state s = read_holder(fd, h);
    if (s != UNCLEAR)
        s = judge(h, now);
    if (s == ENDED || (r->breaks && s != HELD))
        return CM_OK;
    if (s == UNCLEAR)
        return cm_fail(err, CM_EEXIST,
                       "%s: is locked, and %s/%s does not say by whom; break the lock "
                       "only when no other run writes there",
                       b->shown, b->path, r->name);
    if (s == ELSEWHERE)
        return cm_fail(err, CM_EEXIST,
                       "%s: is locked by process %lld on %s since %s, which cannot be seen from "
                       "here; break the lock only when that run has ended",
                       b->shown, (long long)h->process, h->host, h->time);
    return cm_fail(err, CM_EEXIST,
                   "%s: another run is writing it (process %lld on %s since %s); wait for its end",
                   b->shown, (long long)h->process, h->host, h->time);
}

int cm_lock_peek(cm_beside *b, bool breaks, cm_error *err)
{
    const cm_lock_request r = {.name = CM_LOCK_OUTPUT, .breaks = breaks};
    holder h;
    int fd = -1;
    int rc = cm_beside_open(b, false, err);
    if (rc == CM_OK && b->in != NULL)
        rc = open_lock(b, r.name, &fd, err);
    if (rc == CM_OK && fd >= 0)
        rc = check_takable(b, &r, fd, (int64_t)time(NULL), &h, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

int cm_lock_look(const cm_beside *b, const char *name, cm_lock_holder *out, cm_error *err)
{
    holder h;
    int fd = -1;
    *out = (cm_lock_holder){.state = CM_LOCK_FREE};
    int rc = b->in == NULL ? CM_OK : open_lock(b, name, &fd, err);
    if (rc != CM_OK || fd < 0)
        return rc;
    state s = read_holder(fd, &h);
    close(fd);
    if (s == UNCLEAR)
        snprintf(out->who, sizeof(out->who), "somebody who is not named there");
    else
        snprintf(out->who, sizeof(out->who), "process %lld on %s", (long long)h.process, h.host);
    if (s == UNCLEAR)
        out->state = CM_LOCK_OF_RUN;
    else if (judge(&h, (int64_t)time(NULL)) != ENDED)
        out->state = h.of_part ? CM_LOCK_OF_PART : CM_LOCK_OF_RUN;
    return CM_OK;
}

/* ---- beats ---- */

static void *beat(void *context)
{
    cm_lock *lock = context;
    struct timespec until;
    pthread_mutex_lock(&lock->mutex);
    while (!lock->stop) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += BEAT_S;
        if (pthread_cond_timedwait(&lock->wake, &lock->mutex, &until) != 0 && !lock->stop)
            (void)futimens(lock->fd, NULL); /* a beat that is lost is not missed */
    }
    pthread_mutex_unlock(&lock->mutex);
    return NULL;
}

/* A lock without a thread holds too, as long as its process can be seen. */
static void start_beats(cm_lock *lock)
{
    pthread_condattr_t attr;
    sigset_t all, before;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_cond_init(&lock->wake, &attr);
    pthread_condattr_destroy(&attr);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    lock->beats = pthread_create(&lock->thread, NULL, beat, lock) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void stop_beats(cm_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    lock->stop = true;
    pthread_cond_signal(&lock->wake);
    pthread_mutex_unlock(&lock->mutex);
    if (lock->beats)
        pthread_join(lock->thread, NULL);
    pthread_cond_destroy(&lock->wake);
    pthread_mutex_destroy(&lock->mutex);
}

/* ---- taking it ---- */

/*
 * A file of our own with the lock's text, under a temporary NAME.  -1 in *out: the folder went
 * meanwhile.
 */
static int write_temporary(const cm_beside *b, bool of_part, char *name, size_t size, int *out,
                           cm_error *err)
{
    cm_buf text = {0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, size, ".chunkmill-%ld-%lld%09ld.tmp", (long)getpid(), (long long)now.tv_sec,
             now.tv_nsec);
    int rc = write_holder(of_part, &text, err);
    if (rc == CM_OK) {
        *out = openat(b->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*out < 0 && errno != ENOENT)
            rc = cm_fail_errno(err, errno, "%s: cannot be locked", b->shown);
    }
    for (size_t done = 0; rc == CM_OK && *out >= 0 && done < text.nbytes;) {
        ssize_t n = write(*out, text.data + done, text.nbytes - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            rc = cm_fail_errno(err, n == 0 ? EIO : errno, "%s: cannot be locked", b->shown);
    }
    if (rc != CM_OK && *out >= 0) {
        unlinkat(b->fd, name, 0);
        close(*out);
        *out = -1;
    }
    cm_buf_release(&text);
    return rc;
}

/*
 * Gives FD, called NAME, the lock's name if there is none: 0, EEXIST, or another errno.  NAME is
 * gone, or ours still.
 */
static int take_free(const cm_beside *b, const char *lock, const char *name, int fd)
{
    struct stat st;
    if (linkat(b->fd, name, b->fd, lock, 0) == 0)
        return 0;
    int errnum = errno;
    /* NFS may lose the answer of a request that was served. */
    if (fstat(fd, &st) == 0 && st.st_nlink == 2 && is_still_there(b, lock, fd))
        return 0;
    if (errnum == EPERM || errnum == EOPNOTSUPP || errnum == ENOSYS || errnum == EMLINK)
        errnum = renameat2(b->fd, name, b->fd, lock, RENAME_NOREPLACE) == 0 ? 0 : errno;
    return errnum;
}

/*
 * The lock in OLD becomes FD, called NAME.  *taken is false when OLD is no longer the lock, or
 * another is at it.
 */
static int take_over(const cm_beside *b, const cm_lock_request *r, int old, const char *name,
                     bool *taken, cm_error *err)
{
    *taken = false;
    if (flock(old, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK || errno == EINTR)
            return CM_OK;
        if (!r->breaks)
            return cm_fail(err, CM_EEXIST,
                           "%s: holds the lock of a run that has ended, and this file system "
                           "cannot tell who may take it over; break the lock when no other run "
                           "writes there",
                           b->shown);
    }
    if (!is_still_there(b, r->name, old))
        return CM_OK;
    if (renameat(b->fd, name, b->fd, r->name) != 0)
        return errno == ENOENT ? CM_OK
                               : cm_fail_errno(err, errno, "%s: cannot be locked", b->shown);
    *taken = true;
    return CM_OK;
}

/* One attempt; *taken tells whether it came to something. */
static int try_once(const cm_beside *b, const cm_lock_request *r, bool *taken, cm_lock *lock,
                    char **note, cm_error *err)
{
    char name[64];
    holder h;
    struct stat now;
    int old = -1;
    *taken = false;
    int rc = write_temporary(b, r->of_part, name, sizeof(name), &lock->fd, err);
    if (rc != CM_OK || lock->fd < 0)
        return rc;
    int errnum = take_free(b, r->name, name, lock->fd);
    *taken = errnum == 0;
    if (errnum != 0 && errnum != EEXIST && errnum != ENOENT)
        rc = cm_fail_errno(err, errnum, "%s: cannot be locked", b->shown);
    if (rc == CM_OK && errnum == EEXIST)
        rc = open_lock(b, r->name, &old, err);
    /* The file that was just written has the time of the file system's own clock. */
    if (rc == CM_OK && old >= 0 && fstat(lock->fd, &now) != 0)
        rc = cm_fail_errno(err, errno, "%s: cannot be locked", b->shown);
    if (rc == CM_OK && old >= 0)
        rc = check_takable(b, r, old, (int64_t)now.st_mtim.tv_sec, &h, err);
    if (rc == CM_OK && old >= 0)
        rc = take_over(b, r, old, name, taken, err);
    if (rc == CM_OK && *taken && old >= 0) {
        *note = cm_asprintf(err, "took over the lock of process %lld on %s, held since %s",
                            (long long)h.process, h.host, h.time);
        rc = *note == NULL ? CM_ENOMEM : CM_OK;
    }
    if (old >= 0)
        close(old);
    unlinkat(b->fd, name, 0); /* after a link the second name, after a rename none */
    if (rc != CM_OK && *taken)
        unlinkat(b->fd, r->name, 0);
    if (rc != CM_OK || !*taken)
        close(lock->fd);
    return rc;
}

int cm_lock_take(cm_beside *b, bool breaks, cm_lock **out, char **note, cm_error *err)
{
    const cm_lock_request r = {.name = CM_LOCK_OUTPUT, .breaks = breaks};
    return cm_lock_take_as(b, &r, out, note, err);
}

int cm_lock_take_as(cm_beside *b, const cm_lock_request *r, cm_lock **out, char **note,
                    cm_error *err)
{
    bool taken = false;
    int rc = CM_OK;
    *out = NULL;
    *note = NULL;
    cm_lock *lock = cm_calloc(1, sizeof(*lock), err);
    if (lock == NULL)
        return CM_ENOMEM;
    for (int i = 0; rc == CM_OK && !taken && i < MAX_TRIES; i++) {
        if (i > 0)
            usleep(PAUSE_US);
        /* Whoever ends removes the folder: it may go between any two calls. */
        rc = cm_beside_open(b, true, err);
        if (rc == CM_ENOTFOUND)
            rc = CM_OK;
        else if (rc == CM_OK)
            rc = try_once(b, r, &taken, lock, note, err);
    }
    if (rc == CM_OK && !taken)
        rc = cm_fail(err, CM_EEXIST, "%s: cannot be locked, others come and go", b->shown);
    if (rc == CM_OK) {
        snprintf(lock->name, sizeof(lock->name), "%s", r->name);
        lock->of_part = r->of_part;
        start_beats(lock);
        *out = lock;
        return CM_OK;
    }
    if (!r->of_part)
        cm_beside_leave(b);
    free(lock);
    return rc;
}

/* What runs left that were killed while they wrote beside the output. */
static cm_verdict judge_temporary(void *context, const char *below, cm_entry_kind kind)
{
    (void)context;
    (void)below;
    return kind == CM_ENTRY_TEMPORARY ? CM_REMOVE : CM_KEEP;
}

void cm_lock_release(cm_lock *lock, cm_beside *b)
{
    if (lock == NULL)
        return;
    stop_beats(lock);
    /* Whoever breaks it holds flock() while it is replaced; then it is not ours to remove. */
    while (flock(lock->fd, LOCK_EX) != 0 && errno == EINTR)
        ;
    if (is_still_there(b, lock->name, lock->fd)) {
        /* Only who holds the lock writes here; one who is trying to take it tries again. */
        if (b->in != NULL && !lock->of_part)
            cm_store_sweep(b->in, "", judge_temporary, NULL, NULL);
        unlinkat(b->fd, lock->name, 0);
    }
    bool of_part = lock->of_part;
    close(lock->fd);
    free(lock);
    if (!of_part)
        cm_beside_leave(b);
}
