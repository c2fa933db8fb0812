#include "convert/beside/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/glibc.h"
#include "convert/beside/lock_impl.h"

enum {
    MAX_NBYTES = 4096, /* of the file */
    MAX_TRIES = 200,   /* others come and go meanwhile */
    PAUSE_US = 5000,
    WATCH_US = 200000, /* between two looks at a lock that is watched */
    REMOTE_WATCH_US = 5000000
};

#define NEVER_NS (UINT64_C(1) << 60)

/* CM_HOLDER_UNCLEAR, or CM_HELD with what the file says in H. */
static cm_holder_state read_holder(int fd, cm_holder *h)
{
    char text[MAX_NBYTES];
    struct stat st;
    size_t n;
    (void)cm_fd_read_at(fd, text, sizeof(text), 0, &n);
    cm_holder_state s = cm_holder_read(text, n, h);
    const bool known = fstat(fd, &st) == 0;
    h->beat = known ? (int64_t)st.st_mtim.tv_sec : INT64_MAX;
    h->beat_mark = known ? ((uint64_t)st.st_mtim.tv_sec * 1000000000u +
                            (uint64_t)st.st_mtim.tv_nsec + (uint64_t)st.st_ino) |
                               1u
                         : 0;
    return s;
}

cm_holder_state cm_lock_judge(const cm_beside *b, const char *name, const cm_holder *h,
                              int64_t age_s)
{
    return cm_silence_judge(b->silence, name, h, age_s, b->remote, cm_now_ns(), cm_holder_judge(h));
}

int cm_lock_watch(const cm_beside *b, cm_error *err)
{
    const uint64_t end = cm_now_ns() + (b->remote ? REMOTE_WATCH_US : WATCH_US) * UINT64_C(1000);
    do {
        if (cm_stop_wanted(&b->stop))
            return cm_stop_check(&b->stop, err);
        usleep(WATCH_US);
    } while (cm_now_ns() < end);
    return CM_OK;
}

/* Opens the lock that is there.  *out is -1 when there is none. */
static int open_lock(const cm_beside *b, const char *name, int *out, cm_error *err)
{
    struct stat st;
    *out = openat(b->fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (*out < 0 && errno == ENOENT)
        return CM_OK;
    if (*out < 0 && errno != ELOOP && errno != EISDIR && errno != ENXIO) {
        int rc = cm_fail_errno(err, errno, "%s/%s", b->path, name);
        cm_error_place(err, b->shown);
        return rc;
    }
    if (*out >= 0 && fstat(*out, &st) == 0 && S_ISREG(st.st_mode))
        return CM_OK;
    if (*out >= 0)
        close(*out);
    *out = -1;
    return cm_beside_refuse(b, name, err);
}

/*
 * Whether NAME is still the file in FD.  0 or an errno, after a few tries: a lock that its own
 * holder takes for another's would never go.
 */
static int look_if_ours(const cm_beside *b, const char *name, int fd, bool *ours)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    struct stat named, opened;
    int errnum = 0;
    *ours = false;
    for (int i = 0; i < 5; i++) {
        if (fstat(fd, &opened) == 0 && fstatat(b->fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0) {
            *ours = named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
            return 0;
        }
        errnum = errno;
        if (errnum == ENOENT)
            return 0;
        nanosleep(&pause, NULL);
    }
    return errnum;
}

static bool is_still_there(const cm_beside *b, const char *name, int fd)
{
    bool ours;
    return look_if_ours(b, name, fd, &ours) == 0 && ours;
}

int cm_lock_refuse(const cm_beside *b, const cm_lock_request *r, cm_holder_state s,
                   const cm_holder *h, cm_error *err)
{
    if (s == CM_HOLDER_UNCLEAR)
        return cm_fail(err, CM_EEXIST,
                       "%s: is locked, and %s/%s does not say by whom; break the lock "
                       "only when no other run writes there",
                       b->shown, b->path, r->name);
    if (s == CM_HOLDER_ELSEWHERE)
        return cm_fail(err, CM_EEXIST,
                       "%s: is locked by process %lld on %s since %s, which cannot be seen from "
                       "here; break the lock only when that run has ended",
                       b->shown, (long long)h->process, h->host, h->time);
    return cm_fail(err, CM_EEXIST,
                   "%s: another run is writing it (process %lld on %s since %s); wait for its end",
                   b->shown, (long long)h->process, h->host, h->time);
}

/*
 * Whether the lock in FD may be taken over; else an error that names the holder.  *SILENT: it may
 * when it has been watched.
 */
static int check_takable(const cm_beside *b, const cm_lock_request *r, int fd, int64_t now,
                         cm_holder *h, bool *silent, cm_error *err)
{
    cm_holder_state s = read_holder(fd, h);
    *silent = false;
    if (s != CM_HOLDER_UNCLEAR)
        s = cm_lock_judge(b, r->name, h, now - h->beat);
    if (s == CM_HOLDER_ENDED || (r->breaks && s != CM_HELD))
        return CM_OK;
    *silent = s == CM_HOLDER_SILENT;
    if (*silent)
        return CM_OK;
    return cm_lock_refuse(b, r, s, h, err);
}

int cm_lock_peek(cm_beside *b, bool breaks, cm_error *err)
{
    const cm_lock_request r = {.name = CM_LOCK_OUTPUT, .breaks = breaks};
    cm_holder h;
    bool silent; /* who takes it will watch it */
    int fd = -1;
    int rc = cm_beside_open(b, false, err);
    if (b->remote)
        return rc == CM_OK ? cm_lock_remote_peek(b, &r, err) : rc;
    if (rc == CM_OK && b->in != NULL)
        rc = open_lock(b, r.name, &fd, err);
    if (rc == CM_OK && fd >= 0)
        rc = check_takable(b, &r, fd, cm_beside_now(b), &h, &silent, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

void cm_lock_describe(cm_holder_state state, const cm_holder *h, int64_t silent_s,
                      cm_lock_holder *out)
{
    out->there = true;
    out->silent_s = silent_s;
    out->unwatched = state == CM_HOLDER_SILENT;
    if (state == CM_HOLDER_UNCLEAR)
        snprintf(out->who, sizeof(out->who), "an unknown process");
    else
        snprintf(out->who, sizeof(out->who), "process %lld on %s", (long long)h->process, h->host);
    /* Of one that cannot be seen and never beats nobody will know when it has ended. */
    bool silent = state == CM_HOLDER_ELSEWHERE && !h->beats;
    if (state == CM_HOLDER_UNCLEAR || silent)
        out->state = CM_LOCK_OF_RUN;
    else if (state != CM_HOLDER_ENDED && state != CM_HOLDER_SILENT)
        out->state = h->of_part ? CM_LOCK_OF_PART : CM_LOCK_OF_RUN;
}

int cm_lock_look(const cm_beside *b, const char *name, cm_lock_holder *out, cm_error *err)
{
    int rc;
    while ((rc = cm_lock_glance(b, name, out, err)) == CM_OK && out->unwatched)
        if ((rc = cm_lock_watch(b, err)) != CM_OK)
            break;
    return rc;
}

int cm_lock_glance(const cm_beside *b, const char *name, cm_lock_holder *out, cm_error *err)
{
    cm_holder h;
    int fd = -1;
    *out = (cm_lock_holder){.state = CM_LOCK_FREE};
    if (b->remote)
        return b->in == NULL ? CM_OK : cm_lock_remote_look(b, name, out, err);
    int rc = b->in == NULL ? CM_OK : open_lock(b, name, &fd, err);
    if (rc != CM_OK || fd < 0)
        return rc;
    cm_holder_state s = read_holder(fd, &h);
    close(fd);
    const int64_t now = cm_beside_now(b);
    if (s != CM_HOLDER_UNCLEAR)
        s = cm_lock_judge(b, name, &h, now - h.beat);
    cm_lock_describe(s, &h, now - h.beat, out);
    return CM_OK;
}

/* ---- beats ---- */

static uint64_t beat(void *context)
{
    cm_lock *lock = context;
    if (lock->in != NULL)
        return cm_lock_remote_beat(lock) ? CM_REMOTE_BEAT_NS : NEVER_NS;
    (void)futimens(lock->fd, NULL); /* a beat that is lost is not missed */
    return CM_BEAT_NS;
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
    cm_beside_temporary(name, size);
    int rc = cm_holder_write(of_part, true, &text, err);
    if (rc == CM_OK) {
        *out = openat(b->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*out < 0 && errno != ENOENT)
            rc = cm_fail_errno(err, errno, "%s: cannot be locked", b->shown);
    }
    int errnum = rc == CM_OK && *out >= 0 ? cm_fd_write(*out, text.data, text.nbytes) : 0;
    if (errnum != 0)
        rc = cm_fail_errno(err, errnum, "%s: cannot be locked", b->shown);
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
            return cm_fail(
                err, CM_EEXIST,
                "%s: holds the lock of a run that has ended, and this file system cannot pass "
                "locks on safely; break the lock when no other run writes there",
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

/* One attempt; *taken tells whether it came to something, *silent whether it is to be watched. */
static int try_once(const cm_beside *b, const cm_lock_request *r, bool *taken, bool *silent,
                    cm_lock *lock, char **note, cm_error *err)
{
    char name[64];
    cm_holder h;
    struct stat now;
    int old = -1;
    *taken = *silent = false;
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
        rc = check_takable(b, r, old, (int64_t)now.st_mtim.tv_sec, &h, silent, err);
    if (rc == CM_OK && old >= 0 && !*silent)
        rc = take_over(b, r, old, name, taken, err);
    if (rc == CM_OK && *taken && old >= 0) {
        lock->replaced = h.process;
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

int64_t cm_lock_replaced(const cm_lock *lock)
{
    return lock != NULL ? lock->replaced : 0;
}

int cm_lock_take(cm_beside *b, bool breaks, cm_lock **out, char **note, cm_error *err)
{
    const cm_lock_request r = {.name = CM_LOCK_OUTPUT, .breaks = breaks};
    return cm_lock_take_as(b, &r, out, note, err);
}

int cm_lock_take_as(cm_beside *b, const cm_lock_request *r, cm_lock **out, char **note,
                    cm_error *err)
{
    bool taken = false, silent = false;
    int rc = CM_OK;
    *out = NULL;
    *note = NULL;
    if (b->remote) {
        rc = cm_lock_remote_take(b, r, out, note, err);
        if (rc == CM_OK)
            (void)cm_ticker_start(&(*out)->beats, CM_REMOTE_BEAT_NS, beat, *out, NULL);
        return rc;
    }
    cm_lock *lock = cm_calloc(1, sizeof(*lock), err);
    if (lock == NULL)
        return CM_ENOMEM;
    for (int i = 0; rc == CM_OK && !taken && i < MAX_TRIES; i += !silent) {
        if (silent && (rc = cm_lock_watch(b, err)) != CM_OK)
            break;
        if (i > 0 && !silent)
            usleep(PAUSE_US);
        silent = false;
        /* Whoever ends removes the folder: it may go between any two calls. */
        rc = cm_beside_open(b, true, err);
        if (rc == CM_ENOTFOUND)
            rc = CM_OK;
        else if (rc == CM_OK)
            rc = try_once(b, r, &taken, &silent, lock, note, err);
    }
    if (rc == CM_OK && !taken)
        rc =
            cm_fail(err, CM_EEXIST,
                    "%s: cannot be locked: its lock vanishes as soon as it is made; wait for other "
                    "runs to end, or choose another place",
                    b->shown);
    if (rc == CM_OK) {
        snprintf(lock->name, sizeof(lock->name), "%s", r->name);
        lock->of_part = r->of_part;
        /* A lock without a thread holds too, as long as its process can be seen. */
        (void)cm_ticker_start(&lock->beats, CM_BEAT_NS, beat, lock, NULL);
        *out = lock;
        return CM_OK;
    }
    if (!r->of_part)
        cm_beside_leave(b);
    free(lock);
    return rc;
}

int cm_lock_check(cm_lock *lock, const cm_beside *b, cm_error *err)
{
    int rc = CM_OK, errnum = 0;
    bool ours = true;
    if (lock != NULL && lock->in != NULL)
        rc = cm_lock_remote_check(lock, b, err);
    else if (lock != NULL)
        errnum = look_if_ours(b, lock->name, lock->fd, &ours);
    if (errnum != 0)
        return cm_fail_errno(err, errnum, "%s: its lock %s", b->shown, lock->name);
    if (!ours)
        rc = CM_EEXIST;
    return rc != CM_EEXIST ? rc
                           : cm_fail(err, CM_EEXIST,
                                     "%s: another run took over the lock that this one held; "
                                     "nothing more is written",
                                     b->shown);
}

static void release_object(cm_lock *lock, cm_beside *b)
{
    char name[sizeof(lock->name)];
    cm_error why = {0};
    strcpy(name, lock->name);
    if (cm_lock_remote_release(lock, &why) != CM_OK)
        cm_beside_tell(b, name, &why);
}

static void release_file(cm_lock *lock, cm_beside *b)
{
    cm_error why = {0};
    /* Whoever breaks it holds flock() while it is replaced; then it is not ours to remove. */
    while (flock(lock->fd, LOCK_EX) != 0 && errno == EINTR)
        ;
    bool ours;
    const int errnum = look_if_ours(b, lock->name, lock->fd, &ours);
    if (errnum != 0) {
        (void)cm_fail_errno(&why, errnum, "%s", lock->name);
        cm_beside_tell(b, lock->name, &why);
    }
    if (ours) {
        /*
         * Remove what killed runs left.  Only the holder of the lock writes here; a process that is
         * trying to take it retries.
         */
        if (b->in != NULL && !lock->of_part)
            cm_store_sweep_temporaries(b->in, "", false, NULL);
        if (unlinkat(b->fd, lock->name, 0) != 0) {
            (void)cm_fail_errno(&why, errno, "%s", lock->name);
            cm_beside_tell(b, lock->name, &why);
        }
    }
    close(lock->fd);
    free(lock);
}

void cm_lock_release(cm_lock *lock, cm_beside *b)
{
    if (lock == NULL)
        return;
    const bool of_part = lock->of_part;
    cm_ticker_stop(&lock->beats);
    if (lock->in != NULL)
        release_object(lock, b);
    else
        release_file(lock, b);
    if (!of_part)
        cm_beside_leave(b);
}
