#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/cpu.h"
#include "base/number.h"
#include "gpu/host_impl.h"

/* ---- memory --------------------------------------------------------------------------------- */

static int host_lock(cm_device *d, void *memory, size_t nbytes, cm_lock_report *report,
                     cm_error *err)
{
    (void)err;
    const host_device *h = (const host_device *)d;
    const int errnum = h->refuse_lock ? ENOMEM : mlock(memory, nbytes) == 0 ? 0 : errno;
    report->locked = errnum == 0;
    if (errnum == 0)
        return CM_OK;
    struct rlimit limit;
    char nbytes_text[32];
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        snprintf(report->note, sizeof report->note,
                 "memory is not page-locked: %s (this process may lock %s)", strerror(errnum),
                 cm_format_size(limit.rlim_cur, nbytes_text, sizeof nbytes_text));
    else
        snprintf(report->note, sizeof report->note, "memory is not page-locked: %s",
                 strerror(errnum));
    return CM_OK;
}

static int host_unlock(cm_device *d, void *memory, size_t nbytes, cm_error *err)
{
    (void)d;
    if (munlock(memory, nbytes) != 0)
        return cm_fail_errno(err, errno, "host: memory cannot be unlocked");
    return CM_OK;
}

static int host_alloc(cm_device *d, size_t nbytes, cm_device_memory **out, cm_error *err)
{
    host_device *h = (host_device *)d;
    const uint64_t left =
        h->memory_nbytes ? h->memory_nbytes - h->used_nbytes : cm_memory_available();
    if (nbytes > left) {
        char asked[32], have[32];
        return cm_fail(err, CM_ENOMEM, "host: %s of device memory were asked for, %s are free",
                       cm_format_size(nbytes, asked, sizeof asked),
                       cm_format_size(left, have, sizeof have));
    }
    host_memory *m = cm_calloc(1, sizeof *m, err);
    if (m == NULL)
        return CM_ENOMEM;
    /* Pages come now, so that the first copy is no slower than the next. */
    m->data = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                   -1, 0);
    if (m->data == MAP_FAILED) {
        free(m);
        return cm_fail(err, CM_ENOMEM, "host: no memory for %zu bytes", nbytes);
    }
    m->base = (cm_device_memory){.device = d, .nbytes = nbytes};
    h->used_nbytes += nbytes;
    *out = &m->base;
    return CM_OK;
}

static void host_free(cm_device_memory *base)
{
    host_memory *m = (host_memory *)base;
    ((host_device *)base->device)->used_nbytes -= base->nbytes;
    munmap(m->data, base->nbytes);
    free(m);
}

static void *host_address(const cm_device_memory *m)
{
    return ((const host_memory *)m)->data;
}

/* ---- work on a stream ----------------------------------------------------------------------- */

static int host_copy_in(cm_stream *s, cm_device_memory *m, size_t offset, const void *src,
                        size_t nbytes, cm_error *err)
{
    (void)err;
    cm_host_put((host_stream *)s, (host_work){.kind = HOST_COPY,
                                              .dst = ((host_memory *)m)->data + offset,
                                              .src = src,
                                              .nbytes = nbytes});
    return CM_OK;
}

static int host_copy_out(cm_stream *s, void *dst, const cm_device_memory *m, size_t offset,
                         size_t nbytes, cm_error *err)
{
    (void)err;
    cm_host_put((host_stream *)s, (host_work){.kind = HOST_COPY,
                                              .dst = dst,
                                              .src = ((const host_memory *)m)->data + offset,
                                              .nbytes = nbytes});
    return CM_OK;
}

static int host_poison(cm_stream *s, cm_device_memory *m, uint8_t pattern, cm_error *err)
{
    (void)err;
    cm_host_put((host_stream *)s, (host_work){.kind = HOST_FILL,
                                              .dst = ((host_memory *)m)->data,
                                              .nbytes = m->nbytes,
                                              .value = pattern});
    return CM_OK;
}

static int host_checksum(cm_stream *s, const cm_device_memory *m, size_t offset, size_t nbytes,
                         cm_checksum *out, cm_error *err)
{
    cm_host_put((host_stream *)s, (host_work){.kind = HOST_CHECKSUM,
                                              .dst = out,
                                              .src = ((const host_memory *)m)->data + offset,
                                              .nbytes = nbytes});
    return cm_stream_sync(s, err);
}

static int host_busy(cm_stream *s, uint64_t ns, cm_error *err)
{
    (void)err;
    cm_host_put((host_stream *)s, (host_work){.kind = HOST_BUSY, .value = ns});
    return CM_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void host_close(cm_device *d)
{
    host_device *h = (host_device *)d;
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

int cm_host_open(const cm_device_hooks *hooks, cm_device **out, cm_error *err)
{
    static const cm_device_ops ops = {
        .close = host_close,
        .lock = host_lock,
        .unlock = host_unlock,
        .alloc = host_alloc,
        .free = host_free,
        .address = host_address,
        .stream_open = cm_host_stream_open,
        .stream_close = cm_host_stream_close,
        .sync = cm_host_sync,
        .copy_in = host_copy_in,
        .copy_out = host_copy_out,
        .poison = host_poison,
        .checksum = host_checksum,
        .busy = host_busy,
        .after = cm_host_after,
        .event_open = cm_host_event_open,
        .event_close = cm_host_event_close,
        .record = cm_host_record,
        .wait = cm_host_wait,
        .time = cm_host_time,
        .span = cm_host_span,
    };
    host_device *h = cm_calloc(1, sizeof *h, err);
    if (h == NULL)
        return CM_ENOMEM;
    h->base.ops = &ops;
    h->base.info = (cm_device_info){.kind = CM_DEVICE_HOST};
    strcpy(h->base.info.text, "host");
    strcpy(h->base.info.name, "memory of this machine");
    h->memory_nbytes = hooks->memory_nbytes;
    h->refuse_lock = hooks->refuse_lock;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
    *out = &h->base;
    return CM_OK;
}
