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
    CHECKSUM_NBYTES = 4,
    LANES = 32,    /* of fletcher32's vectors */
    MAX_ROWS = 360 /* more would overflow the sums of a lane */
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

static uint64_t fold(uint64_t sum)
{
    while (sum > 0xffff)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

/* Adds ROWS * LANES words: each lane has sums of its own, so that compilers use vectors. */
static void add_rows(const uint8_t *p, size_t rows, uint64_t *sum1, uint64_t *sum2)
{
    uint32_t sum[LANES] = {0}, sums[LANES] = {0};
    uint64_t all = 0, weighted = 0;
    for (size_t i = 0; i < rows; i++, p += 2 * LANES)
        for (unsigned j = 0; j < LANES; j++) {
            sum[j] += (uint32_t)p[2 * j] | (uint32_t)p[2 * j + 1] << 8;
            sums[j] += sum[j];
        }
    for (unsigned j = 0; j < LANES; j++) {
        all += sum[j];
        weighted += (uint64_t)LANES * sums[j] - (uint64_t)j * sum[j];
    }
    *sum2 = fold(*sum2 + *sum1 * rows * LANES + weighted);
    *sum1 = fold(*sum1 + all);
}

/*
 * H5checksum.c, H5_checksum_fletcher32: sums modulo 65535 of 16-bit big-endian words; a last odd
 * byte is the upper half of a word.  Little-endian words have the same sums with bytes swapped,
 * which is multiplying them by 256.
 */
uint32_t cm_fletcher32(const void *data, size_t nbytes)
{
    const uint8_t *p = data;
    uint64_t sum1 = 0, sum2 = 0;
    size_t left = nbytes / 2;
    while (left >= LANES) {
        const size_t rows = left / LANES < MAX_ROWS ? left / LANES : MAX_ROWS;
        add_rows(p, rows, &sum1, &sum2);
        p += rows * LANES * 2;
        left -= rows * LANES;
    }
    for (; left > 0; left--, p += 2) {
        sum1 += (uint64_t)p[0] | (uint64_t)p[1] << 8;
        sum2 += sum1;
    }
    if (nbytes % 2) {
        sum1 += *p;
        sum2 += sum1;
    }
    return (uint32_t)(fold(fold(sum2) << 8) << 16 | fold(fold(sum1) << 8));
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
