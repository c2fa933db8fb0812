/*
 * State of one worker between chunks: scratch buffers and library contexts, each created when first
 * needed and kept until the worker ends.
 */
#include <libdeflate.h>
#include <stdlib.h>
#include <zstd.h>

#include "codec/impl.h"

cm_codec_ctx *cm_codec_ctx_create(cm_error *err)
{
    return cm_calloc(1, sizeof(cm_codec_ctx), err);
}

void cm_codec_ctx_free(cm_codec_ctx *ctx)
{
    if (ctx == NULL)
        return;
    cm_codec_ctx_free(ctx->inner);
    cm_buf_release(&ctx->scratch[0]);
    cm_buf_release(&ctx->scratch[1]);
    cm_buf_release(&ctx->work);
    cm_buf_release(&ctx->index);
    libdeflate_free_decompressor(ctx->inflater);
    libdeflate_free_compressor(ctx->deflater);
    ZSTD_freeDCtx(ctx->zstd_decoder);
    ZSTD_freeCCtx(ctx->zstd_encoder);
    free(ctx);
}

static void no_memory(cm_error *err, const char *what)
{
    cm_fail(err, CM_ENOMEM, "no memory for %s", what);
}

struct libdeflate_decompressor *cm_ctx_inflater(cm_codec_ctx *ctx, cm_error *err)
{
    if (ctx->inflater == NULL) {
        ctx->inflater = libdeflate_alloc_decompressor();
        if (ctx->inflater == NULL)
            no_memory(err, "a deflate decoder");
    }
    return ctx->inflater;
}

struct libdeflate_compressor *cm_ctx_deflater(cm_codec_ctx *ctx, int level, cm_error *err)
{
    if (ctx->deflater != NULL && ctx->deflate_level != level) {
        libdeflate_free_compressor(ctx->deflater);
        ctx->deflater = NULL;
    }
    if (ctx->deflater == NULL) {
        ctx->deflater = libdeflate_alloc_compressor(level);
        ctx->deflate_level = level;
        if (ctx->deflater == NULL)
            no_memory(err, "a deflate encoder");
    }
    return ctx->deflater;
}

struct ZSTD_DCtx_s *cm_ctx_zstd_decoder(cm_codec_ctx *ctx, cm_error *err)
{
    if (ctx->zstd_decoder == NULL) {
        ctx->zstd_decoder = ZSTD_createDCtx();
        if (ctx->zstd_decoder == NULL)
            no_memory(err, "a zstd decoder");
    }
    return ctx->zstd_decoder;
}

struct ZSTD_CCtx_s *cm_ctx_zstd_encoder(cm_codec_ctx *ctx, cm_error *err)
{
    if (ctx->zstd_encoder == NULL) {
        ctx->zstd_encoder = ZSTD_createCCtx();
        if (ctx->zstd_encoder == NULL)
            no_memory(err, "a zstd encoder");
    }
    return ctx->zstd_encoder;
}

cm_codec_ctx *cm_ctx_inner(cm_codec_ctx *ctx, cm_error *err)
{
    if (ctx->inner == NULL)
        ctx->inner = cm_codec_ctx_create(err);
    return ctx->inner;
}
