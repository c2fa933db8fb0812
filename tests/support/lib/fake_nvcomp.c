/*
 * A fake of nvCOMP for tests, which are given its path: it decodes on the host, at
 * once, with the libraries of this machine, memory of the fake driver (fake_cuda.c)
 * being memory of the host.  FAKE_NVCOMP says which version's functions it has.
 */
#include "fake_nvcomp.h"

#include <libdeflate.h>
#include <lz4.h>
#include <pthread.h>
#include <zstd.h>

#include "gpu/nvcomp.h"

#ifndef FAKE_NVCOMP
#define FAKE_NVCOMP 5
#endif

enum {
    INVALID_VALUE = 10,
    CANNOT_DECOMPRESS = 12
};

extern fake_nvcomp_state fake_nvcomp;
extern fake_nvcomp_reset_fn fake_nvcomp_reset;
fake_nvcomp_state fake_nvcomp;

void fake_nvcomp_reset(void)
{
    fake_nvcomp = (fake_nvcomp_state){0};
}

nvcomp_get_properties nvcompGetProperties;
int nvcompGetProperties(nvcomp_properties *out)
{
    out->version = fake_nvcomp.version ? fake_nvcomp.version : FAKE_NVCOMP * 1000 + 123;
    out->cuda_version = 13000;
    return NVCOMP_OK;
}

typedef size_t decode_fn(const void *src, size_t src_nbytes, void *dst, size_t room);

/* 0: not to be decoded. */
static size_t decode_zstd(const void *src, size_t src_nbytes, void *dst, size_t room)
{
    const size_t n = ZSTD_decompress(dst, room, src, src_nbytes);
    return ZSTD_isError(n) ? 0 : n;
}

static size_t decode_lz4(const void *src, size_t src_nbytes, void *dst, size_t room)
{
    const int n = LZ4_decompress_safe(src, dst, (int)src_nbytes, (int)room);
    return n > 0 ? (size_t)n : 0;
}

static size_t decode_deflate(const void *src, size_t src_nbytes, void *dst, size_t room)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    size_t n = 0;
    if (libdeflate_deflate_decompress(d, src, src_nbytes, dst, room, &n) != LIBDEFLATE_SUCCESS)
        n = 0;
    libdeflate_free_decompressor(d);
    return n;
}

static int check_options(nvcomp_options options)
{
    for (size_t i = 0; i < sizeof options.reserved; i++)
        if (options.reserved[i] != 0)
            return INVALID_VALUE;
    return options.backend == NVCOMP_BACKEND_CUDA ? fake_nvcomp.fail : INVALID_VALUE;
}

/* Threads call it one after another. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t *enter(void)
{
    pthread_mutex_lock(&one_at_a_time);
    return &one_at_a_time;
}

static void leave(pthread_mutex_t *const *lock)
{
    pthread_mutex_unlock(*lock);
}

static int decompress(decode_fn *decode, cuda_address src, cuda_address src_nbytes,
                      cuda_address room, cuda_address made, size_t n, cuda_address temp,
                      size_t temp_nbytes, cuda_address dst, nvcomp_options options,
                      cuda_address statuses, cuda_stream_handle stream)
{
    const int status = check_options(options);
    pthread_mutex_t *const entered __attribute__((cleanup(leave), unused)) = enter();
    fake_nvcomp.ncalls++;
    fake_nvcomp.most_streams = n > fake_nvcomp.most_streams ? n : fake_nvcomp.most_streams;
    if (status != NVCOMP_OK)
        return status;
    if (stream == NULL || n == 0 || temp_nbytes < n * fake_nvcomp.temp_nbytes ||
        (fake_nvcomp.temp_nbytes > 0 && temp == 0))
        return INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        const uint64_t from = ((const uint64_t *)src)[i];
        const size_t most = ((const uint64_t *)room)[i];
        if (from % CM_PARCEL_ALIGN)
            return INVALID_VALUE;
        size_t got = decode((const void *)from, ((const uint64_t *)src_nbytes)[i],
                            (void *)((const uint64_t *)dst)[i], most);
        int32_t is = got > 0 ? NVCOMP_OK : CANNOT_DECOMPRESS;
        fake_nvcomp.nrefused += got != most;
        if (++fake_nvcomp.nstreams == fake_nvcomp.bad_stream) {
            is = fake_nvcomp.bad_status;
            got -= is == NVCOMP_OK;
        }
        ((int32_t *)statuses)[i] = is;
        ((uint64_t *)made)[i] = got;
    }
    return NVCOMP_OK;
}

#if FAKE_NVCOMP == 5
#define TEMP_SIZE(name)                                                                            \
    nvcomp_get_temp_size_5 nvcompBatched##name##DecompressGetTempSizeAsync;                        \
    int nvcompBatched##name##DecompressGetTempSizeAsync(size_t n, size_t most, nvcomp_options o,   \
                                                        size_t *temp, size_t total)                \
    {                                                                                              \
        *temp = n * fake_nvcomp.temp_nbytes;                                                       \
        return total > n * most ? INVALID_VALUE : check_options(o);                                \
    }
#else
#define TEMP_SIZE(name)                                                                            \
    nvcomp_get_temp_size_6 nvcompBatched##name##DecompressGetTempSize;                             \
    int nvcompBatched##name##DecompressGetTempSize(size_t n, size_t most, nvcomp_options o,        \
                                                   size_t *temp, size_t total,                     \
                                                   cuda_stream_handle stream)                      \
    {                                                                                              \
        (void)stream;                                                                              \
        *temp = n * fake_nvcomp.temp_nbytes;                                                       \
        return total > n * most ? INVALID_VALUE : check_options(o);                                \
    }
#endif

#define CODEC(name, decode, least)                                                                 \
    TEMP_SIZE(name)                                                                                \
    nvcomp_get_alignments nvcompBatched##name##DecompressGetRequiredAlignments;                    \
    int nvcompBatched##name##DecompressGetRequiredAlignments(nvcomp_options o,                     \
                                                             nvcomp_alignments *out)               \
    {                                                                                              \
        *out = (nvcomp_alignments){fake_nvcomp.input ? fake_nvcomp.input : (size_t)(least), 1, 8}; \
        return check_options(o);                                                                   \
    }                                                                                              \
    nvcomp_decompress nvcompBatched##name##DecompressAsync;                                        \
    int nvcompBatched##name##DecompressAsync(                                                      \
        cuda_address src, cuda_address src_nbytes, cuda_address room, cuda_address made, size_t n, \
        cuda_address temp, size_t temp_nbytes, cuda_address dst, nvcomp_options options,           \
        cuda_address statuses, cuda_stream_handle stream)                                          \
    {                                                                                              \
        return decompress(decode, src, src_nbytes, room, made, n, temp, temp_nbytes, dst, options, \
                          statuses, stream);                                                       \
    }

CODEC(Zstd, decode_zstd, 1)
CODEC(LZ4, decode_lz4, 1)
CODEC(Deflate, decode_deflate, 4)
