/* The device `cuda`: CUDA's driver, loaded at run time. */
#ifndef CM_GPU_CUDA_IMPL_H
#define CM_GPU_CUDA_IMPL_H

#include "gpu/cuda_abi.h"
#include "gpu/device_impl.h"

/* A recorded event of which the time on the clock of the host is known. */
typedef struct cuda_instant {
    cuda_event_handle event;
    uint64_t host_ns;
} cuda_instant;

typedef struct cuda_device {
    cm_device base;
    void *library;
    cuda_api api;
    cuda_device_id id;
    cuda_context context;
    cuda_context before; /* the thread's when the device was opened */
    bool is_guest;       /* the thread's own is made current again after each call */
    cuda_module module;
    cuda_function checksum;
    cuda_function busy;
    cuda_address result; /* of a checksum, on the device ... */
    cm_checksum *landed; /* ... and page-locked, where it lands; a page */
    /* Instant number n, of which the latest two are kept, is in instants[n % 2]. */
    cuda_stream_handle clock;
    cuda_instant instants[2];
    uint64_t ninstants;
} cuda_device;

typedef struct cuda_memory {
    cm_device_memory base;
    cuda_address address;
} cuda_memory;

typedef struct cuda_stream {
    cm_stream base;
    cuda_stream_handle handle;
    bool adopted; /* another library's */
} cuda_stream;

typedef struct cuda_event {
    cm_event base;
    cuda_event_handle handle;
    uint64_t instant; /* the latest when it was recorded */
} cuda_event;

extern const char cm_cuda_ptx[];

/*
 * Loads the driver PATH and finds its functions; CM_ENOTFOUND, or CM_EUNSUPPORTED when it is
 * too old.
 */
int cm_cuda_load(const char *path, cuda_device *c, cm_error *err);

/* Makes a sentence of RESULT: what was being DONE on C, the driver's name for it, its words. */
int cm_cuda_fail(const cuda_device *c, cuda_result result, const char *doing, cm_error *err);
/* Makes C's context the calling thread's, on which everything else depends. */
int cm_cuda_enter(const cuda_device *c, cm_error *err);
/* Takes a new instant when there is none or the latest is old. */
int cm_cuda_keep_time(cuda_device *c, cm_error *err);

int cm_cuda_stream_open(cm_device *d, cm_stream **out, cm_error *err);
int cm_cuda_adopt(cm_device *d, uint64_t handle, cm_stream **out, cm_error *err);
void cm_cuda_stream_close(cm_stream *s);
int cm_cuda_sync(cm_stream *s, cm_error *err);
int cm_cuda_sync_all(cm_device *d, cm_error *err);
int cm_cuda_copy_in(cm_stream *s, cm_device_memory *m, size_t offset, const void *src,
                    size_t nbytes, cm_error *err);
int cm_cuda_copy_out(cm_stream *s, void *dst, const cm_device_memory *m, size_t offset,
                     size_t nbytes, cm_error *err);
int cm_cuda_poison(cm_stream *s, cm_device_memory *m, uint8_t pattern, cm_error *err);
int cm_cuda_checksum(cm_stream *s, const cm_device_memory *m, size_t offset, size_t nbytes,
                     cm_checksum *out, cm_error *err);
int cm_cuda_busy(cm_stream *s, uint64_t ns, cm_error *err);
int cm_cuda_after(cm_stream *s, const cm_event *e, cm_error *err);

int cm_cuda_event_open(cm_device *d, bool timed, cm_event **out, cm_error *err);
void cm_cuda_event_close(cm_event *e);
int cm_cuda_record(cm_event *e, cm_stream *s, cm_error *err);
int cm_cuda_wait(cm_event *e, cm_error *err);
int cm_cuda_time(cm_event *e, uint64_t *ns, cm_error *err);
int cm_cuda_span(cm_event *a, cm_event *b, uint64_t *ns, cm_error *err);

#endif
