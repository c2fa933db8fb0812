/*
 * Opens and reads files through io_uring.  A ring never outlives a call with requests under way:
 * buffers that the kernel may still write to must not be freed.
 */
#include "store/uring.h"

#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"

enum {
    DEPTH = 64,            /* requests under way: the queue of a fast disk */
    MOST_AT_ONCE = 1 << 30 /* bytes: a length has 32 bits, a result 31 */
};

typedef struct ring {
    struct ring *next; /* in the pool */
    struct io_uring uring;
} ring;

struct cm_rings {
    pthread_mutex_t lock;
    pthread_cond_t returned; /* signalled when a ring is returned */
    pthread_cond_t closed;   /* signalled when files are closed */
    ring *idle;
    unsigned nbusy;
    size_t nfiles; /* that calls may still open */
    /* A forked child shares the memory of its parent's rings, and must not use them. */
    pid_t owner;
};

/* ---- one ring ---- */

static void ring_free(ring *r)
{
    io_uring_queue_exit(&r->uring);
    free(r);
}

/* OPENAT and READ came with Linux 5.6, as did asking for them. */
static bool opens_and_reads(ring *r)
{
    struct io_uring_probe *probe = io_uring_get_probe_ring(&r->uring);
    bool both = probe != NULL && io_uring_opcode_supported(probe, IORING_OP_OPENAT) &&
                io_uring_opcode_supported(probe, IORING_OP_READ);
    io_uring_free_probe(probe);
    return both;
}

static int ring_create(ring **out, cm_error *err)
{
    ring *r = cm_calloc(1, sizeof *r, err);
    if (r == NULL)
        return CM_ENOMEM;
    int errnum = -io_uring_queue_init(DEPTH, &r->uring, 0);
    if (!errnum && opens_and_reads(r)) {
        *out = r;
        return CM_OK;
    }
    if (errnum)
        free(r);
    else
        ring_free(r);
    if (errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE)
        return cm_fail_errno(err, errnum, "no ring for io_uring");
    if (errnum == EPERM || errnum == EACCES)
        return cm_fail(err, CM_EUNSUPPORTED, "this system forbids io_uring");
    return cm_fail(err, CM_EUNSUPPORTED, "this kernel has no io_uring that opens and reads files");
}

/* ---- a call ---- */

typedef struct run {
    struct io_uring *uring;
    cm_ring_request *request;
    size_t pending; /* pushed and not finished, some of them perhaps not yet taken by the kernel */
} run;

/* Needs no check for space: at most DEPTH requests are pending. */
static void push(run *u, size_t i)
{
    cm_ring_request *q = &u->request[i];
    struct io_uring_sqe *sqe = io_uring_get_sqe(u->uring);
    if (q->path != NULL) {
        io_uring_prep_openat(sqe, q->fd, q->path, q->flags, 0);
    } else {
        size_t left = q->nbytes - q->done;
        io_uring_prep_read(sqe, q->fd, q->dst + q->done,
                           left < MOST_AT_ONCE ? (unsigned)left : MOST_AT_ONCE,
                           q->offset + q->done);
    }
    io_uring_sqe_set_data64(sqe, i);
    u->pending++;
}

/* Reads with waiting, after the kernel refused to read without. */
static void read_blocking(cm_ring_request *q)
{
    size_t got;
    int errnum =
        cm_fd_read_at(q->fd, q->dst + q->done, q->nbytes - q->done, q->offset + q->done, &got);
    if (errnum != 0)
        q->error = errnum;
    q->done += got;
}

/* True when Q must be submitted again. */
static bool take_result(cm_ring_request *q, int32_t result)
{
    if (result == -EINTR)
        return true;
    if (q->path != NULL) {
        q->error = result < 0 ? -result : 0;
        q->opened = result < 0 ? -1 : result;
        return false;
    }
    if (result == -EAGAIN) {
        read_blocking(q);
        return false;
    }
    q->error = result < 0 ? -result : 0;
    q->done += result > 0 ? (size_t)result : 0;
    return result > 0 && q->done < q->nbytes;
}

/* Returns the number of finished requests. */
static size_t reap(run *u)
{
    struct io_uring_cqe *cqe;
    unsigned head, taken = 0;
    size_t finished = 0;
    io_uring_for_each_cqe(u->uring, head, cqe)
    {
        size_t i = (size_t)cqe->user_data;
        taken++;
        u->pending--;
        if (take_result(&u->request[i], cqe->res))
            push(u, i);
        else
            finished++;
    }
    io_uring_cq_advance(u->uring, taken);
    return finished;
}

/*
 * After the kernel took no more: waits for requests under way before buffers are freed, and learns
 * of files that it opened.
 */
static void drain(run *u)
{
    while (u->pending > io_uring_sq_ready(u->uring)) {
        struct io_uring_cqe *cqe;
        if (io_uring_wait_cqe(u->uring, &cqe) != 0)
            continue;
        take_result(&u->request[cqe->user_data], cqe->res);
        u->pending--;
        io_uring_cqe_seen(u->uring, cqe);
    }
}

static int ring_run(ring *r, cm_ring_request *request, size_t n, cm_error *err)
{
    run u = {.uring = &r->uring, .request = request};
    size_t next = 0, finished = 0;
    for (size_t i = 0; i < n; i++) {
        request[i].error = 0;
        request[i].opened = -1;
        request[i].done = 0;
    }
    while (finished < n) {
        while (next < n && u.pending < DEPTH)
            push(&u, next++);
        /* EAGAIN and EBUSY: take completions first; EINTR: a signal. */
        int rc = io_uring_submit_and_wait(u.uring, 1);
        if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY) {
            drain(&u);
            return cm_fail_errno(err, -rc, "io_uring");
        }
        finished += reap(&u);
    }
    return CM_OK;
}

/* ---- the pool ---- */

static size_t most_files(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 2 ? (size_t)limit.rlim_cur / 2
                                                                       : 1;
}

int cm_rings_create(cm_rings **out, cm_error *err)
{
    *out = NULL;
    cm_rings *rings = cm_calloc(1, sizeof *rings, err);
    if (rings == NULL)
        return CM_ENOMEM;
    int rc = ring_create(&rings->idle, err);
    if (rc != CM_OK) {
        free(rings);
        return rc;
    }
    pthread_mutex_init(&rings->lock, NULL);
    pthread_cond_init(&rings->returned, NULL);
    pthread_cond_init(&rings->closed, NULL);
    rings->nfiles = most_files();
    rings->owner = getpid();
    *out = rings;
    return CM_OK;
}

static void free_idle(cm_rings *rings)
{
    for (ring *r = rings->idle, *next; r != NULL; r = next) {
        next = r->next;
        ring_free(r);
    }
    rings->idle = NULL;
}

void cm_rings_free(cm_rings *rings)
{
    if (rings == NULL)
        return;
    free_idle(rings);
    pthread_mutex_destroy(&rings->lock);
    pthread_cond_destroy(&rings->returned);
    pthread_cond_destroy(&rings->closed);
    free(rings);
}

/* Resets the pool after a fork: the parent's rings are not ours.  Lock held. */
static void be_owner(cm_rings *rings)
{
    if (rings->owner == getpid())
        return;
    free_idle(rings);
    rings->nbusy = 0;
    rings->nfiles = most_files();
    rings->owner = getpid();
}

size_t cm_rings_take_files(cm_rings *rings, size_t n)
{
    pthread_mutex_lock(&rings->lock);
    be_owner(rings);
    while (rings->nfiles == 0)
        pthread_cond_wait(&rings->closed, &rings->lock);
    n = n < rings->nfiles ? n : rings->nfiles;
    rings->nfiles -= n;
    pthread_mutex_unlock(&rings->lock);
    return n;
}

void cm_rings_give_files(cm_rings *rings, size_t n)
{
    pthread_mutex_lock(&rings->lock);
    rings->nfiles += n;
    pthread_cond_signal(&rings->closed);
    pthread_mutex_unlock(&rings->lock);
}

/* Takes an idle ring or makes a new one; if that fails, waits for one from another thread. */
static int take(cm_rings *rings, ring **out, cm_error *err)
{
    int rc = CM_OK;
    pthread_mutex_lock(&rings->lock);
    be_owner(rings);
    while (rings->idle == NULL && (rc = ring_create(&rings->idle, err)) != CM_OK &&
           rings->nbusy > 0)
        pthread_cond_wait(&rings->returned, &rings->lock);
    if (rings->idle != NULL) {
        *out = rings->idle;
        rings->idle = (*out)->next;
        rings->nbusy++;
        rc = CM_OK;
    }
    pthread_mutex_unlock(&rings->lock);
    return rc;
}

static void give(cm_rings *rings, ring *r)
{
    pthread_mutex_lock(&rings->lock);
    r->next = rings->idle;
    rings->idle = r;
    rings->nbusy--;
    pthread_cond_signal(&rings->returned);
    pthread_mutex_unlock(&rings->lock);
}

int cm_rings_run(cm_rings *rings, cm_ring_request *request, size_t n, cm_error *err)
{
    ring *r = NULL;
    int rc = take(rings, &r, err);
    if (rc != CM_OK)
        return rc;
    rc = ring_run(r, request, n, err);
    if (rc == CM_OK) {
        give(rings, r);
        return CM_OK;
    }
    /* Entries pushed and not submitted would be submitted by the next call. */
    ring_free(r);
    pthread_mutex_lock(&rings->lock);
    rings->nbusy--;
    pthread_cond_signal(&rings->returned);
    pthread_mutex_unlock(&rings->lock);
    return rc;
}
