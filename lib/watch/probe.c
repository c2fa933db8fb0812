#include "watch/probe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"
#include "plan/meetings.h"

enum {
    PIECE_NBYTES = 1 << 20, /* one memcpy: below what the C library switches its method for */
    MANY_CHUNKS = 16,       /* that a thread takes at once, as neighbours can come together, */
    MANY_NBYTES = 16 << 20, /* and of so many bytes, but for the first */
    MAX_THREADS = 1024
};

int cm_probe_memory(size_t nbytes, double seconds, double *rate, cm_error *err)
{
    const size_t half = nbytes / 2 / PIECE_NBYTES * PIECE_NBYTES;
    if (half == 0)
        return cm_fail(err, CM_EINVAL, "copying is measured with 2 MiB or more");
    uint8_t *from = malloc(half), *to = malloc(half);
    if (from == NULL || to == NULL) {
        free(from);
        free(to);
        return cm_fail(err, CM_ENOMEM, "no memory to measure copying");
    }
    memset(from, 1, half); /* so that all pages are there, and different */
    memset(to, 2, half);
    uint64_t copied = 0, start = cm_now_ns(), now = start;
    for (size_t at = 0; (double)(now - start) < seconds * 1e9 || copied == 0;
         at = (at + PIECE_NBYTES) % half) {
        memcpy(to + at, from + at, PIECE_NBYTES);
        __asm__ volatile("" ::"r"(to + at) : "memory"); /* it is not optimised away */
        copied += PIECE_NBYTES;
        now = cm_now_ns();
    }
    free(from);
    free(to);
    *rate = (double)copied / ((double)(now - start + 1) * 1e-9);
    return CM_OK;
}

/* ---- storage ---- */

typedef struct job {
    const cm_probe_item *item;
    size_t n;
    _Atomic size_t next;
    uint64_t deadline_ns; /* 0: none */
    _Atomic uint64_t nbytes, nrequests, nchunks;
    atomic_bool failed;
    pthread_mutex_t lock; /* guards status and err */
    int status;
    cm_error *err;
} job;

static void fail(job *j, int rc, const cm_error *err)
{
    pthread_mutex_lock(&j->lock);
    if (j->status == CM_OK) {
        j->status = rc;
        if (j->err != NULL)
            *j->err = *err;
    }
    pthread_mutex_unlock(&j->lock);
    atomic_store(&j->failed, true);
}

/* Items [0, N), all of one array that is stored in chunks. */
static int fetch_chunks(job *j, const cm_probe_item *item, size_t n, cm_fetch_many *many,
                        cm_error *err)
{
    cm_fetch_item fetch[MANY_CHUNKS] = {0};
    uint64_t present = 0;
    for (size_t i = 0; i < n; i++)
        fetch[i].number = item[i].number;
    many->item = fetch;
    many->n = n;
    int rc = cm_array_fetch_many(item[0].array, many, err);
    if (rc != CM_OK)
        return rc;
    for (size_t i = 0; i < n; i++)
        present += fetch[i].present;
    atomic_fetch_add(&j->nbytes, many->nbytes);
    atomic_fetch_add(&j->nrequests, many->nrequests);
    atomic_fetch_add(&j->nchunks, present);
    return CM_OK;
}

static int read_slice(job *j, const cm_probe_item *item, cm_buf *buf, cm_error *err)
{
    uint64_t nbytes;
    if (item->array->ops->read_box == NULL ||
        !cm_product_u64(item->box.rank, item->box.shape, &nbytes) ||
        !cm_mul_u64(nbytes, item->array->dtype.nbytes, &nbytes))
        return cm_fail(err, CM_EINVAL, "array %s: cannot be read in boxes", item->array->name);
    int rc = cm_buf_resize(buf, nbytes, err);
    if (rc == CM_OK && nbytes > 0)
        rc = item->array->ops->read_box(item->array, &item->box, buf->data, err);
    if (rc != CM_OK)
        return rc;
    atomic_fetch_add(&j->nbytes, nbytes);
    atomic_fetch_add(&j->nrequests, 1);
    atomic_fetch_add(&j->nchunks, 1);
    return CM_OK;
}

/* Of N items, the first ones that are fetched together. */
static size_t run_of(const cm_probe_item *item, size_t n)
{
    const cm_array *a = item->array;
    size_t run = 1;
    while (a->chunked && run < n && item[run].array == a &&
           (run + 1) * a->max_stored_nbytes <= MANY_NBYTES)
        run++;
    return run;
}

uint64_t cm_probe_fetch_nbytes(const cm_array *a)
{
    const uint64_t one = a->max_stored_nbytes, many = cm_mul_sat(one, MANY_CHUNKS);
    return one > MANY_NBYTES ? one : many < MANY_NBYTES ? many : MANY_NBYTES;
}

static void read_items(void *context, unsigned worker)
{
    (void)worker;
    job *j = context;
    cm_fetch_many many = {0};
    cm_buf buf = {0};
    cm_error err;
    for (size_t at; (at = atomic_fetch_add(&j->next, MANY_CHUNKS)) < j->n;) {
        const size_t end = at + MANY_CHUNKS < j->n ? at + MANY_CHUNKS : j->n;
        int rc = CM_OK;
        while (at < end && rc == CM_OK) {
            const cm_probe_item *item = &j->item[at];
            const size_t n = run_of(item, end - at);
            rc = item->array->chunked ? fetch_chunks(j, item, n, &many, &err)
                                      : read_slice(j, item, &buf, &err);
            at += n;
        }
        if (rc != CM_OK)
            fail(j, rc, &err);
        if (atomic_load(&j->failed) || (j->deadline_ns > 0 && cm_now_ns() > j->deadline_ns))
            break;
    }
    cm_fetch_many_release(&many);
    cm_buf_release(&buf);
}

int cm_probe_storage(const cm_probe_item *item, size_t n, unsigned nthreads, double seconds,
                     cm_probe_result *out, cm_error *err)
{
    if (nthreads < 1 || nthreads > MAX_THREADS)
        return cm_fail(err, CM_EINVAL, "storage is measured with 1 to %d threads", MAX_THREADS);
    job j = {.item = item, .n = n, .err = err};
    uint64_t start = cm_now_ns();
    if (seconds > 0)
        j.deadline_ns = start + (uint64_t)(seconds * 1e9);
    pthread_mutex_init(&j.lock, NULL);
    cm_threads_run(nthreads, read_items, &j);
    pthread_mutex_destroy(&j.lock);
    *out = (cm_probe_result){.seconds = (double)(cm_now_ns() - start) * 1e-9,
                             .nbytes = j.nbytes,
                             .nrequests = j.nrequests,
                             .nchunks = j.nchunks};
    return j.status;
}
