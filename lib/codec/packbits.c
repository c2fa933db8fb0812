/*
 * numcodecs' packbits: one byte that counts the bits of padding, then eight
 * booleans a byte, the first in the highest bit.
 */
#include "codec/impl.h"

static int prepare(cm_codec_step *step, cm_error *err)
{
    char name[32];
    if (step->in.type.nbytes != 1 || cm_dtype_is_vlen(&step->in.type)) {
        return cm_fail(err, CM_EFORMAT, "it is for bool, and these are %s",
                       cm_dtype_name(&step->in.type, name, sizeof name));
    }
    cm_dtype type = cm_dtype_make(CM_KIND_UINT, 1);
    uint64_t n = 1 + step->in.nelem / 8 + (step->in.nelem % 8 != 0);
    return cm_codec_array_init(&step->out, &type, 1, &n, err);
}

static unsigned padding(const cm_codec_step *step)
{
    return (unsigned)(7 - (step->in.nelem + 7) % 8);
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    if (src.data[0] != padding(step)) {
        return cm_fail(err, CM_EFORMAT, "%u bits of padding, where there should be %u", src.data[0],
                       padding(step));
    }
    for (size_t i = 0; i < step->in.nelem; i++)
        dst->data[i] = src.data[1 + i / 8] >> (7 - i % 8) & 1;
    dst->nbytes = step->in.nbytes;
    return CM_OK;
}

static int encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    (void)err;
    dst->data[0] = (uint8_t)padding(step);
    for (size_t i = 0; i < step->in.nelem; i += 8) {
        uint8_t byte = 0;
        for (size_t k = i; k < i + 8 && k < step->in.nelem; k++)
            byte |= (uint8_t)((src.data[k] != 0) << (7 - k % 8));
        dst->data[1 + i / 8] = byte;
    }
    dst->nbytes = step->out.nbytes;
    return CM_OK;
}

const cm_codec_ops cm_packbits_ops = {.name = "packbits",
                                      .kind = CM_CODEC_ARRAY_ARRAY,
                                      .prepare = prepare,
                                      .decode = decode,
                                      .encode = encode};
