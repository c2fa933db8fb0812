/*
 * Zstandard (RFC 8878).  Decoding takes any number of frames one after another,
 * skippable ones too, with or without their content size.
 */
/* For the memory estimates; they are exported by every shared libzstd since 1.3. */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include "codec/impl.h"

size_t cm_zstd_encode_memory(int level, size_t nbytes)
{
    unsigned long long size = nbytes == CM_CODEC_UNBOUNDED ? 0 : nbytes;
    return ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(level, size, 0));
}

size_t cm_zstd_decode_memory(void)
{
    return ZSTD_estimateDCtxSize();
}

static int prepare(cm_codec_step *step, cm_error *err)
{
    (void)err;
    step->varying = true;
    step->decode_memory = cm_zstd_decode_memory();
    step->encode_memory = cm_zstd_encode_memory(step->spec->level, step->in_bound);
    return CM_OK;
}

static bool bound(const cm_codec_step *step, size_t nbytes, size_t *out)
{
    (void)step;
    *out = ZSTD_compressBound(nbytes);
    return *out >= nbytes && !ZSTD_isError(*out);
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)step;
    ZSTD_DCtx *d = cm_ctx_zstd_decoder(ctx, err);
    if (d == NULL)
        return CM_ENOMEM;
    size_t made = ZSTD_decompressDCtx(d, dst->data, dst->capacity, src.data, src.nbytes);
    if (ZSTD_isError(made)) {
        if (ZSTD_getErrorCode(made) == ZSTD_error_dstSize_tooSmall)
            return cm_fail(err, CM_EBUDGET, "decodes to more than %zu bytes", dst->capacity);
        return cm_fail(err, CM_EFORMAT, "the frame is damaged or cut short (%s)",
                       ZSTD_getErrorName(made));
    }
    dst->nbytes = made;
    return CM_OK;
}

static int encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    ZSTD_CCtx *c = cm_ctx_zstd_encoder(ctx, err);
    if (c == NULL)
        return CM_ENOMEM;
    size_t rc = ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, step->spec->level);
    if (!ZSTD_isError(rc))
        rc = ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, step->spec->checksum);
    if (!ZSTD_isError(rc))
        rc = ZSTD_compress2(c, dst->data, dst->capacity, src.data, src.nbytes);
    if (ZSTD_isError(rc)) {
        return cm_fail(
            err, ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation ? CM_ENOMEM : CM_EINTERNAL,
            "the encoder failed (%s)", ZSTD_getErrorName(rc));
    }
    dst->nbytes = rc;
    return CM_OK;
}

const cm_codec_ops cm_zstd_ops = {.name = "zstd",
                                  .kind = CM_CODEC_BYTES_BYTES,
                                  .prepare = prepare,
                                  .bound = bound,
                                  .decode = decode,
                                  .encode = encode};
