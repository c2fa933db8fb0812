/* IEEE 754 binary16 by integer arithmetic, the same on every CPU. */
#ifndef CM_MODEL_HALF_H
#define CM_MODEL_HALF_H

#include <stdint.h>
#include <string.h>

static inline double cm_half_to_double(uint16_t half)
{
    const uint64_t sign = (uint64_t)(half & 0x8000) << 48;
    const uint32_t exponent = half >> 10 & 31;
    const uint64_t mantissa = half & 1023;
    uint64_t bits;
    if (exponent == 31)
        bits = UINT64_C(0x7ff) << 52 | mantissa << 42;
    else if (exponent)
        bits = (uint64_t)(exponent + 1023 - 15) << 52 | mantissa << 42;
    else {
        const double tiny = (double)mantissa * 0x1p-24; /* subnormal, exact */
        memcpy(&bits, &tiny, sizeof bits);
    }
    double value;
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* To the nearest, ties to even; too large a value becomes infinite. */
static inline uint16_t cm_half_from_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    bits &= INT64_MAX;
    double size;
    memcpy(&size, &bits, sizeof size);
    if (size != size) {
        const uint16_t payload = (uint16_t)(bits >> 42 & 1023);
        return (uint16_t)(sign | 0x7c00 | (payload ? payload : 512));
    }
    if (size >= 65520)
        return sign | 0x7c00;
    if (size < 0x1p-14) {
        /* Adding 2^52 times the last place leaves exactly the rounded count in the low bits. */
        const double sum = size + 0x1p28;
        memcpy(&bits, &sum, sizeof bits);
        return (uint16_t)(sign | (bits & 2047));
    }
    bits += (bits >> 42 & 1) + ((UINT64_C(1) << 41) - 1);
    return (uint16_t)(sign | ((bits >> 42) - ((uint64_t)(1023 - 15) << 10)));
}

#endif
