/*
 * The codec `transpose`: dimension i of the encoded array is dimension order[i]
 * of the decoded one.
 *
 * Zarr v3, docs/v3/codecs/transpose; a v2 array of order F is one with the
 * dimensions reversed.
 */
#include "codec/impl.h"
#include "model/copy.h"

static int prepare(cm_codec_step *step, cm_error *err)
{
    bool seen[CM_MAX_RANK] = {false};
    bool identity = true;
    uint64_t shape[CM_MAX_RANK];
    for (unsigned i = 0; i < step->in.rank; i++) {
        unsigned from = step->spec->order[i];
        if (from >= step->in.rank || seen[from]) {
            return cm_fail(err, CM_EFORMAT, "the order is not a permutation of %u dimensions",
                           step->in.rank);
        }
        seen[from] = true;
        shape[i] = step->in.shape[from];
        identity = identity && from == i;
    }
    step->decode_is_view = identity;
    step->encode_is_view = identity;
    return cm_codec_array_init(&step->out, &step->in.type, step->in.rank, shape, err);
}

/* Byte strides of the encoded dimensions within the encoded and within the decoded array. */
static void strides(const cm_codec_step *step, size_t itemsize, int64_t *encoded, int64_t *decoded)
{
    int64_t c[CM_MAX_RANK];
    cm_strides_c(step->in.rank, step->in.shape, itemsize, c);
    cm_strides_c(step->out.rank, step->out.shape, itemsize, encoded);
    for (unsigned i = 0; i < step->in.rank; i++)
        decoded[i] = c[step->spec->order[i]];
}

static int turn(const cm_codec_step *step, bool encode, cm_span src, cm_room *dst)
{
    int64_t encoded[CM_MAX_RANK], decoded[CM_MAX_RANK];
    size_t itemsize = step->in.type.nbytes;
    strides(step, itemsize, encoded, decoded);
    cm_copy_nd(step->out.rank, step->out.shape, itemsize, dst->data, encode ? encoded : decoded,
               src.data, encode ? decoded : encoded);
    dst->nbytes = src.nbytes;
    return CM_OK;
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    (void)err;
    return turn(step, false, src, dst);
}

static int encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    (void)err;
    return turn(step, true, src, dst);
}

const cm_codec_ops cm_transpose_ops = {.name = "transpose",
                                       .kind = CM_CODEC_ARRAY_ARRAY,
                                       .prepare = prepare,
                                       .decode = decode,
                                       .decode_view = cm_codec_view_all,
                                       .encode = encode};
