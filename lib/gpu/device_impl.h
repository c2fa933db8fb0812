/*
 * Interface that a kind of device implements.  device.c has checked the arguments: ranges lie in
 * the memory, sizes are not 0, events belong to the device of the stream.
 */
#ifndef CM_GPU_DEVICE_IMPL_H
#define CM_GPU_DEVICE_IMPL_H

#include "gpu/device.h"

typedef struct cm_device_ops {
    void (*close)(cm_device *d);
    void *(*enter)(cm_device *d);              /* NULL: there are no contexts */
    void (*leave)(cm_device *d, void *before); /* NULL where enter is */
    int (*lock)(cm_device *d, void *memory, size_t nbytes, cm_lock_report *report, cm_error *err);
    int (*unlock)(cm_device *d, void *memory, size_t nbytes, cm_error *err);
    int (*alloc)(cm_device *d, size_t nbytes, cm_device_memory **out, cm_error *err);
    void (*free)(cm_device_memory *m);
    void *(*address)(const cm_device_memory *m);

    int (*stream_open)(cm_device *d, cm_stream **out, cm_error *err);
    int (*adopt)(cm_device *d, uint64_t handle, cm_stream **out, cm_error *err); /* or NULL */
    int (*sync_all)(cm_device *d, cm_error *err);                                /* or NULL */
    void (*stream_close)(cm_stream *s);
    int (*sync)(cm_stream *s, cm_error *err);
    int (*copy_in)(cm_stream *s, cm_device_memory *m, size_t offset, const void *src, size_t nbytes,
                   cm_error *err);
    int (*copy_out)(cm_stream *s, void *dst, const cm_device_memory *m, size_t offset,
                    size_t nbytes, cm_error *err);
    int (*poison)(cm_stream *s, cm_device_memory *m, uint8_t pattern, cm_error *err);
    int (*checksum)(cm_stream *s, const cm_device_memory *m, size_t offset, size_t nbytes,
                    cm_checksum *out, cm_error *err);
    int (*busy)(cm_stream *s, uint64_t ns, cm_error *err);
    int (*after)(cm_stream *s, const cm_event *e, cm_error *err);

    int (*event_open)(cm_device *d, bool timed, cm_event **out, cm_error *err);
    void (*event_close)(cm_event *e);
    int (*record)(cm_event *e, cm_stream *s, cm_error *err);
    int (*wait)(cm_event *e, cm_error *err);
    int (*time)(cm_event *e, uint64_t *ns, cm_error *err);
    int (*span)(cm_event *a, cm_event *b, uint64_t *ns, cm_error *err);
} cm_device_ops;

/* Each is the first member of what the kind makes. */
struct cm_device {
    const cm_device_ops *ops;
    cm_device_info info;
    bool free_copies;
    char *sysfs;
    cm_device_fault *faults;
    uint8_t *fault_bytes; /* page-locked, one for each fault: what goes to the device instead */
    size_t nfaults;
};

struct cm_device_memory {
    cm_device *device;
    size_t nbytes;
};

struct cm_stream {
    cm_device *device;
};

struct cm_event {
    cm_device *device;
    bool timed;
    bool recorded;
};

/* Both set ops and info, and nothing else of the base. */
int cm_host_open(const cm_device_hooks *hooks, cm_device **out, cm_error *err);
int cm_cuda_open(unsigned number, const cm_device_hooks *hooks, cm_device **out, cm_error *err);

/*
 * The link of the PCI device PCI ("0000:3b:00.0") as SYSFS ("/sys") tells it; 0 where it does
 * not.
 */
cm_device_link cm_pci_link(const char *sysfs, const char *pci);
/* The first line of a small file without its newline; "" where it cannot be read. */
void cm_pci_read_line(const char *path, char *buf, size_t size);

#endif
