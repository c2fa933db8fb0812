#include <stdlib.h>

#include "base/clock.h"
#include "gpu/cuda_impl.h"

enum {
    BLOCK_THREADS = 256, /* whole warps, as cm_checksum wants them */
    MAX_BLOCKS = 1024,
    VECTOR_NBYTES = 16, /* what a thread of cm_checksum reads at a time */
    CLOCKS_PER_NS = 8   /* no device runs that fast: the end of a step whose timer stands still */
};

/*
 * The driver tells the time between two events as a float of milliseconds, whose
 * last place is below half a microsecond only for the first seconds.
 */
static const uint64_t INSTANT_NS = UINT64_C(4000000000);

static cuda_device *device_of(const cm_stream *s)
{
    return (cuda_device *)s->device;
}

static cuda_stream_handle handle_of(const cm_stream *s)
{
    return ((const cuda_stream *)s)->handle;
}

static int result(const cuda_device *c, cuda_result rc, const char *doing, cm_error *err)
{
    return rc == CUDA_OK ? CM_OK : cm_cuda_fail(c, rc, doing, err);
}

/* ---- streams -------------------------------------------------------------------------------- */

int cm_cuda_stream_open(cm_device *d, cm_stream **out, cm_error *err)
{
    cuda_device *c = (cuda_device *)d;
    const int entered = cm_cuda_enter(c, err);
    if (entered != CM_OK)
        return entered;
    cuda_stream *s = cm_calloc(1, sizeof *s, err);
    if (s == NULL)
        return CM_ENOMEM;
    s->base.device = d;
    const cuda_result rc = c->api.cuStreamCreate(&s->handle, CUDA_STREAM_NON_BLOCKING);
    if (rc != CUDA_OK) {
        free(s);
        return cm_cuda_fail(c, rc, "making a stream", err);
    }
    *out = &s->base;
    return CM_OK;
}

int cm_cuda_adopt(cm_device *d, uint64_t handle, cm_stream **out, cm_error *err)
{
    cuda_stream *s = cm_calloc(1, sizeof *s, err);
    if (s == NULL)
        return CM_ENOMEM;
    *s = (cuda_stream){
        .base.device = d, .handle = (cuda_stream_handle)(uintptr_t)handle, .adopted = true};
    *out = &s->base;
    return CM_OK;
}

void cm_cuda_stream_close(cm_stream *s)
{
    cuda_device *c = device_of(s);
    if (!((const cuda_stream *)s)->adopted && cm_cuda_enter(c, NULL) == CM_OK) {
        (void)c->api.cuStreamSynchronize(handle_of(s));
        (void)c->api.cuStreamDestroy(handle_of(s));
    }
    free(s);
}

int cm_cuda_sync(cm_stream *s, cm_error *err)
{
    cuda_device *c = device_of(s);
    const int rc = cm_cuda_enter(c, err);
    return rc != CM_OK
               ? rc
               : result(c, c->api.cuStreamSynchronize(handle_of(s)), "waiting for the device", err);
}

int cm_cuda_sync_all(cm_device *d, cm_error *err)
{
    const cuda_device *c = (const cuda_device *)d;
    const int rc = cm_cuda_enter(c, err);
    return rc != CM_OK ? rc : result(c, c->api.cuCtxSynchronize(), "waiting for the device", err);
}

int cm_cuda_copy_in(cm_stream *s, cm_device_memory *m, size_t offset, const void *src,
                    size_t nbytes, cm_error *err)
{
    cuda_device *c = device_of(s);
    const cuda_address at = ((cuda_memory *)m)->address + offset;
    const int rc = cm_cuda_enter(c, err);
    return rc != CM_OK ? rc
                       : result(c, c->api.cuMemcpyHtoDAsync(at, src, nbytes, handle_of(s)),
                                "copying to the device", err);
}

int cm_cuda_copy_out(cm_stream *s, void *dst, const cm_device_memory *m, size_t offset,
                     size_t nbytes, cm_error *err)
{
    cuda_device *c = device_of(s);
    const cuda_address at = ((const cuda_memory *)m)->address + offset;
    const int rc = cm_cuda_enter(c, err);
    return rc != CM_OK ? rc
                       : result(c, c->api.cuMemcpyDtoHAsync(dst, at, nbytes, handle_of(s)),
                                "copying from the device", err);
}

int cm_cuda_poison(cm_stream *s, cm_device_memory *m, uint8_t pattern, cm_error *err)
{
    cuda_device *c = device_of(s);
    const cuda_address at = ((cuda_memory *)m)->address;
    const int rc = cm_cuda_enter(c, err);
    return rc != CM_OK ? rc
                       : result(c, c->api.cuMemsetD8Async(at, pattern, m->nbytes, handle_of(s)),
                                "filling memory of the device", err);
}

/* PARAMETERS are copied by the driver before it returns. */
static cuda_result launch(const cuda_device *c, const cm_stream *s, cuda_function kernel,
                          uint64_t nblocks, unsigned nthreads, void **parameters)
{
    return c->api.cuLaunchKernel(kernel, (unsigned)nblocks, 1, 1, nthreads, 1, 1, 0, handle_of(s),
                                 parameters, NULL);
}

int cm_cuda_checksum(cm_stream *s, const cm_device_memory *m, size_t offset, size_t nbytes,
                     cm_checksum *out, cm_error *err)
{
    cuda_device *c = device_of(s);
    uint64_t data = ((const cuda_memory *)m)->address + offset, count = nbytes, at = c->result;
    void *parameters[] = {&data, &count, &at};
    uint64_t nblocks = nbytes / (VECTOR_NBYTES * BLOCK_THREADS) + 1;
    if (nblocks > MAX_BLOCKS)
        nblocks = MAX_BLOCKS;
    const int entered = cm_cuda_enter(c, err);
    if (entered != CM_OK)
        return entered;
    cuda_result rc = c->api.cuMemsetD8Async(c->result, 0, sizeof *out, handle_of(s));
    if (rc == CUDA_OK)
        rc = launch(c, s, c->checksum, nblocks, BLOCK_THREADS, parameters);
    if (rc == CUDA_OK)
        rc = c->api.cuMemcpyDtoHAsync(c->landed, c->result, sizeof *out, handle_of(s));
    if (rc == CUDA_OK)
        rc = c->api.cuStreamSynchronize(handle_of(s));
    if (rc == CUDA_OK)
        *out = *c->landed;
    return result(c, rc, "computing a checksum on the device", err);
}

int cm_cuda_busy(cm_stream *s, uint64_t ns, cm_error *err)
{
    cuda_device *c = device_of(s);
    uint64_t clocks = ns > UINT64_MAX / CLOCKS_PER_NS ? UINT64_MAX : ns * CLOCKS_PER_NS;
    void *parameters[] = {&ns, &clocks};
    const unsigned nblocks = c->base.info.multiprocessors ? c->base.info.multiprocessors : 1;
    const int rc = cm_cuda_enter(c, err);
    return rc != CM_OK ? rc
                       : result(c, launch(c, s, c->busy, nblocks, 32, parameters),
                                "keeping the device busy", err);
}

int cm_cuda_after(cm_stream *s, const cm_event *e, cm_error *err)
{
    cuda_device *c = device_of(s);
    const cuda_event_handle event = ((const cuda_event *)e)->handle;
    const int rc = cm_cuda_enter(c, err);
    return rc != CM_OK ? rc
                       : result(c, c->api.cuStreamWaitEvent(handle_of(s), event, 0),
                                "ordering streams", err);
}

/* ---- events --------------------------------------------------------------------------------- */

int cm_cuda_event_open(cm_device *d, bool timed, cm_event **out, cm_error *err)
{
    cuda_device *c = (cuda_device *)d;
    const int entered = cm_cuda_enter(c, err);
    if (entered != CM_OK)
        return entered;
    cuda_event *e = cm_calloc(1, sizeof *e, err);
    if (e == NULL)
        return CM_ENOMEM;
    e->base = (cm_event){.device = d, .timed = timed};
    const unsigned flags =
        CUDA_EVENT_BLOCKING_SYNC | (timed ? 0 : (unsigned)CUDA_EVENT_DISABLE_TIMING);
    const cuda_result rc = c->api.cuEventCreate(&e->handle, flags);
    if (rc != CUDA_OK) {
        free(e);
        return cm_cuda_fail(c, rc, "making an event", err);
    }
    *out = &e->base;
    return CM_OK;
}

void cm_cuda_event_close(cm_event *e)
{
    cuda_device *c = (cuda_device *)e->device;
    if (cm_cuda_enter(c, NULL) == CM_OK)
        (void)c->api.cuEventDestroy(((cuda_event *)e)->handle);
    free(e);
}

int cm_cuda_record(cm_event *base, cm_stream *s, cm_error *err)
{
    cuda_device *c = device_of(s);
    cuda_event *e = (cuda_event *)base;
    int rc = cm_cuda_enter(c, err);
    if (rc == CM_OK && base->timed)
        rc = cm_cuda_keep_time(c, err);
    if (rc != CM_OK)
        return rc;
    e->instant = c->ninstants - 1;
    return result(c, c->api.cuEventRecord(e->handle, handle_of(s)), "recording an event", err);
}

int cm_cuda_wait(cm_event *e, cm_error *err)
{
    cuda_device *c = (cuda_device *)e->device;
    const int rc = cm_cuda_enter(c, err);
    return rc != CM_OK ? rc
                       : result(c, c->api.cuEventSynchronize(((cuda_event *)e)->handle),
                                "waiting for the device", err);
}

/* ---- time ----------------------------------------------------------------------------------- */

/*
 * An event on an idle stream is reached between the two looks at the host's
 * clock; of a few tries the one with the closest looks is the best.
 */
static cuda_result take_instant(cuda_device *c, cuda_instant *t)
{
    uint64_t best = UINT64_MAX;
    cuda_result rc = CUDA_OK;
    if (c->clock == NULL)
        rc = c->api.cuStreamCreate(&c->clock, CUDA_STREAM_NON_BLOCKING);
    if (rc == CUDA_OK && t->event == NULL)
        rc = c->api.cuEventCreate(&t->event, 0);
    cuda_event_handle spare = NULL;
    if (rc == CUDA_OK)
        rc = c->api.cuEventCreate(&spare, 0);
    for (int i = 0; i < 4 && rc == CUDA_OK; i++) {
        const uint64_t before = cm_now_ns();
        rc = c->api.cuEventRecord(spare, c->clock);
        if (rc == CUDA_OK)
            rc = c->api.cuEventSynchronize(spare);
        const uint64_t after = cm_now_ns();
        if (rc != CUDA_OK || after - before >= best)
            continue;
        best = after - before;
        t->host_ns = before + best / 2;
        const cuda_event_handle found = spare;
        spare = t->event;
        t->event = found;
    }
    if (spare != NULL)
        (void)c->api.cuEventDestroy(spare);
    return rc;
}

int cm_cuda_keep_time(cuda_device *c, cm_error *err)
{
    if (c->ninstants && cm_now_ns() - c->instants[(c->ninstants - 1) % 2].host_ns < INSTANT_NS)
        return CM_OK;
    const cuda_result rc = take_instant(c, &c->instants[c->ninstants % 2]);
    if (rc != CUDA_OK)
        return cm_cuda_fail(c, rc, "reading the device's clock", err);
    c->ninstants++;
    return CM_OK;
}

static int elapsed(const cuda_device *c, cuda_event_handle from, cuda_event_handle to, int64_t *ns,
                   cm_error *err)
{
    float milliseconds = 0;
    const cuda_result rc = c->api.cuEventElapsedTime(&milliseconds, from, to);
    *ns = (int64_t)((double)milliseconds * 1e6);
    return result(c, rc, "reading the device's clock", err);
}

/* Of the instant before E was recorded, unless that is gone: then of the oldest there is. */
int cm_cuda_time(cm_event *base, uint64_t *ns, cm_error *err)
{
    const cuda_device *c = (const cuda_device *)base->device;
    const cuda_event *e = (const cuda_event *)base;
    int rc = cm_cuda_enter(c, err);
    if (rc != CM_OK)
        return rc;
    const uint64_t oldest = c->ninstants > 2 ? c->ninstants - 2 : 0;
    const cuda_instant *t = &c->instants[(e->instant > oldest ? e->instant : oldest) % 2];
    int64_t since;
    rc = elapsed(c, t->event, e->handle, &since, err);
    *ns = t->host_ns + (uint64_t)since;
    return rc;
}

int cm_cuda_span(cm_event *a, cm_event *b, uint64_t *ns, cm_error *err)
{
    const cuda_device *c = (const cuda_device *)a->device;
    int rc = cm_cuda_enter(c, err);
    if (rc != CM_OK)
        return rc;
    int64_t span;
    rc = elapsed(c, ((cuda_event *)a)->handle, ((cuda_event *)b)->handle, &span, err);
    *ns = span > 0 ? (uint64_t)span : 0;
    return rc;
}
