#include "passport/short_runs.h"

#include <math.h>
#include <string.h>

#include "model/convert.h"

void cm_short_begin(cm_short_sums *s, unsigned n)
{
    s->n = n;
    s->has_shift = false;
    s->shift = 0;
    memset(s->count, 0, sizeof s->count);
    memset(s->hash, 0, sizeof s->hash);
    memset(s->sum, 0, sizeof s->sum);
    memset(s->square, 0, sizeof s->square);
    for (unsigned k = 0; k < CM_SHORT_STEPS; k++) {
        s->min[k] = INFINITY;
        s->max[k] = -INFINITY;
    }
}

/*
 * One element of each step.  BITS is the element as an integer, whose product with an odd number
 * that belongs to its place goes into the step's fingerprint.
 */
#define KERNEL(T, U, NAME)                                                                         \
    static void NAME(cm_short_sums *s, const cm_tally_rule *rule, const uint8_t *data,             \
                     int64_t stride, uint64_t odd)                                                 \
    {                                                                                              \
        T fill[CM_TALLY_MAX_FILLS];                                                                \
        const double shift = s->shift;                                                             \
        const unsigned nfills =                                                                    \
            rule->nfills < CM_TALLY_MAX_FILLS ? rule->nfills : CM_TALLY_MAX_FILLS;                 \
        for (unsigned f = 0; f < CM_TALLY_MAX_FILLS; f++)                                          \
            memcpy(&fill[f], rule->fill[f], sizeof(T));                                            \
        for (unsigned k = 0; k < s->n; k++, data += stride) {                                      \
            T x;                                                                                   \
            U bits;                                                                                \
            memcpy(&x, data, sizeof x);                                                            \
            memcpy(&bits, data, sizeof bits);                                                      \
            bool ok = x == x;                                                                      \
            for (unsigned f = 0; f < nfills; f++)                                                  \
                ok &= x != fill[f];                                                                \
            const double v = (double)x, d = ok ? v - shift : 0;                                    \
            s->hash[k] += ok ? (bits + UINT64_C(1)) * odd : 0;                                     \
            s->count[k] += ok;                                                                     \
            s->sum[k] += d;                                                                        \
            s->square[k] += d * d;                                                                 \
            s->min[k] = ok && v < s->min[k] ? v : s->min[k];                                       \
            s->max[k] = ok && v > s->max[k] ? v : s->max[k];                                       \
        }                                                                                          \
    }

KERNEL(float, uint32_t, add_f32)
KERNEL(double, uint64_t, add_f64)
KERNEL(int8_t, uint8_t, add_i8)
KERNEL(uint8_t, uint8_t, add_u8)
KERNEL(int16_t, uint16_t, add_i16)
KERNEL(uint16_t, uint16_t, add_u16)
KERNEL(int32_t, uint32_t, add_i32)
KERNEL(uint32_t, uint32_t, add_u32)
KERNEL(int64_t, uint64_t, add_i64)
KERNEL(uint64_t, uint64_t, add_u64)

/* Half floats. */
static void add_f16(cm_short_sums *s, const cm_tally_rule *rule, const uint8_t *data,
                    int64_t stride, uint64_t odd)
{
    for (unsigned k = 0; k < s->n; k++, data += stride) {
        if (cm_tally_is_missing(rule, data))
            continue;
        uint16_t bits;
        memcpy(&bits, data, sizeof bits);
        const double v = cm_element_to_double(&rule->type, data), d = v - s->shift;
        s->hash[k] += (bits + UINT64_C(1)) * odd;
        s->count[k]++;
        s->sum[k] += d;
        s->square[k] += d * d;
        s->min[k] = v < s->min[k] ? v : s->min[k];
        s->max[k] = v > s->max[k] ? v : s->max[k];
    }
}

typedef void kernel(cm_short_sums *s, const cm_tally_rule *rule, const uint8_t *data,
                    int64_t stride, uint64_t odd);

static kernel *kernel_of(const cm_dtype *type)
{
    static kernel *const whole[2][4] = {{add_u8, add_u16, add_u32, add_u64},
                                        {add_i8, add_i16, add_i32, add_i64}};
    const unsigned size = type->nbytes == 1 ? 0 : type->nbytes == 2 ? 1 : type->nbytes == 4 ? 2 : 3;
    if (type->kind == CM_KIND_FLOAT)
        return size == 1 ? add_f16 : size == 2 ? add_f32 : add_f64;
    return whole[type->kind == CM_KIND_INT][size];
}

/* The first element that is there: sums of differences to it keep their digits. */
static void find_shift(cm_short_sums *s, const cm_tally_rule *rule, const uint8_t *data,
                       int64_t stride)
{
    for (unsigned k = 0; k < s->n && !s->has_shift; k++, data += stride) {
        if (cm_tally_is_missing(rule, data))
            continue;
        const double v = cm_element_to_double(&rule->type, data);
        s->has_shift = true;
        s->shift = fabs(v) < 1e15 ? v : 0;
    }
}

void cm_short_add(cm_short_sums *s, const cm_tally_rule *rule, const uint8_t *data, int64_t stride,
                  uint64_t nth)
{
    if (!s->has_shift)
        find_shift(s, rule, data, stride);
    kernel_of (&rule->type)(s, rule, data, stride, 2 * nth * UINT64_C(0x9e3779b97f4a7c15) + 1);
}

cm_tally cm_short_tally(const cm_short_sums *s, unsigned k, uint64_t nelem)
{
    cm_tally t = cm_tally_empty();
    t.count = s->count[k];
    t.missing = nelem - t.count;
    if (t.count == 0)
        return t;
    const double n = (double)t.count, lost = s->sum[k] * (s->sum[k] / n);
    t.min = s->min[k];
    t.max = s->max[k];
    t.mean = s->shift;
    t.rest = s->sum[k] / n;
    t.m2 = s->square[k] - lost > 0 ? s->square[k] - lost : 0;
    return t;
}
