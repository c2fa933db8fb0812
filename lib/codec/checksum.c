/*
 * Four-byte checksums: crc32c (RFC 3720), crc32 and adler32 (RFC 1950, 1952),
 * and HDF5's fletcher32.  Stored as u32 LE after the data, or in front of them
 * where the specification says so (numcodecs' crc32 and adler32).
 */
#include <libdeflate.h>
#include <string.h>

#include "codec/checksum.h"
#include "codec/impl.h"

enum {
    CHECKSUM_NBYTES = 4
};

static bool bound(const cm_codec_step *step, size_t nbytes, size_t *out)
{
    (void)step;
    return cm_add_size(nbytes, CHECKSUM_NBYTES, out);
}

static int prepare(cm_codec_step *step, cm_error *err)
{
    (void)err;
    step->decode_trims = true;
    step->encode_appends = !step->spec->at_start;
    return CM_OK;
}

/*
 * H5checksum.c, H5_checksum_fletcher32: 16-bit big-endian words; the sums are
 * reduced modulo 65535 often enough that they never overflow; a last odd byte
 * is the upper half of a word.
 */
uint32_t cm_fletcher32(const void *data, size_t nbytes)
{
    const uint8_t *p = data;
    uint32_t sum1 = 0, sum2 = 0;
    for (size_t left = nbytes / 2; left > 0;) {
        size_t n = left < 360 ? left : 360;
        left -= n;
        for (; n > 0; n--, p += 2) {
            sum1 += (uint32_t)p[0] << 8 | p[1];
            sum2 += sum1;
        }
        sum1 = (sum1 & 0xffff) + (sum1 >> 16);
        sum2 = (sum2 & 0xffff) + (sum2 >> 16);
    }
    if (nbytes % 2) {
        sum1 += (uint32_t)*p << 8;
        sum2 += sum1;
        sum1 = (sum1 & 0xffff) + (sum1 >> 16);
        sum2 = (sum2 & 0xffff) + (sum2 >> 16);
    }
    sum1 = (sum1 & 0xffff) + (sum1 >> 16);
    sum2 = (sum2 & 0xffff) + (sum2 >> 16);
    return sum2 << 16 | sum1;
}

static uint32_t sum_of(const cm_codec_step *step, const uint8_t *data, size_t nbytes)
{
    switch (step->spec->id) {
    case CM_CODEC_CRC32C:
        return cm_crc32c(step->simd, data, nbytes);
    case CM_CODEC_CRC32:
        return libdeflate_crc32(0, data, nbytes);
    case CM_CODEC_ADLER32:
        return libdeflate_adler32(1, data, nbytes);
    default:
        return cm_fletcher32(data, nbytes);
    }
}

/* HDF5 before 1.6.3 stored the bytes of each half of a fletcher32 swapped (H5Zfletcher32.c). */
static bool matches(const cm_codec_step *step, uint32_t stored, uint32_t sum)
{
    uint32_t swapped = (sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff);
    return stored == sum || (step->spec->id == CM_CODEC_FLETCHER32 && stored == swapped);
}

static int decode_view(const cm_codec_step *step, cm_span *data, cm_error *err)
{
    if (data->nbytes < CHECKSUM_NBYTES)
        return cm_fail(err, CM_EFORMAT, "%zu bytes cannot hold a checksum", data->nbytes);
    size_t n = data->nbytes - CHECKSUM_NBYTES;
    bool at_start = step->spec->at_start;
    const uint8_t *covered = data->data + (at_start ? CHECKSUM_NBYTES : 0);
    uint32_t stored = cm_load_le32(data->data + (at_start ? 0 : n));
    uint32_t sum = sum_of(step, covered, n);
    if (!matches(step, stored, sum))
        return cm_fail(err, CM_EFORMAT, "the checksum is %08x, but %08x is stored", sum, stored);
    *data = (cm_span){covered, n};
    return CM_OK;
}

static int append(const cm_codec_step *step, cm_room *data, cm_error *err)
{
    if (data->capacity - data->nbytes < CHECKSUM_NBYTES)
        return cm_fail(err, CM_EINTERNAL, "no room for the checksum");
    cm_store_le32(data->data + data->nbytes, sum_of(step, data->data, data->nbytes));
    data->nbytes += CHECKSUM_NBYTES;
    return CM_OK;
}

static int encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    (void)err;
    cm_store_le32(dst->data, sum_of(step, src.data, src.nbytes));
    if (src.nbytes > 0)
        memcpy(dst->data + CHECKSUM_NBYTES, src.data, src.nbytes);
    dst->nbytes = src.nbytes + CHECKSUM_NBYTES;
    return CM_OK;
}

#define CHECKSUM_OPS(codec)                                                                        \
    const cm_codec_ops cm_##codec##_ops = {.name = #codec,                                         \
                                           .kind = CM_CODEC_BYTES_BYTES,                           \
                                           .prepare = prepare,                                     \
                                           .bound = bound,                                         \
                                           .decode_view = decode_view,                             \
                                           .encode = encode,                                       \
                                           .append = append}

CHECKSUM_OPS(crc32c);
CHECKSUM_OPS(crc32);
CHECKSUM_OPS(adler32);
CHECKSUM_OPS(fletcher32);
