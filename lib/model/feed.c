#include "model/feed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * Elements pass in blocks that stay in the first-level cache.  What a float32
 * holds exactly goes through float32, everything else through double, and each
 * stage is a plain loop over the block without branches, which the compiler
 * turns into vector instructions.
 */
enum {
    BLOCK = 512
};

#define INLINE static inline __attribute__((always_inline))

int cm_feed_parse(const char *text, cm_feed_to *out, cm_error *err)
{
    static const struct {
        const char *name;
        cm_feed_to to;
    } types[] = {{"float64", CM_FEED_FLOAT64},
                 {"float32", CM_FEED_FLOAT32},
                 {"float16", CM_FEED_FLOAT16},
                 {"bfloat16", CM_FEED_BFLOAT16}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(text, types[i].name) == 0) {
            *out = types[i].to;
            return CM_OK;
        }
    return cm_fail(err, CM_EINVAL, "'%s' is none of float64, float32, float16 and bfloat16", text);
}

static bool is_nothing(const cm_feed *f)
{
    return f->to == CM_FEED_SAME && !f->unpack && !f->normalize && f->nfills == 0;
}

int cm_feed_check(const cm_feed *f, cm_error *err)
{
    char name[32];
    const cm_dtype *t = &f->src;
    cm_dtype_name(t, name, sizeof name);
    if (is_nothing(f)) {
        if (cm_dtype_is_vlen(t))
            return cm_fail(err, CM_EUNSUPPORTED, "%s has elements of no fixed size", name);
        return CM_OK;
    }
    if (!cm_dtype_is_number(t) && t->kind != CM_KIND_BOOL)
        return cm_fail(err, CM_EINVAL, "%s is not a number: it cannot be cast or unpacked", name);
    if (f->to == CM_FEED_SAME && t->kind != CM_KIND_FLOAT)
        return cm_fail(err, CM_EINVAL, "%s holds neither fractions nor NaN: a cast is needed too",
                       name);
    if (f->unpack && t->kind == CM_KIND_BOOL)
        return cm_fail(err, CM_EINVAL, "bool has no scale and offset");
    if (f->unpack && (!isfinite(f->scale) || !isfinite(f->offset)))
        return cm_fail(err, CM_EINVAL, "scale and offset must be finite");
    if (f->normalize && !(isfinite(f->normal.mean) && isfinite(f->normal.std) && f->normal.std > 0))
        return cm_fail(err, CM_EINVAL, "a mean must be finite, and a standard deviation above 0");
    if (f->nfills > CM_FEED_MAX_FILLS)
        return cm_fail(err, CM_EINVAL, "%u fill values, %d at most", f->nfills, CM_FEED_MAX_FILLS);
    return CM_OK;
}

bool cm_feed_is_identity(const cm_feed *f)
{
    const bool is_float = f->src.kind == CM_KIND_FLOAT;
    const bool same = f->to == CM_FEED_SAME ||
                      (f->to == CM_FEED_FLOAT32 && is_float && f->src.nbytes == 4) ||
                      (f->to == CM_FEED_FLOAT64 && is_float && f->src.nbytes == 8);
    return same && !f->unpack && !f->normalize && f->nfills == 0;
}

uint32_t cm_feed_nbytes(const cm_feed *f)
{
    switch (f->to) {
    case CM_FEED_SAME:
        break;
    case CM_FEED_FLOAT64:
        return 8;
    case CM_FEED_FLOAT32:
        return 4;
    case CM_FEED_FLOAT16:
    case CM_FEED_BFLOAT16:
        return 2;
    }
    return f->src.nbytes;
}

char *cm_feed_type_name(const cm_feed *f, char *buf, size_t size)
{
    static const char *const names[] = {NULL, "float32", "float16", "bfloat16", "float64"};
    if (f->to == CM_FEED_SAME)
        return cm_dtype_name(&f->src, buf, size);
    snprintf(buf, size, "%s", names[f->to]);
    return buf;
}

/* ---- one element, without branches ---------------------------------------------------------- */

INLINE uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

INLINE float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* A or B by a mask: with `?:` the compiler moves the float addition of one into a branch. */
INLINE uint32_t pick(bool which, uint32_t a, uint32_t b)
{
    const uint32_t mask = -(uint32_t)which;
    return (a & mask) | (b & ~mask);
}

INLINE float half_to_float(uint16_t half)
{
    const uint32_t size = (uint32_t)(half & 0x7fff) << 13;
    const uint32_t exponent = size & 0x0f800000;
    const uint32_t normal = size + ((exponent == 0x0f800000 ? 224u : 112u) << 23);
    /* Subnormal: as the fraction of 2^-14, which is then taken away, exactly. */
    const uint32_t tiny = bits_of(float_of(size + (113u << 23)) - 0x1p-14f);
    return float_of(pick(exponent != 0, normal, tiny) | (uint32_t)(half & 0x8000) << 16);
}

INLINE uint16_t float_to_half(float value)
{
    const uint32_t bits = bits_of(value), size = bits & 0x7fffffff;
    /* The last place of 0.5 is 2^-24, that of a subnormal float16: the addition rounds. */
    const uint32_t tiny = bits_of(float_of(size) + 0.5f) - bits_of(0.5f);
    const uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    const uint32_t nan = 0x7e00 | (size >> 13 & 0x3ff);
    const uint32_t number = pick(size < 0x38800000, tiny, pick(size < 0x47800000, normal, 0x7c00));
    return (uint16_t)(pick(size > 0x7f800000, nan, number) | (bits >> 16 & 0x8000));
}

INLINE uint16_t float_to_bfloat(float value)
{
    const uint32_t bits = bits_of(value);
    const uint32_t number = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : number);
}

/*
 * Rounded to odd: cut off, and the last bit set where anything was.  Rounding
 * that to a type with two bits less gives what rounding VALUE would have given
 * (Boldo and Melquiond 2008), so that nothing is rounded twice.  Too large a
 * value becomes the largest float32, which is infinite in either 16-bit type.
 */
INLINE float odd_float(double value)
{
    const float near = (float)value;
    const double back = near;
    uint32_t bits = bits_of(near);
    bits -= fabs(back) > fabs(value);
    bits |= back != value;
    return float_of(bits);
}

/* Rounds 64-bit integers to odd in a double: the last 11 bits become one if they do not fit. */
INLINE double odd_double_u64(uint64_t v)
{
    const uint64_t cut = v >> 11 | ((v & 2047) != 0);
    return v >> 53 ? (double)cut * 2048 : (double)v;
}

INLINE double odd_double_i64(int64_t v)
{
    const double size = odd_double_u64(v < 0 ? -(uint64_t)v : (uint64_t)v);
    return v < 0 ? -size : size;
}

/* ---- one block ------------------------------------------------------------------------------ */

/* out[i] = EXPR of the element V of TYPE, read where alignment does not matter. */
#define EACH(type, expr)                                                                           \
    for (size_t i = 0; i < n; i++) {                                                               \
        type v;                                                                                    \
        memcpy(&v, s + i * sizeof v, sizeof v);                                                    \
        out[i] = (expr);                                                                           \
    }                                                                                              \
    break

INLINE unsigned type_code(cm_kind kind, uint32_t nbytes)
{
    return (unsigned)kind << 4 | nbytes;
}

/* Types that a float32 holds exactly. */
INLINE void load_floats(unsigned code, const uint8_t *s, size_t n, float *restrict out)
{
    switch (code) {
    case CM_KIND_BOOL << 4 | 1:
        EACH(uint8_t, v ? 1.0f : 0.0f);
    case CM_KIND_INT << 4 | 1:
        EACH(int8_t, (float)v);
    case CM_KIND_UINT << 4 | 1:
        EACH(uint8_t, (float)v);
    case CM_KIND_INT << 4 | 2:
        EACH(int16_t, (float)v);
    case CM_KIND_UINT << 4 | 2:
        EACH(uint16_t, (float)v);
    case CM_KIND_FLOAT << 4 | 2:
        EACH(uint16_t, half_to_float(v));
    default:
        EACH(float, v);
    }
}

/* Exact, or rounded to odd; 64-bit integers to the nearest where NEAREST. */
INLINE void load_doubles(unsigned code, bool nearest, const uint8_t *s, size_t n,
                         double *restrict out)
{
    switch (code) {
    case CM_KIND_BOOL << 4 | 1:
        EACH(uint8_t, v ? 1.0 : 0.0);
    case CM_KIND_INT << 4 | 1:
        EACH(int8_t, v);
    case CM_KIND_UINT << 4 | 1:
        EACH(uint8_t, v);
    case CM_KIND_INT << 4 | 2:
        EACH(int16_t, v);
    case CM_KIND_UINT << 4 | 2:
        EACH(uint16_t, v);
    case CM_KIND_FLOAT << 4 | 2:
        EACH(uint16_t, half_to_float(v));
    case CM_KIND_INT << 4 | 4:
        EACH(int32_t, v);
    case CM_KIND_UINT << 4 | 4:
        EACH(uint32_t, v);
    case CM_KIND_FLOAT << 4 | 4:
        EACH(float, v);
    case CM_KIND_INT << 4 | 8:
        if (nearest) {
            EACH(int64_t, (double)v);
        }
        EACH(int64_t, odd_double_i64(v));
    case CM_KIND_UINT << 4 | 8:
        if (nearest) {
            EACH(uint64_t, (double)v);
        }
        EACH(uint64_t, odd_double_u64(v));
    default:
        EACH(double, v);
    }
}

#define PUT(type, expr)                                                                            \
    for (size_t i = 0; i < n; i++) {                                                               \
        const type v = (expr);                                                                     \
        memcpy(d + i * sizeof v, &v, sizeof v);                                                    \
    }                                                                                              \
    break

typedef enum target {
    TO_FLOAT64,
    TO_FLOAT32,
    TO_FLOAT16,
    TO_BFLOAT16
} target;

static target target_of(const cm_feed *f)
{
    switch (f->to) {
    case CM_FEED_FLOAT32:
        return TO_FLOAT32;
    case CM_FEED_FLOAT16:
        return TO_FLOAT16;
    case CM_FEED_BFLOAT16:
        return TO_BFLOAT16;
    case CM_FEED_FLOAT64:
        return TO_FLOAT64;
    case CM_FEED_SAME:
        break;
    }
    return f->src.nbytes == 8 ? TO_FLOAT64 : f->src.nbytes == 4 ? TO_FLOAT32 : TO_FLOAT16;
}

INLINE void store_floats(target to, const float *restrict in, size_t n, uint8_t *d)
{
    switch (to) {
    case TO_FLOAT16:
        PUT(uint16_t, float_to_half(in[i]));
    case TO_BFLOAT16:
        PUT(uint16_t, float_to_bfloat(in[i]));
    default:
        PUT(float, in[i]);
    }
}

INLINE void store_doubles(target to, const double *restrict in, size_t n, uint8_t *d)
{
    float odd[BLOCK];
    switch (to) {
    case TO_FLOAT64:
        PUT(double, in[i]);
    case TO_FLOAT32:
        PUT(float, (float)in[i]);
    default:
        for (size_t i = 0; i < n; i++)
            odd[i] = odd_float(in[i]);
        store_floats(to, odd, n, d);
    }
}

#define MARK(type)                                                                                 \
    do {                                                                                           \
        type fill;                                                                                 \
        memcpy(&fill, f->fill[k], sizeof fill);                                                    \
        for (size_t i = 0; i < n; i++) {                                                           \
            type v;                                                                                \
            memcpy(&v, s + i * sizeof v, sizeof v);                                                \
            is_fill[i] |= v == fill;                                                               \
        }                                                                                          \
    } while (0)

/* A fill value that is NaN needs no mark: such elements are NaN already. */
INLINE void mark_fills(const cm_feed *f, const uint8_t *s, size_t n, uint8_t *restrict is_fill)
{
    memset(is_fill, 0, n);
    for (unsigned k = 0; k < f->nfills; k++) {
        const uint32_t nbytes = f->src.nbytes;
        if (f->src.kind == CM_KIND_FLOAT && nbytes == 8)
            MARK(double);
        else if (f->src.kind == CM_KIND_FLOAT && nbytes == 4)
            MARK(float);
        else if (nbytes == 8)
            MARK(uint64_t);
        else if (nbytes == 4)
            MARK(uint32_t);
        else if (nbytes == 2)
            MARK(uint16_t);
        else
            MARK(uint8_t);
        if (f->src.kind == CM_KIND_FLOAT && nbytes == 2 && cm_load_le16(f->fill[k]) << 1 == 0)
            for (size_t i = 0; i < n; i++) /* the other zero */
                is_fill[i] |= (uint16_t)(cm_load_le16(s + i * 2) << 1) == 0;
    }
}

#define BLEND(type, nan)                                                                           \
    for (size_t i = 0; i < n; i++) {                                                               \
        type v;                                                                                    \
        memcpy(&v, d + i * sizeof v, sizeof v);                                                    \
        const type mask = (type)-is_fill[i];                                                       \
        v = (type)((v & ~mask) | ((nan)&mask));                                                    \
        memcpy(d + i * sizeof v, &v, sizeof v);                                                    \
    }                                                                                              \
    break

INLINE void put_nans(target to, const uint8_t *restrict is_fill, size_t n, uint8_t *restrict d)
{
    switch (to) {
    case TO_FLOAT64:
        BLEND(uint64_t, UINT64_C(0x7ff8) << 48);
    case TO_FLOAT32:
        BLEND(uint32_t, 0x7fc00000);
    case TO_FLOAT16:
        BLEND(uint16_t, 0x7e00);
    case TO_BFLOAT16:
        BLEND(uint16_t, 0x7fc0);
    }
}

INLINE void run_block(const cm_feed *f, target to, uint8_t *d, const uint8_t *s, size_t n)
{
    const unsigned code = type_code(f->src.kind, f->src.nbytes);
    const bool narrow = f->src.nbytes <= 2 || code == type_code(CM_KIND_FLOAT, 4);
    uint8_t is_fill[BLOCK];
    if (f->nfills)
        mark_fills(f, s, n, is_fill);
    const bool computes = f->unpack || f->normalize;
    if (narrow && !computes && to != TO_FLOAT64) {
        float block[BLOCK];
        load_floats(code, s, n, block);
        store_floats(to, block, n, d);
    } else {
        double block[BLOCK];
        load_doubles(code, computes || to == TO_FLOAT64, s, n, block);
        if (f->unpack) {
            const double scale = f->scale, offset = f->offset;
            for (size_t i = 0; i < n; i++)
                block[i] = block[i] * scale + offset;
        }
        if (f->normalize) {
            const double mean = f->normal.mean, std = f->normal.std;
            for (size_t i = 0; i < n; i++)
                block[i] = (block[i] - mean) / std;
        }
        store_doubles(to, block, n, d);
    }
    if (f->nfills)
        put_nans(to, is_fill, n, d);
}

#define RUN_FUNCTION(name, attributes)                                                             \
    attributes static void name(const cm_feed *f, uint8_t *d, const uint8_t *s, uint64_t nelem)    \
    {                                                                                              \
        const target to = target_of(f);                                                            \
        const size_t in = f->src.nbytes, out = cm_feed_nbytes(f);                                  \
        for (uint64_t i = 0; i < nelem; i += BLOCK)                                                \
            run_block(f, to, d + i * out, s + i * in, nelem - i < BLOCK ? nelem - i : BLOCK);      \
    }

RUN_FUNCTION(run_portable, )
#if defined(__x86_64__)
/* Without FMA, so that a product is rounded before the offset is added, on every machine. */
RUN_FUNCTION(run_avx2, __attribute__((target("avx2"))))
#endif

const cm_feed *cm_feed_at_level(const cm_feed *f, uint64_t k, cm_feed *own)
{
    if (f->level == NULL)
        return f;
    *own = *f;
    own->normal = f->level[k];
    own->level = NULL;
    return own;
}

void cm_feed_run(const cm_feed *f, void *dst, const void *src, uint64_t nelem)
{
    if (cm_feed_is_identity(f)) {
        memmove(dst, src, nelem * f->src.nbytes);
        return;
    }
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        run_avx2(f, dst, src, nelem);
        return;
    }
#endif
    run_portable(f, dst, src, nelem);
}
