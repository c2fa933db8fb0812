/*
 * io_uring by its system calls: io_uring_setup(2), io_uring_enter(2).
 *
 * The submission queue's array is the identity, so that entry i of the queue is
 * always sqe i.  A ring never outlives a call with requests under way: what the
 * kernel may still write to must not be given back.
 */
#include "store/uring.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    DEPTH = 64,            /* requests under way: the queue of a fast disk */
    MOST_AT_ONCE = 1 << 30 /* bytes: a length has 32 bits, a result 31 */
};

typedef struct ring {
    struct ring *next; /* in the pool */
    int fd;
    void *map, *sqe_map;
    size_t map_nbytes, sqe_nbytes;
    uint32_t *sq_tail, *cq_head, *cq_tail;
    uint32_t sq_mask, cq_mask;
    struct io_uring_sqe *sqe;
    struct io_uring_cqe *cqe;
} ring;

struct cm_rings {
    pthread_mutex_t lock;
    pthread_cond_t returned; /* a ring */
    pthread_cond_t closed;   /* files */
    ring *idle;
    unsigned nbusy;
    size_t nfiles; /* that calls may have open now */
    pid_t owner;   /* a ring's memory is shared with a forked child, which must not use it */
};

/* ---- one ring ---- */

static void ring_free(ring *r)
{
    if (r->sqe_map)
        munmap(r->sqe_map, r->sqe_nbytes);
    if (r->map)
        munmap(r->map, r->map_nbytes);
    if (r->fd >= 0)
        close(r->fd);
    free(r);
}

static void *map_ring(int fd, size_t nbytes, uint64_t offset)
{
    void *p =
        mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)offset);
    return p == MAP_FAILED ? NULL : p;
}

static int map_queues(ring *r, const struct io_uring_params *p)
{
    size_t sq = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
    size_t cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    r->map_nbytes = sq > cq ? sq : cq; /* IORING_FEAT_SINGLE_MMAP: both are one mapping */
    r->sqe_nbytes = p->sq_entries * sizeof(struct io_uring_sqe);
    r->map = map_ring(r->fd, r->map_nbytes, IORING_OFF_SQ_RING);
    r->sqe_map = map_ring(r->fd, r->sqe_nbytes, IORING_OFF_SQES);
    if (!r->map || !r->sqe_map)
        return errno;
    uint8_t *base = r->map;
    r->sq_tail = (uint32_t *)(base + p->sq_off.tail);
    r->cq_head = (uint32_t *)(base + p->cq_off.head);
    r->cq_tail = (uint32_t *)(base + p->cq_off.tail);
    r->sq_mask = p->sq_entries - 1;
    r->cq_mask = p->cq_entries - 1;
    r->sqe = r->sqe_map;
    r->cqe = (struct io_uring_cqe *)(base + p->cq_off.cqes);
    uint32_t *array = (uint32_t *)(base + p->sq_off.array);
    for (uint32_t i = 0; i < p->sq_entries; i++)
        array[i] = i;
    return 0;
}

/* OPENAT and READ came with Linux 5.6, and so did asking for them. */
static int check_opcodes(int fd)
{
    union {
        struct io_uring_probe probe;
        uint8_t room[sizeof(struct io_uring_probe) + 256 * sizeof(struct io_uring_probe_op)];
    } u;
    static const uint8_t wanted[] = {IORING_OP_OPENAT, IORING_OP_READ};
    memset(&u, 0, sizeof u);
    if (syscall(__NR_io_uring_register, fd, IORING_REGISTER_PROBE, &u.probe, 256) < 0)
        return errno;
    const struct io_uring_probe_op *op = u.probe.ops;
    for (size_t i = 0; i < sizeof wanted; i++)
        if (wanted[i] > u.probe.last_op || !(op[wanted[i]].flags & IO_URING_OP_SUPPORTED))
            return EOPNOTSUPP;
    return 0;
}

static int ring_create(ring **out, cm_error *err)
{
    ring *r = cm_calloc(1, sizeof *r, err);
    if (!r)
        return CM_ENOMEM;
    struct io_uring_params p;
    memset(&p, 0, sizeof p);
    r->fd = (int)syscall(__NR_io_uring_setup, DEPTH, &p);
    int errnum = r->fd < 0 ? errno : 0;
    if (!errnum && !(p.features & IORING_FEAT_SINGLE_MMAP))
        errnum = EOPNOTSUPP;
    if (!errnum)
        errnum = check_opcodes(r->fd);
    if (!errnum)
        errnum = map_queues(r, &p);
    if (!errnum) {
        *out = r;
        return CM_OK;
    }
    ring_free(r);
    if (errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE)
        return cm_fail_errno(err, errnum, "no ring for io_uring");
    if (errnum == EPERM || errnum == EACCES)
        return cm_fail(err, CM_EUNSUPPORTED, "this system forbids io_uring");
    return cm_fail(err, CM_EUNSUPPORTED, "this kernel has no io_uring that opens and reads files");
}

/* ---- a call ---- */

typedef struct run {
    ring *ring;
    cm_ring_request *request;
    uint32_t unsubmitted, inflight; /* entries of the queue; requests that the kernel has */
} run;

static void push(run *u, size_t i)
{
    ring *r = u->ring;
    cm_ring_request *q = &u->request[i];
    uint32_t tail = *r->sq_tail;
    struct io_uring_sqe *sqe = &r->sqe[tail & r->sq_mask];
    memset(sqe, 0, sizeof *sqe);
    sqe->user_data = i;
    sqe->fd = q->fd;
    if (q->path) {
        sqe->opcode = IORING_OP_OPENAT;
        sqe->addr = (uintptr_t)q->path;
        sqe->open_flags = (uint32_t)q->flags;
    } else {
        size_t left = q->nbytes - q->done;
        sqe->opcode = IORING_OP_READ;
        sqe->addr = (uintptr_t)(q->dst + q->done);
        sqe->len = left < MOST_AT_ONCE ? (uint32_t)left : MOST_AT_ONCE;
        sqe->off = q->offset + q->done;
    }
    __atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
    u->unsubmitted++;
}

/* What the kernel would not do without waiting, waited for. */
static void read_blocking(cm_ring_request *q)
{
    while (q->done < q->nbytes) {
        ssize_t n =
            pread(q->fd, q->dst + q->done, q->nbytes - q->done, (off_t)(q->offset + q->done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            q->error = errno;
        if (n <= 0)
            return;
        q->done += (size_t)n;
    }
}

/* True when Q needs another turn. */
static bool take_result(cm_ring_request *q, int32_t result)
{
    if (result == -EINTR)
        return true;
    if (q->path) {
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

/* Returns how many requests are finished. */
static size_t reap(run *u)
{
    ring *r = u->ring;
    uint32_t head = *r->cq_head;
    uint32_t tail = __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE);
    size_t finished = 0;
    for (; head != tail; head++) {
        const struct io_uring_cqe *c = &r->cqe[head & r->cq_mask];
        size_t i = (size_t)c->user_data;
        u->inflight--;
        if (take_result(&u->request[i], c->res))
            push(u, i);
        else
            finished++;
    }
    __atomic_store_n(r->cq_head, head, __ATOMIC_RELEASE);
    return finished;
}

/*
 * Hands over what was pushed and waits for one completion.  EAGAIN and EBUSY say
 * that the kernel wants completions to be taken first; EINTR that a signal came.
 */
static int enter(run *u)
{
    long n = syscall(__NR_io_uring_enter, u->ring->fd, u->unsubmitted,
                     u->unsubmitted + u->inflight > 0, IORING_ENTER_GETEVENTS, NULL, 0);
    if (n >= 0) {
        u->unsubmitted -= (uint32_t)n;
        u->inflight += (uint32_t)n;
        return 0;
    }
    return errno == EINTR || errno == EAGAIN || errno == EBUSY ? 0 : errno;
}

/*
 * The kernel took no more: what it has must come back before the buffers are let
 * go, and files that it opened must be known.
 */
static void drain(run *u)
{
    ring *r = u->ring;
    while (u->inflight > 0) {
        syscall(__NR_io_uring_enter, r->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
        uint32_t tail = __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE);
        for (uint32_t head = *r->cq_head; head != tail; head++) {
            const struct io_uring_cqe *c = &r->cqe[head & r->cq_mask];
            take_result(&u->request[c->user_data], c->res);
            u->inflight--;
        }
        __atomic_store_n(r->cq_head, tail, __ATOMIC_RELEASE);
    }
}

static int ring_run(ring *r, cm_ring_request *request, size_t n, cm_error *err)
{
    run u = {.ring = r, .request = request};
    size_t next = 0, finished = 0;
    for (size_t i = 0; i < n; i++) {
        request[i].error = 0;
        request[i].opened = -1;
        request[i].done = 0;
    }
    while (finished < n) {
        while (next < n && u.unsubmitted + u.inflight < DEPTH)
            push(&u, next++);
        int errnum = enter(&u);
        if (errnum) {
            drain(&u);
            return cm_fail_errno(err, errnum, "io_uring");
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
    if (!rings)
        return CM_ENOMEM;
    int rc = ring_create(&rings->idle, err);
    if (rc) {
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
    for (ring *r = rings->idle, *next; r; r = next) {
        next = r->next;
        ring_free(r);
    }
    rings->idle = NULL;
}

void cm_rings_free(cm_rings *rings)
{
    if (!rings)
        return;
    free_idle(rings);
    pthread_mutex_destroy(&rings->lock);
    pthread_cond_destroy(&rings->returned);
    pthread_cond_destroy(&rings->closed);
    free(rings);
}

/* Lock held.  What threads of a parent have is not ours. */
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

/* An idle ring or a new one; where none can be made, one that another thread gives back. */
static int take(cm_rings *rings, ring **out, cm_error *err)
{
    int rc = CM_OK;
    pthread_mutex_lock(&rings->lock);
    be_owner(rings);
    while (!rings->idle && (rc = ring_create(&rings->idle, err)) != CM_OK && rings->nbusy > 0)
        pthread_cond_wait(&rings->returned, &rings->lock);
    if (rings->idle) {
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
    if (rc)
        return rc;
    rc = ring_run(r, request, n, err);
    if (rc == CM_OK) {
        give(rings, r);
        return CM_OK;
    }
    /* Entries that were pushed and not taken would be taken by the next call. */
    ring_free(r);
    pthread_mutex_lock(&rings->lock);
    rings->nbusy--;
    pthread_cond_signal(&rings->returned);
    pthread_mutex_unlock(&rings->lock);
    return rc;
}
