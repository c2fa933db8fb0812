/*
 * zlib (RFC 1950) and gzip (RFC 1952), by libdeflate.
 */
#include <libdeflate.h>

#include "codec/impl.h"

/* Measured on libdeflate 1.14: struct libdeflate_compressor by level, rounded up. */
enum {
    INFLATER_NBYTES = 16 << 10,
    DEFLATER_NBYTES_FAST = 768 << 10, /* levels 0 to 9 */
    DEFLATER_NBYTES_BEST = 9216 << 10 /* levels 10 to 12 */
};

/* -1 is zlib's default, level 6. */
static int level_of(const cm_codec_step *step)
{
    return step->spec->level < 0 ? 6 : step->spec->level;
}

static int prepare(cm_codec_step *step, cm_error *err)
{
    if (step->spec->level < -1 || step->spec->level > 12)
        return cm_fail(err, CM_EFORMAT, "level %d is not between 0 and 9", step->spec->level);
    step->varying = true;
    step->decode_memory = INFLATER_NBYTES;
    step->encode_memory = level_of(step) < 10 ? DEFLATER_NBYTES_FAST : DEFLATER_NBYTES_BEST;
    return CM_OK;
}

static bool zlib_bound(const cm_codec_step *step, size_t nbytes, size_t *out)
{
    (void)step;
    *out = libdeflate_zlib_compress_bound(NULL, nbytes);
    return *out >= nbytes;
}

static bool gzip_bound(const cm_codec_step *step, size_t nbytes, size_t *out)
{
    (void)step;
    *out = libdeflate_gzip_compress_bound(NULL, nbytes);
    return *out >= nbytes;
}

static int outcome(enum libdeflate_result result, const cm_room *dst, cm_error *err)
{
    switch (result) {
    case LIBDEFLATE_SUCCESS:
        return CM_OK;
    case LIBDEFLATE_INSUFFICIENT_SPACE:
        return cm_fail(err, CM_EBUDGET, "decodes to more than %zu bytes", dst->capacity);
    default:
        return cm_fail(err, CM_EFORMAT, "the stream is damaged or cut short");
    }
}

/* Ignores bytes after the stream, as zlib's inflate does. */
static int zlib_decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                       cm_error *err)
{
    (void)step;
    struct libdeflate_decompressor *d = cm_ctx_inflater(ctx, err);
    if (d == NULL)
        return CM_ENOMEM;
    size_t used;
    return outcome(libdeflate_zlib_decompress_ex(d, src.data, src.nbytes, dst->data, dst->capacity,
                                                 &used, &dst->nbytes),
                   dst, err);
}

/* One or more members, and zeros as padding after them (gzip(1), python's gzip module). */
static int gzip_decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                       cm_error *err)
{
    (void)step;
    struct libdeflate_decompressor *d = cm_ctx_inflater(ctx, err);
    if (d == NULL)
        return CM_ENOMEM;
    size_t at = 0;
    dst->nbytes = 0;
    do {
        size_t used, made;
        int rc = outcome(libdeflate_gzip_decompress_ex(d, src.data + at, src.nbytes - at,
                                                       dst->data + dst->nbytes,
                                                       dst->capacity - dst->nbytes, &used, &made),
                         dst, err);
        if (rc != CM_OK)
            return rc;
        dst->nbytes += made;
        at += used;
        while (at < src.nbytes && src.data[at] == 0)
            at++;
    } while (at < src.nbytes);
    return CM_OK;
}

typedef size_t compress_fn(struct libdeflate_compressor *c, const void *in, size_t in_nbytes,
                           void *out, size_t out_nbytes_avail);

static int compress(const cm_codec_step *step, cm_codec_ctx *ctx, compress_fn *fn, cm_span src,
                    cm_room *dst, cm_error *err)
{
    struct libdeflate_compressor *c = cm_ctx_deflater(ctx, level_of(step), err);
    if (c == NULL)
        return CM_ENOMEM;
    dst->nbytes = fn(c, src.data, src.nbytes, dst->data, dst->capacity);
    return dst->nbytes > 0 ? CM_OK : cm_fail(err, CM_EINTERNAL, "the encoded chunk does not fit");
}

static int zlib_encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                       cm_error *err)
{
    return compress(step, ctx, libdeflate_zlib_compress, src, dst, err);
}

static int gzip_encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                       cm_error *err)
{
    return compress(step, ctx, libdeflate_gzip_compress, src, dst, err);
}

const cm_codec_ops cm_zlib_ops = {.name = "zlib",
                                  .kind = CM_CODEC_BYTES_BYTES,
                                  .prepare = prepare,
                                  .bound = zlib_bound,
                                  .decode = zlib_decode,
                                  .encode = zlib_encode};

const cm_codec_ops cm_gzip_ops = {.name = "gzip",
                                  .kind = CM_CODEC_BYTES_BYTES,
                                  .prepare = prepare,
                                  .bound = gzip_bound,
                                  .decode = gzip_decode,
                                  .encode = gzip_encode};
