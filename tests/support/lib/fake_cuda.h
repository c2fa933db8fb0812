/*
 * How tests steer the fake of NVIDIA's driver (fake_cuda.c) and look into it:
 * the symbol `fake_cuda` of the loaded library is one of these.
 */
#ifndef CM_TEST_FAKE_CUDA_H
#define CM_TEST_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef struct fake_cuda_state {
    /* Set by tests. */
    int version; /* that cuDriverGetVersion tells */
    int ndevices;
    int capability;   /* 10 * major + minor */
    size_t nbytes;    /* of device memory */
    const char *fail; /* this function fails with `result`, "" for none, ... */
    int result;
    int fail_after; /* ... after so many calls that do not */
    /* Existing objects; all 0 when everything was released. */
    int ncontexts, nmodules, nstreams, nevents, nallocated, nregistered;
    /* Work done. */
    uint64_t ncalls;
    uint64_t busy_ns;    /* of all cm_busy kernels */
    uint64_t nsyncs;     /* of a whole context */
    uint64_t nwaits;     /* of streams for events, ... */
    uint64_t waited_for; /* ... the latest for one recorded on this stream */
} fake_cuda_state;

/* The symbol `fake_cuda_reset`: everything that exists is gone, as in a new process. */
typedef void fake_cuda_reset_fn(void);

#endif
