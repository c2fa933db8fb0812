/*
 * GPUDirect Storage: what NVIDIA's cuFile, loaded at run time, says that this machine can.
 *
 * It is looked at and not used: stored bytes pass the host, which compares their checksums with
 * those of what it has proven (load/batches/proof.c).  What is needed of the binary interface of
 * libcufile.so.0 is written here from the reference of its API; no header of it is included.
 */
#ifndef CM_GPU_CUFILE_H
#define CM_GPU_CUFILE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    CUFILE_SUCCESS = 0,
    CUFILE_FIRST_ERROR = 5001,
    CUFILE_COMPAT_MODE = 1 /* bit of control_flags: reads may pass the host */
};

/* CUfileError_t: passed by value. */
typedef struct cufile_error {
    int error;      /* 0, or CUFILE_FIRST_ERROR and above */
    int cuda_error; /* where that is one of CUDA */
} cufile_error;

/* CUfileDrvProps_t. */
typedef struct cufile_properties {
    struct {
        unsigned major, minor; /* of the kernel's driver nvidia-fs; 0.0: it is not loaded */
        size_t poll_threshold, max_direct_nbytes;
        unsigned status_flags; /* bit I: file systems of kind I are read directly */
        unsigned control_flags;
    } kernel;
    unsigned feature_flags, max_cache_kib, buffer_cache_kib, max_pinned_kib;
    unsigned max_batch, batch_timeout_ms;
} cufile_properties;

/*
 * One sentence in TEXT, of SIZE, without "GPUDirect Storage:"; true: data could go to the device
 * directly.  LIBRARY NULL: the system's.
 */
bool cm_cufile_describe(const char *library, char *text, size_t size);

#endif
