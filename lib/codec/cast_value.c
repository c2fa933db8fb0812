/*
 * The codec `cast_value`: each element's value in another numeric type, or an
 * error where the specification has no value for it.
 *
 * zarr-extensions, codecs/cast_value.  In order: the scalar map; values that the
 * other type has; rounding, then the rule for what is out of range.
 */
#include <math.h>
#include <string.h>

#include "codec/impl.h"
#include "model/half.h"

/* A value of any numeric type, exactly. */
typedef struct number {
    bool is_integer; /* sign and magnitude; else real */
    bool negative;
    uint64_t magnitude;
    double real;
} number;

static number load(const cm_dtype *t, const uint8_t *p)
{
    uint64_t bits = 0;
    memcpy(&bits, p, t->nbytes);
    if (t->kind == CM_KIND_UINT)
        return (number){.is_integer = true, .magnitude = bits};
    if (t->kind == CM_KIND_INT) {
        unsigned shift = 64 - 8 * t->nbytes;
        int64_t v = (int64_t)(bits << shift) >> shift;
        return (number){.is_integer = true,
                        .negative = v < 0,
                        .magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v};
    }
    number n = {0};
    if (t->nbytes == 2) {
        n.real = cm_half_to_double((uint16_t)bits);
    } else if (t->nbytes == 4) {
        float f;
        memcpy(&f, p, sizeof f);
        n.real = f;
    } else {
        memcpy(&n.real, p, sizeof n.real);
    }
    return n;
}

static double round_to_integer(double x, int rounding)
{
    switch (rounding) {
    case CM_ROUND_TOWARDS_ZERO:
        return trunc(x);
    case CM_ROUND_UP:
        return ceil(x);
    case CM_ROUND_DOWN:
        return floor(x);
    case CM_ROUND_NEAREST_AWAY:
        return round(x);
    default:
        return rint(x);
    }
}

/* Why an element could not be cast; NULL: it was. */
typedef const char *outcome;

/* X as the integer type T, which has NBYTES bytes, at OUT. */
static outcome to_integer(const cm_cast_spec *cast, const cm_dtype *t, number x, uint8_t *out)
{
    bool huge = false; /* 2^64 or more: only its remainder is in the magnitude */
    if (!x.is_integer) {
        if (!isfinite(x.real))
            return "is not finite";
        double r = fabs(round_to_integer(x.real, cast->rounding));
        x.negative = signbit(x.real) && r > 0;
        huge = r >= 0x1p64;
        x.magnitude = (uint64_t)(huge ? fmod(r, 0x1p64) : r);
    }
    unsigned nbits = 8 * t->nbytes;
    bool is_signed = t->kind == CM_KIND_INT;
    uint64_t most = UINT64_MAX >> (64 - nbits) >> is_signed;
    uint64_t least = is_signed ? most + 1 : 0; /* how far below zero the type goes */
    uint64_t bits = x.negative ? 0 - x.magnitude : x.magnitude;
    if (huge || x.magnitude > (x.negative ? least : most)) {
        if (cast->out_of_range == CM_RANGE_ERROR)
            return "is out of range";
        if (cast->out_of_range == CM_RANGE_CLAMP)
            bits = x.negative ? 0 - least : most;
    }
    memcpy(out, &bits, t->nbytes);
    return NULL;
}

/* IEEE 754 binary formats. */
typedef struct format {
    int precision; /* bits of the significand, the hidden one counted */
    int max_exponent;
} format;

static format format_of(const cm_dtype *t)
{
    static const format half = {11, 15}, single = {24, 127}, twice = {53, 1023};
    return t->nbytes == 2 ? half : t->nbytes == 4 ? single : twice;
}

/* True when LOW, the UNITs below the last place of an odd or even significand, rounds it up. */
static bool rounds_up(int rounding, bool negative, bool odd, uint64_t low, uint64_t half)
{
    switch (rounding) {
    case CM_ROUND_TOWARDS_ZERO:
        return false;
    case CM_ROUND_UP:
        return low > 0 && !negative;
    case CM_ROUND_DOWN:
        return low > 0 && negative;
    case CM_ROUND_NEAREST_AWAY:
        return low >= half;
    default:
        return low > half || (low == half && odd);
    }
}

/*
 * MAGNITUDE (not 0) times 2^EXPONENT, rounded to F with the exponent unbounded
 * above; infinity when that leaves F's range.
 */
static double round_to_format(format f, int rounding, bool negative, uint64_t magnitude,
                              int exponent)
{
    int width = 64 - __builtin_clzll(magnitude);
    int top = exponent + width - 1;                             /* exponent of the leading bit */
    int least = 1 - f.max_exponent;                             /* of normal numbers */
    int last = (top < least ? least : top) - (f.precision - 1); /* of the last place kept */
    int drop = last - exponent;
    uint64_t kept = magnitude;
    if (drop > 64) {
        kept = rounds_up(rounding, negative, false, 1, 2);
        exponent = last;
    } else if (drop > 0) {
        uint64_t low = drop == 64 ? magnitude : magnitude & ((UINT64_C(1) << drop) - 1);
        kept = drop == 64 ? 0 : magnitude >> drop;
        kept += rounds_up(rounding, negative, kept & 1, low, UINT64_C(1) << (drop - 1));
        exponent = last;
    }
    double value = ldexp((double)kept, exponent);
    return value >= ldexp(1, f.max_exponent + 1) ? INFINITY : value;
}

/* X as the floating-point type T at OUT. */
static outcome to_float(const cm_cast_spec *cast, const cm_dtype *t, number x, uint8_t *out)
{
    double value = x.real;
    if (x.is_integer || (isfinite(value) && value != 0)) {
        int exponent = 0;
        bool negative = x.is_integer ? x.negative : signbit(value);
        uint64_t magnitude = x.magnitude;
        if (!x.is_integer) {
            magnitude = (uint64_t)ldexp(frexp(fabs(value), &exponent), 53);
            exponent -= 53;
        }
        value = magnitude
                    ? round_to_format(format_of(t), cast->rounding, negative, magnitude, exponent)
                    : 0;
        if (isinf(value) && cast->out_of_range != CM_RANGE_CLAMP)
            return "is out of range";
        value = negative ? -value : value;
    }
    if (t->nbytes == 2) {
        uint16_t half = cm_half_from_double(value);
        memcpy(out, &half, sizeof half);
    } else if (t->nbytes == 4) {
        float single = (float)value;
        memcpy(out, &single, sizeof single);
    } else {
        memcpy(out, &value, sizeof value);
    }
    return NULL;
}

/* Equal as numbers: -0 is 0, and any NaN is NaN. */
static bool same_number(number a, number b)
{
    if (a.is_integer)
        return a.magnitude == b.magnitude && a.negative == b.negative;
    return a.real == b.real || (isnan(a.real) && isnan(b.real));
}

static const cm_cast_pair *look_up(const cm_dtype *t, number x, const cm_cast_pair *map,
                                   size_t nmap)
{
    for (size_t i = 0; i < nmap; i++)
        if (same_number(x, load(t, map[i].from)))
            return &map[i];
    return NULL;
}

static int cast_all(const cm_codec_step *step, const cm_dtype *from, const cm_dtype *to,
                    const cm_cast_pair *map, size_t nmap, cm_span src, cm_room *dst, cm_error *err)
{
    const cm_cast_spec *cast = step->spec->cast;
    bool to_int = to->kind != CM_KIND_FLOAT;
    for (uint64_t i = 0; i < step->in.nelem; i++) {
        number x = load(from, src.data + i * from->nbytes);
        uint8_t *out = dst->data + i * to->nbytes;
        const cm_cast_pair *pair = nmap > 0 ? look_up(from, x, map, nmap) : NULL;
        if (pair != NULL) {
            memcpy(out, pair->to, to->nbytes);
            continue;
        }
        outcome why = to_int ? to_integer(cast, to, x, out) : to_float(cast, to, x, out);
        if (why != NULL) {
            char name[32];
            double value = x.is_integer ? (double)x.magnitude : x.real;
            return cm_fail(err, CM_EFORMAT, "element %llu, %.17g, %s for %s", (unsigned long long)i,
                           x.negative ? -value : value, why, cm_dtype_name(to, name, sizeof name));
        }
    }
    dst->nbytes = step->in.nelem * to->nbytes;
    return CM_OK;
}

static int prepare(cm_codec_step *step, cm_error *err)
{
    const cm_cast_spec *cast = step->spec->cast;
    char from[32], to[32];
    if (cast == NULL)
        return cm_fail(err, CM_EINVAL, "without a configuration");
    if (!cm_dtype_is_number(&step->in.type) || !cm_dtype_is_number(&cast->to)) {
        return cm_fail(err, CM_EFORMAT, "%s cannot be cast to %s",
                       cm_dtype_name(&step->in.type, from, sizeof from),
                       cm_dtype_name(&cast->to, to, sizeof to));
    }
    if (cast->out_of_range == CM_RANGE_WRAP && cast->to.kind == CM_KIND_FLOAT) {
        return cm_fail(err, CM_EFORMAT, "values of %s cannot wrap around",
                       cm_dtype_name(&cast->to, to, sizeof to));
    }
    return cm_codec_retype(step, &cast->to, err);
}

static int decode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    const cm_cast_spec *cast = step->spec->cast;
    return cast_all(step, &cast->to, &step->in.type, cast->decode_map, cast->ndecode_map, src, dst,
                    err);
}

static int encode(const cm_codec_step *step, cm_codec_ctx *ctx, cm_span src, cm_room *dst,
                  cm_error *err)
{
    (void)ctx;
    const cm_cast_spec *cast = step->spec->cast;
    return cast_all(step, &step->in.type, &cast->to, cast->encode_map, cast->nencode_map, src, dst,
                    err);
}

const cm_codec_ops cm_cast_value_ops = {.name = "cast_value",
                                        .kind = CM_CODEC_ARRAY_ARRAY,
                                        .prepare = prepare,
                                        .decode = decode,
                                        .encode = encode};
