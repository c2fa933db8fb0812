/*
 * Blosc frames, version 1, by c-blosc's context functions, which share nothing
 * between threads.
 *
 * The header is 16 bytes: version, version of the inner format, flags, element
 * size, then u32 LE decoded bytes, block size and encoded bytes (c-blosc,
 * README_CHUNK_FORMAT.rst).
 */
#include <blosc.h>
#include <string.h>

#include "codec/impl.h"

enum {
    HEADER_NBYTES = 16
};

static uint32_t typesize_of(const cm_codec_step *step)
{
    uint32_t typesize = step->spec->elementsize ? step->spec->elementsize : step->in.type.nbytes;
    return typesize == 0 || typesize > BLOSC_MAX_TYPESIZE ? 1 : typesize;
}

static const char *cname_of(const cm_codec_step *step)
{
    return step->spec->blosc.cname[0] ? step->spec->blosc.cname : BLOSC_LZ4_COMPNAME;
}

static int prepare(cm_codec_step *step, cm_error *err)
{
    if (step->spec->level < 0 || step->spec->level > 9)
        return cm_fail(err, CM_EFORMAT, "level %d is not between 0 and 9", step->spec->level);
    step->varying = true;
    if (step->in_bound == CM_CODEC_UNBOUNDED)
        return CM_OK;
    if (step->in_bound > BLOSC_MAX_BUFFERSIZE) {
        return cm_fail(err, CM_EUNSUPPORTED,
                       "a chunk of %zu bytes, and %d is the most that blosc can hold",
                       step->in_bound, BLOSC_MAX_BUFFERSIZE);
    }
    /* For each call c-blosc takes up to three blocks and a library context, and gives them back. */
    size_t blocks = 3 * step->in_bound + 4 * BLOSC_MAX_TYPESIZE;
    int zstd_level = step->spec->level < 9 ? 2 * step->spec->level - 1 : 22;
    step->decode_memory = blocks + cm_zstd_decode_memory();
    step->encode_memory = blocks;
    if (strcmp(cname_of(step), BLOSC_ZSTD_COMPNAME) == 0)
        step->encode_memory += cm_zstd_encode_memory(zstd_level, step->in_bound);
    else
        step->encode_memory += 512 << 10; /* zlib's deflate takes 268 KB, LZ4 HC 256 KB */
    return CM_OK;
}

static bool bound(const cm_codec_step *step, size_t nbytes, size_t *out)
{
    (void)step;
    return nbytes <= BLOSC_MAX_BUFFERSIZE && cm_add_size(nbytes, BLOSC_MAX_OVERHEAD, out);
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)step;
    (void)ctx;
    if (src.nbytes < HEADER_NBYTES)
        return cm_fail(err, CM_EFORMAT, "%zu bytes cannot be a frame", src.nbytes);
    uint32_t nbytes = cm_load_le32(src.data + 4);
    uint32_t blocksize = cm_load_le32(src.data + 8);
    uint32_t cbytes = cm_load_le32(src.data + 12);
    if (cbytes != src.nbytes)
        return cm_fail(err, CM_EFORMAT, "%zu bytes, but the frame says %u", src.nbytes, cbytes);
    if (nbytes > dst->capacity)
        return cm_codec_no_room(dst, nbytes, err);
    size_t valid;
    if (blosc_cbuffer_validate(src.data, src.nbytes, &valid) < 0 || valid != nbytes ||
        (blocksize > nbytes && nbytes > 0))
        return cm_fail(err, CM_EFORMAT, "the frame's header is damaged");
    dst->nbytes = nbytes;
    if (nbytes == 0)
        return CM_OK;
    int made = blosc_decompress_ctx(src.data, dst->data, nbytes, 1);
    if (made <= 0 || (uint32_t)made != nbytes)
        return cm_fail(err, CM_EFORMAT, "the frame is damaged, or its compressor is unknown");
    return CM_OK;
}

static int can_encode(const cm_codec_step *step, cm_error *err)
{
    if (blosc_compname_to_compcode(cname_of(step)) < 0) {
        return cm_fail(err, CM_EUNSUPPORTED, "this build of c-blosc has no compressor \"%s\"",
                       cname_of(step));
    }
    return CM_OK;
}

static int encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    if (src.nbytes > BLOSC_MAX_BUFFERSIZE) {
        return cm_fail(err, CM_EUNSUPPORTED,
                       "a chunk of %zu bytes, and %d is the most that blosc can hold", src.nbytes,
                       BLOSC_MAX_BUFFERSIZE);
    }
    const cm_codec_spec *spec = step->spec;
    size_t blocksize =
        spec->blosc.blocksize == CM_BLOSC_ONE_BLOCK ? src.nbytes : spec->blosc.blocksize;
    int made =
        blosc_compress_ctx(spec->level, (int)spec->blosc.shuffle, typesize_of(step), src.nbytes,
                           src.data, dst->data, dst->capacity, cname_of(step), blocksize, 1);
    if (made <= 0)
        return cm_fail(err, CM_EINTERNAL, "the encoder failed (%d)", made);
    dst->nbytes = (size_t)made;
    return CM_OK;
}

const cm_codec_ops cm_blosc_ops = {.name = "blosc",
                                   .kind = CM_CODEC_BYTES_BYTES,
                                   .prepare = prepare,
                                   .bound = bound,
                                   .decode = decode,
                                   .encode = encode,
                                   .can_encode = can_encode};
