/*
 * The part of CUDA's driver API that is used: the binary interface of libcuda.so.1 as
 * of CUDA 11.0, written from NVIDIA's "CUDA Driver API" reference manual.  No
 * header of a toolkit is included anywhere.
 *
 * Handles are opaque pointers, a device is an int, an address of the device is
 * a 64-bit number.  A name followed by its version is the symbol with today's
 * sizes: the one without has 32-bit addresses or another meaning.  All numbers
 * are those of the manual's enumerations.
 */
#ifndef CM_GPU_CUDA_ABI_H
#define CM_GPU_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* cuDriverGetVersion: 1000 * major + 10 * minor.  Driver 450.36 is the first that speaks 11.0. */
#define CUDA_NEEDED      11000
#define CUDA_NEEDED_TEXT "11.0 (NVIDIA driver 450.36)"
/* Compute capability that kernels.ptx is written for. */
#define CUDA_NEEDED_CAPABILITY 7

typedef int cuda_result;
typedef int cuda_device_id;
typedef uint64_t cuda_address;
typedef struct cuda_context_s *cuda_context;
typedef struct cuda_module_s *cuda_module;
typedef struct cuda_function_s *cuda_function;
typedef struct cuda_stream_s *cuda_stream_handle;
typedef struct cuda_event_s *cuda_event_handle;

_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8 && sizeof(int) == 4,
               "the driver's interface is written down for 64-bit systems");

/* Results that are told apart; for the others the driver has a name and a sentence. */
enum {
    CUDA_OK = 0,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_STUB_LIBRARY = 34,
    CUDA_NO_DEVICE = 100,
    CUDA_NO_BINARY_FOR_GPU = 209,
    CUDA_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_COMPAT_NOT_SUPPORTED = 804
};

/* CUdevice_attribute */
enum {
    CUDA_ATTRIBUTE_MULTIPROCESSORS = 16,
    CUDA_ATTRIBUTE_COPY_ENGINES = 40,
    CUDA_ATTRIBUTE_CAPABILITY_MAJOR = 75,
    CUDA_ATTRIBUTE_CAPABILITY_MINOR = 76
};

/* CUjit_option: a buffer for the compiler's messages, and its size as a number in a pointer. */
enum {
    CUDA_JIT_ERROR_LOG = 5,
    CUDA_JIT_ERROR_LOG_NBYTES = 6
};

enum {
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_EVENT_BLOCKING_SYNC = 1, /* cuEventSynchronize sleeps instead of spinning */
    CUDA_EVENT_DISABLE_TIMING = 2,
    CUDA_HOST_REGISTER_PORTABLE = 1,     /* page-locked for all contexts */
    CUDA_PROC_ADDRESS_LEGACY_STREAM = 1, /* no default stream of a thread's own */
    CUDA_PCI_TEXT = 16
};

/*
 * F(name, exact symbol, parameters): every function used.  cuGetProcAddress is
 * asked for `name` as of CUDA_NEEDED, dlsym for the exact symbol.
 */
#define CUDA_FUNCTIONS(F)                                                                          \
    F(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                    \
    F(cuInit, "cuInit", (unsigned flags))                                                          \
    F(cuGetErrorName, "cuGetErrorName", (cuda_result error, const char **text))                    \
    F(cuGetErrorString, "cuGetErrorString", (cuda_result error, const char **text))                \
    F(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                          \
    F(cuDeviceGet, "cuDeviceGet", (cuda_device_id * device, int number))                           \
    F(cuDeviceGetName, "cuDeviceGetName", (char *name, int nbytes, cuda_device_id device))         \
    F(cuDeviceGetAttribute, "cuDeviceGetAttribute",                                                \
      (int *value, int attribute, cuda_device_id device))                                          \
    F(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * nbytes, cuda_device_id device))           \
    F(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *text, int nbytes, cuda_device_id device)) \
    F(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",                                        \
      (cuda_context * context, cuda_device_id device))                                             \
    F(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (cuda_device_id device))          \
    F(cuCtxSetCurrent, "cuCtxSetCurrent", (cuda_context context))                                  \
    F(cuCtxGetCurrent, "cuCtxGetCurrent", (cuda_context * context))                                \
    F(cuCtxSynchronize, "cuCtxSynchronize", (void))                                                \
    F(cuMemGetInfo, "cuMemGetInfo_v2", (size_t * free, size_t * total))                            \
    F(cuMemAlloc, "cuMemAlloc_v2", (cuda_address * address, size_t nbytes))                        \
    F(cuMemFree, "cuMemFree_v2", (cuda_address address))                                           \
    F(cuMemHostRegister, "cuMemHostRegister_v2", (void *memory, size_t nbytes, unsigned flags))    \
    F(cuMemHostUnregister, "cuMemHostUnregister", (void *memory))                                  \
    F(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                   \
      (cuda_address dst, const void *src, size_t nbytes, cuda_stream_handle stream))               \
    F(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                                   \
      (void *dst, cuda_address src, size_t nbytes, cuda_stream_handle stream))                     \
    F(cuMemsetD8Async, "cuMemsetD8Async",                                                          \
      (cuda_address dst, unsigned char value, size_t nbytes, cuda_stream_handle stream))           \
    F(cuStreamCreate, "cuStreamCreate", (cuda_stream_handle * stream, unsigned flags))             \
    F(cuStreamDestroy, "cuStreamDestroy_v2", (cuda_stream_handle stream))                          \
    F(cuStreamSynchronize, "cuStreamSynchronize", (cuda_stream_handle stream))                     \
    F(cuStreamWaitEvent, "cuStreamWaitEvent",                                                      \
      (cuda_stream_handle stream, cuda_event_handle event, unsigned flags))                        \
    F(cuEventCreate, "cuEventCreate", (cuda_event_handle * event, unsigned flags))                 \
    F(cuEventDestroy, "cuEventDestroy_v2", (cuda_event_handle event))                              \
    F(cuEventRecord, "cuEventRecord", (cuda_event_handle event, cuda_stream_handle stream))        \
    F(cuEventSynchronize, "cuEventSynchronize", (cuda_event_handle event))                         \
    F(cuEventElapsedTime, "cuEventElapsedTime",                                                    \
      (float *milliseconds, cuda_event_handle start, cuda_event_handle end))                       \
    F(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                                    \
      (cuda_module * module, const void *image, unsigned noptions, int *options, void **values))   \
    F(cuModuleUnload, "cuModuleUnload", (cuda_module module))                                      \
    F(cuModuleGetFunction, "cuModuleGetFunction",                                                  \
      (cuda_function * function, cuda_module module, const char *name))                            \
    F(cuLaunchKernel, "cuLaunchKernel",                                                            \
      (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                  \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_nbytes,               \
       cuda_stream_handle stream, void **parameters, void **extra))

typedef struct cuda_api {
#define CUDA_MEMBER(name, symbol, parameters) cuda_result(*name) parameters;
    CUDA_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
} cuda_api;

/* Since CUDA 11.3; since 12.0, as cuGetProcAddress_v2, with a last parameter that may be NULL. */
typedef cuda_result cuda_get_proc_address(const char *symbol, void **function, int cuda_version,
                                          uint64_t flags);
typedef cuda_result cuda_get_proc_address_v2(const char *symbol, void **function, int cuda_version,
                                             uint64_t flags, int *symbol_status);

#endif
