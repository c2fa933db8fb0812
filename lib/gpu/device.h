/*
 * A second memory, and the way there: an accelerator, or `host`, which stands
 * in for one on machines without.
 *
 *     host      memory of its own, page-locked where the system allows it, to
 *               which a thread of its own copies.  It never claims to be a GPU.
 *     cuda[:N]  an NVIDIA device through CUDA's driver, loaded at run time.
 *
 * Work is put on streams: each does its own in order, and those of one device
 * run beside each other.  Events mark places in a stream.  A call that puts
 * work on a stream returns at once; what it names must stay valid until an event
 * recorded after it is reached, or the stream is synchronised.
 *
 * Threads: a device and what was made from it belong to one thread at a time.
 * Different devices, also of the same text, may be used by different threads at
 * once.  A process that forks opens its devices after the fork.
 */
#ifndef CM_GPU_DEVICE_H
#define CM_GPU_DEVICE_H

#include "base/mem.h"
#include "gpu/checksum.h"

typedef struct cm_device cm_device;
typedef struct cm_device_memory cm_device_memory;
typedef struct cm_stream cm_stream;
typedef struct cm_event cm_event;

typedef enum cm_device_kind {
    CM_DEVICE_HOST,
    CM_DEVICE_CUDA
} cm_device_kind;

/* The opened device.  Empty text and 0 if something is unknown or has no meaning. */
typedef struct cm_device_info {
    cm_device_kind kind;
    char text[24];             /* "host", "cuda:0" */
    unsigned number;           /* of cuda: 0 of "cuda:0" */
    char name[128];            /* "NVIDIA H100 80GB HBM3"; "memory of this machine" */
    char api[16];              /* the CUDA version that the driver speaks: "12.4" */
    char driver[64];           /* version of the kernel's driver: "550.54.15" */
    char pci[16];              /* "0000:3b:00.0" */
    unsigned capability_major; /* compute capability, 9.0 for an H100 */
    unsigned capability_minor;
    unsigned multiprocessors;
    unsigned copy_engines;
    uint64_t total_nbytes; /* of its memory; 0 for host */
} cm_device_info;

/* The state of the link now: an idle device lowers its generation, so ask after copying. */
typedef struct cm_device_link {
    unsigned generation, width; /* 0: not known */
    unsigned max_generation, max_width;
} cm_device_link;

/* One byte of one batch is XORed with MASK on its way to the device, whenever it is copied. */
typedef struct cm_device_fault {
    uint64_t batch;
    uint64_t offset; /* within the batch */
    uint8_t mask;
} cm_device_fault;

/* For tests alone.  Zeroed memory, or NULL, is a device as it is. */
typedef struct cm_device_hooks {
    bool free_copies; /* copies to the device take no time and copy nothing */
    const cm_device_fault *faults;
    size_t nfaults;          /* 1024 at most */
    uint64_t memory_nbytes;  /* host: so much memory the device has; 0: what is free */
    bool refuse_lock;        /* host: as if the system allowed no page-locking */
    const char *cuda_driver; /* instead of libcuda.so.1 */
    const char *sysfs;       /* instead of /sys */
} cm_device_hooks;

/*
 * Opens "host", "cuda", "cuda:0", "cuda:1", ...  Nothing else is tried when that
 * fails: CM_ENOTFOUND without driver or device, CM_EUNSUPPORTED where either is
 * too old, with what is needed.
 */
int cm_device_open(const char *text, const cm_device_hooks *hooks, cm_device **out, cm_error *err);
/* Everything made from D must be gone.  NULL is accepted. */
void cm_device_close(cm_device *d);

/*
 * For a library in a process that uses CUDA too: calls on D change the context that is current on
 * the calling thread.  Enter says which one it was, leave makes it current again.  NULL for host.
 */
void *cm_device_enter(cm_device *d);
void cm_device_leave(cm_device *d, void *before);

const cm_device_info *cm_device_get_info(const cm_device *d);
/* All 0 for host and where the system does not tell. */
cm_device_link cm_device_read_link(const cm_device *d);

/* ---- page-locked memory of the host --------------------------------------------------------- */

/* Result of page-locking. */
typedef struct cm_lock_report {
    bool locked;       /* false only for host, where the system refused */
    char note[256];    /* why not */
    size_t nbytes;     /* whether locked or not */
    uint64_t alloc_ns; /* address space; 0 for memory of the caller */
    uint64_t touch_ns; /* first touch of each page */
    uint64_t lock_ns;
} cm_lock_report;

/*
 * Page-locks NBYTES at MEMORY (whole pages, owned by the caller, no other thread
 * writing meanwhile).  cuda refuses what cannot be locked; host says in OUT (which
 * may be NULL) that it was not.  Unlock before the memory goes.
 */
int cm_device_lock(cm_device *d, void *memory, size_t nbytes, cm_lock_report *out, cm_error *err);
int cm_device_unlock(cm_device *d, void *memory, size_t nbytes, cm_error *err);

/*
 * New page-locked memory, zeroed, aligned to pages.  cm_device_free_locked takes the same
 * NBYTES.
 */
int cm_device_alloc_locked(cm_device *d, size_t nbytes, void **out, cm_lock_report *report,
                           cm_error *err);
void cm_device_free_locked(cm_device *d, void *memory, size_t nbytes);

/* ---- memory of the device ------------------------------------------------------------------- */

/* CM_ENOMEM when the device has no room; contents are undefined. */
int cm_device_alloc(cm_device *d, size_t nbytes, cm_device_memory **out, cm_error *err);
/* No work on M may be under way.  NULL is accepted. */
void cm_device_free(cm_device_memory *m);
size_t cm_device_memory_nbytes(const cm_device_memory *m);
/* For other libraries: an address of the device; of host, of this process. */
void *cm_device_memory_address(const cm_device_memory *m);

/* ---- streams -------------------------------------------------------------------------------- */

int cm_stream_open(cm_device *d, cm_stream **out, cm_error *err);
/*
 * The stream of another library, by CUDA's handle (1: the default stream); CM_EINVAL on host.  It
 * is there for as long as S is used; closing S leaves it as it is.
 */
int cm_stream_adopt(cm_device *d, uint64_t handle, cm_stream **out, cm_error *err);
/* Waits for what is on S.  NULL is accepted. */
void cm_stream_close(cm_stream *s);
/* Waits for what is on S and returns its error. */
int cm_stream_sync(cm_stream *s, cm_error *err);
/* Waits for what all libraries of this process have put on D; on host, for nothing. */
int cm_device_sync(cm_device *d, cm_error *err);

/*
 * Copies NBYTES at SRC to M at OFFSET; page-locked SRC is read later, other SRC
 * possibly at once, with the caller waiting.  BATCH matters to injected faults only;
 * it is the copy of bytes 0 ... NBYTES - 1 of it.
 */
int cm_stream_copy_in(cm_stream *s, uint64_t batch, cm_device_memory *m, size_t offset,
                      const void *src, size_t nbytes, cm_error *err);
int cm_stream_copy_out(cm_stream *s, void *dst, const cm_device_memory *m, size_t offset,
                       size_t nbytes, cm_error *err);
/* Fills all of M. */
int cm_stream_poison(cm_stream *s, cm_device_memory *m, uint8_t pattern, cm_error *err);
/* Computes on the device; waits for the result.  OFFSET is a multiple of 16. */
int cm_stream_checksum(cm_stream *s, const cm_device_memory *m, size_t offset, size_t nbytes,
                       cm_checksum *out, cm_error *err);
/* Keeps the device busy for NS nanoseconds: a kernel on cuda, a sleep of the stream on host. */
int cm_stream_busy(cm_stream *s, uint64_t ns, cm_error *err);
/* Makes all later work on S wait until E, as last recorded, is reached. */
int cm_stream_after(cm_stream *s, const cm_event *e, cm_error *err);

/* ---- events --------------------------------------------------------------------------------- */

/* Untimed events cost less and are for reuse of buffers. */
int cm_event_open(cm_device *d, bool timed, cm_event **out, cm_error *err);
/* NULL is accepted. */
void cm_event_close(cm_event *e);
int cm_event_record(cm_event *e, cm_stream *s, cm_error *err);
/* Sleeps until E is reached, and returns errors of the work before it. */
int cm_event_wait(cm_event *e, cm_error *err);
/*
 * When the timed event E, which was reached, was reached: on the clock of
 * cm_now_ns(), to a few microseconds.
 */
int cm_event_time(cm_event *e, uint64_t *ns, cm_error *err);
/* From A to B, both timed and reached, by the clock of the device: to a microsecond. */
int cm_event_span(cm_event *a, cm_event *b, uint64_t *ns, cm_error *err);

#endif
