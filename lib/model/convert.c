#include "model/convert.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "model/half.h"

/*
 * Elements pass in blocks that stay in the first-level cache, through one of
 * two wide types: double, or 64-bit integers where a double would lose digits.
 */
enum {
    BLOCK = 512
};

static unsigned mantissa_bits(const cm_dtype *t)
{
    return t->nbytes == 2 ? 10 : t->nbytes == 4 ? 23 : 52;
}

static bool is_integer(const cm_dtype *t)
{
    return t->kind == CM_KIND_INT || t->kind == CM_KIND_UINT;
}

int cm_conversion_check(const cm_conversion *c, cm_error *err)
{
    char src[32], dst[32];
    cm_dtype_name(&c->src, src, sizeof src);
    cm_dtype_name(&c->dst, dst, sizeof dst);
    const bool same = cm_dtype_equal(&c->src, &c->dst);
    if (!same && (!cm_dtype_is_number(&c->src) || !cm_dtype_is_number(&c->dst)))
        return cm_fail(err, CM_EINVAL, "%s cannot be cast to %s: both must be numbers", src, dst);
    if (c->unpack && !cm_dtype_is_number(&c->src))
        return cm_fail(err, CM_EINVAL, "%s has no scale and offset: it is not a number", src);
    if (c->unpack && (!isfinite(c->scale) || !isfinite(c->offset)))
        return cm_fail(err, CM_EINVAL, "scale and offset must be finite");
    if (c->keepbits && c->dst.kind != CM_KIND_FLOAT)
        return cm_fail(err, CM_EINVAL, "`keepbits` rounds floating point only, not %s", dst);
    if (c->keepbits && c->keepbits > mantissa_bits(&c->dst))
        return cm_fail(err, CM_EINVAL, "`keepbits` is %u, but %s has %u mantissa bits", c->keepbits,
                       dst, mantissa_bits(&c->dst));
    if (c->nnodata > 0 && c->src.nbytes > sizeof c->nodata->src)
        return cm_fail(err, CM_EINVAL, "a missing value of type %s is too long", src);
    return CM_OK;
}

bool cm_conversion_is_identity(const cm_conversion *c)
{
    if (c->unpack || !cm_dtype_equal(&c->src, &c->dst))
        return false;
    if (c->keepbits && c->keepbits < mantissa_bits(&c->dst))
        return false;
    for (unsigned k = 0; k < c->nnodata; k++)
        if (memcmp(c->nodata[k].src, c->nodata[k].dst, c->src.nbytes) != 0)
            return false;
    return true;
}

/* ---- loading -------------------------------------------------------------------------------- */

#define LOAD_LOOP(type, wide)                                                                      \
    for (size_t i = 0; i < n; i++) {                                                               \
        type v;                                                                                    \
        memcpy(&v, s + i * sizeof v, sizeof v);                                                    \
        out[i] = (wide)v;                                                                          \
    }                                                                                              \
    return

static void load_float(unsigned nbytes, const uint8_t *s, size_t n, double *out)
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

static void load_doubles(const cm_dtype *t, const uint8_t *s, size_t n, double *out)
{
    const bool sign = t->kind == CM_KIND_INT;
    if (t->kind == CM_KIND_FLOAT) {
        load_float(t->nbytes, s, n, out);
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

/* Integers, extended to 64 bits by their own sign. */
static void load_integers(const cm_dtype *t, const uint8_t *s, size_t n, uint64_t *out)
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

/*
 * Each check returns the index of the first element that T cannot hold and that
 * is not skipped, or N.  Nothing is stored before, so that work in place leaves
 * the element for the message.
 */
static size_t first_bad(const uint8_t *bad, const uint8_t *skip, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bad[i] && !skip[i])
            return i;
    }
    return n;
}

static size_t check_integers(const cm_dtype *t, bool src_signed, const uint64_t *v,
                             const uint8_t *skip, size_t n)
{
    uint8_t bad[BLOCK];
    int64_t low;
    uint64_t high;
    integer_range(t, &low, &high);
    for (size_t i = 0; i < n; i++) {
        const bool negative = src_signed && (int64_t)v[i] < 0;
        bad[i] = negative ? (int64_t)v[i] < low : v[i] > high;
    }
    return first_bad(bad, skip, n);
}

/* Rounds to 64-bit integers as well; V and U may be one memory. */
static size_t check_rounded(const cm_dtype *t, const double *v, const uint8_t *skip, size_t n,
                            uint64_t *u)
{
    uint8_t bad[BLOCK];
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
    return first_bad(bad, skip, n);
}

static size_t check_float(unsigned nbytes, const double *v, const uint8_t *skip, size_t n)
{
    if (nbytes == 8)
        return n;
    /* Half a place above the largest number: the tie goes to the even neighbour, infinity. */
    const double limit = nbytes == 4 ? 0x1.ffffffp+127 : 65520;
    uint8_t bad[BLOCK];
    for (size_t i = 0; i < n; i++)
        bad[i] = fabs(v[i]) >= limit && fabs(v[i]) <= DBL_MAX;
    return first_bad(bad, skip, n);
}

#define STORE_LOOP(type)                                                                           \
    for (size_t i = 0; i < n; i++) {                                                               \
        const type x = (type)v[i];                                                                 \
        memcpy(d + i * sizeof x, &x, sizeof x);                                                    \
    }                                                                                              \
    return

static void store_integers(unsigned nbytes, const uint64_t *v, size_t n, uint8_t *d)
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

static void store_float(unsigned nbytes, const double *v, size_t n, uint8_t *d)
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

/* 64-bit integers to float32 at one stroke: by way of double they would be rounded twice. */
static void store_float32(bool src_signed, const uint64_t *v, size_t n, uint8_t *d)
{
    for (size_t i = 0; i < n; i++) {
        const float f = src_signed ? (float)(int64_t)v[i] : (float)v[i];
        memcpy(d + i * 4, &f, 4);
    }
}

/* ---- blocks --------------------------------------------------------------------------------- */

typedef union wide {
    double d[BLOCK];
    uint64_t u[BLOCK];
} wide;

/* add_equal, of floats that are loaded. */
static void add_equal_floats(const cm_dtype *t, const uint8_t *nodata, const double *v, size_t n,
                             uint8_t *equal)
{
    double x;
    load_float(t->nbytes, nodata, 1, &x);
    for (size_t i = 0; i < n && isnan(x); i++)
        equal[i] |= isnan(v[i]);
    for (size_t i = 0; i < n && !isnan(x); i++)
        equal[i] |= v[i] == x;
}

/* Sets equal[i] where element I of type T, in S, is NODATA, and leaves others. */
static void add_equal(const cm_dtype *t, const uint8_t *nodata, const uint8_t *s, size_t n,
                      uint8_t *equal)
{
    wide w;
    if (t->kind == CM_KIND_FLOAT) {
        load_float(t->nbytes, s, n, w.d);
        add_equal_floats(t, nodata, w.d, n, equal);
    } else if (is_integer(t)) {
        uint64_t x;
        load_integers(t, nodata, 1, &x);
        load_integers(t, s, n, w.u);
        for (size_t i = 0; i < n; i++)
            equal[i] |= w.u[i] == x;
    } else {
        for (size_t i = 0; i < n; i++)
            equal[i] |= memcmp(s + i * t->nbytes, nodata, t->nbytes) == 0;
    }
}

/* The first of N results, but for those to SKIP, that is a missing value's number; or N. */
static size_t first_nodata(const cm_conversion *c, const uint8_t *d, const uint8_t *skip, size_t n)
{
    for (unsigned k = 0; k < c->nnodata; k++) {
        uint8_t equal[BLOCK] = {0};
        const uint8_t *nodata = c->nodata[k].dst;
        if (c->dst.kind == CM_KIND_FLOAT && isnan(cm_element_to_double(&c->dst, nodata)))
            continue; /* NaN is missing before and after */
        add_equal(&c->dst, nodata, d, n, equal);
        n = first_bad(equal, skip, n);
    }
    return n;
}

/* ---- saturating ------------------------------------------------------------------------------ */

static void clamp_integers(const cm_dtype *t, bool src_signed, uint64_t *v, size_t n)
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

/* Infinities of the source stay in a float; NaN stays NaN. */
static void clamp_floats(const cm_dtype *t, double *v, size_t n)
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

/* Elements equal to the missing value are skipped, and may be NaN. */
static size_t saturate_to_integers(const cm_dtype *t, wide *w, const uint8_t *skip, size_t n)
{
    const size_t done = first_nan(w->d, skip, n);
    for (size_t i = 0; i < done; i++)
        w->d[i] = isnan(w->d[i]) ? 0 : w->d[i];
    clamp_rounded(t, w->d, done, w->u);
    return done;
}

/* ---- nothing lost ---------------------------------------------------------------------------- */

/* Whether the integer I, or the same bits without a sign, is the number X. */
static bool is_integer_of(uint64_t i, bool is_signed, double x)
{
    if (is_signed)
        return x >= -0x1p63 && x < 0x1p63 && (int64_t)x == (int64_t)i;
    return x >= 0 && x < 0x1p64 && (uint64_t)x == i;
}

static bool is_same(const cm_conversion *c, const uint8_t *src, const uint8_t *dst)
{
    uint64_t i;
    double x, y;
    if (is_integer(&c->src)) {
        load_integers(&c->src, src, 1, &i);
        load_doubles(&c->dst, dst, 1, &y);
        return is_integer_of(i, c->src.kind == CM_KIND_INT, y);
    }
    load_doubles(&c->src, src, 1, &x);
    load_doubles(&c->dst, dst, 1, &y);
    /* Integers have one zero. */
    return (x == y && (!is_integer(&c->dst) || x != 0 || !signbit(x))) || (isnan(x) && isnan(y));
}

/* Of N elements that were cast, the first that has become another number, or N. */
static size_t first_inexact(const cm_conversion *c, const uint8_t *d, const uint8_t *s,
                            const uint8_t *skip, size_t n)
{
    if (is_integer(&c->src) && is_integer(&c->dst)) /* in range it is the same */
        return n;
    for (size_t i = 0; i < n; i++)
        if (!skip[i] && !is_same(c, s + i * c->src.nbytes, d + i * c->dst.nbytes))
            return i;
    return n;
}

/* Unpacks and casts; the index of the first element that does not fit, or N. */
static size_t cast_block(const cm_conversion *c, uint8_t *d, const uint8_t *s, const uint8_t *skip,
                         size_t n)
{
    const bool src_signed = c->src.kind == CM_KIND_INT;
    const bool exact = is_integer(&c->src) && !c->unpack;
    wide w;
    size_t done = n;
    if (exact && is_integer(&c->dst)) {
        load_integers(&c->src, s, n, w.u);
        if (c->saturate)
            clamp_integers(&c->dst, src_signed, w.u, n);
        done = check_integers(&c->dst, src_signed, w.u, skip, n);
        store_integers(c->dst.nbytes, w.u, done, d);
        return done;
    }
    if (exact && c->src.nbytes == 8 && c->dst.nbytes == 4) {
        load_integers(&c->src, s, n, w.u);
        store_float32(src_signed, w.u, n, d);
        return n;
    }
    load_doubles(&c->src, s, n, w.d);
    for (size_t i = 0; c->unpack && !c->single && i < n; i++)
        w.d[i] = w.d[i] * c->scale + c->offset;
    /* A double holds the product and the sum of two floats well enough to be rounded once. */
    for (size_t i = 0; c->unpack && c->single && i < n; i++) {
        w.d[i] = (double)(float)((double)(float)w.d[i] * (double)(float)c->scale);
        w.d[i] = (double)(float)(w.d[i] + (double)(float)c->offset);
    }
    if (is_integer(&c->dst)) {
        done = c->saturate ? saturate_to_integers(&c->dst, &w, skip, n)
                           : check_rounded(&c->dst, w.d, skip, n, w.u);
        store_integers(c->dst.nbytes, w.u, done, d);
    } else {
        if (c->saturate)
            clamp_floats(&c->dst, w.d, n);
        done = check_float(c->dst.nbytes, w.d, skip, n);
        store_float(c->dst.nbytes, w.d, done, d);
    }
    return done;
}

cm_dtype cm_unpacked_dtype(const cm_packed_as *p)
{
    const unsigned size = p->dtype.nbytes;
    const bool whole = is_integer(&p->dtype);
    bool single;
    if (p->has_scale && p->has_offset)
        single = p->scale_nbytes == 4 && p->offset_nbytes == 4 && !(whole && size == 4);
    else if (p->has_scale || p->has_offset)
        single = !p->has_offset && p->scale_nbytes == 4;
    else
        single = whole ? size <= 2 : size <= 4;
    return cm_dtype_make(CM_KIND_FLOAT, single ? 4 : 8);
}

/* As many of N elements as could be converted; *HIDDEN: the next would become a missing value. */
static size_t convert_block(const cm_conversion *c, uint8_t *d, const uint8_t *s, size_t n,
                            bool *hidden)
{
    /* By missing value, so that work in place may overwrite the source. */
    uint8_t equal[CM_NODATA_MAX][BLOCK], skip[BLOCK] = {0};
    for (unsigned k = 0; k < c->nnodata; k++) {
        memset(equal[k], 0, n);
        add_equal(&c->src, c->nodata[k].src, s, n, equal[k]);
        for (size_t i = 0; i < n; i++)
            skip[i] |= equal[k][i];
    }
    size_t done = n;
    if (c->unpack || !cm_dtype_equal(&c->src, &c->dst))
        done = cast_block(c, d, s, skip, n);
    else if (d != s)
        memcpy(d, s, n * c->src.nbytes);
    if (c->exact && !c->unpack)
        done = first_inexact(c, d, s, skip, done);
    if (c->keepbits) {
        done = (size_t)cm_bitround_beyond(&c->dst, c->keepbits, d, skip, done);
        cm_bitround(&c->dst, c->keepbits, d, done);
    }
    const size_t apart = c->apart ? first_nodata(c, d, skip, done) : done;
    *hidden = apart < done;
    /* Last, so that a missing value is neither rounded nor refused. */
    for (unsigned k = 0; k < c->nnodata; k++)
        for (size_t i = 0; i < apart; i++)
            if (equal[k][i])
                memcpy(d + i * c->dst.nbytes, c->nodata[k].dst, c->dst.nbytes);
    return apart;
}

/* The number that ELEMENT of the source stands for. */
static void source_text(const cm_conversion *c, const uint8_t *element, char *buf, size_t size)
{
    const double value = cm_element_to_double(&c->src, element);
    if (c->unpack)
        cm_format_double(value * c->scale + c->offset, buf, size);
    else if (is_integer(&c->src))
        cm_element_text(&c->src, element, buf, size);
    else
        cm_format_double(value, buf, size);
}

static int refuse(const cm_conversion *c, const uint8_t *element, uint64_t index, cm_error *err)
{
    char type[32], number[32];
    source_text(c, element, number, sizeof number);
    int rc = cm_fail(err, CM_EINVAL, "element %llu: %s does not fit %s", (unsigned long long)index,
                     number, cm_dtype_name(&c->dst, type, sizeof type));
    if (c->keepbits)
        cm_error_suffix(err, " rounded by `keepbits` %u", c->keepbits);
    return rc;
}

/* ELEMENT would become RESULT, which is a missing value's number. */
static int refuse_hidden(const cm_conversion *c, const uint8_t *element, const uint8_t *result,
                         uint64_t index, cm_error *err)
{
    char number[32], becomes[32];
    source_text(c, element, number, sizeof number);
    if (is_integer(&c->dst))
        cm_element_text(&c->dst, result, becomes, sizeof becomes);
    else
        cm_format_double(cm_element_to_double(&c->dst, result), becomes, sizeof becomes);
    return cm_fail(err, CM_EINVAL,
                   "element %llu: %s would become %s, which stands for missing values; %s keeps "
                   "them apart",
                   (unsigned long long)index, number, becomes,
                   c->keepbits ? "a greater `keepbits`" : "a larger `dtype`");
}

int cm_conversion_run(const cm_conversion *c, void *dst, const void *src, uint64_t nelem,
                      uint64_t *bad, cm_error *err)
{
    const uint8_t *s = src;
    uint8_t *d = dst;
    if (cm_conversion_is_identity(c)) {
        if (dst != src && nelem)
            memcpy(dst, src, nelem * c->src.nbytes);
        return CM_OK;
    }
    for (uint64_t i = 0; i < nelem; i += BLOCK) {
        const size_t n = nelem - i < BLOCK ? (size_t)(nelem - i) : BLOCK;
        bool hidden;
        const size_t done = convert_block(c, d, s, n, &hidden);
        if (done < n) {
            const uint8_t *element = s + done * c->src.nbytes;
            if (bad != NULL)
                *bad = i + done;
            return hidden ? refuse_hidden(c, element, d + done * c->dst.nbytes, i + done, err)
                          : refuse(c, element, i + done, err);
        }
        s += n * c->src.nbytes;
        d += n * c->dst.nbytes;
    }
    return CM_OK;
}

/* ---- single elements ------------------------------------------------------------------------ */

double cm_element_to_double(const cm_dtype *t, const void *element)
{
    double value = NAN;
    if (t->kind == CM_KIND_BOOL)
        value = *(const uint8_t *)element != 0;
    else if (cm_dtype_is_number(t))
        load_doubles(t, element, 1, &value);
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
        store_float(t->nbytes, &value, 1, bytes);
    } else if (is_integer(t) && check_rounded(t, &value, &no_skip, 1, &bits)) {
        store_integers(t->nbytes, &bits, 1, bytes);
    } else {
        return false;
    }
    const double back = cm_element_to_double(t, bytes);
    if (back != value && !(isnan(back) && isnan(value)))
        return false;
    memcpy(element, bytes, t->nbytes);
    return true;
}

void cm_element_text(const cm_dtype *t, const uint8_t *element, char *buf, size_t size)
{
    if (is_integer(t)) {
        uint64_t bits;
        load_integers(t, element, 1, &bits);
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
    size_t used = 0;
    for (uint32_t i = 0; i < t->nbytes && used + 3 < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%02x", element[i]);
}
