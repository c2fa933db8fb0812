/*
 * The codec `scale_offset`: (x - offset) * scale, in the arithmetic of the
 * array's own type; back by x / scale + offset.
 *
 * zarr-extensions, codecs/scale_offset: a value on the way that the type cannot
 * represent is an error.  For integers that is an overflow or a quotient that is
 * not whole; floats become infinite as IEEE 754 has it.
 */
#include <string.h>

#include "codec/impl.h"
#include "model/half.h"

typedef int8_t any_i8;
typedef uint8_t any_u8;
typedef int16_t __attribute__((aligned(1), may_alias)) any_i16;
typedef int32_t __attribute__((aligned(1), may_alias)) any_i32;
typedef int64_t __attribute__((aligned(1), may_alias)) any_i64;
typedef uint16_t __attribute__((aligned(1), may_alias)) any_u16;
typedef uint32_t __attribute__((aligned(1), may_alias)) any_u32;
typedef uint64_t __attribute__((aligned(1), may_alias)) any_u64;
typedef float __attribute__((aligned(1), may_alias)) any_f32;
typedef double __attribute__((aligned(1), may_alias)) any_f64;

/* Index of the first element that could not be represented, or N. */
typedef uint64_t transform_fn(const cm_codec_spec *spec, const void *src, void *dst, uint64_t n);

/* A divisor of -1 is the one quotient that can overflow: INT_MIN / -1. */
#define INTEGER(name, type, is_overflowing_quotient)                                               \
    static uint64_t encode_##name(const cm_codec_spec *spec, const void *src, void *dst,           \
                                  uint64_t n)                                                      \
    {                                                                                              \
        type scale, offset, x;                                                                     \
        memcpy(&scale, spec->exact_scale, sizeof scale);                                           \
        memcpy(&offset, spec->exact_offset, sizeof offset);                                        \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            if (__builtin_sub_overflow(((const any_##name *)src)[i], offset, &x) ||                \
                __builtin_mul_overflow(x, scale, &x))                                              \
                return i;                                                                          \
            ((any_##name *)dst)[i] = x;                                                            \
        }                                                                                          \
        return n;                                                                                  \
    }                                                                                              \
    static uint64_t decode_##name(const cm_codec_spec *spec, const void *src, void *dst,           \
                                  uint64_t n)                                                      \
    {                                                                                              \
        type scale, offset, x;                                                                     \
        memcpy(&scale, spec->exact_scale, sizeof scale);                                           \
        memcpy(&offset, spec->exact_offset, sizeof offset);                                        \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            x = ((const any_##name *)src)[i];                                                      \
            if ((is_overflowing_quotient) || x % scale != 0 ||                                     \
                __builtin_add_overflow(x / scale, offset, &x))                                     \
                return i;                                                                          \
            ((any_##name *)dst)[i] = x;                                                            \
        }                                                                                          \
        return n;                                                                                  \
    }

#define MINIMUM_BY_MINUS_ONE(minimum) (scale == -1 && x == (minimum))

INTEGER(i8, int8_t, MINIMUM_BY_MINUS_ONE(INT8_MIN))
INTEGER(i16, int16_t, MINIMUM_BY_MINUS_ONE(INT16_MIN))
INTEGER(i32, int32_t, MINIMUM_BY_MINUS_ONE(INT32_MIN))
INTEGER(i64, int64_t, MINIMUM_BY_MINUS_ONE(INT64_MIN))
INTEGER(u8, uint8_t, false)
INTEGER(u16, uint16_t, false)
INTEGER(u32, uint32_t, false)
INTEGER(u64, uint64_t, false)

#define FLOATING(name, type)                                                                       \
    static uint64_t encode_##name(const cm_codec_spec *spec, const void *src, void *dst,           \
                                  uint64_t n)                                                      \
    {                                                                                              \
        type scale, offset;                                                                        \
        memcpy(&scale, spec->exact_scale, sizeof scale);                                           \
        memcpy(&offset, spec->exact_offset, sizeof offset);                                        \
        for (uint64_t i = 0; i < n; i++)                                                           \
            ((any_##name *)dst)[i] = (((const any_##name *)src)[i] - offset) * scale;              \
        return n;                                                                                  \
    }                                                                                              \
    static uint64_t decode_##name(const cm_codec_spec *spec, const void *src, void *dst,           \
                                  uint64_t n)                                                      \
    {                                                                                              \
        type scale, offset;                                                                        \
        memcpy(&scale, spec->exact_scale, sizeof scale);                                           \
        memcpy(&offset, spec->exact_offset, sizeof offset);                                        \
        for (uint64_t i = 0; i < n; i++)                                                           \
            ((any_##name *)dst)[i] = ((const any_##name *)src)[i] / scale + offset;                \
        return n;                                                                                  \
    }

FLOATING(f32, float)
FLOATING(f64, double)

/* The nearest half to each result; one rounding to double in between changes nothing. */
static uint64_t encode_f16(const cm_codec_spec *spec, const void *src, void *dst, uint64_t n)
{
    double scale = cm_half_to_double(cm_load_le16(spec->exact_scale));
    double offset = cm_half_to_double(cm_load_le16(spec->exact_offset));
    for (uint64_t i = 0; i < n; i++) {
        double x = cm_half_to_double(((const any_u16 *)src)[i]);
        x = cm_half_to_double(cm_half_from_double(x - offset));
        ((any_u16 *)dst)[i] = cm_half_from_double(x * scale);
    }
    return n;
}

static uint64_t decode_f16(const cm_codec_spec *spec, const void *src, void *dst, uint64_t n)
{
    double scale = cm_half_to_double(cm_load_le16(spec->exact_scale));
    double offset = cm_half_to_double(cm_load_le16(spec->exact_offset));
    for (uint64_t i = 0; i < n; i++) {
        double x = cm_half_to_double(((const any_u16 *)src)[i]);
        x = cm_half_to_double(cm_half_from_double(x / scale));
        ((any_u16 *)dst)[i] = cm_half_from_double(x + offset);
    }
    return n;
}

static const struct row {
    cm_kind kind;
    uint32_t nbytes;
    transform_fn *decode, *encode;
} rows[] = {
    {CM_KIND_INT, 1, decode_i8, encode_i8},     {CM_KIND_INT, 2, decode_i16, encode_i16},
    {CM_KIND_INT, 4, decode_i32, encode_i32},   {CM_KIND_INT, 8, decode_i64, encode_i64},
    {CM_KIND_UINT, 1, decode_u8, encode_u8},    {CM_KIND_UINT, 2, decode_u16, encode_u16},
    {CM_KIND_UINT, 4, decode_u32, encode_u32},  {CM_KIND_UINT, 8, decode_u64, encode_u64},
    {CM_KIND_FLOAT, 2, decode_f16, encode_f16}, {CM_KIND_FLOAT, 4, decode_f32, encode_f32},
    {CM_KIND_FLOAT, 8, decode_f64, encode_f64},
};

static const struct row *row_of(const cm_dtype *t)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].kind == t->kind && rows[i].nbytes == t->nbytes)
            return &rows[i];
    return NULL;
}

static int prepare(cm_codec_step *step, cm_error *err)
{
    static const uint8_t zero[sizeof step->spec->exact_scale];
    const cm_dtype *t = &step->in.type;
    char name[32];
    if (row_of(t) == NULL) {
        return cm_fail(err, CM_EFORMAT, "elements of %s cannot be scaled",
                       cm_dtype_name(t, name, sizeof name));
    }
    if (memcmp(step->spec->exact_scale, zero, t->nbytes) == 0)
        return cm_fail(err, CM_EFORMAT, "the scale is zero");
    return cm_codec_retype(step, t, err);
}

static int transform(const cm_codec_step *step, transform_fn *fn, const char *what, cm_span src,
                     cm_room *dst, cm_error *err)
{
    uint64_t done = fn(step->spec, src.data, dst->data, step->in.nelem);
    if (done < step->in.nelem) {
        char name[32];
        return cm_fail(err, CM_EFORMAT, "element %llu cannot be %s in %s", (unsigned long long)done,
                       what, cm_dtype_name(&step->in.type, name, sizeof name));
    }
    dst->nbytes = src.nbytes;
    return CM_OK;
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    return transform(step, row_of(&step->in.type)->decode, "decoded", src, dst, err);
}

static int encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    return transform(step, row_of(&step->in.type)->encode, "encoded", src, dst, err);
}

const cm_codec_ops cm_scale_offset_ops = {.name = "scale_offset",
                                          .kind = CM_CODEC_ARRAY_ARRAY,
                                          .prepare = prepare,
                                          .decode = decode,
                                          .encode = encode};
