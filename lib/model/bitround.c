/*
 * Rounding of mantissas (Kouznetsov 2021, doi:10.5194/gmd-14-377-2021), with the
 * results of the bitround codec of numcodecs.
 */
#include "model/convert.h"

#define ROUND_LOOP(type, mantissa_bits, infinity)                                                  \
    do {                                                                                           \
        type *v = data;                                                                            \
        const unsigned drop = mantissa_bits - keepbits;                                            \
        const type below_half = (type)(((type)1 << (drop - 1)) - 1);                               \
        const type keep = (type) ~(((type)1 << drop) - 1);                                         \
        for (uint64_t i = 0; i < nelem; i++) {                                                     \
            const type x = v[i];                                                                   \
            const type odd = (type)(x >> drop & 1);                                                \
            const type rounded = (type)((type)(x + below_half + odd) & keep);                      \
            /* The carry out of a NaN's mantissa would make it a number. */                        \
            v[i] = (type)(x << 1) > (type)((type)infinity << 1) ? x : rounded;                     \
        }                                                                                          \
    } while (0)

typedef uint16_t __attribute__((aligned(1), may_alias)) any_u16;
typedef uint32_t __attribute__((aligned(1), may_alias)) any_u32;
typedef uint64_t __attribute__((aligned(1), may_alias)) any_u64;

void cm_bitround(const cm_dtype *t, unsigned keepbits, void *data, uint64_t nelem)
{
    if (t->kind != CM_KIND_FLOAT)
        return;
    if (t->nbytes == 2 && keepbits < 10)
        ROUND_LOOP(any_u16, 10, 0x7c00);
    else if (t->nbytes == 4 && keepbits < 23)
        ROUND_LOOP(any_u32, 23, 0x7f800000);
    else if (t->nbytes == 8 && keepbits < 52)
        ROUND_LOOP(any_u64, 52, UINT64_C(0x7ff0000000000000));
}

/* Half a step below infinity, and above, ties to even go there. */
#define BEYOND_LOOP(type, mantissa_bits, infinity)                                                 \
    do {                                                                                           \
        const type *v = data;                                                                      \
        const type first = (type)((type)infinity - ((type)1 << (mantissa_bits - keepbits - 1)));   \
        const type magnitude = (type)((type) ~(type)0 >> 1);                                       \
        for (uint64_t i = 0; i < nelem; i++) {                                                     \
            const type x = (type)(v[i] & magnitude);                                               \
            if (x >= first && x < (type)infinity && !skip[i])                                      \
                return i;                                                                          \
        }                                                                                          \
    } while (0)

uint64_t cm_bitround_beyond(const cm_dtype *t, unsigned keepbits, const void *data,
                            const uint8_t *skip, uint64_t nelem)
{
    if (t->kind != CM_KIND_FLOAT)
        return nelem;
    if (t->nbytes == 2 && keepbits < 10)
        BEYOND_LOOP(any_u16, 10, 0x7c00);
    else if (t->nbytes == 4 && keepbits < 23)
        BEYOND_LOOP(any_u32, 23, 0x7f800000);
    else if (t->nbytes == 8 && keepbits < 52)
        BEYOND_LOOP(any_u64, 52, UINT64_C(0x7ff0000000000000));
    return nelem;
}
