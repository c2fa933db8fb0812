/*
 * How tests steer the fake of nvCOMP (fake_nvcomp.c) and look into it: the symbol
 * `fake_nvcomp` of the loaded library is one of these.
 */
#ifndef CM_TEST_FAKE_NVCOMP_H
#define CM_TEST_FAKE_NVCOMP_H

#include <stddef.h>
#include <stdint.h>

typedef struct fake_nvcomp_state {
    /* Set by tests. */
    uint32_t version;    /* 0: that of the build */
    size_t input;        /* the alignment of streams that is asked for; 0: as the real one asks */
    size_t temp_nbytes;  /* temporary memory that each stream takes */
    int fail;            /* calls return this status */
    uint64_t bad_stream; /* of all, from 1 on, this one fails with ... */
    int bad_status;      /* ... this status; 0: it is one byte short */
    /* What was done. */
    uint64_t ncalls, nstreams;
    uint64_t nrefused;   /* streams that were not as they should be */
    size_t most_streams; /* in one call */
} fake_nvcomp_state;

/* What the state is when the library is loaded. */
typedef void fake_nvcomp_reset_fn(void);

#endif
