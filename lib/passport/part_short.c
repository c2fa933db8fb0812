/*
 * Steps with few elements side by side, as in chunks of whole time series: an element of each step
 * is added in turn, so that the loop runs over steps.
 */
#include <math.h>
#include <string.h>

#include "model/convert.h"
#include "passport/part_sums.h"

typedef void kernel(cm_part *part, unsigned n, const cm_tally_rule *rule, const uint8_t *data,
                    int64_t stride);

/* Differences to the first element: the squares of large numbers that differ by little do not. */
static inline void add(cm_part *p, double v)
{
    if (p->count == 0 && isfinite(v))
        p->shift = v;
    const double d = v - p->shift;
    p->count++;
    p->sum += d;
    p->square += d * d;
    p->min = v < p->min ? v : p->min;
    p->max = v > p->max ? v : p->max;
}

#define KERNEL(T, NAME)                                                                            \
    static void NAME(cm_part *part, unsigned n, const cm_tally_rule *rule, const uint8_t *data,    \
                     int64_t stride)                                                               \
    {                                                                                              \
        T fill[CM_TALLY_MAX_FILLS];                                                                \
        const unsigned nfills =                                                                    \
            rule->nfills < CM_TALLY_MAX_FILLS ? rule->nfills : CM_TALLY_MAX_FILLS;                 \
        for (unsigned f = 0; f < CM_TALLY_MAX_FILLS; f++)                                          \
            memcpy(&fill[f], rule->fill[f], sizeof(T));                                            \
        for (unsigned k = 0; k < n; k++, data += stride) {                                         \
            cm_part *p = &part[k];                                                                 \
            T x;                                                                                   \
            memcpy(&x, data, sizeof x);                                                            \
            bool ok = x == x;                                                                      \
            for (unsigned f = 0; f < nfills; f++)                                                  \
                ok &= x != fill[f];                                                                \
            p->nelem++;                                                                            \
            if (!ok)                                                                               \
                continue;                                                                          \
            add(p, (double)x);                                                                     \
        }                                                                                          \
    }

KERNEL(float, add_f32)
KERNEL(double, add_f64)
KERNEL(int8_t, add_i8)
KERNEL(uint8_t, add_u8)
KERNEL(int16_t, add_i16)
KERNEL(uint16_t, add_u16)
KERNEL(int32_t, add_i32)
KERNEL(uint32_t, add_u32)
KERNEL(int64_t, add_i64)
KERNEL(uint64_t, add_u64)

/* Half floats. */
static void add_f16(cm_part *part, unsigned n, const cm_tally_rule *rule, const uint8_t *data,
                    int64_t stride)
{
    for (unsigned k = 0; k < n; k++, data += stride) {
        cm_part *p = &part[k];
        p->nelem++;
        if (cm_tally_is_missing(rule, data))
            continue;
        add(p, cm_element_to_double(&rule->type, data));
    }
}

static kernel *kernel_of(const cm_dtype *type)
{
    static kernel *const whole[2][4] = {{add_u8, add_u16, add_u32, add_u64},
                                        {add_i8, add_i16, add_i32, add_i64}};
    const unsigned size = type->nbytes == 1 ? 0 : type->nbytes == 2 ? 1 : type->nbytes == 4 ? 2 : 3;
    if (type->kind == CM_KIND_FLOAT)
        return size == 1 ? add_f16 : size == 2 ? add_f32 : add_f64;
    return whole[type->kind == CM_KIND_INT][size];
}

void cm_part_add_short(cm_part *part, unsigned n, const cm_tally_rule *rule, const uint8_t *data,
                       int64_t stride)
{
    kernel_of (&rule->type)(part, n, rule, data, stride);
}
