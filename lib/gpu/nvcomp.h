/*
 * nvCOMP, NVIDIA's decompressors for devices, loaded at run time: what is needed of
 * the binary interface of libnvcomp.so, versions 5 and 6, written from the reference
 * of its "low-level batched" functions.  No header of it is included anywhere.
 *
 * Pointers that are called addresses are of the device, as are the arrays of them.  A
 * stream is the driver's: the library uses the context that is current.
 */
#ifndef CM_GPU_NVCOMP_H
#define CM_GPU_NVCOMP_H

#include "gpu/cuda_abi.h"
#include "gpu/parcel.h"

/* Major versions whose interface is known; before 5 the functions took no options. */
enum {
    NVCOMP_OLDEST = 5,
    NVCOMP_NEWEST = 6
};

enum {
    NVCOMP_OK = 0,
    NVCOMP_BACKEND_CUDA = 2 /* not the decompression engine, which wants memory of its own kind */
};

/* Of each codec the same: the backend, and members whose 0 is the default. */
typedef struct nvcomp_options {
    int backend;
    char reserved[60];
} nvcomp_options;

typedef struct nvcomp_properties {
    uint32_t version; /* 1000 * major + 100 * minor + patch */
    uint32_t cuda_version;
} nvcomp_properties;

typedef struct nvcomp_alignments {
    size_t input, output, temp;
} nvcomp_alignments;

typedef int nvcomp_get_properties(nvcomp_properties *out);
typedef int nvcomp_get_alignments(nvcomp_options options, nvcomp_alignments *out);
typedef int nvcomp_get_temp_size_5(size_t nstreams, size_t most_nbytes, nvcomp_options options,
                                   size_t *temp_nbytes, size_t total_nbytes);
typedef int nvcomp_get_temp_size_6(size_t nstreams, size_t most_nbytes, nvcomp_options options,
                                   size_t *temp_nbytes, size_t total_nbytes,
                                   cuda_stream_handle stream);
typedef int nvcomp_decompress(cuda_address src, cuda_address src_nbytes, cuda_address room_nbytes,
                              cuda_address made_nbytes, size_t nstreams, cuda_address temp,
                              size_t temp_nbytes, cuda_address dst, nvcomp_options options,
                              cuda_address statuses, cuda_stream_handle stream);

typedef struct nvcomp_codec {
    nvcomp_get_alignments *get_alignments;
    nvcomp_get_temp_size_5 *get_temp_size_5; /* one of the two */
    nvcomp_get_temp_size_6 *get_temp_size_6;
    nvcomp_decompress *decompress;
} nvcomp_codec;

typedef struct nvcomp {
    void *library;
    uint32_t version;
    char text[24]; /* "nvCOMP 5.0.0" */
    nvcomp_codec codec[CM_PARCEL_NCODECS];
} nvcomp;

extern const char *const cm_nvcomp_names[CM_PARCEL_NCODECS]; /* "zstd", ... */

/*
 * Loads PATH, or where it is NULL the library of the system, and finds the functions.
 * CM_ENOTFOUND without it, CM_EUNSUPPORTED for a version that is not known.
 */
int cm_nvcomp_load(const char *path, nvcomp *out, cm_error *err);
void cm_nvcomp_unload(nvcomp *n); /* zeroed memory is fine */

/*
 * What decoding NSTREAMS streams of CODEC at once takes besides, none more than MOST_NBYTES,
 * all TOTAL_NBYTES.
 */
int cm_nvcomp_temp_size(const nvcomp *n, cm_parcel_codec codec, size_t nstreams, size_t most_nbytes,
                        size_t total_nbytes, cuda_stream_handle stream, size_t *out, cm_error *err);
int cm_nvcomp_fail(const nvcomp *n, int status, const char *doing, cm_error *err);

#endif
