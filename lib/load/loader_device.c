/*
 * Batches on a device: each of a few buffers holds one.
 *
 * The caller's kernels may be reading a buffer when its batch is given back.  So an event is
 * recorded then on each stream that reads it, and the next copy to the buffer comes after those
 * events; only where a stream is not known is the whole device waited for.  The threads that
 * call are the caller's, and have the context of CUDA that they had when a call returns.
 */
#include <string.h>

#include "load/loader_impl.h"

/* ---- opening and closing ------------------------------------------------------------------- */

static int open_parts(cm_loader_hold *h, const cm_load_run *run, cm_error *err)
{
    cm_loader_device *d = &h->device;
    int rc = cm_stream_open(d->device, &d->copying, err);
    if (rc == CM_OK)
        rc = cm_event_open(d->device, false, &d->copied, err);
    for (unsigned i = 0; i < h->nbatches && rc == CM_OK; i++)
        rc = cm_device_alloc(d->device, run->batch_nbytes, &h->batch[i].buffer.memory, err);
    if (rc == CM_OK && run->setting.pinned) {
        rc = cm_device_lock(d->device, run->arena.data, run->nslots * run->slot_nbytes, NULL, err);
        d->locked = rc == CM_OK ? run->arena.data : NULL;
        d->locked_nbytes = run->nslots * run->slot_nbytes;
    }
    return rc;
}

int cm_loader_device_open(cm_loader_hold *h, const cm_load_run *run, cm_error *err)
{
    cm_loader_device *d = &h->device;
    int rc = cm_device_open(run->options->device, run->options->device_hooks, &d->device, err);
    if (rc == CM_OK) {
        void *before = cm_device_enter(d->device);
        rc = open_parts(h, run, err);
        cm_device_leave(d->device, before);
    }
    if (rc != CM_OK)
        cm_error_prefix(err, "`device` %s", run->options->device);
    return rc;
}

void cm_loader_device_unlock(cm_loader_device *d)
{
    if (d->locked == NULL)
        return;
    void *before = cm_device_enter(d->device);
    /* A failure is harmless: the pages are unlocked with the address space. */
    (void)cm_device_unlock(d->device, d->locked, d->locked_nbytes, NULL);
    cm_device_leave(d->device, before);
    d->locked = NULL;
}

static void close_buffer(cm_loader_buffer *b)
{
    for (unsigned k = 0; k < CM_LOADER_STREAMS; k++) {
        if (b->reader[k].done != NULL)
            cm_event_close(b->reader[k].done);
        cm_stream_close(b->reader[k].stream);
    }
    cm_device_free(b->memory);
}

void cm_loader_device_close(cm_loader_hold *h)
{
    cm_loader_device *d = &h->device;
    if (d->device == NULL)
        return;
    cm_loader_device_unlock(d);
    void *before = cm_device_enter(d->device);
    /* Wait for the buffers' readers; if that fails, the device has failed and reads no more. */
    (void)cm_device_sync(d->device, NULL);
    cm_stream_close(d->copying);
    cm_event_close(d->copied);
    for (unsigned i = 0; i < h->nbatches; i++)
        close_buffer(&h->batch[i].buffer);
    cm_device_leave(d->device, before);
    cm_device_close(d->device);
    *d = (cm_loader_device){0};
}

/* ---- readers ------------------------------------------------------------------------------- */

static int add_reader(cm_device *d, cm_loader_buffer *b, int64_t handle, cm_error *err)
{
    const unsigned k = b->nreaders;
    int rc = CM_OK;
    if (b->reader[k].done == NULL)
        rc = cm_event_open(d, false, &b->reader[k].done, err);
    cm_stream_close(b->reader[k].stream);
    b->reader[k].stream = NULL;
    if (rc == CM_OK)
        rc = cm_stream_adopt(d, (uint64_t)handle, &b->reader[k].stream, err);
    b->reader[k].handle = handle;
    b->nreaders += rc == CM_OK;
    return rc;
}

int cm_loader_device_reads(cm_batch *batch, int64_t handle, cm_error *err)
{
    enum {
        UNTOLD = -1, /* as DLPack numbers them */
        UNDEFINED = 0,
        OF_THREAD = 2
    };
    cm_device *d = batch->hold->device.device;
    cm_loader_buffer *b = &batch->buffer;
    if (d == NULL || cm_device_get_info(d)->kind != CM_DEVICE_CUDA)
        return cm_fail(err, CM_EINVAL, "the batch lies in memory of the CPU, which has no streams");
    if (handle == UNDEFINED || handle < UNTOLD)
        return cm_fail(err, CM_EINVAL, "%lld is not a stream: CUDA's default stream is 1",
                       (long long)handle);
    for (unsigned k = 0; k < b->nreaders; k++)
        if (b->reader[k].handle == handle)
            return CM_OK;
    if (handle == UNTOLD || handle == OF_THREAD || b->nreaders == CM_LOADER_STREAMS) {
        b->unknown_reader = true;
        return CM_OK;
    }
    void *before = cm_device_enter(d);
    const int rc = add_reader(d, b, handle, err);
    cm_device_leave(d, before);
    return rc;
}

void cm_loader_device_leave(cm_batch *batch)
{
    cm_device *d = batch->hold->device.device;
    cm_loader_buffer *b = &batch->buffer;
    void *before = cm_device_enter(d);
    b->unknown_reader = b->unknown_reader || b->nreaders == 0;
    for (unsigned k = 0; k < b->nreaders && !b->unknown_reader; k++)
        if (cm_event_record(b->reader[k].done, b->reader[k].stream, NULL) != CM_OK)
            b->unknown_reader = true;
    cm_device_leave(d, before);
    b->taken = false;
}

/* ---- copying ------------------------------------------------------------------------------- */

static int copy(cm_loader_device *d, cm_loader_buffer *b, const cm_load_batch *made, size_t nbytes,
                cm_error *err)
{
    int rc = b->unknown_reader ? cm_device_sync(d->device, err) : CM_OK;
    for (unsigned k = 0; k < b->nreaders && !b->unknown_reader && rc == CM_OK; k++)
        rc = cm_stream_after(d->copying, b->reader[k].done, err);
    if (rc == CM_OK)
        rc = cm_stream_copy_in(d->copying, made->number, b->memory, 0, made->data, nbytes, err);
    if (rc == CM_OK)
        rc = cm_event_record(d->copied, d->copying, err);
    if (rc == CM_OK)
        rc = cm_event_wait(d->copied, err);
    return rc;
}

int cm_loader_device_copy(cm_batch *batch, const cm_load_batch *made, cm_error *err)
{
    cm_loader_device *d = &batch->hold->device;
    cm_loader_buffer *b = &batch->buffer;
    const cm_loader_about *about = batch->hold->about;
    size_t nbytes = 0;
    for (size_t p = 0; p < about->nvariables; p++)
        nbytes += made->nsamples * about->variable[p].nbytes;
    void *before = cm_device_enter(d->device);
    int rc = copy(d, b, made, nbytes, err);
    /* The slot will be filled again: no copy may read it any more. */
    if (rc != CM_OK)
        (void)cm_stream_sync(d->copying, NULL);
    cm_device_leave(d->device, before);
    b->nreaders = 0;
    b->unknown_reader = rc != CM_OK;
    return rc;
}
