#include "format/nc/fill.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

static int64_t load_int(const cm_dtype *t, const void *value)
{
    uint64_t bits = 0;
    memcpy(&bits, value, t->nbytes);
    unsigned unused = 64 - 8 * t->nbytes;
    return (int64_t)(bits << unused) >> unused;
}

static uint64_t load_uint(const cm_dtype *t, const void *value)
{
    uint64_t bits = 0;
    memcpy(&bits, value, t->nbytes);
    return bits;
}

static double load_float(const cm_dtype *t, const void *value)
{
    float single;
    double d;
    if (t->nbytes == 4) {
        memcpy(&single, value, sizeof single);
        return (double)single;
    }
    memcpy(&d, value, sizeof d);
    return d;
}

static double as_double(const cm_dtype *t, const void *value)
{
    switch (t->kind) {
    case CM_KIND_INT:
        return (double)load_int(t, value);
    case CM_KIND_UINT:
        return (double)load_uint(t, value);
    default:
        return load_float(t, value);
    }
}

static bool store_float(double v, const cm_dtype *to, void *out)
{
    if (to->nbytes == 8) {
        memcpy(out, &v, sizeof v);
        return true;
    }
    float single = (float)v;
    memcpy(out, &single, sizeof single);
    return isfinite(single) || !isfinite(v);
}

/* The integer is -1 - MAGNITUDE when NEGATIVE, which covers both 64-bit ranges. */
static bool store_integer(bool negative, uint64_t magnitude, const cm_dtype *to, void *out)
{
    unsigned bits = 8 * to->nbytes - (to->kind == CM_KIND_INT ? 1 : 0);
    if (negative && to->kind == CM_KIND_UINT)
        return false;
    if (bits < 64 && magnitude >> bits)
        return false;
    uint64_t v = negative ? ~magnitude : magnitude;
    memcpy(out, &v, to->nbytes);
    return true;
}

static bool to_integer(const cm_dtype *from, const void *value, const cm_dtype *to, void *out)
{
    if (from->kind == CM_KIND_UINT)
        return store_integer(false, load_uint(from, value), to, out);
    if (from->kind == CM_KIND_INT) {
        int64_t v = load_int(from, value);
        return store_integer(v < 0, v < 0 ? ~(uint64_t)v : (uint64_t)v, to, out);
    }
    double d = load_float(from, value);
    /* Also true for NaN, unequal to itself, and for infinity. */
    if (d != floor(d) || fabs(d) >= 0x1p64)
        return false;
    return d < 0 ? store_integer(true, (uint64_t) - (d + 1), to, out)
                 : store_integer(false, (uint64_t)d, to, out);
}

bool cm_fill_convert(const cm_dtype *from, const void *value, const cm_dtype *to, void *out)
{
    if (!cm_dtype_is_number(from) || !cm_dtype_is_number(to))
        return false;
    if (to->kind == CM_KIND_FLOAT)
        return store_float(as_double(from, value), to, out);
    return to_integer(from, value, to, out);
}

char *cm_fill_text(const cm_dtype *type, const void *value, char *buf, size_t size)
{
    if (type->kind == CM_KIND_INT)
        snprintf(buf, size, "%" PRId64, load_int(type, value));
    else if (type->kind == CM_KIND_UINT)
        snprintf(buf, size, "%" PRIu64, load_uint(type, value));
    else if (type->nbytes == 4)
        cm_format_float((float)load_float(type, value), buf, size);
    else
        cm_format_double(load_float(type, value), buf, size);
    return buf;
}
