/*
 * Bitshuffle, HDF5's filter 32008: within blocks of elements first bit 0 of
 * byte 0 of all elements, then bit 1, and so on; each block then compressed
 * with LZ4 or zstd, or not at all.
 *
 * Compressed chunks start with u64 BE decoded bytes and u32 BE bytes of a block,
 * and each block with u32 BE its length.  The last block is what is left, down
 * to a multiple of eight elements; the remaining elements are stored as they are
 * (bitshuffle, src/bshuf_h5filter.c and bshuf_blocked_wrap_fun).
 */
#include <limits.h>
#include <lz4.h>
#include <string.h>
#include <zstd.h>

#include "codec/impl.h"

enum {
    ELEMENTSIZE,
    BLOCK_NELEM,
    COMPRESSION
};

enum { /* COMPRESSION */
    NOT_COMPRESSED = 0,
    WITH_LZ4 = 2,
    WITH_ZSTD = 3
};

/* bshuf_default_block_size: 8 KiB, a multiple of eight elements, 128 at least. */
static size_t block_nelem(const cm_codec_step *step)
{
    const uint32_t *p = step->spec->bitshuffle;
    size_t automatic = 8192 / p[ELEMENTSIZE] / 8 * 8;
    return p[BLOCK_NELEM] ? p[BLOCK_NELEM] : automatic < 128 ? 128 : automatic;
}

static int prepare(cm_codec_step *step, cm_error *err)
{
    const uint32_t *p = step->spec->bitshuffle;
    if (p[ELEMENTSIZE] == 0 || p[BLOCK_NELEM] % 8 != 0) {
        return cm_fail(err, CM_EFORMAT, "elements of %u bytes in blocks of %u", p[ELEMENTSIZE],
                       p[BLOCK_NELEM]);
    }
    if (p[COMPRESSION] != NOT_COMPRESSED && p[COMPRESSION] != WITH_LZ4 &&
        p[COMPRESSION] != WITH_ZSTD)
        return cm_fail(err, CM_EUNSUPPORTED, "compression number %u is not known", p[COMPRESSION]);
    step->varying = p[COMPRESSION] != NOT_COMPRESSED;
    if (step->varying) {
        /* The chunk itself may set a larger block than the filter's parameters do. */
        step->decode_memory = step->in_bound == CM_CODEC_UNBOUNDED ? 0 : step->in_bound;
        step->decode_memory += p[COMPRESSION] == WITH_ZSTD ? cm_zstd_decode_memory() : 0;
    }
    return CM_OK;
}

/* Blocks of eight one-byte elements at worst, each with a length and what zstd or LZ4 add. */
static bool bound(const cm_codec_step *step, size_t nbytes, size_t *out)
{
    if (step->spec->bitshuffle[COMPRESSION] == NOT_COMPRESSED) {
        *out = nbytes;
        return true;
    }
    return cm_mul_size(nbytes, 12, out) && cm_add_size(*out, 64, out);
}

/*
 * Transposes eight by eight bits: bit j of byte i becomes bit i of byte j.  (Hacker's Delight,
 * 7-3.)
 */
static uint64_t transpose8(uint64_t x)
{
    uint64_t t = (x ^ x >> 7) & 0x00aa00aa00aa00aaull;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000cccc0000ccccull;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000f0f0f0f0ull;
    return x ^ t ^ t << 28;
}

/* N elements, a multiple of eight, of ES bytes from rows of bits. */
static void unshuffle_bits(uint8_t *dst, const uint8_t *src, size_t n, size_t es)
{
    size_t row = n / 8;
    for (size_t j = 0; j < es; j++) {
        const uint8_t *plane = src + 8 * j * row;
        for (size_t g = 0; g < row; g++) {
            uint64_t bits = 0;
            for (size_t k = 0; k < 8; k++)
                bits |= (uint64_t)plane[k * row + g] << 8 * k;
            bits = transpose8(bits);
            for (size_t k = 0; k < 8; k++)
                dst[(8 * g + k) * es + j] = (uint8_t)(bits >> 8 * k);
        }
    }
}

/* Decompresses the block at *AT into exactly NBYTES of DST. */
static int decompress(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, size_t *at,
                      uint8_t *dst, size_t nbytes, cm_error *err)
{
    if (src.nbytes - *at < 4)
        return cm_fail(err, CM_EFORMAT, "the chunk is cut short");
    uint32_t stored = cm_load_be32(src.data + *at);
    *at += 4;
    if (stored > src.nbytes - *at || stored > INT_MAX || nbytes > INT_MAX) {
        return cm_fail(err, CM_EFORMAT, "a block of %u bytes, where %zu are left", stored,
                       src.nbytes - *at);
    }
    const uint8_t *block = src.data + *at;
    *at += stored;
    bool whole;
    if (step->spec->bitshuffle[COMPRESSION] == WITH_LZ4) {
        int made = LZ4_decompress_safe((const char *)block, (char *)dst, (int)stored, (int)nbytes);
        whole = made >= 0 && (size_t)made == nbytes;
    } else {
        ZSTD_DCtx *d = cm_ctx_zstd_decoder(ctx, err);
        if (d == NULL)
            return CM_ENOMEM;
        whole = ZSTD_decompressDCtx(d, dst, nbytes, block, stored) == nbytes;
    }
    return whole ? CM_OK : cm_fail(err, CM_EFORMAT, "a block is damaged or cut short");
}

/* Reads the header of a compressed chunk; *block becomes the block size that it gives. */
static int read_header(size_t es, cm_span src, const cm_room *dst, size_t *nbytes, size_t *block,
                       cm_error *err)
{
    if (src.nbytes < 12)
        return cm_fail(err, CM_EFORMAT, "%zu bytes cannot be a chunk", src.nbytes);
    uint64_t total = cm_load_be64(src.data);
    uint32_t block_nbytes = cm_load_be32(src.data + 8);
    if (total > dst->capacity) {
        return cm_fail(err, CM_EBUDGET, "decodes to %llu bytes, where %zu are the most",
                       (unsigned long long)total, dst->capacity);
    }
    *nbytes = (size_t)total;
    *block = block_nbytes / es;
    if (*block == 0 || *block % 8 != 0)
        return cm_fail(err, CM_EFORMAT, "blocks of %u bytes", block_nbytes);
    return CM_OK;
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    size_t es = step->spec->bitshuffle[ELEMENTSIZE];
    bool compressed = step->spec->bitshuffle[COMPRESSION] != NOT_COMPRESSED;
    size_t at = 0, nbytes = src.nbytes, block = block_nelem(step);
    if (compressed) {
        int rc = read_header(es, src, dst, &nbytes, &block, err);
        if (rc != CM_OK)
            return rc;
        at = 12;
    }
    if (nbytes > dst->capacity)
        return cm_codec_no_room(dst, nbytes, err);
    if (nbytes % es != 0)
        return cm_fail(err, CM_EFORMAT, "%zu bytes are not a whole number of elements of %zu",
                       nbytes, es);
    uint8_t *out = dst->data;
    size_t left = nbytes / es;
    while (left >= 8) {
        size_t n = left < block ? left / 8 * 8 : block;
        const uint8_t *rows = src.data + at;
        if (compressed) {
            int rc = cm_buf_resize(&ctx->work, n * es, err);
            if (rc == CM_OK)
                rc = decompress(step, ctx, src, &at, ctx->work.data, n * es, err);
            if (rc != CM_OK)
                return rc;
            rows = ctx->work.data;
        } else {
            at += n * es;
        }
        unshuffle_bits(out, rows, n, es);
        out += n * es;
        left -= n;
    }
    if (src.nbytes - at < left * es)
        return cm_fail(err, CM_EFORMAT, "the chunk is cut short");
    memcpy(out, src.data + at, left * es);
    dst->nbytes = nbytes;
    return CM_OK;
}

const cm_codec_ops cm_bitshuffle_ops = {.name = "bitshuffle",
                                        .kind = CM_CODEC_BYTES_BYTES,
                                        .prepare = prepare,
                                        .bound = bound,
                                        .decode = decode};
