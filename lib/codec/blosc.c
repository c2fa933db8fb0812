/*
 * The codec `blosc`: frames of c-blosc 1.
 *
 * The usual ones are decoded, and one block of zstd or LZ4 is encoded, by
 * blosc_frame.c; all others by c-blosc's context functions, which share nothing
 * between threads.
 */
#include <blosc.h>
#include <string.h>

#include "codec/blosc_frame.h"
#include "codec/impl.h"

/* c-blosc stores what is shorter. */
enum {
    MIN_NBYTES = 128
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

/*
 * True when encoding is one block of zstd or LZ4, which needs no c-blosc.  Where
 * blocks are left to the encoder one is what we take: c-blosc allocates for each
 * block, which took half of the time of rewriting a store of zarr-python's.
 */
static bool is_own_block(const cm_codec_step *step, size_t nbytes)
{
    const cm_codec_spec *spec = step->spec;
    const bool is_one = spec->blosc.blocksize == CM_BLOSC_ONE_BLOCK || spec->blosc.blocksize == 0;
    const bool is_known = strcmp(cname_of(step), BLOSC_ZSTD_COMPNAME) == 0 ||
                          strcmp(cname_of(step), BLOSC_LZ4_COMPNAME) == 0;
    return spec->level > 0 && is_one && is_known && spec->blosc.shuffle != CM_BLOSC_BITSHUFFLE &&
           nbytes >= MIN_NBYTES && nbytes <= BLOSC_MAX_BLOCKSIZE && nbytes % typesize_of(step) == 0;
}

/* A block is shuffled beside the data, and c-blosc takes up to three for each call. */
static void estimate(cm_codec_step *step)
{
    const char *cname = cname_of(step);
    bool is_zstd = strcmp(cname, BLOSC_ZSTD_COMPNAME) == 0;
    bool is_own = is_zstd || strncmp(cname, BLOSC_LZ4_COMPNAME, 3) == 0 ||
                  strcmp(cname, BLOSC_ZLIB_COMPNAME) == 0;
    is_own =
        is_own && step->spec->blosc.cname[0] && step->spec->blosc.shuffle != CM_BLOSC_BITSHUFFLE;
    size_t block = step->in_bound + 4 * BLOSC_MAX_TYPESIZE;
    step->decode_memory = (is_own ? 1 : 3) * block + cm_zstd_decode_memory();
    step->encode_memory = (is_own_block(step, step->in_bound) ? 1 : 3) * block;
    if (is_zstd)
        step->encode_memory +=
            cm_zstd_encode_memory(cm_blosc_zstd_level(step->spec->level), step->in_bound);
    else
        step->encode_memory += 512 << 10; /* zlib's deflate takes 268 KB, LZ4 HC 256 KB */
}

static int prepare(cm_codec_step *step, cm_error *err)
{
    if (step->spec->level < 0 || step->spec->level > 9)
        return cm_fail(err, CM_EFORMAT, "level %d is not between 0 and 9", step->spec->level);
    step->varying = true;
    if (step->in_bound == CM_CODEC_UNBOUNDED)
        return CM_OK;
    if (step->in_bound > BLOSC_MAX_BUFFERSIZE)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "a chunk of %zu bytes, and %d is the most that blosc can hold",
                       step->in_bound, BLOSC_MAX_BUFFERSIZE);
    estimate(step);
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
    if (src.nbytes < CM_BLOSC_HEADER_NBYTES)
        return cm_fail(err, CM_EFORMAT, "%zu bytes cannot be a frame", src.nbytes);
    cm_blosc_header h = cm_blosc_read_header(src.data);
    if (h.cbytes != src.nbytes)
        return cm_fail(err, CM_EFORMAT, "%zu bytes, but the frame says %u", src.nbytes, h.cbytes);
    if (h.nbytes > dst->capacity)
        return cm_codec_no_room(dst, h.nbytes, err);
    dst->nbytes = h.nbytes;
    if (h.nbytes == 0)
        return CM_OK;
    if (cm_blosc_takes(&h))
        return cm_blosc_decode_frame(step, ctx, &h, src, dst, err);
    size_t valid;
    if (blosc_cbuffer_validate(src.data, src.nbytes, &valid) < 0 || valid != h.nbytes ||
        h.blocksize > h.nbytes)
        return cm_fail(err, CM_EFORMAT, "the frame's header is damaged");
    int made = blosc_decompress_ctx(src.data, dst->data, h.nbytes, 1);
    if (made <= 0 || (uint32_t)made != h.nbytes)
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
    if (is_own_block(step, src.nbytes))
        return cm_blosc_encode_block(step, ctx, cname_of(step), typesize_of(step), src, dst, err);
    if (src.nbytes > BLOSC_MAX_BUFFERSIZE) {
        return cm_fail(err, CM_EUNSUPPORTED,
                       "a chunk of %zu bytes, and %d is the most that blosc can hold", src.nbytes,
                       BLOSC_MAX_BUFFERSIZE);
    }
    const cm_codec_spec *spec = step->spec;
    size_t blocksize =
        spec->blosc.blocksize == CM_BLOSC_ONE_BLOCK ? src.nbytes : spec->blosc.blocksize;
    /* c-blosc stores a chunk only where compressing it does not fit: with more room than its bound
       it makes a frame that is longer, and that decoding refuses. */
    size_t room = src.nbytes + BLOSC_MAX_OVERHEAD;
    room = room < dst->capacity ? room : dst->capacity;
    int made =
        blosc_compress_ctx(spec->level, (int)spec->blosc.shuffle, typesize_of(step), src.nbytes,
                           src.data, dst->data, room, cname_of(step), blocksize, 1);
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
