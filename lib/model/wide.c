#include "model/wide_impl.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "model/convert.h"
#include "model/half.h"

/* ---- loading -------------------------------------------------------------------------------- */

#define LOAD_LOOP(type, wide)                                                                      \
    for (size_t i = 0; i < n; i++) {                                                               \
        type v;                                                                                    \
        memcpy(&v, s + i * sizeof v, sizeof v);                                                    \
        out[i] = (wide)v;                                                                          \
    }                                                                                              \
    return

void cm_wide_load_float(unsigned nbytes, const uint8_t *s, size_t n, double *out)
{
    if (nbytes == 8) {
        LOAD_LOOP(double, double);
    }
    if (nbytes == 4) {
        LOAD_LOOP(float, double);
    }
    for (size_t i = 0; i < n; i++)
        out[i] = cm_half_to_double(cm_load_le16(s + i * 2));
}

void cm_wide_load_doubles(const cm_dtype *t, const uint8_t *s, size_t n, double *out)
{
    const bool sign = t->kind == CM_KIND_INT;
    if (t->kind == CM_KIND_FLOAT) {
        cm_wide_load_float(t->nbytes, s, n, out);
        return;
    }
    switch (t->nbytes) {
    case 1:
        if (sign) {
            LOAD_LOOP(int8_t, double);
        }
        LOAD_LOOP(uint8_t, double);
    case 2:
        if (sign) {
            LOAD_LOOP(int16_t, double);
        }
        LOAD_LOOP(uint16_t, double);
    case 4:
        if (sign) {
            LOAD_LOOP(int32_t, double);
        }
        LOAD_LOOP(uint32_t, double);
    default:
        if (sign) {
            LOAD_LOOP(int64_t, double);
        }
        LOAD_LOOP(uint64_t, double);
    }
}

void cm_wide_load_integers(const cm_dtype *t, const uint8_t *s, size_t n, uint64_t *out)
{
    const bool sign = t->kind == CM_KIND_INT;
    switch (t->nbytes) {
    case 1:
        if (sign) {
            LOAD_LOOP(int8_t, uint64_t);
        }
        LOAD_LOOP(uint8_t, uint64_t);
    case 2:
        if (sign) {
            LOAD_LOOP(int16_t, uint64_t);
        }
        LOAD_LOOP(uint16_t, uint64_t);
    case 4:
        if (sign) {
            LOAD_LOOP(int32_t, uint64_t);
        }
        LOAD_LOOP(uint32_t, uint64_t);
    default:
        LOAD_LOOP(uint64_t, uint64_t);
    }
}

/* ---- checking and storing ------------------------------------------------------------------- */

/* Range of the integer type T as [low, high]. */
static void integer_range(const cm_dtype *t, int64_t *low, uint64_t *high)
{
    const unsigned bits = t->nbytes * 8;
    const bool sign = t->kind == CM_KIND_INT;
    *high = UINT64_MAX >> (64 - bits + sign);
    *low = sign ? -(int64_t)*high - 1 : 0;
}

size_t cm_wide_first_bad(const uint8_t *bad, const uint8_t *skip, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bad[i] && !skip[i])
            return i;
    }
    return n;
}

size_t cm_wide_check_integers(const cm_dtype *t, bool src_signed, const uint64_t *v,
                              const uint8_t *skip, size_t n)
{
    uint8_t bad[CM_WIDE_BLOCK];
    int64_t low;
    uint64_t high;
    integer_range(t, &low, &high);
    for (size_t i = 0; i < n; i++) {
        const bool negative = src_signed && (int64_t)v[i] < 0;
        bad[i] = negative ? (int64_t)v[i] < low : v[i] > high;
    }
    return cm_wide_first_bad(bad, skip, n);
}

size_t cm_wide_check_rounded(const cm_dtype *t, const double *v, const uint8_t *skip, size_t n,
                             uint64_t *u)
{
    uint8_t bad[CM_WIDE_BLOCK];
    int64_t low;
    uint64_t high;
    integer_range(t, &low, &high);
    /* HIGH + 1 is a power of two and exact as a double; HIGH itself, of 64 bits, is not. */
    const double first = (double)low, end = 2 * (double)(high / 2 + 1);
    for (size_t i = 0; i < n; i++) {
        const double r = rint(v[i]);
        const bool fits = r >= first && r < end;
        bad[i] = !fits;
        u[i] = !fits ? 0 : r < 0 ? (uint64_t)(int64_t)r : (uint64_t)r;
    }
    return cm_wide_first_bad(bad, skip, n);
}

size_t cm_wide_check_float(unsigned nbytes, const double *v, const uint8_t *skip, size_t n)
{
    if (nbytes == 8)
        return n;
    /* Half a place above the largest number: the tie goes to the even neighbour, infinity. */
    const double limit = nbytes == 4 ? 0x1.ffffffp+127 : 65520;
    uint8_t bad[CM_WIDE_BLOCK];
    for (size_t i = 0; i < n; i++)
        bad[i] = fabs(v[i]) >= limit && fabs(v[i]) <= DBL_MAX;
    return cm_wide_first_bad(bad, skip, n);
}

#define STORE_LOOP(type)                                                                           \
    for (size_t i = 0; i < n; i++) {                                                               \
        const type x = (type)v[i];                                                                 \
        memcpy(d + i * sizeof x, &x, sizeof x);                                                    \
    }                                                                                              \
    return

void cm_wide_store_integers(unsigned nbytes, const uint64_t *v, size_t n, uint8_t *d)
{
    switch (nbytes) {
    case 1:
        STORE_LOOP(uint8_t);
    case 2:
        STORE_LOOP(uint16_t);
    case 4:
        STORE_LOOP(uint32_t);
    default:
        STORE_LOOP(uint64_t);
    }
}

void cm_wide_store_float(unsigned nbytes, const double *v, size_t n, uint8_t *d)
{
    if (nbytes == 8) {
        STORE_LOOP(double);
    }
    if (nbytes == 4) {
        STORE_LOOP(float);
    }
    for (size_t i = 0; i < n; i++) {
        const uint16_t half = cm_half_from_double(v[i]);
        memcpy(d + i * 2, &half, 2);
    }
}

void cm_wide_store_float32(bool src_signed, const uint64_t *v, size_t n, uint8_t *d)
{
    for (size_t i = 0; i < n; i++) {
        const float f = src_signed ? (float)(int64_t)v[i] : (float)v[i];
        memcpy(d + i * 4, &f, 4);
    }
}

/* ---- saturating ------------------------------------------------------------------------------ */

void cm_wide_clamp_integers(const cm_dtype *t, bool src_signed, uint64_t *v, size_t n)
{
    int64_t low;
    uint64_t high;
    integer_range(t, &low, &high);
    for (size_t i = 0; i < n; i++) {
        const bool negative = src_signed && (int64_t)v[i] < 0;
        if (negative ? (int64_t)v[i] < low : v[i] > high)
            v[i] = negative ? (uint64_t)low : high;
    }
}

void cm_wide_clamp_floats(const cm_dtype *t, double *v, size_t n)
{
    const double most = t->nbytes == 8 ? DBL_MAX : t->nbytes == 4 ? FLT_MAX : 65504;
    for (size_t i = 0; i < n; i++)
        if (fabs(v[i]) > most && fabs(v[i]) <= DBL_MAX)
            v[i] = copysign(most, v[i]);
}

/* To integers after rounding, as doubles cannot tell the ends of 64 bits; NaN is left out. */
static void clamp_rounded(const cm_dtype *t, const double *v, size_t n, uint64_t *u)
{
    int64_t low;
    uint64_t high;
    integer_range(t, &low, &high);
    const double first = (double)low, end = 2 * (double)(high / 2 + 1);
    for (size_t i = 0; i < n; i++) {
        const double r = rint(v[i]); /* before u[i], which may be the same memory */
        u[i] = r < first  ? (uint64_t)low
               : r >= end ? high
               : r < 0    ? (uint64_t)(int64_t)r
                          : (uint64_t)r;
    }
}

static size_t first_nan(const double *v, const uint8_t *skip, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(v[i]) && !skip[i])
            return i;
    return n;
}

size_t cm_wide_saturate_to_integers(const cm_dtype *t, cm_wide_block *w, const uint8_t *skip,
                                    size_t n)
{
    const size_t done = first_nan(w->d, skip, n);
    for (size_t i = 0; i < done; i++)
        w->d[i] = isnan(w->d[i]) ? 0 : w->d[i];
    clamp_rounded(t, w->d, done, w->u);
    return done;
}

/* ---- single elements ------------------------------------------------------------------------ */

double cm_element_to_double(const cm_dtype *t, const void *element)
{
    double value = NAN;
    if (t->kind == CM_KIND_BOOL)
        value = *(const uint8_t *)element != 0;
    else if (cm_dtype_is_number(t))
        cm_wide_load_doubles(t, element, 1, &value);
    return value;
}

bool cm_element_from_double(const cm_dtype *t, double value, void *element)
{
    const uint8_t no_skip = 0;
    uint64_t bits = 0;
    uint8_t bytes[8];
    if (t->kind == CM_KIND_BOOL) {
        bytes[0] = value == 1;
    } else if (t->kind == CM_KIND_FLOAT) {
        cm_wide_store_float(t->nbytes, &value, 1, bytes);
    } else if (cm_is_integer(t) && cm_wide_check_rounded(t, &value, &no_skip, 1, &bits)) {
        cm_wide_store_integers(t->nbytes, &bits, 1, bytes);
    } else {
        return false;
    }
    const double back = cm_element_to_double(t, bytes);
    if (back != value && !(isnan(back) && isnan(value)))
        return false;
    memcpy(element, bytes, t->nbytes);
    return true;
}

void cm_element_twin(const cm_dtype *t, const void *element, void *out)
{
    memcpy(out, element, t->nbytes);
    if (t->kind == CM_KIND_FLOAT && cm_element_to_double(t, element) == 0)
        ((uint8_t *)out)[t->nbytes - 1] ^= 0x80;
}

/* "TEXT", quoted, without the zeros behind it; false: the bytes are none that can be shown. */
static bool show_bytes(const cm_dtype *t, const uint8_t *element, char *buf, size_t size)
{
    size_t n = t->nbytes;
    while (n > 0 && element[n - 1] == 0)
        n--;
    if (t->kind != CM_KIND_BYTES || n + 3 > size || !cm_utf8_is_valid(element, n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (element[i] < ' ' || element[i] == 127)
            return false;
    snprintf(buf, size, "\"%.*s\"", (int)n, (const char *)element);
    return true;
}

void cm_element_text(const cm_dtype *t, const uint8_t *element, char *buf, size_t size)
{
    if (cm_is_integer(t)) {
        uint64_t bits;
        cm_wide_load_integers(t, element, 1, &bits);
        if (t->kind == CM_KIND_INT)
            snprintf(buf, size, "%" PRId64, (int64_t)bits);
        else
            snprintf(buf, size, "%" PRIu64, bits);
        return;
    }
    if (cm_dtype_is_number(t)) {
        snprintf(buf, size, "%.17g", cm_element_to_double(t, element));
        return;
    }
    if (show_bytes(t, element, buf, size))
        return;
    size_t used = 0;
    for (uint32_t i = 0; i < t->nbytes && used + 3 < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%02x", element[i]);
}
