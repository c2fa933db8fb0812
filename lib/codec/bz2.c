/*
 * bzip2: numcodecs' bz2 and HDF5's filter 307.
 */
#include <bzlib.h>
#include <limits.h>

#include "codec/impl.h"

/* bzip2(1), "Memory management": in kilobytes, decoding 100 + 4 a 100k block, encoding 400 + 8. */
static int prepare(cm_codec_step *step, cm_error *err)
{
    int level = step->spec->level;
    if (level < 0 || level > 9)
        return cm_fail(err, CM_EFORMAT, "level %d is not between 1 and 9", level);
    step->varying = true;
    step->decode_memory = 100000 + 4 * 900000;
    step->encode_memory = 400000 + 8 * 900000;
    return CM_OK;
}

/* bzlib's manual: 1 % larger plus 600 bytes. */
static bool bound(const cm_codec_step *step, size_t nbytes, size_t *out)
{
    (void)step;
    return cm_add_size(nbytes, nbytes / 100 + 600, out);
}

/* bzlib counts in unsigned int: gives it at most that much of what is left. */
static unsigned portion(size_t left)
{
    return left > UINT_MAX ? UINT_MAX : (unsigned)left;
}

/* Decodes the stream at src.data + *AT, after what DST holds already. */
static int decode_stream(cm_span src, size_t *at, cm_room *dst, cm_error *err)
{
    bz_stream s = {0};
    if (BZ2_bzDecompressInit(&s, 0, 0) != BZ_OK)
        return cm_fail(err, CM_ENOMEM, "no memory for a bzip2 decoder");
    int rc;
    do {
        unsigned in = portion(src.nbytes - *at);
        unsigned out = portion(dst->capacity - dst->nbytes);
        s.next_in = (char *)(uintptr_t)(src.data + *at);
        s.avail_in = in;
        s.next_out = (char *)dst->data + dst->nbytes;
        s.avail_out = out;
        rc = BZ2_bzDecompress(&s);
        *at += in - s.avail_in;
        dst->nbytes += out - s.avail_out;
        if (rc == BZ_OK && in == s.avail_in && out == s.avail_out)
            break; /* no progress: cut short, or no room */
    } while (rc == BZ_OK);
    BZ2_bzDecompressEnd(&s);
    if (rc == BZ_STREAM_END)
        return CM_OK;
    if (rc == BZ_MEM_ERROR)
        return cm_fail(err, CM_ENOMEM, "no memory for a bzip2 decoder");
    if (rc == BZ_OK && dst->nbytes == dst->capacity && *at < src.nbytes)
        return cm_fail(err, CM_EBUDGET, "decodes to more than %zu bytes", dst->capacity);
    return cm_fail(err, CM_EFORMAT, "the stream is damaged or cut short");
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)step;
    (void)ctx;
    size_t at = 0;
    dst->nbytes = 0;
    do { /* several streams one after another are one, as for bzip2(1) */
        int rc = decode_stream(src, &at, dst, err);
        if (rc != CM_OK)
            return rc;
    } while (at < src.nbytes);
    return CM_OK;
}

static int encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    bz_stream s = {0};
    int level = step->spec->level > 0 ? step->spec->level : 9;
    if (BZ2_bzCompressInit(&s, level, 0, 0) != BZ_OK)
        return cm_fail(err, CM_ENOMEM, "no memory for a bzip2 encoder");
    size_t at = 0;
    int rc;
    dst->nbytes = 0;
    do {
        unsigned in = portion(src.nbytes - at);
        unsigned out = portion(dst->capacity - dst->nbytes);
        s.next_in = (char *)(uintptr_t)(src.data + at);
        s.avail_in = in;
        s.next_out = (char *)dst->data + dst->nbytes;
        s.avail_out = out;
        rc = BZ2_bzCompress(&s, at + in == src.nbytes ? BZ_FINISH : BZ_RUN);
        at += in - s.avail_in;
        dst->nbytes += out - s.avail_out;
        if (dst->nbytes == dst->capacity && rc != BZ_STREAM_END)
            break;
    } while (rc == BZ_RUN_OK || rc == BZ_FINISH_OK);
    BZ2_bzCompressEnd(&s);
    return rc == BZ_STREAM_END ? CM_OK
                               : cm_fail(err, CM_EINTERNAL, "the encoded chunk does not fit");
}

const cm_codec_ops cm_bz2_ops = {.name = "bz2",
                                 .kind = CM_CODEC_BYTES_BYTES,
                                 .prepare = prepare,
                                 .bound = bound,
                                 .decode = decode,
                                 .encode = encode};
