/*
 * Batches that are held, and the memory that they lie in.
 *
 * Each slot has one cm_batch, made when the loader is opened.  It counts the caller's
 * handle and the tensors exported from it; when all are gone the slot goes back to the
 * batcher, or, where the loader was closed, nowhere.  With a device each buffer there has one
 * (loader_device.c), and a slot goes back when it was copied.  The last of loader and batches frees
 * the memory.  A child process has the parent's counts as they were, and touches nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load/loader_impl.h"

enum {
    STEP = CM_LOADER_MAX_DIMS + 1 /* a sample's dimensions and that of samples */
};

static int make_batch(cm_loader_hold *h, cm_batch *b, cm_error *err)
{
    const size_t n = h->about->nvariables;
    b->hold = h;
    b->sample = cm_calloc(h->batch_samples * (h->about->ndims + 1), sizeof *b->sample, err);
    b->tensor = b->sample == NULL ? NULL : cm_calloc(n, sizeof *b->tensor, err);
    b->shape = b->tensor == NULL ? NULL : cm_calloc(n * STEP, sizeof *b->shape, err);
    if (b->shape == NULL)
        return CM_ENOMEM;
    for (size_t p = 0; p < n; p++) {
        const cm_loader_variable *v = &h->about->variable[p];
        for (unsigned d = 0; d < v->ndims; d++)
            b->shape[p * STEP + d + 1] = (int64_t)v->shape[d];
        b->tensor[p] = (cm_tensor){
            .variable = v, .ndims = v->ndims + 1, .shape = &b->shape[p * STEP], .device_type = 1};
    }
    return CM_OK;
}

static void free_hold(cm_loader_hold *h)
{
    if (h->batch != NULL)
        cm_loader_device_close(h);
    for (unsigned i = 0; h->batch != NULL && i < h->nbatches; i++) {
        cm_batch *b = &h->batch[i];
        free(b->sample);
        free(b->tensor);
        free(b->shape);
    }
    free(h->batch);
    cm_loader_about_unref(h->about);
    cm_arena_release(&h->arena);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

int cm_loader_hold_create(cm_loader *l, cm_loader_hold **out, cm_error *err)
{
    cm_load_run *run = &l->run;
    cm_loader_hold *h = cm_calloc(1, sizeof *h, err);
    *out = NULL;
    if (h == NULL)
        return CM_ENOMEM;
    pthread_mutex_init(&h->lock, NULL);
    atomic_init(&h->refs, 1);
    h->pid = l->pid;
    h->nbatches = run->setting.uses_device ? l->held + 1 : run->nslots;
    h->batch_samples = run->batch;
    h->about = cm_loader_about_ref(l->about);
    h->batch = cm_calloc(h->nbatches, sizeof *h->batch, err);
    int rc = h->batch != NULL ? CM_OK : CM_ENOMEM;
    for (unsigned i = 0; i < h->nbatches && rc == CM_OK; i++)
        rc = make_batch(h, &h->batch[i], err);
    if (rc == CM_OK && run->setting.uses_device)
        rc = cm_loader_device_open(h, run, err);
    if (rc != CM_OK) {
        free_hold(h);
        return rc;
    }
    h->rank = &run->rank[0];
    *out = h;
    return CM_OK;
}

void cm_loader_hold_detach(cm_loader_hold *h)
{
    cm_load_run *run = h->rank->run;
    pthread_mutex_lock(&h->lock);
    h->rank = NULL;
    pthread_mutex_unlock(&h->lock);
    cm_load_stop_workers(run); /* who write to it */
    h->arena = run->arena;
    run->arena = (cm_arena){0};
    if (h->device.device == NULL)
        return;
    pthread_mutex_lock(&h->lock); /* no batch lies in a slot */
    cm_loader_device_unlock(&h->device);
    pthread_mutex_unlock(&h->lock);
    cm_arena_release(&h->arena);
}

uint64_t cm_loader_hold_nbytes(const cm_loader_hold *h)
{
    const bool here =
        h->device.device != NULL && cm_device_get_info(h->device.device)->kind == CM_DEVICE_HOST;
    uint64_t total = h->arena.nbytes;
    for (unsigned i = 0; here && i < h->nbatches; i++)
        total += cm_device_memory_nbytes(h->batch[i].buffer.memory);
    return total;
}

void cm_loader_hold_unref(cm_loader_hold *h)
{
    if (h != NULL && atomic_fetch_sub(&h->refs, 1) == 1)
        free_hold(h);
}

/* ---- batches ------------------------------------------------------------------------------- */

/* The memory of `host` is the CPU's. */
static void place_on_device(const cm_loader_hold *h, cm_tensor *t)
{
    enum {
        DL_CUDA = 2
    };
    const cm_device *d = h->device.device;
    if (d == NULL || cm_device_get_info(d)->kind != CM_DEVICE_CUDA)
        return;
    t->device_type = DL_CUDA;
    t->device_number = (int32_t)cm_device_get_info(d)->number;
}

static void place_tensors(cm_batch *b)
{
    const cm_load_batch *made = &b->made;
    const cm_device_memory *memory = b->buffer.memory;
    uint8_t *at = memory != NULL ? cm_device_memory_address(memory) : made->data;
    for (size_t p = 0; p < b->hold->about->nvariables; p++) {
        cm_tensor *t = &b->tensor[p];
        t->data = at;
        place_on_device(b->hold, t);
        t->nbytes = made->nsamples * b->hold->about->variable[p].nbytes;
        b->shape[p * STEP] = (int64_t)made->nsamples;
        at += t->nbytes;
    }
}

static void place_samples(cm_batch *b, const cm_load_rank *rank)
{
    const cm_sample_space *space = &rank->run->shared.space.space;
    const size_t ndims = b->hold->about->ndims;
    b->index = (int64_t *)b->sample + b->made.nsamples;
    for (uint64_t k = 0; k < b->made.nsamples; k++) {
        cm_box box;
        b->sample[k] = cm_load_place(rank, &b->made, k);
        cm_sample_at(space, b->epoch, b->made.sample[k], &box);
        for (size_t d = 0; d < ndims; d++)
            b->index[k * ndims + d] =
                (int64_t)(box.start[d] + (d == space->lagged ? rank->run->shared.space.behind : 0));
    }
}

cm_batch *cm_loader_hold_take(cm_loader_hold *h)
{
    cm_batch *found = NULL;
    pthread_mutex_lock(&h->lock);
    for (unsigned i = 0; i < h->nbatches && found == NULL; i++)
        if (!h->batch[i].buffer.taken)
            found = &h->batch[i];
    if (found != NULL)
        found->buffer.taken = true;
    pthread_mutex_unlock(&h->lock);
    return found;
}

void cm_loader_hold_untake(cm_batch *b)
{
    pthread_mutex_lock(&b->hold->lock);
    b->buffer.taken = false;
    pthread_mutex_unlock(&b->hold->lock);
}

static int copy(cm_loader_hold *h, cm_batch *b, const cm_load_batch *made, cm_error *err)
{
    pthread_mutex_lock(&h->lock);
    int rc = cm_loader_device_copy(b, made, err);
    if (rc != CM_OK)
        cm_error_place(err, h->rank->run->store);
    b->buffer.taken = rc == CM_OK;
    cm_load_release(h->rank, made);
    pthread_mutex_unlock(&h->lock);
    return rc;
}

int cm_loader_hold_batch(cm_loader_hold *h, cm_batch *taken, const cm_load_batch *made,
                         uint64_t epoch, cm_batch **out, cm_error *err)
{
    cm_batch *b = taken != NULL ? taken : &h->batch[made->slot];
    b->made = *made;
    b->epoch = epoch;
    place_tensors(b);
    place_samples(b, h->rank);
    int rc = taken != NULL ? copy(h, b, made, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    atomic_fetch_add(&h->refs, 1);
    atomic_store(&b->refs, 1);
    *out = b;
    return CM_OK;
}

unsigned cm_loader_hold_count(const cm_loader_hold *h)
{
    unsigned n = 0;
    for (unsigned i = 0; i < h->nbatches; i++)
        n += atomic_load(&h->batch[i].refs) > 0;
    return n;
}

void cm_batch_ref(cm_batch *b)
{
    atomic_fetch_add(&b->refs, 1);
}

void cm_batch_release(cm_batch *b)
{
    if (b == NULL || getpid() != b->hold->pid)
        return;
    cm_loader_hold *h = b->hold;
    if (atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    pthread_mutex_lock(&h->lock);
    if (h->device.device != NULL)
        cm_loader_device_leave(b);
    else if (h->rank != NULL)
        cm_load_release(h->rank, &b->made);
    pthread_mutex_unlock(&h->lock);
    cm_loader_hold_unref(h);
}

int cm_batch_check(const cm_batch *b, cm_error *err)
{
    if (b == NULL)
        return cm_fail(err, CM_EINVAL, "no batch");
    if (getpid() != b->hold->pid)
        return cm_fail(err, CM_EINVAL,
                       "the batch is of process %d, which forked this one: open a loader here",
                       (int)b->hold->pid);
    return CM_OK;
}

int cm_batch_stream(cm_batch *b, int64_t stream, cm_error *err)
{
    int rc = cm_batch_check(b, err);
    if (rc != CM_OK)
        return rc;
    pthread_mutex_lock(&b->hold->lock);
    rc = cm_loader_device_reads(b, stream, err);
    pthread_mutex_unlock(&b->hold->lock);
    return rc;
}

void cm_loader_hold_describe(const cm_batch *b, cm_batch_info *info)
{
    const cm_batch_info all = {.size = info->size,
                               .epoch = b->epoch,
                               .number = b->made.number,
                               .nsamples = b->made.nsamples,
                               .sample = b->sample,
                               .index = b->index};
    memcpy(info, &all, info->size < sizeof all ? info->size : sizeof all);
}

int cm_batch_describe(cm_batch *b, cm_batch_info *info, cm_error *err)
{
    const int rc = cm_batch_check(b, err);
    if (rc == CM_OK)
        cm_loader_hold_describe(b, info);
    return rc;
}

const cm_tensor *cm_batch_tensor(cm_batch *b, size_t i)
{
    return cm_batch_check(b, NULL) == CM_OK && i < b->hold->about->nvariables ? &b->tensor[i]
                                                                              : NULL;
}
