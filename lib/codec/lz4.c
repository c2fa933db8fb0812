/*
 * LZ4 in two wrappings: numcodecs' (the size, then one raw block) and HDF5's
 * filter 32004 (size, block size, then blocks).  Neither is the LZ4 frame format.
 */
#include <limits.h>
#include <lz4.h>
#include <string.h>

#include "codec/impl.h"

/* LZ4_compress_fast keeps its hash table on the stack; LZ4_MEMORY_USAGE 14. */
enum {
    LZ4_STATE_NBYTES = 16 << 10
};

static int prepare(cm_codec_step *step, cm_error *err)
{
    step->varying = true;
    step->encode_memory = LZ4_STATE_NBYTES;
    if (step->in_bound != CM_CODEC_UNBOUNDED && step->in_bound > LZ4_MAX_INPUT_SIZE) {
        return cm_fail(err, CM_EUNSUPPORTED,
                       "a chunk of %zu bytes, and %d is the most that lz4 can hold", step->in_bound,
                       LZ4_MAX_INPUT_SIZE);
    }
    return CM_OK;
}

/* numcodecs/lz4.pyx: u32 LE size. */
static bool bound(const cm_codec_step *step, size_t nbytes, size_t *out)
{
    (void)step;
    if (nbytes > LZ4_MAX_INPUT_SIZE)
        return false;
    *out = 4 + (size_t)LZ4_compressBound((int)nbytes);
    return true;
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)step;
    (void)ctx;
    if (src.nbytes < 5 || src.nbytes - 4 > INT_MAX)
        return cm_fail(err, CM_EFORMAT, "%zu bytes cannot be a chunk", src.nbytes);
    uint32_t claim = cm_load_le32(src.data);
    if (claim > LZ4_MAX_INPUT_SIZE || claim / 256 > src.nbytes) {
        return cm_fail(err, CM_EFORMAT, "%zu bytes cannot hold the %u that they claim", src.nbytes,
                       claim);
    }
    if (claim > dst->capacity)
        return cm_codec_no_room(dst, claim, err);
    int made = LZ4_decompress_safe((const char *)src.data + 4, (char *)dst->data,
                                   (int)(src.nbytes - 4), (int)claim);
    if (made < 0 || (uint32_t)made != claim)
        return cm_fail(err, CM_EFORMAT, "the block is damaged or cut short");
    dst->nbytes = claim;
    return CM_OK;
}

static int encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    int acceleration = step->spec->level < 1 ? 1 : step->spec->level;
    size_t room = dst->capacity - 4;
    int made = LZ4_compress_fast((const char *)src.data, (char *)dst->data + 4, (int)src.nbytes,
                                 room > INT_MAX ? INT_MAX : (int)room, acceleration);
    if (made <= 0)
        return cm_fail(err, CM_EINTERNAL, "the encoded chunk does not fit");
    cm_store_le32(dst->data, (uint32_t)src.nbytes);
    dst->nbytes = 4 + (size_t)made;
    return CM_OK;
}

const cm_codec_ops cm_lz4_ops = {.name = "lz4",
                                 .kind = CM_CODEC_BYTES_BYTES,
                                 .prepare = prepare,
                                 .bound = bound,
                                 .decode = decode,
                                 .encode = encode};

/* ---- HDF5 filter 32004: u64 BE size, u32 BE block size, then for each block u32 BE length ---- */

static int hdf5_prepare(cm_codec_step *step, cm_error *err)
{
    (void)err;
    step->varying = true;
    return CM_OK;
}

/* One byte blocks are the worst that a writer can do: five bytes for each. */
static bool hdf5_bound(const cm_codec_step *step, size_t nbytes, size_t *out)
{
    (void)step;
    return cm_mul_size(nbytes, 6, out) && cm_add_size(*out, 16, out);
}

/*
 * One block of SIZE decoded bytes at *AT, which is moved past it.  Blocks that would not
 * shrink are stored.
 */
static int hdf5_block(cm_span src, size_t *at, uint8_t *dst, size_t size, cm_error *err)
{
    if (src.nbytes - *at < 4)
        return cm_fail(err, CM_EFORMAT, "the chunk is cut short");
    uint32_t stored = cm_load_be32(src.data + *at);
    *at += 4;
    if (stored > src.nbytes - *at || stored > INT_MAX) {
        return cm_fail(err, CM_EFORMAT, "a block of %u bytes, where %zu are left", stored,
                       src.nbytes - *at);
    }
    const uint8_t *block = src.data + *at;
    *at += stored;
    if (stored == size) {
        memcpy(dst, block, size);
        return CM_OK;
    }
    int made = size > INT_MAX
                   ? -1
                   : LZ4_decompress_safe((const char *)block, (char *)dst, (int)stored, (int)size);
    return made >= 0 && (size_t)made == size
               ? CM_OK
               : cm_fail(err, CM_EFORMAT, "a block is damaged or cut short");
}

static int hdf5_decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                       cm_error *err)
{
    (void)step;
    (void)ctx;
    if (src.nbytes < 12)
        return cm_fail(err, CM_EFORMAT, "%zu bytes cannot be a chunk", src.nbytes);
    uint64_t size = cm_load_be64(src.data);
    uint32_t block = cm_load_be32(src.data + 8);
    if (size > dst->capacity) {
        return cm_fail(err, CM_EBUDGET, "decodes to %llu bytes, where %zu are the most",
                       (unsigned long long)size, dst->capacity);
    }
    if (block == 0 && size > 0)
        return cm_fail(err, CM_EFORMAT, "blocks of no bytes");
    size_t at = 12;
    for (dst->nbytes = 0; dst->nbytes < size;) {
        size_t left = (size_t)size - dst->nbytes;
        size_t n = left < block ? left : block;
        int rc = hdf5_block(src, &at, dst->data + dst->nbytes, n, err);
        if (rc != CM_OK)
            return rc;
        dst->nbytes += n;
    }
    return CM_OK;
}

const cm_codec_ops cm_hdf5_lz4_ops = {.name = "hdf5-lz4",
                                      .kind = CM_CODEC_BYTES_BYTES,
                                      .prepare = hdf5_prepare,
                                      .bound = hdf5_bound,
                                      .decode = hdf5_decode};
