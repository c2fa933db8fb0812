#include "model/convert.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "model/wide_impl.h"

static unsigned mantissa_bits(const cm_dtype *t)
{
    return t->nbytes == 2 ? 10 : t->nbytes == 4 ? 23 : 52;
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

static void add_equal_floats(const cm_dtype *t, const uint8_t *nodata, const double *v, size_t n,
                             uint8_t *equal)
{
    double x;
    cm_wide_load_float(t->nbytes, nodata, 1, &x);
    for (size_t i = 0; i < n && isnan(x); i++)
        equal[i] |= isnan(v[i]);
    for (size_t i = 0; i < n && !isnan(x); i++)
        equal[i] |= v[i] == x;
}

/* Sets equal[i] where element I of type T, in S, is NODATA, and leaves others. */
static void add_equal(const cm_dtype *t, const uint8_t *nodata, const uint8_t *s, size_t n,
                      uint8_t *equal)
{
    cm_wide_block w;
    if (t->kind == CM_KIND_FLOAT) {
        cm_wide_load_float(t->nbytes, s, n, w.d);
        add_equal_floats(t, nodata, w.d, n, equal);
    } else if (cm_is_integer(t)) {
        uint64_t x;
        cm_wide_load_integers(t, nodata, 1, &x);
        cm_wide_load_integers(t, s, n, w.u);
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
        uint8_t equal[CM_WIDE_BLOCK] = {0};
        const uint8_t *nodata = c->nodata[k].dst;
        if (c->dst.kind == CM_KIND_FLOAT && isnan(cm_element_to_double(&c->dst, nodata)))
            continue; /* NaN is missing before and after */
        add_equal(&c->dst, nodata, d, n, equal);
        n = cm_wide_first_bad(equal, skip, n);
    }
    return n;
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
    if (cm_is_integer(&c->src)) {
        cm_wide_load_integers(&c->src, src, 1, &i);
        cm_wide_load_doubles(&c->dst, dst, 1, &y);
        return is_integer_of(i, c->src.kind == CM_KIND_INT, y);
    }
    cm_wide_load_doubles(&c->src, src, 1, &x);
    cm_wide_load_doubles(&c->dst, dst, 1, &y);
    /* Integers have one zero. */
    return (x == y && (!cm_is_integer(&c->dst) || x != 0 || !signbit(x))) || (isnan(x) && isnan(y));
}

/* Of N elements that were cast, the first that has become another number, or N. */
static size_t first_inexact(const cm_conversion *c, const uint8_t *d, const uint8_t *s,
                            const uint8_t *skip, size_t n)
{
    if (cm_is_integer(&c->src) && cm_is_integer(&c->dst)) /* in range it is the same */
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
    const bool exact = cm_is_integer(&c->src) && !c->unpack;
    cm_wide_block w;
    size_t done = n;
    if (exact && cm_is_integer(&c->dst)) {
        cm_wide_load_integers(&c->src, s, n, w.u);
        if (c->saturate)
            cm_wide_clamp_integers(&c->dst, src_signed, w.u, n);
        done = cm_wide_check_integers(&c->dst, src_signed, w.u, skip, n);
        cm_wide_store_integers(c->dst.nbytes, w.u, done, d);
        return done;
    }
    if (exact && c->src.nbytes == 8 && c->dst.nbytes == 4) {
        cm_wide_load_integers(&c->src, s, n, w.u);
        cm_wide_store_float32(src_signed, w.u, n, d);
        return n;
    }
    cm_wide_load_doubles(&c->src, s, n, w.d);
    for (size_t i = 0; c->unpack && !c->single && i < n; i++)
        w.d[i] = w.d[i] * c->scale + c->offset;
    /*
     * As NumPy does it in place, by numbers of float32 or float64: a double holds the product and
     * the sum of two floats well enough to be rounded once.
     */
    for (size_t i = 0; c->unpack && c->single && i < n; i++) {
        w.d[i] = (double)(float)((double)(float)w.d[i] * c->scale);
        w.d[i] = (double)(float)(w.d[i] + c->offset);
    }
    if (cm_is_integer(&c->dst)) {
        done = c->saturate ? cm_wide_saturate_to_integers(&c->dst, &w, skip, n)
                           : cm_wide_check_rounded(&c->dst, w.d, skip, n, w.u);
        cm_wide_store_integers(c->dst.nbytes, w.u, done, d);
    } else {
        if (c->saturate)
            cm_wide_clamp_floats(&c->dst, w.d, n);
        done = cm_wide_check_float(c->dst.nbytes, w.d, skip, n);
        cm_wide_store_float(c->dst.nbytes, w.d, done, d);
    }
    return done;
}

/* As many of N elements as could be converted; *HIDDEN: the next would become a missing value. */
static size_t convert_block(const cm_conversion *c, uint8_t *d, const uint8_t *s, size_t n,
                            bool *hidden)
{
    /* By missing value, so that work in place may overwrite the source. */
    uint8_t equal[CM_NODATA_MAX][CM_WIDE_BLOCK], skip[CM_WIDE_BLOCK] = {0};
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
    else if (cm_is_integer(&c->src))
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
    if (cm_is_integer(&c->dst))
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
    for (uint64_t i = 0; i < nelem; i += CM_WIDE_BLOCK) {
        const size_t n = nelem - i < CM_WIDE_BLOCK ? (size_t)(nelem - i) : CM_WIDE_BLOCK;
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
