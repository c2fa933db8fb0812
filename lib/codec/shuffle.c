/*
 * The codec `shuffle`, as HDF5's filter 2 does it (H5Zshuffle.c): elements of
 * one byte are left alone, and what follows the last whole element is copied.
 * numcodecs' shuffle is the same where the size is a multiple.
 *
 * The SIMD variants turn a square of bytes at a time: they read a vector from
 * each of the planes, interleave bytes, then pairs, then fours, and have whole
 * elements; and back.  The portable loops do what is left over.
 */
#include "codec/shuffle.h"

#include <string.h>

#include "codec/impl.h"

/*
 * Elements of a tile of the portable loops, so that the planes' cache lines stay while it is
 * turned.
 */
enum {
    TILE_NELEM = 64
};

static void shuffle_from(size_t first, size_t es, uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = first; i < n; i += TILE_NELEM) {
        size_t end = n - i < TILE_NELEM ? n : i + TILE_NELEM;
        for (size_t j = 0; j < es; j++)
            for (size_t k = i; k < end; k++)
                dst[j * n + k] = src[k * es + j];
    }
}

static void unshuffle_from(size_t first, size_t es, uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = first; i < n; i += TILE_NELEM) {
        size_t end = n - i < TILE_NELEM ? n : i + TILE_NELEM;
        for (size_t j = 0; j < es; j++)
            for (size_t k = i; k < end; k++)
                dst[k * es + j] = src[j * n + k];
    }
}

#if defined(__x86_64__)

#include <immintrin.h>

#define LOAD128(p)     _mm_loadu_si128((const __m128i *)(const void *)(p))
#define STORE128(p, v) _mm_storeu_si128((__m128i *)(void *)(p), v)
#define LOAD256(p)     _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE256(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)

/*
 * ---- unshuffle: planes to elements; each returns the elements done ----
 *
 * FAR: lines go to memory without being read into the caches first, and without driving the
 * planes out of them: 1 MiB of floats took 50 us instead of 126 where 160 MiB were written in
 * turn, and 85 instead of 38 where they were 32, which the cache of the third level held.  DST is
 * aligned then.
 */
#define PUT128(p, v) (far ? _mm_stream_si128((__m128i *)(void *)(p), v) : STORE128(p, v))
#define PUT256(p, v) (far ? _mm256_stream_si256((__m256i *)(void *)(p), v) : STORE256(p, v))

static inline size_t unshuffle2_sse2(uint8_t *dst, const uint8_t *src, size_t n, bool far)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16, dst += 32) {
        __m128i a = LOAD128(src + i), b = LOAD128(src + n + i);
        PUT128(dst, _mm_unpacklo_epi8(a, b));
        PUT128(dst + 16, _mm_unpackhi_epi8(a, b));
    }
    return i;
}

static inline size_t unshuffle4_sse2(uint8_t *dst, const uint8_t *src, size_t n, bool far)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16, dst += 64) {
        __m128i a = LOAD128(src + i), b = LOAD128(src + n + i);
        __m128i c = LOAD128(src + 2 * n + i), d = LOAD128(src + 3 * n + i);
        __m128i ab0 = _mm_unpacklo_epi8(a, b), ab1 = _mm_unpackhi_epi8(a, b);
        __m128i cd0 = _mm_unpacklo_epi8(c, d), cd1 = _mm_unpackhi_epi8(c, d);
        PUT128(dst, _mm_unpacklo_epi16(ab0, cd0));
        PUT128(dst + 16, _mm_unpackhi_epi16(ab0, cd0));
        PUT128(dst + 32, _mm_unpacklo_epi16(ab1, cd1));
        PUT128(dst + 48, _mm_unpackhi_epi16(ab1, cd1));
    }
    return i;
}

static inline size_t unshuffle8_sse2(uint8_t *dst, const uint8_t *src, size_t n, bool far)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16, dst += 128) {
        __m128i pair[8], four[8];
        for (int j = 0; j < 4; j++) {
            __m128i a = LOAD128(src + (size_t)(2 * j) * n + i);
            __m128i b = LOAD128(src + (size_t)(2 * j + 1) * n + i);
            pair[j] = _mm_unpacklo_epi8(a, b);
            pair[j + 4] = _mm_unpackhi_epi8(a, b);
        }
        for (int h = 0; h < 2; h++) {
            for (int j = 0; j < 2; j++) {
                __m128i a = pair[4 * h + 2 * j], b = pair[4 * h + 2 * j + 1];
                four[4 * h + j] = _mm_unpacklo_epi16(a, b);
                four[4 * h + 2 + j] = _mm_unpackhi_epi16(a, b);
            }
        }
        for (int q = 0; q < 4; q++) {
            PUT128(dst + 32 * q, _mm_unpacklo_epi32(four[2 * q], four[2 * q + 1]));
            PUT128(dst + 32 * q + 16, _mm_unpackhi_epi32(four[2 * q], four[2 * q + 1]));
        }
    }
    return i;
}

/*
 * AVX2 interleaves within each half of a vector.  Permuting the quarters of the
 * planes first (0 2 1 3) makes the results come out in order.
 */
#define PLANE(p) _mm256_permute4x64_epi64(LOAD256(p), 0xd8)

__attribute__((target("avx2"))) static inline size_t
unshuffle2_avx2(uint8_t *dst, const uint8_t *src, size_t n, bool far)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32, dst += 64) {
        __m256i a = PLANE(src + i), b = PLANE(src + n + i);
        PUT256(dst, _mm256_unpacklo_epi8(a, b));
        PUT256(dst + 32, _mm256_unpackhi_epi8(a, b));
    }
    return i;
}

__attribute__((target("avx2"))) static inline size_t
unshuffle4_avx2(uint8_t *dst, const uint8_t *src, size_t n, bool far)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32, dst += 128) {
        __m256i a = LOAD256(src + i), b = LOAD256(src + n + i);
        __m256i c = LOAD256(src + 2 * n + i), d = LOAD256(src + 3 * n + i);
        __m256i ab0 = _mm256_unpacklo_epi8(a, b), ab1 = _mm256_unpackhi_epi8(a, b);
        __m256i cd0 = _mm256_unpacklo_epi8(c, d), cd1 = _mm256_unpackhi_epi8(c, d);
        /* Elements 0-3 and 16-19, 4-7 and 20-23, 8-11 and 24-27, 12-15 and 28-31. */
        __m256i e0 = _mm256_unpacklo_epi16(ab0, cd0), e1 = _mm256_unpackhi_epi16(ab0, cd0);
        __m256i e2 = _mm256_unpacklo_epi16(ab1, cd1), e3 = _mm256_unpackhi_epi16(ab1, cd1);
        PUT256(dst, _mm256_permute2x128_si256(e0, e1, 0x20));
        PUT256(dst + 32, _mm256_permute2x128_si256(e2, e3, 0x20));
        PUT256(dst + 64, _mm256_permute2x128_si256(e0, e1, 0x31));
        PUT256(dst + 96, _mm256_permute2x128_si256(e2, e3, 0x31));
    }
    return i;
}

/* ---- shuffle: elements to planes ---- */

static size_t shuffle2_sse2(uint8_t *dst, const uint8_t *src, size_t n)
{
    const __m128i low = _mm_set1_epi16(0xff);
    size_t i = 0;
    for (; i + 16 <= n; i += 16, src += 32) {
        __m128i a = LOAD128(src), b = LOAD128(src + 16);
        STORE128(dst + i, _mm_packus_epi16(_mm_and_si128(a, low), _mm_and_si128(b, low)));
        STORE128(dst + n + i, _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8)));
    }
    return i;
}

/*
 * Interleaving the two halves of a row of elements four times in turn sorts their bytes by
 * plane.
 */
static size_t shuffle4_sse2(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16, src += 64) {
        __m128i v[4], w[4];
        for (int j = 0; j < 4; j++)
            v[j] = LOAD128(src + 16 * j);
        for (int round = 0; round < 4; round++) {
            for (int j = 0; j < 2; j++) {
                w[2 * j] = _mm_unpacklo_epi8(v[j], v[j + 2]);
                w[2 * j + 1] = _mm_unpackhi_epi8(v[j], v[j + 2]);
            }
            memcpy(v, w, sizeof v);
        }
        for (size_t j = 0; j < 4; j++)
            STORE128(dst + j * n + i, v[j]);
    }
    return i;
}

static size_t shuffle8_sse2(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16, src += 128) {
        __m128i v[8], w[8];
        for (int j = 0; j < 8; j++)
            v[j] = LOAD128(src + 16 * j);
        for (int round = 0; round < 4; round++) {
            for (int j = 0; j < 4; j++) {
                w[2 * j] = _mm_unpacklo_epi8(v[j], v[j + 4]);
                w[2 * j + 1] = _mm_unpackhi_epi8(v[j], v[j + 4]);
            }
            memcpy(v, w, sizeof v);
        }
        for (size_t j = 0; j < 8; j++)
            STORE128(dst + j * n + i, v[j]);
    }
    return i;
}

__attribute__((target("avx2"))) static size_t shuffle4_avx2(uint8_t *dst, const uint8_t *src,
                                                            size_t n)
{
    /* Within each half: bytes 0 of its four elements, then bytes 1, and so on. */
    const __m256i by_byte = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    /* Then the fours of one plane from both halves side by side. */
    const __m256i by_plane = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    size_t i = 0;
    for (; i + 32 <= n; i += 32, src += 128) {
        __m256i v[4];
        for (int j = 0; j < 4; j++) {
            __m256i x = _mm256_shuffle_epi8(LOAD256(src + 32 * j), by_byte);
            v[j] = _mm256_permutevar8x32_epi32(x, by_plane); /* eight bytes of each plane */
        }
        __m256i p01 = _mm256_unpacklo_epi64(v[0], v[1]), q01 = _mm256_unpackhi_epi64(v[0], v[1]);
        __m256i p23 = _mm256_unpacklo_epi64(v[2], v[3]), q23 = _mm256_unpackhi_epi64(v[2], v[3]);
        STORE256(dst + i, _mm256_permute2x128_si256(p01, p23, 0x20));
        STORE256(dst + n + i, _mm256_permute2x128_si256(q01, q23, 0x20));
        STORE256(dst + 2 * n + i, _mm256_permute2x128_si256(p01, p23, 0x31));
        STORE256(dst + 3 * n + i, _mm256_permute2x128_si256(q01, q23, 0x31));
    }
    return i;
}

static size_t shuffle_simd(cm_simd simd, size_t es, uint8_t *dst, const uint8_t *src, size_t n)
{
    switch (simd == CM_SIMD_NONE ? 0 : es) {
    case 2:
        return shuffle2_sse2(dst, src, n);
    case 4:
        return simd == CM_SIMD_AVX2 ? shuffle4_avx2(dst, src, n) : shuffle4_sse2(dst, src, n);
    case 8:
        return shuffle8_sse2(dst, src, n);
    default:
        return 0;
    }
}

static size_t unshuffle_vectors(cm_simd simd, size_t es, uint8_t *dst, const uint8_t *src, size_t n,
                                bool far)
{
    switch (simd == CM_SIMD_NONE ? 0 : es) {
    case 2:
        return simd == CM_SIMD_AVX2 ? unshuffle2_avx2(dst, src, n, far)
                                    : unshuffle2_sse2(dst, src, n, far);
    case 4:
        return simd == CM_SIMD_AVX2 ? unshuffle4_avx2(dst, src, n, far)
                                    : unshuffle4_sse2(dst, src, n, far);
    case 8:
        return unshuffle8_sse2(dst, src, n, far);
    default:
        return 0;
    }
}

static size_t unshuffle_simd(cm_simd simd, size_t es, uint8_t *dst, const uint8_t *src, size_t n,
                             bool far)
{
    far = far && (uintptr_t)dst % sizeof(__m256i) == 0;
    const size_t done = unshuffle_vectors(simd, es, dst, src, n, far);
    if (far)
        _mm_sfence(); /* before whatever tells another thread that they are there */
    return done;
}

#else

static size_t shuffle_simd(cm_simd simd, size_t es, uint8_t *dst, const uint8_t *src, size_t n)
{
    (void)simd, (void)es, (void)dst, (void)src, (void)n;
    return 0;
}

static size_t unshuffle_simd(cm_simd simd, size_t es, uint8_t *dst, const uint8_t *src, size_t n,
                             bool far)
{
    (void)simd, (void)es, (void)dst, (void)src, (void)n, (void)far;
    return 0;
}

#endif

void cm_shuffle(cm_simd simd, size_t elementsize, void *dst, const void *src, size_t nbytes)
{
    size_t n = elementsize > 1 ? nbytes / elementsize : 0;
    size_t whole = n * elementsize;
    shuffle_from(shuffle_simd(simd, elementsize, dst, src, n), elementsize, dst, src, n);
    if (nbytes > whole)
        memcpy((uint8_t *)dst + whole, (const uint8_t *)src + whole, nbytes - whole);
}

void cm_unshuffle(cm_simd simd, size_t elementsize, void *dst, const void *src, size_t nbytes,
                  bool far)
{
    size_t n = elementsize > 1 ? nbytes / elementsize : 0;
    size_t whole = n * elementsize;
    unshuffle_from(unshuffle_simd(simd, elementsize, dst, src, n, far), elementsize, dst, src, n);
    if (nbytes > whole)
        memcpy((uint8_t *)dst + whole, (const uint8_t *)src + whole, nbytes - whole);
}

/* ---- the codec ---- */

static int prepare(cm_codec_step *step, cm_error *err)
{
    (void)err;
    step->decode_is_view = step->spec->elementsize <= 1;
    step->encode_is_view = step->decode_is_view;
    return CM_OK;
}

static bool bound(const cm_codec_step *step, size_t nbytes, size_t *out)
{
    (void)step;
    *out = nbytes;
    return true;
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    if (src.nbytes > dst->capacity)
        return cm_codec_no_room(dst, src.nbytes, err);
    cm_unshuffle(step->simd, step->spec->elementsize, dst->data, src.data, src.nbytes, dst->far);
    dst->nbytes = src.nbytes;
    return CM_OK;
}

static int encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    (void)err;
    cm_shuffle(step->simd, step->spec->elementsize, dst->data, src.data, src.nbytes);
    dst->nbytes = src.nbytes;
    return CM_OK;
}

const cm_codec_ops cm_shuffle_ops = {.name = "shuffle",
                                     .kind = CM_CODEC_BYTES_BYTES,
                                     .prepare = prepare,
                                     .bound = bound,
                                     .decode = decode,
                                     .decode_view = cm_codec_view_all,
                                     .encode = encode};
