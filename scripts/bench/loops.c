/*
 * The compiler vectorises these for the machine at hand: run.sh compiles them with
 * -march=native.
 */
#include "loops.h"

#include <string.h>

enum {
    ZSTD_LEVEL = 3, /* what c-blosc asks for at level 2 */
    FRAME_HEADER = 16,
    MAX_STREAMS = 16, /* of a block, one for each byte of an element, */
    MIN_STREAM = 128, /* and of at least so many bytes */
    BLOCK_HEADER = 8  /* where the only block begins, and its length */
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

static uint32_t get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* One block of N bytes at P: streams, each with its length before it. */
static bool read_block(ZSTD_DCtx *zstd, uint8_t *out, size_t n, const uint8_t *p, size_t nstreams)
{
    for (size_t i = 0, length = n / nstreams; i < nstreams; i++, out += length) {
        uint32_t stored = get32(p);
        p += 4;
        if (stored == length)
            memcpy(out, p, length);
        else if (ZSTD_decompressDCtx(zstd, out, length, p, stored) != length)
            return false;
        p += stored;
    }
    return true;
}

bool loop_unframe(ZSTD_DCtx *zstd, uint8_t *out, size_t n, const uint8_t *frame, uint8_t *scratch)
{
    unsigned flags = frame[2];
    size_t itemsize = frame[3], block = get32(frame + 8);
    if (get32(frame + 4) != n || flags >> 5 != 4)
        return false;
    if (flags & 2) {
        memcpy(out, frame + FRAME_HEADER, n);
        return true;
    }
    for (size_t at = 0, i = 0; at < n; at += block, i++) {
        size_t length = n - at < block ? n - at : block;
        bool split = !(flags & 0x10) && itemsize <= MAX_STREAMS && length == block &&
                     block / itemsize >= MIN_STREAM;
        uint8_t *to = flags & 1 ? scratch : out + at;
        if (!read_block(zstd, to, length, frame + get32(frame + FRAME_HEADER + 4 * i),
                        split ? itemsize : 1))
            return false;
        if (flags & 1)
            loop_unshuffle(out + at, scratch, length / itemsize, itemsize);
    }
    return true;
}

uint32_t loop_crc32c(const void *data, size_t n)
{
    const uint8_t *p = data;
    uint32_t sum = ~0u;
    for (size_t i = 0; i < n; i++) {
        sum ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78u : 0);
    }
    return ~sum;
}
