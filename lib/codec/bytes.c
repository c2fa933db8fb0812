/*
 * The codec `bytes`: elements as they lie in memory, or with their bytes
 * reversed for big-endian storage.
 *
 * Zarr v3, docs/v3/codecs/bytes; every v2 array and HDF5 dataset has one
 * implicitly.
 */

#include "codec/impl.h"
#include "model/copy.h"

static int prepare(cm_codec_step *step, cm_error *err)
{
    if (cm_dtype_is_vlen(&step->in.type))
        return cm_fail(err, CM_EFORMAT, "elements of variable length need vlen-utf8 or vlen-bytes");
    bool swaps = step->spec->big_endian && cm_dtype_swap_nbytes(&step->in.type) > 1;
    step->decode_is_view = !swaps;
    step->encode_is_view = !swaps;
    step->out_bound = step->in.nbytes;
    return CM_OK;
}

static int check_size(const cm_codec_step *step, size_t nbytes, cm_error *err)
{
    if (nbytes != step->in.nbytes) {
        return cm_fail(err, CM_EFORMAT, "%zu bytes for a chunk that has %zu", nbytes,
                       step->in.nbytes);
    }
    return CM_OK;
}

static int decode_view(const cm_codec_step *step, cm_span *data, cm_error *err)
{
    return check_size(step, data->nbytes, err);
}

static void swap(const cm_codec_step *step, cm_span src, cm_room *dst)
{
    uint32_t unit = cm_dtype_swap_nbytes(&step->in.type);
    cm_swap_bytes(dst->data, src.data, src.nbytes / unit, unit);
    dst->nbytes = src.nbytes;
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    int rc = check_size(step, src.nbytes, err);
    if (rc == CM_OK)
        swap(step, src, dst);
    return rc;
}

static int encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    (void)err;
    swap(step, src, dst);
    return CM_OK;
}

const cm_codec_ops cm_bytes_ops = {.name = "bytes",
                                   .kind = CM_CODEC_ARRAY_BYTES,
                                   .prepare = prepare,
                                   .decode = decode,
                                   .decode_view = decode_view,
                                   .encode = encode};
