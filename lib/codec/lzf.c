/*
 * LZF, as h5py's filter 32000 stores it: a row of runs without a header.
 *
 * A control byte below 32 starts that many plus one literal bytes.  Otherwise
 * its upper three bits, and where they are all set the next byte too, plus two
 * are the length of a match, and its lower five bits and one more byte the
 * distance back, less one.
 */
#include <string.h>

#include "codec/impl.h"

/* Three bytes of input stand for 264 of output at best; at worst 33 for 32. */
static bool bound(const cm_codec_step *step, size_t nbytes, size_t *out)
{
    (void)step;
    return cm_add_size(nbytes, nbytes / 32 + 16, out);
}

static int prepare(cm_codec_step *step, cm_error *err)
{
    (void)err;
    step->varying = true;
    return CM_OK;
}

static int cut_short(cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "the data are cut short");
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)step;
    (void)ctx;
    const uint8_t *in = src.data, *end = src.data + src.nbytes;
    uint8_t *out = dst->data;
    size_t made = 0;
    while (in < end) {
        unsigned control = *in++;
        size_t n = control < 32 ? control + 1 : (control >> 5) + 2;
        if (control >= 32 && n == 9) {
            if (in == end)
                return cut_short(err);
            n += *in++;
        }
        if ((size_t)(end - in) < (control < 32 ? n : 1))
            return cut_short(err);
        if (n > dst->capacity - made)
            return cm_codec_no_room(dst, made + n, err);
        if (control < 32) {
            memcpy(out + made, in, n);
            in += n;
            made += n;
            continue;
        }
        size_t distance = ((size_t)(control & 31) << 8) + *in++ + 1;
        if (distance > made)
            return cm_fail(err, CM_EFORMAT, "a match %zu bytes back, %zu bytes in", distance, made);
        for (; n > 0; n--, made++) /* the match may overlap what it makes */
            out[made] = out[made - distance];
    }
    dst->nbytes = made;
    return CM_OK;
}

const cm_codec_ops cm_lzf_ops = {.name = "lzf",
                                 .kind = CM_CODEC_BYTES_BYTES,
                                 .prepare = prepare,
                                 .bound = bound,
                                 .decode = decode};
