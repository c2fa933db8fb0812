#include "gpu/stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "gpu/stage_impl.h"

/* ---- opening and closing -------------------------------------------------------------------- */

static int open_buffer(cm_stage *s, stage_buffer *b, cm_error *err)
{
    cm_device *d = s->options.device;
    int rc = cm_device_alloc(d, s->options.batch_nbytes, &b->memory, err);
    if (rc == CM_OK)
        rc = cm_event_open(d, false, &b->copied, err);
    if (rc == CM_OK)
        rc = cm_event_open(d, true, &b->copy_start, err);
    if (rc == CM_OK)
        rc = cm_event_open(d, true, &b->copy_end, err);
    return rc;
}

static int open_parts(cm_stage *s, cm_error *err)
{
    cm_device *d = s->options.device;
    int rc = cm_stream_open(d, &s->copying, err);
    if (rc == CM_OK)
        rc = cm_stream_open(d, &s->computing, err);
    if (rc == CM_OK)
        rc = cm_event_open(d, true, &s->step_start, err);
    if (rc == CM_OK)
        rc = cm_event_open(d, true, &s->step_end, err);
    for (unsigned i = 0; rc == CM_OK && i < s->options.nbuffers; i++)
        rc = open_buffer(s, &s->buffers[i], err);
    return rc;
}

int cm_stage_open(const cm_stage_options *options, cm_stage **out, cm_error *err)
{
    *out = NULL;
    if (options->batch_nbytes == 0)
        return cm_fail(err, CM_EINVAL, "a batch of no bytes cannot be staged");
    if (options->nbuffers > CM_STAGE_MAX_BUFFERS)
        return cm_fail(err, CM_EINVAL, "%u buffers on the device, %d at most", options->nbuffers,
                       CM_STAGE_MAX_BUFFERS);
    cm_stage *s = cm_calloc(1, sizeof *s, err);
    if (s == NULL)
        return CM_ENOMEM;
    s->options = *options;
    s->options.nbuffers = options->synchronous ? 1 : options->nbuffers == 0 ? 2 : options->nbuffers;
    s->lock_report.locked = options->staging == CM_STAGING_PINNED;
    const int rc = open_parts(s, err);
    if (rc != CM_OK) {
        cm_stage_free(s);
        return rc;
    }
    *out = s;
    return CM_OK;
}

void cm_stage_free(cm_stage *s)
{
    if (s == NULL)
        return;
    /* Streams first: they wait for copies that read and write what goes next. */
    cm_stream_close(s->copying);
    cm_stream_close(s->computing);
    cm_event_close(s->step_start);
    cm_event_close(s->step_end);
    for (unsigned i = 0; i < s->options.nbuffers; i++) {
        stage_buffer *b = &s->buffers[i];
        cm_device_free(b->memory);
        cm_event_close(b->copied);
        cm_event_close(b->copy_start);
        cm_event_close(b->copy_end);
    }
    for (size_t i = 0; i < s->nlocked; i++)
        (void)cm_device_unlock(s->options.device, s->locked[i].memory, s->locked[i].nbytes, NULL);
    cm_device_free_locked(s->options.device, s->back, s->options.batch_nbytes);
    free(s);
}

int cm_stage_lock(cm_stage *s, void *memory, size_t nbytes, cm_error *err)
{
    if (s->options.staging == CM_STAGING_PAGEABLE)
        return CM_OK;
    if (s->nlocked == CM_STAGE_MAX_LOCKED)
        return cm_fail(err, CM_EINVAL, "more than %d pieces of page-locked memory",
                       CM_STAGE_MAX_LOCKED);
    cm_lock_report one;
    const int rc = cm_device_lock(s->options.device, memory, nbytes, &one, err);
    if (rc != CM_OK)
        return rc;
    s->locked[s->nlocked++] = (stage_region){.memory = memory, .nbytes = nbytes};
    cm_lock_report *all = &s->lock_report;
    all->nbytes += one.nbytes;
    all->touch_ns += one.touch_ns;
    all->lock_ns += one.lock_ns;
    if (!one.locked && all->locked) {
        all->locked = false;
        memcpy(all->note, one.note, sizeof all->note);
    }
    return CM_OK;
}

const cm_lock_report *cm_stage_locked(const cm_stage *s)
{
    return &s->lock_report;
}

/* Batches submitted and not yet released. */
static unsigned nflying(const cm_stage *s)
{
    return (unsigned)(s->nsubmitted - s->nreleased);
}

int cm_stage_begin(cm_stage *s, cm_validate validate, cm_error *err)
{
    if (nflying(s))
        return cm_fail(err, CM_EINVAL, "a pass begins when no batch is on its way");
    if (validate != CM_VALIDATE_NONE && s->back == NULL) {
        void *back;
        const int rc =
            cm_device_alloc_locked(s->options.device, s->options.batch_nbytes, &back, NULL, err);
        if (rc != CM_OK)
            return rc;
        s->back = back;
    }
    s->validate = validate;
    s->nsubmitted = s->nreleased = s->nsteps = 0;
    s->report = (cm_stage_report){0};
    return CM_OK;
}

/* ---- submitting ----------------------------------------------------------------------------- */

bool cm_stage_room(const cm_stage *s)
{
    return nflying(s) < s->options.nbuffers;
}

static bool is_locked(const cm_stage *s, const uint8_t *p, size_t nbytes)
{
    for (size_t i = 0; i < s->nlocked; i++) {
        const stage_region *r = &s->locked[i];
        if (p >= r->memory && p <= r->memory + r->nbytes &&
            nbytes <= (size_t)(r->memory + r->nbytes - p))
            return true;
    }
    return false;
}

static int check_submit(const cm_stage *s, uint64_t tag, const void *host, size_t nbytes,
                        cm_error *err)
{
    if (!cm_stage_room(s))
        return cm_fail(err, CM_EINVAL, "batch %llu: all %u buffers of the device are in use",
                       (unsigned long long)tag, s->options.nbuffers);
    if (nbytes > s->options.batch_nbytes)
        return cm_fail(err, CM_EINVAL, "batch %llu: %zu bytes are more than the %zu of a buffer",
                       (unsigned long long)tag, nbytes, s->options.batch_nbytes);
    if (s->options.staging == CM_STAGING_PINNED && !is_locked(s, host, nbytes))
        return cm_fail(err, CM_EINVAL, "batch %llu does not lie in page-locked memory",
                       (unsigned long long)tag);
    return CM_OK;
}

static int copy(cm_stage *s, stage_buffer *b, cm_error *err)
{
    const cm_staged *x = &b->batch;
    int rc = CM_OK;
    if (s->validate != CM_VALIDATE_NONE)
        rc = cm_stream_poison(s->copying, b->memory, CM_STAGE_POISON, err);
    if (rc == CM_OK)
        rc = cm_event_record(b->copy_start, s->copying, err);
    if (rc == CM_OK)
        rc = cm_stream_copy_in(s->copying, x->tag, b->memory, 0, x->host, x->nbytes, err);
    if (rc == CM_OK)
        rc = cm_event_record(b->copy_end, s->copying, err);
    return rc == CM_OK ? cm_event_record(b->copied, s->copying, err) : rc;
}

int cm_stage_submit(cm_stage *s, uint64_t tag, const void *host, size_t nbytes, cm_error *err)
{
    int rc = check_submit(s, tag, host, nbytes, err);
    if (rc != CM_OK)
        return rc;
    stage_buffer *b = stage_buffer_of(s, s->nsubmitted);
    b->batch = (cm_staged){.tag = tag, .host = host, .nbytes = nbytes, .queued_ns = cm_now_ns()};
    rc = copy(s, b, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "batch %llu", (unsigned long long)tag);
        return rc;
    }
    s->nsubmitted++;
    return CM_OK;
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Of the copy, what lies within one of the latest steps, which do not overlap each other. */
static uint64_t hidden_ns(const cm_stage *s, const cm_staged *b)
{
    uint64_t sum = 0;
    const uint64_t n = s->nsteps < CM_STAGE_MAX_BUFFERS ? s->nsteps : CM_STAGE_MAX_BUFFERS;
    for (uint64_t i = 0; i < n; i++) {
        const cm_stage_step_times *t = &s->steps[i];
        const uint64_t from = t->start_ns > b->copy_start_ns ? t->start_ns : b->copy_start_ns;
        const uint64_t to = t->end_ns < b->copy_end_ns ? t->end_ns : b->copy_end_ns;
        sum += to > from ? to - from : 0;
    }
    return sum;
}

static void count(cm_stage *s, const cm_staged *b)
{
    cm_stage_report *r = &s->report;
    r->nbatches++;
    r->nbytes += b->nbytes;
    r->queue_ns += b->copy_start_ns > b->queued_ns ? b->copy_start_ns - b->queued_ns : 0;
    r->copy_ns += b->copy_end_ns - b->copy_start_ns;
    r->hidden_ns += hidden_ns(s, b);
    r->wait_ns += b->wait_ns;
}

int cm_stage_wait(cm_stage *s, cm_staged *out, cm_error *err)
{
    if (s->waited)
        return cm_fail(err, CM_EINVAL, "the batch that was waited for is not released");
    if (nflying(s) == 0)
        return cm_fail(err, CM_EINVAL, "no batch is on its way");
    stage_buffer *b = stage_buffer_of(s, s->nreleased);
    const uint64_t start = cm_now_ns();
    int rc = cm_event_wait(b->copied, err);
    b->batch.ready_ns = cm_now_ns();
    b->batch.wait_ns = b->batch.ready_ns - start;
    uint64_t span = 0;
    if (rc == CM_OK)
        rc = cm_event_time(b->copy_start, &b->batch.copy_start_ns, err);
    if (rc == CM_OK)
        rc = cm_event_span(b->copy_start, b->copy_end, &span, err);
    if (rc == CM_OK) {
        b->batch.copy_end_ns = b->batch.copy_start_ns + span;
        count(s, &b->batch);
        s->waited = true;
        *out = b->batch;
    } else
        cm_error_prefix(err, "batch %llu", (unsigned long long)b->batch.tag);
    return rc;
}

/* ---- the step ------------------------------------------------------------------------------- */

static int begin_on_device(cm_stage *s, cm_error *err)
{
    int rc = cm_event_record(s->step_start, s->computing, err);
    if (rc == CM_OK)
        rc = cm_stream_busy(s->computing, s->options.step_ns, err);
    if (rc == CM_OK)
        rc = cm_event_record(s->step_end, s->computing, err);
    return rc;
}

int cm_stage_step(cm_stage *s, cm_error *err)
{
    if (!s->waited || s->stepped)
        return cm_fail(err, CM_EINVAL, "a step needs a batch that was waited for, once");
    if (s->options.step == CM_STEP_DEVICE) {
        const int rc = begin_on_device(s, err);
        if (rc != CM_OK)
            return rc;
    }
    s->step.start_ns = cm_now_ns();
    s->stepped = true;
    return CM_OK;
}

static int end_on_device(cm_stage *s, cm_error *err)
{
    uint64_t span = 0;
    int rc = cm_event_wait(s->step_end, err);
    if (rc == CM_OK)
        rc = cm_event_time(s->step_start, &s->step.start_ns, err);
    if (rc == CM_OK)
        rc = cm_event_span(s->step_start, s->step_end, &span, err);
    s->step.end_ns = s->step.start_ns + span;
    return rc;
}

static void end_by_time(cm_stage *s)
{
    const uint64_t end = s->step.start_ns + s->options.step_ns;
    const struct timespec at = {.tv_sec = (time_t)(end / 1000000000),
                                .tv_nsec = (long)(end % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
    s->step.end_ns = cm_now_ns();
}

int cm_stage_release(cm_stage *s, cm_stage_step_times *out, cm_error *err)
{
    if (!s->waited)
        return cm_fail(err, CM_EINVAL, "no batch was waited for");
    if (out != NULL)
        *out = (cm_stage_step_times){0};
    if (s->stepped) {
        if (s->options.step == CM_STEP_DEVICE) {
            const int rc = end_on_device(s, err);
            if (rc != CM_OK)
                return rc;
        } else
            end_by_time(s);
        s->steps[s->nsteps++ % CM_STAGE_MAX_BUFFERS] = s->step;
        s->report.step_ns += s->step.end_ns - s->step.start_ns;
        if (out != NULL)
            *out = s->step;
    }
    s->waited = s->stepped = false;
    s->nreleased++;
    return CM_OK;
}

const cm_stage_report *cm_stage_get_report(const cm_stage *s)
{
    return &s->report;
}
