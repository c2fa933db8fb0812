/*
 * Integers of 8 and 16 bits: packed data.  Their sums and squares are summed exactly, as integers,
 * so that no order changes a bit, and two to eight times as many at once as doubles.
 */
#include <limits.h>
#include <string.h>

#include "model/tally_impl.h"

typedef unsigned __int128 u128;

enum {
    BLOCK = 8192 /* elements: 2^13 halves of squares, below 2^16, and so many values fit 32 bits */
};

/* Of one block. */
typedef struct block_sum {
    int32_t sum;
    uint32_t upper, lower; /* of squares: their upper and lower 16 bits */
    int32_t count, min, max;
} block_sum;

/*
 * KEEP is all ones, or zero for a missing element: a mask instead of a branch, so that the compiler
 * vectorises the loop.
 */
#define LOOP(T, U, LEAST, MOST, COUNTS)                                                            \
    do {                                                                                           \
        for (unsigned i = 0; i < n; i++) {                                                         \
            const U keep = (U) - (U)(COUNTS), gap = (U)~keep, bits = (U)x[i] & keep;               \
            const T v = (T)bits, lo = (T)(bits | (gap & (U)(MOST))),                               \
                    hi = (T)(bits | (gap & (U)(LEAST)));                                           \
            const uint32_t square = (uint32_t)v * (uint32_t)v;                                     \
            count = (uint16_t)(count + (keep & 1));                                                \
            sum += v;                                                                              \
            upper += square >> 16;                                                                 \
            lower += square & 0xffff;                                                              \
            min = lo < min ? lo : min;                                                             \
            max = hi > max ? hi : max;                                                             \
        }                                                                                          \
    } while (0)
#define KERNEL(T, U, LEAST, MOST, NAME, ATTRIBUTES)                                                \
    ATTRIBUTES static void NAME(const void *data, unsigned n, const cm_tally_rule *rule,           \
                                block_sum *out)                                                    \
    {                                                                                              \
        const T *x = data;                                                                         \
        T fill[CM_TALLY_MAX_FILLS] = {0}, min = (MOST), max = (LEAST);                             \
        int32_t sum = 0;                                                                           \
        uint16_t count = 0;                                                                        \
        uint32_t upper = 0, lower = 0;                                                             \
        for (unsigned f = 0; f < CM_TALLY_MAX_FILLS; f++)                                          \
            memcpy(&fill[f], rule->fill[f < rule->nfills ? f : 0], sizeof fill[f]);                \
        const T a = fill[0], b = fill[1], c = fill[2], d = fill[3];                                \
        if (rule->nfills == 0)                                                                     \
            LOOP(T, U, LEAST, MOST, 1);                                                            \
        else if (rule->nfills == 1)                                                                \
            LOOP(T, U, LEAST, MOST, x[i] != a);                                                    \
        else                                                                                       \
            LOOP(T, U, LEAST, MOST, (x[i] != a) & (x[i] != b) & (x[i] != c) & (x[i] != d));        \
        *out = (block_sum){sum, upper, lower, count, min, max};                                    \
    }
#define PLAIN
#define AVX2 __attribute__((target("avx2")))
#define BOTH(T, U, LEAST, MOST, NAME)                                                              \
    KERNEL(T, U, LEAST, MOST, NAME##_plain, PLAIN)                                                 \
    KERNEL(T, U, LEAST, MOST, NAME##_avx2, AVX2)

BOTH(int8_t, uint8_t, INT8_MIN, INT8_MAX, add_i8)
BOTH(uint8_t, uint8_t, 0, UINT8_MAX, add_u8)
BOTH(int16_t, uint16_t, INT16_MIN, INT16_MAX, add_i16)
BOTH(uint16_t, uint16_t, 0, UINT16_MAX, add_u16)

typedef void kernel(const void *data, unsigned n, const cm_tally_rule *rule, block_sum *out);

static kernel *kernel_of(const cm_tally_rule *rule)
{
    static kernel *const kernels[2][2][2] = {
        {{add_u8_plain, add_u8_avx2}, {add_i8_plain, add_i8_avx2}},
        {{add_u16_plain, add_u16_avx2}, {add_i16_plain, add_i16_avx2}}};
    return kernels[rule->type.nbytes == 2][rule->type.kind == CM_KIND_INT]
                  [rule->simd >= CM_SIMD_AVX2];
}

bool cm_tally_is_small(const cm_dtype *type)
{
    return (type->kind == CM_KIND_INT || type->kind == CM_KIND_UINT) && type->nbytes <= 2;
}

void cm_tally_small_run(cm_tally_small *s, const cm_tally_rule *rule, const void *data,
                        uint64_t nelem)
{
    kernel *const add = kernel_of(rule);
    const uint8_t *at = data;
    for (uint64_t i = 0; i < nelem; i += BLOCK) {
        const unsigned n = nelem - i < BLOCK ? (unsigned)(nelem - i) : BLOCK;
        block_sum b;
        add(at + i * rule->type.nbytes, n, rule, &b);
        if (b.count == 0)
            continue;
        s->min = s->count == 0 || b.min < s->min ? b.min : s->min;
        s->max = s->count == 0 || b.max > s->max ? b.max : s->max;
        s->count += (uint64_t)b.count;
        s->sum += b.sum;
        s->square += ((uint64_t)b.upper << 16) + b.lower;
    }
}

void cm_tally_small_end(const cm_tally_small *s, cm_tally *out)
{
    const u128 n = s->count;
    const uint64_t size = s->sum < 0 ? -(uint64_t)s->sum : (uint64_t)s->sum;
    const double sign = s->sum < 0 ? -1 : 1;
    out->count = s->count;
    if (s->count == 0)
        return;
    out->min = (double)s->min;
    out->max = (double)s->max;
    out->mean = sign * (double)(size / s->count);
    out->rest = sign * ((double)(size % s->count) / (double)s->count);
    /* Below 2^128 for 2^47 elements. */
    out->m2 = (double)(n * s->square - (u128)size * size) / (double)s->count;
}
