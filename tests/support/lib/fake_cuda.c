/*
 * A fake of NVIDIA's driver for tests, which are given its path: it drives no
 * device and is never found by the name of the real one.  It works on memory
 * of the host, at once and in order, and is stricter than the real one: work
 * outside a context, on memory that was not allocated or on handles that are not
 * its own fails.  Its kernels are written in C from the definitions; of the PTX
 * text it reads the names alone.  Threads call it one after another.
 *
 * FAKE_CUDA says which driver it is: 12 has cuGetProcAddress_v2, 11 has
 * cuGetProcAddress, 10 (of CUDA 11.0) has neither, and 9 (of CUDA 10.2) is too old.
 */
#include "fake_cuda.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "gpu/cuda_abi.h"

#ifndef FAKE_CUDA
#define FAKE_CUDA 12
#endif

/* Each function has the very symbol and parameters that the library declares. */
#define DECLARE(name, symbol, parameters) cuda_result fake_##name parameters __asm__(symbol);
CUDA_FUNCTIONS(DECLARE)
#undef DECLARE

#define FRESH                                                                                      \
    {                                                                                              \
        .version = FAKE_CUDA == 12   ? 12040                                                       \
                   : FAKE_CUDA == 11 ? 11040                                                       \
                   : FAKE_CUDA == 10 ? 11000                                                       \
                                     : 10020,                                                      \
        .ndevices = 2, .capability = 90, .nbytes = (size_t)1 << 30, .fail = ""                     \
    }

extern fake_cuda_state fake_cuda;
extern fake_cuda_reset_fn fake_cuda_reset;
fake_cuda_state fake_cuda = FRESH;

enum {
    INVALID_VALUE = 1,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    ALREADY_REGISTERED = 712,
    NOT_REGISTERED = 713,
    MAX_BLOCKS = 4096,
    PAGE = 4096
};

struct cuda_context_s {
    int nretained;
};
struct cuda_module_s {
    bool exists;
    const char *text;
};
struct cuda_function_s {
    const char *name;
};
struct cuda_stream_s {
    bool exists;
};
struct cuda_event_s {
    bool exists;
    unsigned flags;
    uint64_t time_ns; /* 0: not recorded */
    cuda_stream_handle stream;
};

typedef struct block {
    uint8_t *memory;
    size_t nbytes;
} block;

#define DEFAULT_STREAM ((cuda_stream_handle)1) /* CU_STREAM_LEGACY */

static struct cuda_context_s contexts[8];
static __thread cuda_context current;
static bool is_initialised;
static block allocated[MAX_BLOCKS], registered[MAX_BLOCKS];
static struct cuda_module_s modules[16];
static struct cuda_stream_s streams[256];
static struct cuda_event_s events[1024];

/* An unused one of an array, or NULL. */
#define UNUSED_OF(array)                                                                           \
    ({                                                                                             \
        size_t i_ = 0;                                                                             \
        while (i_ < sizeof(array) / sizeof *(array) && (array)[i_].exists)                         \
            i_++;                                                                                  \
        i_ < sizeof(array) / sizeof *(array) ? &(array)[i_] : NULL;                                \
    })

void fake_cuda_reset(void)
{
    static const fake_cuda_state fresh = FRESH;
    for (size_t i = 0; i < MAX_BLOCKS; i++)
        free(allocated[i].memory);
    memset(allocated, 0, sizeof allocated);
    memset(registered, 0, sizeof registered);
    memset(modules, 0, sizeof modules);
    memset(streams, 0, sizeof streams);
    memset(events, 0, sizeof events);
    memset(contexts, 0, sizeof contexts);
    current = NULL;
    is_initialised = false;
    fake_cuda = fresh;
}

/* Held from a function's first line to its return. */
static pthread_mutex_t one_at_a_time = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static pthread_mutex_t *enter(void)
{
    pthread_mutex_lock(&one_at_a_time);
    return &one_at_a_time;
}

static void leave(pthread_mutex_t *const *lock)
{
    pthread_mutex_unlock(*lock);
}

/* True when FUNCTION is to fail now. */
static bool fails(const char *function)
{
    fake_cuda.ncalls++;
    return strcmp(fake_cuda.fail, function) == 0 && fake_cuda.fail_after-- <= 0;
}

#define ENTER(name)                                                                                \
    pthread_mutex_t *const entered __attribute__((cleanup(leave), unused)) = enter();              \
    if (fails(#name))                                                                              \
    return fake_cuda.result
#define ENTER_CONTEXT(name)                                                                        \
    ENTER(name);                                                                                   \
    if (current == NULL || current->nretained == 0)                                                \
    return INVALID_CONTEXT

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- finding functions ---------------------------------------------------------------------- */

/* With the parameters of version VERSION: of a later one they could be others. */
static __attribute__((unused)) cuda_result find(const char *symbol, void **function, int version,
                                                uint64_t flags)
{
    static const struct {
        const char *name;
        void *function;
    } rows[] = {
#define ROW(name, symbol_, parameters) {#name, (void *)fake_##name},
        CUDA_FUNCTIONS(ROW)
#undef ROW
    };
    if (version != CUDA_NEEDED || flags != CUDA_PROC_ADDRESS_LEGACY_STREAM)
        return INVALID_VALUE;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, symbol) == 0) {
            *function = rows[i].function;
            return CUDA_OK;
        }
    return NOT_FOUND;
}

#if FAKE_CUDA == 12
cuda_get_proc_address_v2 cuGetProcAddress_v2;
cuda_result cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                                int *status)
{
    ENTER(cuGetProcAddress_v2);
    if (status)
        *status = 0;
    return find(symbol, function, version, flags);
}
#elif FAKE_CUDA == 11
cuda_get_proc_address cuGetProcAddress;
cuda_result cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    ENTER(cuGetProcAddress);
    return find(symbol, function, version, flags);
}
#else
/* Functions without a version in their names: a driver has an older interface there. */
cuda_result cuMemAlloc(unsigned *address, unsigned nbytes);
cuda_result cuMemAlloc(unsigned *address, unsigned nbytes)
{
    (void)address;
    (void)nbytes;
    return INVALID_VALUE;
}
#endif

/* ---- the driver and its devices ------------------------------------------------------------- */

cuda_result fake_cuDriverGetVersion(int *version)
{
    ENTER(cuDriverGetVersion);
    *version = fake_cuda.version;
    return CUDA_OK;
}

cuda_result fake_cuInit(unsigned flags)
{
    ENTER(cuInit);
    is_initialised = flags == 0;
    return is_initialised ? CUDA_OK : INVALID_VALUE;
}

cuda_result fake_cuGetErrorName(cuda_result error, const char **text)
{
    ENTER(cuGetErrorName);
    *text = error == CUDA_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_THE_FAKE";
    return CUDA_OK;
}

cuda_result fake_cuGetErrorString(cuda_result error, const char **text)
{
    ENTER(cuGetErrorString);
    *text = error == CUDA_OUT_OF_MEMORY ? "out of memory" : "an error of the fake driver";
    return CUDA_OK;
}

cuda_result fake_cuDeviceGetCount(int *count)
{
    ENTER(cuDeviceGetCount);
    *count = fake_cuda.ndevices;
    return is_initialised ? CUDA_OK : INVALID_VALUE;
}

cuda_result fake_cuDeviceGet(cuda_device_id *device, int number)
{
    ENTER(cuDeviceGet);
    *device = number;
    return number < fake_cuda.ndevices ? CUDA_OK : INVALID_DEVICE;
}

cuda_result fake_cuDeviceGetName(char *name, int nbytes, cuda_device_id device)
{
    ENTER(cuDeviceGetName);
    snprintf(name, (size_t)nbytes, "fake device %d", device);
    return CUDA_OK;
}

cuda_result fake_cuDeviceGetAttribute(int *value, int attribute, cuda_device_id device)
{
    (void)device;
    ENTER(cuDeviceGetAttribute);
    switch (attribute) {
    case CUDA_ATTRIBUTE_CAPABILITY_MAJOR:
        *value = fake_cuda.capability / 10;
        return CUDA_OK;
    case CUDA_ATTRIBUTE_CAPABILITY_MINOR:
        *value = fake_cuda.capability % 10;
        return CUDA_OK;
    case CUDA_ATTRIBUTE_MULTIPROCESSORS:
        *value = 4;
        return CUDA_OK;
    case CUDA_ATTRIBUTE_COPY_ENGINES:
        *value = 2;
        return CUDA_OK;
    default:
        return INVALID_VALUE;
    }
}

cuda_result fake_cuDeviceTotalMem(size_t *nbytes, cuda_device_id device)
{
    (void)device;
    ENTER(cuDeviceTotalMem);
    *nbytes = fake_cuda.nbytes;
    return CUDA_OK;
}

cuda_result fake_cuDeviceGetPCIBusId(char *text, int nbytes, cuda_device_id device)
{
    ENTER(cuDeviceGetPCIBusId);
    snprintf(text, (size_t)nbytes, "0000:3B:%02X.0", device);
    return CUDA_OK;
}

cuda_result fake_cuDevicePrimaryCtxRetain(cuda_context *context, cuda_device_id device)
{
    ENTER(cuDevicePrimaryCtxRetain);
    *context = &contexts[device];
    contexts[device].nretained++;
    fake_cuda.ncontexts++;
    return CUDA_OK;
}

cuda_result fake_cuDevicePrimaryCtxRelease(cuda_device_id device)
{
    ENTER(cuDevicePrimaryCtxRelease);
    if (contexts[device].nretained == 0)
        return INVALID_CONTEXT;
    contexts[device].nretained--;
    fake_cuda.ncontexts--;
    return CUDA_OK;
}

cuda_result fake_cuCtxGetCurrent(cuda_context *context)
{
    ENTER(cuCtxGetCurrent);
    *context = current;
    return is_initialised ? CUDA_OK : INVALID_VALUE;
}

cuda_result fake_cuCtxSynchronize(void)
{
    ENTER_CONTEXT(cuCtxSynchronize);
    fake_cuda.nsyncs++;
    return CUDA_OK;
}

cuda_result fake_cuCtxSetCurrent(cuda_context context)
{
    ENTER(cuCtxSetCurrent);
    current = context;
    return CUDA_OK;
}

/* ---- memory --------------------------------------------------------------------------------- */

static block *find_block(block *blocks, const void *memory)
{
    for (size_t i = 0; i < MAX_BLOCKS; i++)
        if (blocks[i].memory == memory)
            return &blocks[i];
    return NULL;
}

static bool lies_in(const block *blocks, const void *memory, size_t nbytes)
{
    const uint8_t *p = memory;
    for (size_t i = 0; i < MAX_BLOCKS; i++)
        if (blocks[i].memory && p >= blocks[i].memory &&
            p + nbytes <= blocks[i].memory + blocks[i].nbytes)
            return true;
    return false;
}

static size_t used_nbytes(void)
{
    size_t sum = 0;
    for (size_t i = 0; i < MAX_BLOCKS; i++)
        sum += allocated[i].nbytes;
    return sum;
}

cuda_result fake_cuMemGetInfo(size_t *left, size_t *total)
{
    ENTER_CONTEXT(cuMemGetInfo);
    *total = fake_cuda.nbytes;
    *left = fake_cuda.nbytes - used_nbytes();
    return CUDA_OK;
}

cuda_result fake_cuMemAlloc(cuda_address *address, size_t nbytes)
{
    ENTER_CONTEXT(cuMemAlloc);
    block *b = find_block(allocated, NULL);
    if (b == NULL || nbytes > fake_cuda.nbytes - used_nbytes())
        return CUDA_OUT_OF_MEMORY;
    b->memory = aligned_alloc(256, (nbytes + 255) / 256 * 256);
    if (b->memory == NULL)
        return CUDA_OUT_OF_MEMORY;
    b->nbytes = nbytes;
    *address = (uintptr_t)b->memory;
    fake_cuda.nallocated++;
    return CUDA_OK;
}

cuda_result fake_cuMemFree(cuda_address address)
{
    block *b = address ? find_block(allocated, (void *)address) : NULL;
    ENTER_CONTEXT(cuMemFree);
    if (b == NULL)
        return INVALID_VALUE;
    free(b->memory);
    *b = (block){0};
    fake_cuda.nallocated--;
    return CUDA_OK;
}

cuda_result fake_cuMemHostRegister(void *memory, size_t nbytes, unsigned flags)
{
    ENTER_CONTEXT(cuMemHostRegister);
    block *b = find_block(registered, NULL);
    if (flags != CUDA_HOST_REGISTER_PORTABLE || b == NULL || memory == NULL)
        return INVALID_VALUE;
    if (lies_in(registered, memory, 1))
        return ALREADY_REGISTERED;
    *b = (block){.memory = memory, .nbytes = nbytes};
    fake_cuda.nregistered++;
    return CUDA_OK;
}

/* Memory that is gone before it is unlocked: the device could still be copying it. */
static bool is_mapped(const block *b)
{
    const uintptr_t at = (uintptr_t)b->memory / PAGE * PAGE;
    const size_t nbytes = (uintptr_t)b->memory + b->nbytes - at;
    return msync((void *)at, nbytes, MS_ASYNC) == 0;
}

cuda_result fake_cuMemHostUnregister(void *memory)
{
    ENTER_CONTEXT(cuMemHostUnregister);
    block *b = memory ? find_block(registered, memory) : NULL;
    if (b == NULL || !is_mapped(b))
        return NOT_REGISTERED;
    *b = (block){0};
    fake_cuda.nregistered--;
    return CUDA_OK;
}

cuda_result fake_cuMemcpyHtoDAsync(cuda_address dst, const void *src, size_t nbytes,
                                   cuda_stream_handle stream)
{
    ENTER_CONTEXT(cuMemcpyHtoDAsync);
    if (stream == NULL || !stream->exists)
        return INVALID_HANDLE;
    if (!lies_in(allocated, (void *)dst, nbytes))
        return ILLEGAL_ADDRESS;
    memcpy((void *)dst, src, nbytes);
    return CUDA_OK;
}

cuda_result fake_cuMemcpyDtoHAsync(void *dst, cuda_address src, size_t nbytes,
                                   cuda_stream_handle stream)
{
    ENTER_CONTEXT(cuMemcpyDtoHAsync);
    if (stream == NULL || !stream->exists)
        return INVALID_HANDLE;
    if (!lies_in(allocated, (void *)src, nbytes))
        return ILLEGAL_ADDRESS;
    memcpy(dst, (void *)src, nbytes);
    return CUDA_OK;
}

cuda_result fake_cuMemsetD8Async(cuda_address dst, unsigned char value, size_t nbytes,
                                 cuda_stream_handle stream)
{
    ENTER_CONTEXT(cuMemsetD8Async);
    if (stream == NULL || !stream->exists)
        return INVALID_HANDLE;
    if (!lies_in(allocated, (void *)dst, nbytes))
        return ILLEGAL_ADDRESS;
    memset((void *)dst, value, nbytes);
    return CUDA_OK;
}

/* ---- streams and events --------------------------------------------------------------------- */

cuda_result fake_cuStreamCreate(cuda_stream_handle *stream, unsigned flags)
{
    ENTER_CONTEXT(cuStreamCreate);
    if (flags != CUDA_STREAM_NON_BLOCKING)
        return INVALID_VALUE;
    *stream = UNUSED_OF(streams);
    if (*stream == NULL)
        return CUDA_OUT_OF_MEMORY;
    (*stream)->exists = true;
    fake_cuda.nstreams++;
    return CUDA_OK;
}

cuda_result fake_cuStreamDestroy(cuda_stream_handle stream)
{
    ENTER_CONTEXT(cuStreamDestroy);
    if (!stream->exists)
        return INVALID_HANDLE;
    stream->exists = false;
    fake_cuda.nstreams--;
    return CUDA_OK;
}

cuda_result fake_cuStreamSynchronize(cuda_stream_handle stream)
{
    ENTER_CONTEXT(cuStreamSynchronize);
    return stream && stream->exists ? CUDA_OK : INVALID_HANDLE;
}

cuda_result fake_cuStreamWaitEvent(cuda_stream_handle stream, cuda_event_handle event,
                                   unsigned flags)
{
    ENTER_CONTEXT(cuStreamWaitEvent);
    if (stream == NULL || event == NULL || !stream->exists || !event->exists || flags != 0)
        return INVALID_HANDLE;
    fake_cuda.waited_for = (uintptr_t)event->stream;
    fake_cuda.nwaits++;
    return CUDA_OK;
}

cuda_result fake_cuEventCreate(cuda_event_handle *event, unsigned flags)
{
    ENTER_CONTEXT(cuEventCreate);
    *event = UNUSED_OF(events);
    if (*event == NULL)
        return CUDA_OUT_OF_MEMORY;
    **event = (struct cuda_event_s){.exists = true, .flags = flags};
    fake_cuda.nevents++;
    return CUDA_OK;
}

cuda_result fake_cuEventDestroy(cuda_event_handle event)
{
    ENTER_CONTEXT(cuEventDestroy);
    if (!event->exists)
        return INVALID_HANDLE;
    event->exists = false;
    fake_cuda.nevents--;
    return CUDA_OK;
}

cuda_result fake_cuEventRecord(cuda_event_handle event, cuda_stream_handle stream)
{
    ENTER_CONTEXT(cuEventRecord);
    if (stream == NULL || (stream != DEFAULT_STREAM && !stream->exists) || !event->exists)
        return INVALID_HANDLE;
    event->time_ns = now_ns();
    event->stream = stream;
    return CUDA_OK;
}

cuda_result fake_cuEventSynchronize(cuda_event_handle event)
{
    ENTER_CONTEXT(cuEventSynchronize);
    return event ? CUDA_OK : INVALID_HANDLE;
}

cuda_result fake_cuEventElapsedTime(float *milliseconds, cuda_event_handle start,
                                    cuda_event_handle end)
{
    ENTER_CONTEXT(cuEventElapsedTime);
    if ((start->flags | end->flags) & CUDA_EVENT_DISABLE_TIMING || start->time_ns == 0 ||
        end->time_ns == 0)
        return INVALID_HANDLE;
    *milliseconds = (float)((double)(int64_t)(end->time_ns - start->time_ns) * 1e-6);
    return CUDA_OK;
}

/* ---- kernels -------------------------------------------------------------------------------- */

cuda_result fake_cuModuleLoadDataEx(cuda_module *module, const void *image, unsigned noptions,
                                    int *options, void **values)
{
    if (strcmp(fake_cuda.fail, "cuModuleLoadDataEx") == 0 && noptions > 0)
        strcpy(values[0], "ptxas line 7;  error: unknown\nptxas fatal\t: aborted\n");
    ENTER_CONTEXT(cuModuleLoadDataEx);
    if (noptions != 2 || options[0] != CUDA_JIT_ERROR_LOG ||
        options[1] != CUDA_JIT_ERROR_LOG_NBYTES || (uintptr_t)values[1] < 64)
        return INVALID_VALUE;
    if (strstr(image, "\n.version 6.0\n.target sm_70\n") == NULL)
        return INVALID_VALUE;
    *module = UNUSED_OF(modules);
    if (*module == NULL)
        return CUDA_OUT_OF_MEMORY;
    **module = (struct cuda_module_s){.exists = true, .text = image};
    fake_cuda.nmodules++;
    return CUDA_OK;
}

cuda_result fake_cuModuleUnload(cuda_module module)
{
    ENTER_CONTEXT(cuModuleUnload);
    if (!module->exists)
        return INVALID_HANDLE;
    module->exists = false;
    fake_cuda.nmodules--;
    return CUDA_OK;
}

cuda_result fake_cuModuleGetFunction(cuda_function *function, cuda_module module, const char *name)
{
    static struct cuda_function_s known[] = {{"cm_checksum"}, {"cm_busy"}};
    char entry[64];
    ENTER_CONTEXT(cuModuleGetFunction);
    snprintf(entry, sizeof entry, ".visible .entry %s(", name);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0 && strstr(module->text, entry)) {
            *function = &known[i];
            return CUDA_OK;
        }
    return NOT_FOUND;
}

/* Byte by byte, as checksum.h defines it. */
static cuda_result checksum(const uint8_t *data, uint64_t nbytes, uint64_t *out)
{
    if ((uintptr_t)data % 16 || !lies_in(allocated, data, nbytes) || !lies_in(allocated, out, 16))
        return ILLEGAL_ADDRESS;
    for (uint64_t i = 0; i < nbytes; i++) {
        const uint64_t part = (uint64_t)data[i] << 8 * (i % 4);
        out[0] += part;
        out[1] += part * (i / 4 + 1);
    }
    return CUDA_OK;
}

cuda_result fake_cuLaunchKernel(cuda_function function, unsigned grid_x, unsigned grid_y,
                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned shared_nbytes, cuda_stream_handle stream,
                                void **parameters, void **extra)
{
    ENTER_CONTEXT(cuLaunchKernel);
    if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x == 0 || block_x % 32 ||
        block_x > 1024 || block_y != 1 || block_z != 1 || shared_nbytes || extra)
        return INVALID_VALUE;
    if (stream == NULL || !stream->exists)
        return INVALID_HANDLE;
    uint64_t value[3];
    value[0] = *(uint64_t *)parameters[0];
    value[1] = *(uint64_t *)parameters[1];
    if (strcmp(function->name, "cm_busy") == 0) {
        fake_cuda.busy_ns += value[0];
        return value[1] >= value[0] ? CUDA_OK : INVALID_VALUE;
    }
    value[2] = *(uint64_t *)parameters[2];
    return checksum((const uint8_t *)value[0], value[1], (uint64_t *)value[2]);
}
