#include "gpu/device.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpu/device_impl.h"

void cm_device_close(cm_device *d)
{
    if (d == NULL)
        return;
    cm_device_free_locked(d, d->fault_bytes, d->nfaults);
    free(d->faults);
    free(d->sysfs);
    d->ops->close(d);
}

void *cm_device_enter(cm_device *d)
{
    return d->ops->enter != NULL ? d->ops->enter(d) : NULL;
}

void cm_device_leave(cm_device *d, void *before)
{
    if (d->ops->leave != NULL)
        d->ops->leave(d, before);
}

const cm_device_info *cm_device_get_info(const cm_device *d)
{
    return &d->info;
}

cm_device_link cm_device_read_link(const cm_device *d)
{
    return d->info.pci[0] ? cm_pci_link(d->sysfs, d->info.pci) : (cm_device_link){0};
}

/* ---- memory --------------------------------------------------------------------------------- */

static int check_nbytes(size_t nbytes, cm_error *err)
{
    return nbytes ? CM_OK : cm_fail(err, CM_EINVAL, "no bytes to lock or to allocate");
}

static void touch(volatile uint8_t *memory, size_t nbytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < nbytes; i += page)
        memory[i] = memory[i];
}

int cm_device_lock(cm_device *d, void *memory, size_t nbytes, cm_lock_report *out, cm_error *err)
{
    cm_lock_report unused;
    if (out == NULL)
        out = &unused;
    *out = (cm_lock_report){.nbytes = nbytes};
    int rc = check_nbytes(nbytes, err);
    if (rc != CM_OK)
        return rc;
    const uint64_t start = cm_now_ns();
    touch(memory, nbytes);
    const uint64_t touched = cm_now_ns();
    out->touch_ns = touched - start;
    rc = d->ops->lock(d, memory, nbytes, out, err);
    out->lock_ns = cm_now_ns() - touched;
    return rc;
}

int cm_device_unlock(cm_device *d, void *memory, size_t nbytes, cm_error *err)
{
    const int rc = check_nbytes(nbytes, err);
    return rc == CM_OK ? d->ops->unlock(d, memory, nbytes, err) : rc;
}

int cm_device_alloc_locked(cm_device *d, size_t nbytes, void **out, cm_lock_report *report,
                           cm_error *err)
{
    cm_lock_report unused;
    if (report == NULL)
        report = &unused;
    *out = NULL;
    int rc = check_nbytes(nbytes, err);
    if (rc != CM_OK)
        return rc;
    const uint64_t start = cm_now_ns();
    void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return cm_fail(err, CM_ENOMEM, "no memory for %zu bytes of page-locked buffer", nbytes);
    const uint64_t allocated = cm_now_ns();
    rc = cm_device_lock(d, p, nbytes, report, err);
    report->alloc_ns = allocated - start;
    if (rc != CM_OK) {
        munmap(p, nbytes);
        return rc;
    }
    *out = p;
    return CM_OK;
}

void cm_device_free_locked(cm_device *d, void *memory, size_t nbytes)
{
    if (memory == NULL)
        return;
    /* Nothing is lost when it fails: the pages go with the address space. */
    (void)d->ops->unlock(d, memory, nbytes, NULL);
    munmap(memory, nbytes);
}

int cm_device_alloc(cm_device *d, size_t nbytes, cm_device_memory **out, cm_error *err)
{
    *out = NULL;
    const int rc = check_nbytes(nbytes, err);
    return rc == CM_OK ? d->ops->alloc(d, nbytes, out, err) : rc;
}

void cm_device_free(cm_device_memory *m)
{
    if (m != NULL)
        m->device->ops->free(m);
}

size_t cm_device_memory_nbytes(const cm_device_memory *m)
{
    return m->nbytes;
}

void *cm_device_memory_address(const cm_device_memory *m)
{
    return m->device->ops->address(m);
}

/* ---- streams -------------------------------------------------------------------------------- */

int cm_stream_open(cm_device *d, cm_stream **out, cm_error *err)
{
    *out = NULL;
    return d->ops->stream_open(d, out, err);
}

int cm_stream_adopt(cm_device *d, uint64_t handle, cm_stream **out, cm_error *err)
{
    *out = NULL;
    if (d->ops->adopt == NULL)
        return cm_fail(err, CM_EINVAL, "%s: has no streams of other libraries", d->info.text);
    return d->ops->adopt(d, handle, out, err);
}

int cm_device_sync(cm_device *d, cm_error *err)
{
    return d->ops->sync_all != NULL ? d->ops->sync_all(d, err) : CM_OK;
}

void cm_stream_close(cm_stream *s)
{
    if (s != NULL)
        s->device->ops->stream_close(s);
}

int cm_stream_sync(cm_stream *s, cm_error *err)
{
    return s->device->ops->sync(s, err);
}

static int check_range(const cm_stream *s, const cm_device_memory *m, size_t offset, size_t nbytes,
                       cm_error *err)
{
    if (m->device != s->device)
        return cm_fail(err, CM_EINVAL, "stream and memory are of different devices");
    if (offset > m->nbytes || nbytes > m->nbytes - offset)
        return cm_fail(err, CM_EINVAL,
                       "%zu bytes at offset %zu do not lie in %zu bytes of device memory", nbytes,
                       offset, m->nbytes);
    return CM_OK;
}

/* The damaged bytes follow the copy on the same stream, so that they arrive last. */
static int inject(cm_stream *s, uint64_t batch, cm_device_memory *m, size_t offset,
                  const uint8_t *src, size_t nbytes, cm_error *err)
{
    const cm_device *d = s->device;
    for (size_t i = 0; i < d->nfaults; i++) {
        const cm_device_fault *f = &d->faults[i];
        if (f->batch != batch || f->offset >= nbytes)
            continue;
        d->fault_bytes[i] = src[f->offset] ^ f->mask;
        const int rc = d->ops->copy_in(s, m, offset + f->offset, &d->fault_bytes[i], 1, err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

int cm_stream_copy_in(cm_stream *s, uint64_t batch, cm_device_memory *m, size_t offset,
                      const void *src, size_t nbytes, cm_error *err)
{
    int rc = check_range(s, m, offset, nbytes, err);
    if (rc != CM_OK || nbytes == 0 || s->device->free_copies)
        return rc;
    rc = s->device->ops->copy_in(s, m, offset, src, nbytes, err);
    return rc == CM_OK ? inject(s, batch, m, offset, src, nbytes, err) : rc;
}

int cm_stream_copy_out(cm_stream *s, void *dst, const cm_device_memory *m, size_t offset,
                       size_t nbytes, cm_error *err)
{
    const int rc = check_range(s, m, offset, nbytes, err);
    if (rc != CM_OK || nbytes == 0)
        return rc;
    return s->device->ops->copy_out(s, dst, m, offset, nbytes, err);
}

int cm_stream_poison(cm_stream *s, cm_device_memory *m, uint8_t pattern, cm_error *err)
{
    const int rc = check_range(s, m, 0, m->nbytes, err);
    return rc == CM_OK ? s->device->ops->poison(s, m, pattern, err) : rc;
}

int cm_stream_checksum(cm_stream *s, const cm_device_memory *m, size_t offset, size_t nbytes,
                       cm_checksum *out, cm_error *err)
{
    *out = (cm_checksum){0};
    const int rc = check_range(s, m, offset, nbytes, err);
    if (rc != CM_OK)
        return rc;
    if (offset % 16)
        return cm_fail(err, CM_EINVAL, "a checksum begins at a multiple of 16 bytes, not at %zu",
                       offset);
    if (nbytes > CM_CHECKSUM_MAX_NBYTES)
        return cm_fail(err, CM_EINVAL, "%zu bytes are too many for one checksum", nbytes);
    return nbytes ? s->device->ops->checksum(s, m, offset, nbytes, out, err) : CM_OK;
}

int cm_stream_busy(cm_stream *s, uint64_t ns, cm_error *err)
{
    return s->device->ops->busy(s, ns, err);
}

static int check_pair(const cm_device *a, const cm_device *b, cm_error *err)
{
    return a == b ? CM_OK : cm_fail(err, CM_EINVAL, "stream and event are of different devices");
}

int cm_stream_after(cm_stream *s, const cm_event *e, cm_error *err)
{
    const int rc = check_pair(s->device, e->device, err);
    if (rc != CM_OK || !e->recorded)
        return rc;
    return s->device->ops->after(s, e, err);
}

/* ---- events --------------------------------------------------------------------------------- */

int cm_event_open(cm_device *d, bool timed, cm_event **out, cm_error *err)
{
    *out = NULL;
    return d->ops->event_open(d, timed, out, err);
}

void cm_event_close(cm_event *e)
{
    if (e != NULL)
        e->device->ops->event_close(e);
}

int cm_event_record(cm_event *e, cm_stream *s, cm_error *err)
{
    int rc = check_pair(s->device, e->device, err);
    if (rc != CM_OK)
        return rc;
    rc = e->device->ops->record(e, s, err);
    e->recorded |= rc == CM_OK;
    return rc;
}

int cm_event_wait(cm_event *e, cm_error *err)
{
    return e->recorded ? e->device->ops->wait(e, err) : CM_OK;
}

static int check_timed(const cm_event *e, cm_error *err)
{
    if (!e->timed || !e->recorded)
        return cm_fail(err, CM_EINVAL, "the event has no time: it is %s",
                       e->timed ? "not recorded" : "untimed");
    return CM_OK;
}

int cm_event_time(cm_event *e, uint64_t *ns, cm_error *err)
{
    const int rc = check_timed(e, err);
    return rc == CM_OK ? e->device->ops->time(e, ns, err) : rc;
}

int cm_event_span(cm_event *a, cm_event *b, uint64_t *ns, cm_error *err)
{
    int rc = check_timed(a, err);
    if (rc == CM_OK)
        rc = check_timed(b, err);
    if (rc == CM_OK)
        rc = check_pair(a->device, b->device, err);
    return rc == CM_OK ? a->device->ops->span(a, b, ns, err) : rc;
}
