/*
 * numcodecs' codecs that change numbers: astype, delta, fixedscaleoffset,
 * quantize and bitround.
 *
 * Each takes its input for elements of `dtype`, whatever the array says, as
 * numcodecs views the bytes; so both must be of one size.  Arithmetic is in the
 * type in which numpy does it.
 */
#include <math.h>
#include <string.h>

#include "codec/impl.h"
#include "codec/number_block.h"
#include "model/convert.h"

/* Decoded type DTYPE, encoded type ASTYPE; the input must be as large as DTYPE. */
static int prepare_types(cm_codec_step *step, const cm_dtype *dtype, const cm_dtype *astype,
                         cm_error *err)
{
    char want[32], have[32];
    if (!cm_block_takes(dtype) || !cm_block_takes(astype)) {
        return cm_fail(err, CM_EUNSUPPORTED, "from %s to %s",
                       cm_dtype_name(dtype, want, sizeof want),
                       cm_dtype_name(astype, have, sizeof have));
    }
    if (step->in.type.nbytes != dtype->nbytes) {
        return cm_fail(err, CM_EUNSUPPORTED, "it is for elements of %s, and these are %s",
                       cm_dtype_name(dtype, want, sizeof want),
                       cm_dtype_name(&step->in.type, have, sizeof have));
    }
    return cm_codec_retype(step, astype, err);
}

static int prepare_spec_types(cm_codec_step *step, cm_error *err)
{
    return prepare_types(step, &step->spec->dtype, &step->spec->astype, err);
}

/* ---- astype ---- */

static int astype_decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                         cm_error *err)
{
    (void)ctx;
    (void)err;
    cm_block_cast(&step->spec->astype, src.data, &step->spec->dtype, dst->data, step->in.nelem);
    dst->nbytes = step->in.nbytes;
    return CM_OK;
}

static int astype_encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                         cm_error *err)
{
    (void)ctx;
    (void)err;
    cm_block_cast(&step->spec->dtype, src.data, &step->spec->astype, dst->data, step->in.nelem);
    dst->nbytes = step->out.nbytes;
    return CM_OK;
}

const cm_codec_ops cm_astype_ops = {.name = "astype",
                                    .kind = CM_CODEC_ARRAY_ARRAY,
                                    .prepare = prepare_spec_types,
                                    .decode = astype_decode,
                                    .encode = astype_encode};

/* ---- delta: the first element, then differences ---- */

/*
 * Running sums in DTYPE.  For bool numpy's difference is "not equal", which the
 * same again undoes; numcodecs itself restores such arrays wrong, with "or".
 */
static int delta_decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                        cm_error *err)
{
    (void)ctx;
    (void)err;
    const cm_dtype *dtype = &step->spec->dtype, *astype = &step->spec->astype;
    uint64_t ints[CM_BLOCK_NELEM], isum = 0;
    double reals[CM_BLOCK_NELEM], sum = 0;
    bool is_bool = dtype->kind == CM_KIND_BOOL;
    for (uint64_t i = 0; i < step->in.nelem; i += CM_BLOCK_NELEM) {
        uint64_t left = step->in.nelem - i;
        size_t n = left < CM_BLOCK_NELEM ? (size_t)left : CM_BLOCK_NELEM;
        const uint8_t *from = src.data + i * astype->nbytes;
        uint8_t *to = dst->data + i * dtype->nbytes;
        if (cm_block_is_float(dtype)) {
            cm_block_load_double(astype, from, n, reals);
            for (size_t k = 0; k < n; k++) {
                reals[k] = cm_block_narrow(dtype, reals[k]);
                /* Not 0 + x for the first, which would lose the sign of -0. */
                sum = i + k == 0 ? reals[k] : cm_block_narrow(dtype, sum + reals[k]);
                reals[k] = sum;
            }
            cm_block_store_double(dtype, reals, n, to);
        } else {
            cm_block_load_int(astype, from, n, ints);
            for (size_t k = 0; k < n; k++) {
                isum = is_bool ? isum ^ (ints[k] != 0) : isum + ints[k];
                ints[k] = isum;
            }
            cm_block_store_int(dtype, ints, n, false, to);
        }
    }
    dst->nbytes = step->in.nbytes;
    return CM_OK;
}

static int delta_encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                        cm_error *err)
{
    (void)ctx;
    (void)err;
    const cm_dtype *dtype = &step->spec->dtype, *astype = &step->spec->astype;
    uint64_t ints[CM_BLOCK_NELEM + 1] = {0};
    double reals[CM_BLOCK_NELEM + 1] = {0};
    union {
        uint64_t i[CM_BLOCK_NELEM];
        uint8_t bytes[CM_BLOCK_NELEM * 8];
    } difference; /* as DTYPE, whose own arithmetic wraps and rounds */
    for (uint64_t i = 0; i < step->in.nelem; i += CM_BLOCK_NELEM) {
        uint64_t left = step->in.nelem - i;
        size_t n = left < CM_BLOCK_NELEM ? (size_t)left : CM_BLOCK_NELEM;
        const uint8_t *from = src.data + i * dtype->nbytes;
        if (cm_block_is_float(dtype)) {
            double d[CM_BLOCK_NELEM];
            cm_block_load_double(dtype, from, n, reals + 1);
            for (size_t k = 0; k < n; k++)
                d[k] = i + k == 0 ? reals[1] : reals[k + 1] - reals[k];
            reals[0] = reals[n];
            cm_block_store_double(dtype, d, n, difference.bytes);
        } else {
            uint64_t d[CM_BLOCK_NELEM];
            cm_block_load_int(dtype, from, n, ints + 1);
            for (size_t k = 0; k < n; k++)
                d[k] = dtype->kind == CM_KIND_BOOL ? ints[k + 1] ^ ints[k] : ints[k + 1] - ints[k];
            ints[0] = ints[n];
            cm_block_store_int(dtype, d, n, false, difference.bytes);
        }
        cm_block_cast(dtype, difference.bytes, astype, dst->data + i * astype->nbytes, n);
    }
    dst->nbytes = step->out.nbytes;
    return CM_OK;
}

const cm_codec_ops cm_delta_ops = {.name = "delta",
                                   .kind = CM_CODEC_ARRAY_ARRAY,
                                   .prepare = prepare_spec_types,
                                   .decode = delta_decode,
                                   .encode = delta_encode};

/* ---- codecs that take blocks of doubles from one type to the other ---- */

/* Changes a block: X is of type AS, and every step keeps its precision. */
typedef void change(const cm_dtype *as, double scale, double offset, double *x, size_t n);

/* From the decoded type (DTYPE) to the encoded one (ASTYPE), or, with DECODE, back. */
static int change_blocks(const cm_codec_step *step, bool decode, change *run, double scale,
                         double offset, cm_span src, cm_room *dst)
{
    const cm_dtype *from = decode ? &step->spec->astype : &step->spec->dtype;
    const cm_dtype *to = decode ? &step->spec->dtype : &step->spec->astype;
    double block[CM_BLOCK_NELEM];
    scale = cm_block_narrow(from, scale);
    offset = cm_block_narrow(from, offset);
    for (uint64_t i = 0; i < step->in.nelem; i += CM_BLOCK_NELEM) {
        uint64_t left = step->in.nelem - i;
        size_t n = left < CM_BLOCK_NELEM ? (size_t)left : CM_BLOCK_NELEM;
        cm_block_load_double(from, src.data + i * from->nbytes, n, block);
        run(from, scale, offset, block, n);
        cm_block_store_double(to, block, n, dst->data + i * to->nbytes);
    }
    dst->nbytes = decode ? step->in.nbytes : step->out.nbytes;
    return CM_OK;
}

/* ---- fixedscaleoffset: round((x - offset) * scale) ---- */

static int fixed_prepare(cm_codec_step *step, cm_error *err)
{
    if (step->spec->scale == 0 || !isfinite(step->spec->scale) || !isfinite(step->spec->offset)) {
        return cm_fail(err, CM_EFORMAT, "scale %g and offset %g", step->spec->scale,
                       step->spec->offset);
    }
    return prepare_spec_types(step, err);
}

static void unscale(const cm_dtype *as, double scale, double offset, double *x, size_t n)
{
    for (size_t k = 0; k < n; k++)
        x[k] = cm_block_narrow(as, cm_block_narrow(as, x[k] / scale) + offset);
}

static void scale_and_round(const cm_dtype *as, double scale, double offset, double *x, size_t n)
{
    for (size_t k = 0; k < n; k++)
        x[k] = rint(cm_block_narrow(as, cm_block_narrow(as, x[k] - offset) * scale));
}

static int fixed_decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                        cm_error *err)
{
    (void)ctx;
    (void)err;
    return change_blocks(step, true, unscale, step->spec->scale, step->spec->offset, src, dst);
}

static int fixed_encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                        cm_error *err)
{
    (void)ctx;
    (void)err;
    return change_blocks(step, false, scale_and_round, step->spec->scale, step->spec->offset, src,
                         dst);
}

const cm_codec_ops cm_fixedscaleoffset_ops = {.name = "fixedscaleoffset",
                                              .kind = CM_CODEC_ARRAY_ARRAY,
                                              .prepare = fixed_prepare,
                                              .decode = fixed_decode,
                                              .encode = fixed_encode};

/* ---- quantize: multiples of a power of two that keep so many decimal digits ---- */

static int quantize_prepare(cm_codec_step *step, cm_error *err)
{
    if (!cm_block_is_float(&step->spec->dtype) || !cm_block_is_float(&step->spec->astype))
        return cm_fail(err, CM_EFORMAT, "it is for floating-point types only");
    return prepare_spec_types(step, err);
}

/* numcodecs/quantize.py, with the same calls of the C library. */
static double quantize_scale(int digits)
{
    double exponent = log10(pow(10.0, -digits));
    exponent = exponent < 0 ? floor(exponent) : ceil(exponent);
    return pow(2.0, ceil(log2(pow(10.0, -exponent))));
}

static void quantize(const cm_dtype *as, double scale, double offset, double *x, size_t n)
{
    (void)offset;
    for (size_t k = 0; k < n; k++)
        x[k] = cm_block_narrow(as, rint(cm_block_narrow(as, scale * x[k])) / scale);
}

static int quantize_encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                           cm_error *err)
{
    (void)ctx;
    (void)err;
    return change_blocks(step, false, quantize, quantize_scale((int)step->spec->keepbits), 0, src,
                         dst);
}

const cm_codec_ops cm_quantize_ops = {.name = "quantize",
                                      .kind = CM_CODEC_ARRAY_ARRAY,
                                      .prepare = quantize_prepare,
                                      .decode = astype_decode,
                                      .encode = quantize_encode};

/* ---- bitround: decoding does nothing ---- */

static int bitround_prepare(cm_codec_step *step, cm_error *err)
{
    return cm_codec_retype(step, &step->in.type, err);
}

static int bitround_can_encode(const cm_codec_step *step, cm_error *err)
{
    const cm_dtype *t = &step->in.type;
    unsigned most = t->nbytes == 2 ? 10 : t->nbytes == 4 ? 23 : 52;
    if (!cm_block_is_float(t))
        return cm_fail(err, CM_EUNSUPPORTED, "only floating-point numbers can be rounded");
    if (step->spec->keepbits > most) {
        return cm_fail(err, CM_EFORMAT, "%u bits kept of a mantissa of %u", step->spec->keepbits,
                       most);
    }
    return CM_OK;
}

static int bitround_encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                           cm_error *err)
{
    (void)ctx;
    (void)err;
    memcpy(dst->data, src.data, src.nbytes);
    cm_bitround(&step->in.type, step->spec->keepbits, dst->data, step->in.nelem);
    dst->nbytes = src.nbytes;
    return CM_OK;
}

const cm_codec_ops cm_bitround_ops = {.name = "bitround",
                                      .kind = CM_CODEC_ARRAY_ARRAY,
                                      .prepare = bitround_prepare,
                                      .decode_view = cm_codec_view_all,
                                      .encode = bitround_encode,
                                      .can_encode = bitround_can_encode};
