#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gpu/stage.h"

enum {
    MAX_COPIES = 64,
    PROBE_NS = 200000000
};

typedef struct probe {
    cm_device *device;
    cm_stream *stream;
    cm_event *start, *end;
    cm_device_memory *memory;
    size_t nbytes;
} probe;

static int copy_times(const probe *p, const void *src, unsigned ncopies, uint64_t *ns,
                      cm_error *err)
{
    int rc = cm_event_record(p->start, p->stream, err);
    for (unsigned i = 0; i < ncopies && rc == CM_OK; i++)
        rc = cm_stream_copy_in(p->stream, UINT64_MAX, p->memory, 0, src, p->nbytes, err);
    if (rc == CM_OK)
        rc = cm_event_record(p->end, p->stream, err);
    if (rc == CM_OK)
        rc = cm_event_wait(p->end, err);
    if (rc == CM_OK)
        rc = cm_event_span(p->start, p->end, ns, err);
    return rc;
}

/* The best of three runs, each as long as the first copies promise. */
static int rate_of(const probe *p, const void *src, double *rate, unsigned *ncopies, cm_error *err)
{
    uint64_t ns;
    int rc = copy_times(p, src, 2, &ns, err); /* the first wakes the link */
    if (rc == CM_OK)
        rc = copy_times(p, src, 2, &ns, err);
    if (rc != CM_OK)
        return rc;
    const uint64_t fit = PROBE_NS / 3 / (ns / 2 + 1);
    *ncopies = fit < 2 ? 2 : fit > MAX_COPIES ? MAX_COPIES : (unsigned)fit;
    *rate = 0;
    for (int i = 0; i < 3 && rc == CM_OK; i++) {
        rc = copy_times(p, src, *ncopies, &ns, err);
        const double this = ns ? (double)p->nbytes * *ncopies / ((double)ns * 1e-9) : 0;
        if (this > *rate)
            *rate = this;
    }
    return rc;
}

static double memory_rate(void *dst, const void *src, size_t nbytes)
{
    double best = 0;
    for (int i = 0; i < 5; i++) {
        const uint64_t start = cm_now_ns();
        memcpy(dst, src, nbytes);
        /* The copy is not for nothing, as far as the compiler knows. */
        __asm__ volatile("" : : "r"(dst) : "memory");
        const uint64_t ns = cm_now_ns() - start;
        const double rate = ns ? (double)nbytes / ((double)ns * 1e-9) : 0;
        if (rate > best)
            best = rate;
    }
    return best;
}

static void close_probe(probe *p)
{
    cm_stream_close(p->stream);
    cm_event_close(p->start);
    cm_event_close(p->end);
    cm_device_free(p->memory);
}

static int open_probe(probe *p, cm_error *err)
{
    int rc = cm_stream_open(p->device, &p->stream, err);
    if (rc == CM_OK)
        rc = cm_event_open(p->device, true, &p->start, err);
    if (rc == CM_OK)
        rc = cm_event_open(p->device, true, &p->end, err);
    if (rc == CM_OK)
        rc = cm_device_alloc(p->device, p->nbytes, &p->memory, err);
    return rc;
}

int cm_probe_link(cm_device *d, size_t nbytes, cm_link_rates *out, cm_error *err)
{
    *out = (cm_link_rates){.nbytes = nbytes};
    probe p = {.device = d, .nbytes = nbytes};
    void *pinned = NULL;
    unsigned ncopies;
    int rc = cm_device_alloc_locked(d, nbytes, &pinned, NULL, err);
    if (rc != CM_OK)
        return rc;
    uint8_t *pageable = malloc(nbytes);
    if (pageable == NULL)
        rc = cm_fail(err, CM_ENOMEM, "no memory for a buffer of %zu bytes", nbytes);
    if (rc == CM_OK)
        rc = open_probe(&p, err);
    if (rc == CM_OK) {
        /* Unequal bytes: equal pages could be one page. */
        for (size_t i = 0; i < nbytes; i++)
            pageable[i] = (uint8_t)(i * 31 + (i >> 12));
        memcpy(pinned, pageable, nbytes);
        rc = rate_of(&p, pageable, &out->pageable, &ncopies, err);
    }
    if (rc == CM_OK)
        rc = rate_of(&p, pinned, &out->pinned, &out->ncopies, err);
    if (rc == CM_OK) {
        out->link = cm_device_read_link(d);
        out->memory = memory_rate(pinned, pageable, nbytes);
    }
    close_probe(&p);
    free(pageable);
    cm_device_free_locked(d, pinned, nbytes);
    return rc;
}
