#include "load/reader/delay.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"

/* A day: the arithmetic below cannot overflow, whatever a user asks for. */
#define MAX_WAIT_NS UINT64_C(86400000000000)

struct cm_delay {
    cm_delay_model model;
    _Atomic uint64_t free_at[]; /* by place, CLOCK_MONOTONIC */
};

static size_t mapped_nbytes(const cm_delay_model *model)
{
    return sizeof(cm_delay) + model->concurrency * sizeof(_Atomic uint64_t);
}

int cm_delay_create(const cm_delay_model *model, cm_delay **out, cm_error *err)
{
    if (!isfinite(model->latency) || model->latency < 0)
        return cm_fail(err, CM_EINVAL, "a latency is a time of at least 0 s");
    if (!(model->bandwidth > 0))
        return cm_fail(err, CM_EINVAL, "a bandwidth is more than 0 bytes a second");
    if (model->concurrency < 1 || model->concurrency > CM_DELAY_MAX_CONCURRENCY)
        return cm_fail(err, CM_EINVAL, "a concurrency lies between 1 and %d",
                       CM_DELAY_MAX_CONCURRENCY);
    void *memory =
        mmap(NULL, mapped_nbytes(model), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return cm_fail_errno(err, errno, "no shared memory for imitating a storage");
    *out = memory;
    (*out)->model = *model; /* the places are zero: free from the start */
    return CM_OK;
}

void cm_delay_free(cm_delay *delay)
{
    if (delay != NULL)
        munmap(delay, mapped_nbytes(&delay->model));
}

static uint64_t duration_ns(const cm_delay_model *m, uint64_t nrequests, uint64_t nbytes)
{
    double ns = 1e9 * ((double)nrequests * m->latency + (double)nbytes / m->bandwidth);
    return ns < (double)MAX_WAIT_NS ? (uint64_t)ns : MAX_WAIT_NS;
}

/*
 * Takes the place that is free first for DURATION, not before BEGIN and not ending before NOW;
 * returns when that is over.
 */
static uint64_t take_place(cm_delay *delay, uint64_t begin, uint64_t now, uint64_t duration)
{
    for (;;) {
        _Atomic uint64_t *first = &delay->free_at[0];
        uint64_t seen = atomic_load(first);
        for (unsigned i = 1; i < delay->model.concurrency; i++) {
            uint64_t at = atomic_load(&delay->free_at[i]);
            if (at < seen) {
                seen = at;
                first = &delay->free_at[i];
            }
        }
        uint64_t end = (seen > begin ? seen : begin) + duration;
        if (end < now)
            end = now;
        if (atomic_compare_exchange_strong(first, &seen, end))
            return end;
    }
}

uint64_t cm_delay_wait(cm_delay *delay, uint64_t nrequests, uint64_t nbytes, uint64_t io_ns)
{
    if (nrequests == 0)
        return 0;
    uint64_t now = cm_now_ns();
    uint64_t begin = io_ns < now ? now - io_ns : 0;
    uint64_t end = take_place(delay, begin, now, duration_ns(&delay->model, nrequests, nbytes));
    if (end <= now)
        return 0;
    struct timespec until = {.tv_sec = (time_t)(end / 1000000000u),
                             .tv_nsec = (long)(end % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    return cm_now_ns() - now;
}
