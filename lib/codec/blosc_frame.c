/*
 * Blosc frames, version 1 of the format (c-blosc, README_CHUNK_FORMAT.rst and
 * blosc_d in blosc/blosc.c).
 *
 * After the header come u32 LE offsets of the blocks, and each block is one
 * stream, or one for each byte of an element: u32 LE length and the bytes,
 * stored as they are where that is the decoded length.
 */
#include "codec/blosc_frame.h"

#include <libdeflate.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>
#include <zstd.h>

#include "codec/shuffle.h"

enum { /* bits of the flags */
    BYTE_SHUFFLE = 0x01,
    STORED = 0x02, /* the whole frame, and without shuffle */
    BIT_SHUFFLE = 0x04,
    NOT_SPLIT = 0x10,
    FORMAT_SHIFT = 5
};

enum { /* the format in the upper three */
    FORMAT_LZ4 = 1,
    FORMAT_ZLIB = 3,
    FORMAT_ZSTD = 4
};

enum { /* the limits of splitting a block into streams */
    MAX_SPLITS = 16,
    MIN_STREAM_NBYTES = 128
};

cm_blosc_header cm_blosc_read_header(const uint8_t *frame)
{
    return (cm_blosc_header){.version = frame[0],
                             .flags = frame[2],
                             .typesize = frame[3],
                             .nbytes = cm_load_le32(frame + 4),
                             .blocksize = cm_load_le32(frame + 8),
                             .cbytes = cm_load_le32(frame + 12)};
}

bool cm_blosc_takes(const cm_blosc_header *h)
{
    unsigned format = h->flags >> FORMAT_SHIFT;
    return (h->version == 1 || h->version == 2) && !(h->flags & BIT_SHUFFLE) &&
           (format == FORMAT_LZ4 || format == FORMAT_ZLIB || format == FORMAT_ZSTD);
}

static int damaged(cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "the frame is damaged");
}

/* Exactly NBYTES into DST from a stream. */
static int decode_stream(cm_codec_ctx *ctx, unsigned format, cm_span src, uint8_t *dst,
                         size_t nbytes, cm_error *err)
{
    if (src.nbytes == nbytes) {
        memcpy(dst, src.data, nbytes);
        return CM_OK;
    }
    if (format == FORMAT_LZ4) {
        int made =
            LZ4_decompress_safe((const char *)src.data, (char *)dst, (int)src.nbytes, (int)nbytes);
        return made >= 0 && (size_t)made == nbytes ? CM_OK : damaged(err);
    }
    if (format == FORMAT_ZLIB) {
        struct libdeflate_decompressor *d = cm_ctx_inflater(ctx, err);
        if (d == NULL)
            return CM_ENOMEM;
        return libdeflate_zlib_decompress(d, src.data, src.nbytes, dst, nbytes, NULL) ==
                       LIBDEFLATE_SUCCESS
                   ? CM_OK
                   : damaged(err);
    }
    ZSTD_DCtx *d = cm_ctx_zstd_decoder(ctx, err);
    if (d == NULL)
        return CM_ENOMEM;
    return ZSTD_decompressDCtx(d, dst, nbytes, src.data, src.nbytes) == nbytes ? CM_OK
                                                                               : damaged(err);
}

/* The streams of one block that starts at src.data + AT. */
static int decode_block(cm_codec_ctx *ctx, const cm_blosc_header *h, cm_span src, size_t at,
                        uint8_t *dst, size_t nbytes, cm_error *err)
{
    bool is_whole = nbytes == h->blocksize;
    bool is_split = !(h->flags & NOT_SPLIT) && is_whole && h->typesize <= MAX_SPLITS &&
                    h->blocksize / h->typesize >= MIN_STREAM_NBYTES;
    size_t nstreams = is_split ? h->typesize : 1;
    size_t stream_nbytes = nbytes / nstreams;
    if (stream_nbytes * nstreams != nbytes)
        return damaged(err);
    for (size_t j = 0; j < nstreams; j++) {
        if (at > src.nbytes || src.nbytes - at < 4)
            return damaged(err);
        uint32_t n = cm_load_le32(src.data + at);
        at += 4;
        if (n == 0 || n > src.nbytes - at || n > INT_MAX)
            return damaged(err);
        int rc = decode_stream(ctx, h->flags >> FORMAT_SHIFT, (cm_span){src.data + at, n},
                               dst + j * stream_nbytes, stream_nbytes, err);
        if (rc != CM_OK)
            return rc;
        at += n;
    }
    return CM_OK;
}

int cm_blosc_decode_frame(const cm_codec_step *step, cm_codec_ctx *ctx, const cm_blosc_header *h,
                          cm_span src, cm_room *dst, cm_error *err)
{
    const cm_span body = {src.data + CM_BLOSC_HEADER_NBYTES, src.nbytes - CM_BLOSC_HEADER_NBYTES};
    dst->nbytes = h->nbytes;
    if (h->flags & STORED) {
        if (body.nbytes != h->nbytes)
            return damaged(err);
        memcpy(dst->data, body.data, h->nbytes);
        return CM_OK;
    }
    if (h->typesize == 0 || h->blocksize == 0 || h->blocksize > h->nbytes || h->nbytes > INT_MAX)
        return damaged(err);
    size_t nblocks = (h->nbytes - 1) / h->blocksize + 1;
    if (nblocks > body.nbytes / 4)
        return damaged(err);
    bool is_shuffled = (h->flags & BYTE_SHUFFLE) && h->typesize > 1;
    int rc = is_shuffled ? cm_buf_reserve(&ctx->work, h->blocksize, err) : CM_OK;
    for (size_t i = 0; i < nblocks && rc == CM_OK; i++) {
        uint8_t *out = dst->data + i * h->blocksize;
        size_t left = h->nbytes - i * h->blocksize;
        size_t n = left < h->blocksize ? left : h->blocksize;
        rc = decode_block(ctx, h, src, cm_load_le32(body.data + 4 * i),
                          is_shuffled ? ctx->work.data : out, n, err);
        if (is_shuffled && rc == CM_OK)
            cm_unshuffle(step->simd, h->typesize, out, ctx->work.data, n, dst->far);
    }
    return rc;
}

/* ---- encoding ---- */

int cm_blosc_zstd_level(int level)
{
    return level < 9 ? 2 * level - 1 : ZSTD_maxCLevel();
}

/* *MADE is what DATA became; 0: it would not fit ROOM_NBYTES. */
static int encode_stream(const cm_codec_step *step, cm_codec_ctx *ctx, int format,
                         const uint8_t *data, size_t nbytes, uint8_t *dst, size_t room_nbytes,
                         size_t *made, cm_error *err)
{
    const int level = step->spec->level;
    if (format == FORMAT_LZ4) { /* c-blosc's acceleration for its own level */
        const int n = LZ4_compress_fast((const char *)data, (char *)dst, (int)nbytes,
                                        (int)room_nbytes, 10 - level);
        *made = n > 0 ? (size_t)n : 0;
        return CM_OK;
    }
    ZSTD_CCtx *c = cm_ctx_zstd_encoder(ctx, err);
    if (c == NULL)
        return CM_ENOMEM;
    size_t n = ZSTD_compressCCtx(c, dst, room_nbytes, data, nbytes, cm_blosc_zstd_level(level));
    *made = ZSTD_isError(n) ? 0 : n;
    return CM_OK;
}

int cm_blosc_encode_block(const cm_codec_step *step, cm_codec_ctx *ctx, const char *cname,
                          uint32_t typesize, cm_span src, cm_room *dst, cm_error *err)
{
    enum {
        FIRST = CM_BLOSC_HEADER_NBYTES + 4 /* one offset, */ + 4 /* one length */
    };
    const bool asked = step->spec->blosc.shuffle == CM_BLOSC_SHUFFLE;
    const int format = strcmp(cname, "lz4") == 0 ? FORMAT_LZ4 : FORMAT_ZSTD;
    const uint8_t *data = src.data;
    size_t made = 0;
    int rc = CM_OK;
    if (asked && typesize > 1) {
        rc = cm_buf_reserve(&ctx->work, src.nbytes, err);
        if (rc == CM_OK)
            cm_shuffle(step->simd, typesize, ctx->work.data, src.data, src.nbytes);
        data = ctx->work.data;
    }
    /* Eight bytes less than it has, so that offset and length do not make the frame longer. */
    if (rc == CM_OK)
        rc = encode_stream(step, ctx, format, data, src.nbytes, dst->data + FIRST, src.nbytes - 8,
                           &made, err);
    if (rc != CM_OK)
        return rc;
    uint8_t *header = dst->data;
    header[0] = 2; /* BLOSC_VERSION_FORMAT */
    header[1] = 1; /* of the streams of both */
    header[2] = (uint8_t)(NOT_SPLIT | format << FORMAT_SHIFT | (asked ? BYTE_SHUFFLE : 0) |
                          (made ? 0 : STORED));
    header[3] = (uint8_t)typesize;
    cm_store_le32(header + 4, (uint32_t)src.nbytes);
    cm_store_le32(header + 8, (uint32_t)src.nbytes);
    if (!made) {
        memcpy(dst->data + CM_BLOSC_HEADER_NBYTES, src.data, src.nbytes);
        dst->nbytes = CM_BLOSC_HEADER_NBYTES + src.nbytes;
    } else {
        cm_store_le32(header + CM_BLOSC_HEADER_NBYTES, CM_BLOSC_HEADER_NBYTES + 4);
        cm_store_le32(header + CM_BLOSC_HEADER_NBYTES + 4, (uint32_t)made);
        dst->nbytes = FIRST + made;
    }
    cm_store_le32(header + 12, (uint32_t)dst->nbytes);
    return CM_OK;
}
