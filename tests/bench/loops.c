/* The compiler vectorises these for the machine at hand: run.sh compiles them with -march=native. */
#include "loops.h"

#include <stdbool.h>
#include <string.h>

enum {
    ZSTD_LEVEL = 3, /* what c-blosc asks for at level 2 */
    FRAME_HEADER = 16,
    BLOCK_HEADER = 8 /* where the only block begins, and its length */
};

static void unshuffle2(uint8_t *restrict out, const uint8_t *restrict in, size_t n)
{
    const uint8_t *restrict b = in + n;
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = in[i];
        out[2 * i + 1] = b[i];
    }
}

static void unshuffle4(uint8_t *restrict out, const uint8_t *restrict in, size_t n)
{
    const uint8_t *restrict b = in + n, *restrict c = b + n, *restrict d = c + n;
    for (size_t i = 0; i < n; i++) {
        out[4 * i] = in[i];
        out[4 * i + 1] = b[i];
        out[4 * i + 2] = c[i];
        out[4 * i + 3] = d[i];
    }
}

void loop_unshuffle(uint8_t *out, const uint8_t *in, size_t n, size_t itemsize)
{
    if (itemsize == 4)
        unshuffle4(out, in, n);
    else if (itemsize == 2)
        unshuffle2(out, in, n);
    else
        for (size_t j = 0; j < itemsize; j++)
            for (size_t i = 0; i < n; i++)
                out[i * itemsize + j] = in[j * n + i];
}

static void shuffle2(uint8_t *restrict out, const uint8_t *restrict in, size_t n)
{
    uint8_t *restrict b = out + n;
    for (size_t i = 0; i < n; i++) {
        out[i] = in[2 * i];
        b[i] = in[2 * i + 1];
    }
}

static void shuffle4(uint8_t *restrict out, const uint8_t *restrict in, size_t n)
{
    uint8_t *restrict b = out + n, *restrict c = b + n, *restrict d = c + n;
    for (size_t i = 0; i < n; i++) {
        out[i] = in[4 * i];
        b[i] = in[4 * i + 1];
        c[i] = in[4 * i + 2];
        d[i] = in[4 * i + 3];
    }
}

void loop_shuffle(uint8_t *out, const uint8_t *in, size_t n, size_t itemsize)
{
    if (itemsize == 4)
        shuffle4(out, in, n);
    else if (itemsize == 2)
        shuffle2(out, in, n);
    else
        for (size_t j = 0; j < itemsize; j++)
            for (size_t i = 0; i < n; i++)
                out[j * n + i] = in[i * itemsize + j];
}

void loop_swap(uint8_t *data, size_t n, size_t itemsize)
{
    if (itemsize == 4)
        for (size_t i = 0; i < n; i++)
            ((uint32_t *)data)[i] = __builtin_bswap32(((uint32_t *)data)[i]);
    else if (itemsize == 2)
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)data)[i] = __builtin_bswap16(((uint16_t *)data)[i]);
    else if (itemsize == 8)
        for (size_t i = 0; i < n; i++)
            ((uint64_t *)data)[i] = __builtin_bswap64(((uint64_t *)data)[i]);
}

size_t loop_frame_bound(size_t n)
{
    return ZSTD_compressBound(n) + FRAME_HEADER + BLOCK_HEADER;
}

static void put32(uint8_t *p, uint64_t value)
{
    uint32_t v = (uint32_t)value;
    memcpy(p, &v, 4);
}

size_t loop_frame(ZSTD_CCtx *zstd, uint8_t *out, const uint8_t *data, size_t n, size_t itemsize,
                  uint8_t *scratch)
{
    size_t head = FRAME_HEADER + BLOCK_HEADER;
    loop_shuffle(scratch, data, n / itemsize, itemsize);
    size_t made =
        ZSTD_compressCCtx(zstd, out + head, ZSTD_compressBound(n), scratch, n, ZSTD_LEVEL);
    bool stored = ZSTD_isError(made) || made >= n;
    if (stored) {
        memcpy(out + FRAME_HEADER, data, n);
        made = n + FRAME_HEADER;
    } else {
        put32(out + FRAME_HEADER, head - 4);
        put32(out + FRAME_HEADER + 4, made);
        made += head;
    }
    out[0] = 2;                                                 /* version of the format */
    out[1] = 1;                                                 /* version of zstd's in it */
    out[2] = (uint8_t)(4 << 5 | 1 << 4 | (stored ? 2 : 0) | 1); /* zstd, not split, shuffled */
    out[3] = (uint8_t)itemsize;
    put32(out + 4, n);
    put32(out + 8, n);
    put32(out + 12, made);
    return made;
}
