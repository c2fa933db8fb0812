#include <math.h>
#include <string.h>

#include "model/convert.h"
#include "model/tally_impl.h"

enum {
    RUN = 1 << 30 /* elements that a kernel counts: a multiple of LANES, in lanes of 32 bits */
};

bool cm_tally_takes(const cm_dtype *type)
{
    const bool number =
        type->kind == CM_KIND_FLOAT || type->kind == CM_KIND_INT || type->kind == CM_KIND_UINT;
    return number &&
           (type->nbytes == 1 || type->nbytes == 2 || type->nbytes == 4 || type->nbytes == 8);
}

void cm_tally_begin(cm_tally_sum *s, const double *shift)
{
    *s = (cm_tally_sum){.has_shift = shift != NULL, .shift = shift != NULL ? *shift : 0};
    for (unsigned k = 0; k < CM_TALLY_LANES; k++) {
        s->min[k] = INFINITY;
        s->max[k] = -INFINITY;
    }
}

bool cm_tally_is_missing(const cm_tally_rule *rule, const void *element)
{
    const bool is_float = rule->type.kind == CM_KIND_FLOAT;
    const double x = is_float ? cm_element_to_double(&rule->type, element) : 0;
    for (unsigned i = 0; i < rule->nfills; i++)
        if (is_float ? x == cm_element_to_double(&rule->type, rule->fill[i])
                     : memcmp(element, rule->fill[i], rule->type.nbytes) == 0)
            return true;
    return isnan(x);
}

static void find_shift(cm_tally_sum *s, const cm_tally_rule *rule, const uint8_t *data,
                       uint64_t nelem)
{
    for (uint64_t i = 0; i < nelem && !s->has_shift; i++) {
        const uint8_t *element = data + i * rule->type.nbytes;
        if (cm_tally_is_missing(rule, element))
            continue;
        const double value = cm_element_to_double(&rule->type, element);
        s->has_shift = true;
        s->shift = isfinite(value) ? value : 0;
    }
}

/* ---- kernels ---- */

/*
 * Eight sums side by side: a CPU adds as many of them at once as it can, and the result is the
 * same.  Fused multiplication and addition, which rounds otherwise, is in neither set.  Nothing
 * branches, so that loops over K become instructions for several elements.  Fill values are
 * compared as type C: integers of 32 bits as the doubles that they become anyway, in lanes as wide
 * as the sums.
 */
#define LANES CM_TALLY_LANES
#define ADD(k)                                                                                     \
    do {                                                                                           \
        const double v = (double)x[i + (k)], e = v - shift;                                        \
        const __typeof__(fill[0]) c = (__typeof__(fill[0]))x[i + (k)];                             \
        int64_t ok = v == v;                                                                       \
        for (unsigned f = 0; f < nfills; f++)                                                      \
            ok &= c != fill[f];                                                                    \
        const double d = ok ? e : 0, lo = ok ? v : INFINITY, hi = ok ? v : -INFINITY;              \
        count[k] += ok;                                                                            \
        sum[k] += d;                                                                               \
        square[k] += d * d;                                                                        \
        min[k] = lo < min[k] ? lo : min[k];                                                        \
        max[k] = hi > max[k] ? hi : max[k];                                                        \
    } while (0)
#define BODY(nfills_)                                                                              \
    do {                                                                                           \
        const unsigned nfills = (nfills_);                                                         \
        uint64_t i = 0;                                                                            \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (unsigned k = 0; k < LANES; k++)                                                   \
                ADD(k);                                                                            \
        for (unsigned k = 0; i + k < n; k++)                                                       \
            ADD(k);                                                                                \
    } while (0)
#define KERNEL(T, C, NAME, ATTRIBUTES)                                                             \
    ATTRIBUTES static void NAME(cm_tally_sum *s, const cm_tally_rule *rule, const void *data,      \
                                uint64_t n)                                                        \
    {                                                                                              \
        const T *x = data;                                                                         \
        C fill[CM_TALLY_MAX_FILLS] = {0};                                                          \
        const double shift = s->shift;                                                             \
        int64_t count[LANES];                                                                      \
        double sum[LANES], square[LANES], min[LANES], max[LANES];                                  \
        memcpy(count, s->count, sizeof count);                                                     \
        memcpy(sum, s->sum, sizeof sum);                                                           \
        memcpy(square, s->square, sizeof square);                                                  \
        memcpy(min, s->min, sizeof min);                                                           \
        memcpy(max, s->max, sizeof max);                                                           \
        for (unsigned f = 0; f < CM_TALLY_MAX_FILLS; f++) {                                        \
            T stored;                                                                              \
            memcpy(&stored, rule->fill[f], sizeof stored);                                         \
            fill[f] = (C)stored;                                                                   \
        }                                                                                          \
        if (rule->nfills == 0)                                                                     \
            BODY(0);                                                                               \
        else if (rule->nfills == 1)                                                                \
            BODY(1);                                                                               \
        else if (rule->nfills == 2)                                                                \
            BODY(2);                                                                               \
        else                                                                                       \
            BODY(rule->nfills);                                                                    \
        memcpy(s->count, count, sizeof count);                                                     \
        memcpy(s->sum, sum, sizeof sum);                                                           \
        memcpy(s->square, square, sizeof square);                                                  \
        memcpy(s->min, min, sizeof min);                                                           \
        memcpy(s->max, max, sizeof max);                                                           \
    }
/* Comparisons may be made of elements that are not taken: no trap is asked for. */
#define PLAIN            __attribute__((optimize("no-trapping-math")))
#define AVX2             __attribute__((optimize("no-trapping-math"), target("avx2")))
#define BOTH(T, C, NAME) KERNEL(T, C, NAME##_plain, PLAIN) KERNEL(T, C, NAME##_avx2, AVX2)

KERNEL(float, float, add_f32_plain, PLAIN)
BOTH(double, double, add_f64)
BOTH(int32_t, double, add_i32)
BOTH(uint32_t, double, add_u32)
BOTH(int64_t, int64_t, add_i64)
BOTH(uint64_t, uint64_t, add_u64)

/* Half floats, one after the other. */
static void add_slowly(cm_tally_sum *s, const cm_tally_rule *rule, const void *data, uint64_t n)
{
    const uint8_t *at = data;
    for (uint64_t i = 0; i < n; i++, at += rule->type.nbytes) {
        if (cm_tally_is_missing(rule, at))
            continue;
        const unsigned k = i % LANES;
        const double v = cm_element_to_double(&rule->type, at), d = v - s->shift;
        s->count[k]++;
        s->sum[k] += d;
        s->square[k] += d * d;
        s->min[k] = v < s->min[k] ? v : s->min[k];
        s->max[k] = v > s->max[k] ? v : s->max[k];
    }
}

static cm_tally_kernel *kernel_of(const cm_tally_rule *rule)
{
    static cm_tally_kernel *const kernels[][2] = {
        {add_i32_plain, add_i32_avx2},
        {add_u32_plain, add_u32_avx2},
        {add_i64_plain, add_i64_avx2},
        {add_u64_plain, add_u64_avx2},
    };
    const cm_dtype *type = &rule->type;
    const bool avx2 = rule->simd >= CM_SIMD_AVX2, wide = type->nbytes == 8;
    cm_tally_kernel *by_hand = cm_tally_float_kernel(rule);
    if (type->kind == CM_KIND_FLOAT)
        return by_hand != NULL     ? by_hand
               : type->nbytes == 2 ? add_slowly
               : wide              ? (avx2 ? add_f64_avx2 : add_f64_plain)
                                   : add_f32_plain;
    return kernels[2 * wide + (type->kind == CM_KIND_UINT)][avx2];
}

void cm_tally_run(cm_tally_sum *s, const cm_tally_rule *rule, const void *data, uint64_t nelem)
{
    s->nelem += nelem;
    if (cm_tally_is_small(&rule->type)) {
        cm_tally_small_run(&s->small, rule, data, nelem);
        return;
    }
    if (!s->has_shift)
        find_shift(s, rule, data, nelem);
    if (rule->type.kind == CM_KIND_FLOAT && rule->type.nbytes == 4)
        s->shift = (float)s->shift; /* as kernels have it; a mean stays near enough */
    for (uint64_t i = 0; i < nelem && s->has_shift; i += RUN) /* else all are missing */
        kernel_of(rule)(s, rule, (const uint8_t *)data + i * rule->type.nbytes,
                        nelem - i < RUN ? nelem - i : RUN);
}

/* ---- sums ---- */

/*
 * Of numbers some of which are infinite, the mean as IEEE arithmetic has it, and no deviation.
 * Sums of differences to a shift would depend on the order.
 */
static void settle_infinite(cm_tally *t)
{
    const bool below = t->min == -INFINITY, above = t->max == INFINITY;
    if (t->count == 0 || (!below && !above))
        return;
    t->mean = below && above ? NAN : above ? INFINITY : -INFINITY;
    t->rest = 0;
    t->m2 = NAN;
}

bool cm_tally_end(const cm_tally_sum *s, cm_tally *out)
{
    double sum[LANES], square[LANES];
    *out = cm_tally_empty();
    if (s->small.count > 0) {
        cm_tally_small_end(&s->small, out);
        out->missing = s->nelem - out->count;
        return true;
    }
    memcpy(sum, s->sum, sizeof sum);
    memcpy(square, s->square, sizeof square);
    for (unsigned k = 0; k < LANES; k++) {
        out->count += s->count[k];
        out->min = s->min[k] < out->min ? s->min[k] : out->min;
        out->max = s->max[k] > out->max ? s->max[k] : out->max;
    }
    for (unsigned width = LANES / 2; width > 0; width /= 2)
        for (unsigned k = 0; k < width; k++) {
            sum[k] += sum[k + width];
            square[k] += square[k + width];
        }
    out->missing = s->nelem - out->count;
    if (out->count == 0)
        return true;
    const double n = (double)out->count, lost = sum[0] * (sum[0] / n);
    out->mean = s->shift;
    out->rest = sum[0] / n;
    out->m2 = square[0] - lost > 0 ? square[0] - lost : 0;
    if (!isfinite(out->rest) || !isfinite(square[0])) {
        out->m2 = INFINITY; /* finite numbers whose squares are not */
        settle_infinite(out);
        return true;
    }
    return lost <= square[0] * (1 - 0x1p-10);
}

cm_tally cm_tally_empty(void)
{
    return (cm_tally){.min = INFINITY, .max = -INFINITY};
}

/* A comes before B: the order counts for the last bits. */
static cm_tally merge(const cm_tally *a, const cm_tally *b)
{
    cm_tally out = a->count > 0 ? *a : *b;
    out.missing = a->missing + b->missing;
    if (a->count == 0 || b->count == 0)
        return out;
    const double na = (double)a->count, nb = (double)b->count, n = na + nb;
    const double d = (b->mean - a->mean) + (b->rest - a->rest);
    out.count = a->count + b->count;
    out.min = b->min < a->min ? b->min : a->min;
    out.max = b->max > a->max ? b->max : a->max;
    out.rest = a->rest + d * (nb / n);
    out.m2 = a->m2 + b->m2 + d * d * (na * (nb / n));
    settle_infinite(&out);
    return out;
}

cm_tally cm_tally_tree(const cm_tally *tally, size_t n)
{
    if (n == 0)
        return cm_tally_empty();
    if (n == 1)
        return tally[0];
    size_t half = 1;
    while (half * 2 < n)
        half *= 2;
    const cm_tally a = cm_tally_tree(tally, half), b = cm_tally_tree(tally + half, n - half);
    return merge(&a, &b);
}

cm_tally cm_tally_of_one(const cm_tally_rule *rule, const void *element, uint64_t nelem)
{
    static const uint8_t zero[8];
    cm_tally out = cm_tally_empty();
    if (element == NULL)
        element = zero;
    if (cm_tally_is_missing(rule, element)) {
        out.missing = nelem;
        return out;
    }
    if (nelem == 0)
        return out;
    out.count = nelem;
    out.min = out.max = out.mean = cm_element_to_double(&rule->type, element);
    settle_infinite(&out);
    return out;
}

cm_tally cm_tally_unpacked(const cm_tally *t, double scale, double offset)
{
    cm_tally out = *t;
    if (t->count == 0)
        return out;
    const double a = t->min * scale + offset, b = t->max * scale + offset;
    out.min = a < b ? a : b;
    out.max = a < b ? b : a;
    out.mean = (t->mean + t->rest) * scale + offset;
    out.rest = 0;
    out.m2 = t->m2 * scale * scale;
    return out;
}

double cm_tally_std(const cm_tally *t)
{
    return t->count > 0 ? sqrt(t->m2 / (double)t->count) : NAN;
}
