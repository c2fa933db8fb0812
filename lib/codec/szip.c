/*
 * HDF5's filter 4: u32 LE decoded size, then extended Rice coding (CCSDS 121.0)
 * by libaec.
 *
 * What szip adds to it (libaec's sz_compat.c): elements of 32 and 64 bits are
 * stored as planes of bytes, and scanlines that are no multiple of a block are
 * padded to one.  H5Zszip.c has the order of the four numbers.
 */
#include <libaec.h>
#include <string.h>

#include "base/number.h"
#include "codec/impl.h"
#include "codec/shuffle.h"

enum {
    MASK,
    PIXELS_A_BLOCK,
    BITS_A_PIXEL,
    PIXELS_A_SCANLINE
};

enum { /* bits of MASK, H5Zpublic.h and szlib.h */
    MSB_FIRST = 16,
    PREPROCESS = 32
};

/* libaec keeps the samples between two reference samples, a scanline, and tables. */
enum {
    MAX_PIXELS_A_SCANLINE = 1 << 16,
    AEC_TABLES_NBYTES = 64 << 10
};

/* How the padded and interleaved stream relates to the elements. */
typedef struct layout {
    unsigned sample_bits; /* as libaec sees it */
    unsigned sample_nbytes;
    size_t planes;        /* > 1: bytes of an element, stored apart */
    size_t line_nbytes;   /* of a scanline */
    size_t padded_nbytes; /* with its padding */
    size_t blocks_a_line;
} layout;

static layout lay_out(const cm_codec_step *step)
{
    const uint32_t *p = step->spec->szip;
    layout l = {.planes = 1, .sample_bits = p[BITS_A_PIXEL]};
    if (p[BITS_A_PIXEL] == 32 || p[BITS_A_PIXEL] == 64) {
        l.planes = p[BITS_A_PIXEL] / 8;
        l.sample_bits = 8;
    }
    l.sample_nbytes = l.sample_bits > 16 ? 4 : l.sample_bits > 8 ? 2 : 1;
    l.blocks_a_line = (size_t)cm_div_ceil(p[PIXELS_A_SCANLINE], p[PIXELS_A_BLOCK]);
    l.line_nbytes = (size_t)p[PIXELS_A_SCANLINE] * l.sample_nbytes;
    l.padded_nbytes = l.blocks_a_line * p[PIXELS_A_BLOCK] * l.sample_nbytes;
    return l;
}

/* Bytes of the padded stream that NBYTES of decoded data come from; false when that overflows. */
static bool padded_size(const layout *l, size_t nbytes, size_t *out)
{
    size_t lines = nbytes / l->line_nbytes;
    size_t rest = nbytes % l->line_nbytes;
    return cm_mul_size(lines, l->padded_nbytes, out) && cm_add_size(*out, rest, out);
}

static int prepare(cm_codec_step *step, cm_error *err)
{
    const uint32_t *p = step->spec->szip;
    if (p[PIXELS_A_BLOCK] == 0 || p[PIXELS_A_BLOCK] > 256 || p[PIXELS_A_SCANLINE] == 0 ||
        p[PIXELS_A_SCANLINE] > MAX_PIXELS_A_SCANLINE) {
        return cm_fail(err, CM_EFORMAT, "%u pixels a block and %u a scanline", p[PIXELS_A_BLOCK],
                       p[PIXELS_A_SCANLINE]);
    }
    if (p[BITS_A_PIXEL] == 0 || (p[BITS_A_PIXEL] > 32 && p[BITS_A_PIXEL] != 64))
        return cm_fail(err, CM_EFORMAT, "%u bits a pixel", p[BITS_A_PIXEL]);
    layout l = lay_out(step);
    size_t padded = 0;
    if (step->in_bound != CM_CODEC_UNBOUNDED && !padded_size(&l, step->in_bound, &padded))
        return cm_fail(err, CM_EBUDGET, "the padded chunk is too large to address");
    step->varying = true;
    step->decode_memory = AEC_TABLES_NBYTES + 5 * l.padded_nbytes;
    step->decode_memory += l.planes > 1 || l.padded_nbytes != l.line_nbytes ? 2 * padded : 0;
    return CM_OK;
}

/* Encoders store a block that does not shrink with a few bits more. */
static bool bound(const cm_codec_step *step, size_t nbytes, size_t *out)
{
    layout l = lay_out(step);
    size_t padded;
    return padded_size(&l, nbytes, &padded) && cm_mul_size(padded, 2, out) &&
           cm_add_size(*out, l.padded_nbytes + 64, out);
}

/* Exactly NBYTES of samples from SRC. */
static int decode_samples(const cm_codec_step *step, const layout *l, cm_span src, uint8_t *dst,
                          size_t nbytes, cm_error *err)
{
    const uint32_t *p = step->spec->szip;
    struct aec_stream s = {.next_in = src.data,
                           .avail_in = src.nbytes,
                           .next_out = dst,
                           .avail_out = nbytes,
                           .bits_per_sample = l->sample_bits,
                           .block_size = p[PIXELS_A_BLOCK],
                           .rsi = (unsigned)l->blocks_a_line};
    s.flags =
        (p[MASK] & MSB_FIRST ? AEC_DATA_MSB : 0) | (p[MASK] & PREPROCESS ? AEC_DATA_PREPROCESS : 0);
    int rc = aec_buffer_decode(&s);
    if (rc == AEC_MEM_ERROR)
        return cm_fail(err, CM_ENOMEM, "no memory for an szip decoder");
    if (rc != AEC_OK || s.total_out != nbytes)
        return cm_fail(err, CM_EFORMAT, "the stream is damaged or cut short");
    return CM_OK;
}

/* Moves the lines together, in place. */
static void remove_padding(const layout *l, uint8_t *data, size_t nbytes)
{
    size_t to = l->line_nbytes;
    for (size_t from = l->padded_nbytes; to < nbytes; from += l->padded_nbytes) {
        size_t n = nbytes - to < l->line_nbytes ? nbytes - to : l->line_nbytes;
        memmove(data + to, data + from, n);
        to += n;
    }
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    if (src.nbytes < 4)
        return cm_fail(err, CM_EFORMAT, "%zu bytes cannot be a chunk", src.nbytes);
    size_t nbytes = cm_load_le32(src.data);
    if (nbytes > dst->capacity)
        return cm_codec_no_room(dst, nbytes, err);
    cm_span stream = {src.data + 4, src.nbytes - 4};
    layout l = lay_out(step);
    dst->nbytes = nbytes;
    bool padded = l.padded_nbytes != l.line_nbytes;
    if (!padded && l.planes == 1)
        return decode_samples(step, &l, stream, dst->data, nbytes, err);
    size_t stored;
    if (!padded_size(&l, nbytes, &stored))
        return cm_fail(err, CM_EFORMAT, "%zu bytes do not fit when padded", nbytes);
    int rc = cm_buf_resize(&ctx->work, stored, err);
    if (rc == CM_OK)
        rc = decode_samples(step, &l, stream, ctx->work.data, stored, err);
    if (rc != CM_OK)
        return rc;
    if (padded)
        remove_padding(&l, ctx->work.data, nbytes);
    cm_unshuffle(step->simd, l.planes, dst->data, ctx->work.data, nbytes, dst->far);
    return CM_OK;
}

const cm_codec_ops cm_szip_ops = {.name = "szip",
                                  .kind = CM_CODEC_BYTES_BYTES,
                                  .prepare = prepare,
                                  .bound = bound,
                                  .decode = decode};
