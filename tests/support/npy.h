/* Reading numpy's .npy files, version 1 and 2, for tests. */
#ifndef CM_TESTS_NPY_H
#define CM_TESTS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <chunkmill/error.h>

enum {
    CM_NPY_MAX_RANK = 8
};

typedef struct cm_npy {
    char descr[32]; /* "<f8", "|S3", "<M8[ns]" */
    size_t itemsize;
    bool fortran_order;
    unsigned rank;
    uint64_t shape[CM_NPY_MAX_RANK];
    uint64_t nelem;
    uint8_t *data; /* nelem * itemsize bytes, in the file's order */
} cm_npy;

int cm_npy_read(const char *path, cm_npy *out, cm_error *err);
void cm_npy_release(cm_npy *npy);

/* The bytes of a whole file, with one NUL after them; free() releases them. */
int cm_read_file(const char *path, uint8_t **data, size_t *nbytes, cm_error *err);

#endif
