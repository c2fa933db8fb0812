#include "model/meaning.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "model/convert.h"
#include "model/rebase.h"

/* ---- readings ---- */

static bool same_axis(const cm_reading *a, const cm_reading *b)
{
    return a->is_time == b->is_time &&
           (!a->is_time ||
            (a->axis.calendar == b->axis.calendar && a->axis.origin_us == b->axis.origin_us &&
             a->axis.unit_us == b->axis.unit_us && a->axis.per_us == b->axis.per_us));
}

static bool same_packing(const cm_reading *a, const cm_reading *b)
{
    return a->packed == b->packed &&
           (!a->packed ||
            (a->single == b->single && a->scale == b->scale && a->offset == b->offset));
}

/* Whether equal elements mean the same by both. */
static bool same_reading(const cm_reading *a, const cm_reading *b)
{
    return cm_dtype_equal(&a->dtype, &b->dtype) && a->kind == b->kind && same_axis(a, b) &&
           same_packing(a, b) && a->nmissing == b->nmissing &&
           memcmp(a->missing, b->missing, a->nmissing * sizeof(a->missing[0])) == 0;
}

static cm_dtype type_read(const cm_reading *r)
{
    cm_dtype t = r->dtype;
    t.kind = r->kind;
    return t;
}

void cm_reading_add_missing(cm_reading *r, double value)
{
    const cm_dtype type = type_read(r);
    uint8_t element[8] = {0};
    if (r->nmissing == CM_READING_MISSING || isnan(value) ||
        !cm_element_from_double(&type, value, element) ||
        cm_element_to_double(&type, element) != value)
        return;
    for (unsigned i = 0; i < r->nmissing; i++)
        if (memcmp(r->missing[i], element, sizeof(element)) == 0)
            return;
    memcpy(r->missing[r->nmissing++], element, sizeof(element));
}

bool cm_reading_is_missing(const cm_reading *r, const void *stored)
{
    const bool is_float = r->dtype.kind == CM_KIND_FLOAT;
    const double x = is_float ? cm_element_to_double(&r->dtype, stored) : 0;
    if (is_float && isnan(x))
        return true;
    for (unsigned i = 0; i < r->nmissing; i++)
        if (memcmp(r->missing[i], stored, r->dtype.nbytes) == 0 ||
            (is_float && x == cm_element_to_double(&r->dtype, r->missing[i])))
            return true;
    return false;
}

/* ---- meanings ---- */

static double unpack(const cm_reading *r, double x)
{
    if (!r->single) {
        x = x * r->scale;
        return x + r->offset;
    }
    float f = (float)x;
    f = (float)((double)f * r->scale);
    return (double)(float)((double)f + r->offset);
}

static void instant_of(const cm_reading *r, const void *stored, double unpacked, cm_meaning *out)
{
    const cm_dtype type = r->packed ? cm_dtype_make(CM_KIND_FLOAT, 8) : type_read(r);
    const cm_time_coding coding = {.axis = r->axis, .dtype = type};
    cm_time_point point;
    const bool held = cm_time_coding_point(&coding, r->packed ? &unpacked : stored, &point);
    *out = (cm_meaning){.kind = !held           ? CM_MEANS_UNKNOWN
                                : point.missing ? CM_MEANS_NOTHING
                                                : CM_MEANS_INSTANT,
                        .us = point.us,
                        .ns = point.ns};
}

static void integer_of(const cm_dtype *t, const void *stored, cm_meaning *out)
{
    uint64_t bits = 0;
    memcpy(&bits, stored, t->nbytes);
    const unsigned unused = 64 - 8 * t->nbytes;
    *out = (cm_meaning){.kind = CM_MEANS_INTEGER, .integer = (int64_t)bits};
    if (t->kind == CM_KIND_INT)
        out->integer = (int64_t)(bits << unused) >> unused;
    else
        out->above = bits > INT64_MAX;
}

void cm_reading_means(const cm_reading *r, const void *stored, cm_meaning *out)
{
    const cm_dtype type = type_read(r);
    const bool is_float = type.kind == CM_KIND_FLOAT;
    if (cm_reading_is_missing(r, stored)) {
        *out = (cm_meaning){.kind = CM_MEANS_NOTHING};
        return;
    }
    double x = r->packed || is_float ? cm_element_to_double(&type, stored) : 0;
    if (r->packed)
        x = unpack(r, x);
    if (r->is_time)
        instant_of(r, stored, x, out);
    else if (r->packed || is_float)
        *out = (cm_meaning){.kind = isnan(x) ? CM_MEANS_NOTHING : CM_MEANS_REAL, .real = x};
    else
        integer_of(&type, stored, out);
}

/* ---- compared ---- */

double cm_meaning_number(const cm_meaning *m)
{
    if (m->kind == CM_MEANS_REAL)
        return m->real;
    if (m->kind == CM_MEANS_INTEGER)
        return m->above ? (double)(uint64_t)m->integer : (double)m->integer;
    return NAN;
}

/* A double that is this integer, and no other beside it. */
static bool is_integer(const cm_meaning *real, const cm_meaning *integer)
{
    const double x = real->real;
    if (x != trunc(x) || (x == 0 && signbit(x)))
        return false;
    if (integer->above)
        return x >= 0x1p63 && x < 0x1p64 && (uint64_t)x == (uint64_t)integer->integer;
    return x >= -0x1p63 && x < 0x1p63 && (int64_t)x == integer->integer;
}

bool cm_meaning_equal(const cm_meaning *a, const cm_meaning *b)
{
    if (a->kind != b->kind)
        return a->kind == CM_MEANS_REAL && b->kind == CM_MEANS_INTEGER   ? is_integer(a, b)
               : a->kind == CM_MEANS_INTEGER && b->kind == CM_MEANS_REAL ? is_integer(b, a)
                                                                         : false;
    switch (a->kind) {
    case CM_MEANS_NOTHING:
        return true;
    case CM_MEANS_INTEGER:
        return a->integer == b->integer && a->above == b->above;
    case CM_MEANS_REAL:
        return memcmp(&a->real, &b->real, sizeof(a->real)) == 0;
    case CM_MEANS_INSTANT:
        return a->us == b->us && a->ns == b->ns;
    default:
        return false;
    }
}

double cm_meaning_distance(const cm_meaning *a, const cm_meaning *b)
{
    if (a->kind == CM_MEANS_NOTHING && b->kind == CM_MEANS_NOTHING)
        return 0;
    if (a->kind == CM_MEANS_INSTANT && b->kind == CM_MEANS_INSTANT)
        return fabs(((double)a->us - (double)b->us) * 1e-6 + (a->ns - b->ns) * 1e-9);
    const double x = cm_meaning_number(a), y = cm_meaning_number(b);
    return isnan(x) || isnan(y) ? INFINITY : x == y ? 0 : fabs(x - y);
}

uint64_t cm_meanings_differ(const cm_reading *a, const void *x, const cm_reading *b, const void *y,
                            uint64_t n)
{
    const bool alike = same_reading(a, b);
    const uint8_t *p = x, *q = y;
    cm_meaning here, there;
    if (n == 0 || (alike && memcmp(p, q, (size_t)n * a->dtype.nbytes) == 0))
        return n;
    for (uint64_t i = 0; i < n; i++, p += a->dtype.nbytes, q += b->dtype.nbytes) {
        if (alike && memcmp(p, q, a->dtype.nbytes) == 0)
            continue;
        cm_reading_means(a, p, &here);
        cm_reading_means(b, q, &there);
        if (!cm_meaning_equal(&here, &there))
            return i;
    }
    return n;
}

char *cm_meaning_text(const cm_reading *r, const cm_meaning *m, char *buf, size_t size)
{
    char text[40];
    switch (m->kind) {
    case CM_MEANS_NOTHING:
        snprintf(buf, size, "missing");
        break;
    case CM_MEANS_INTEGER:
        if (m->above)
            snprintf(buf, size, "%llu", (unsigned long long)m->integer);
        else
            snprintf(buf, size, "%lld", (long long)m->integer);
        break;
    case CM_MEANS_REAL:
        snprintf(buf, size, "%s", cm_format_double(m->real, text, sizeof(text)));
        break;
    case CM_MEANS_INSTANT:
        cm_time_axis_text(&r->axis, m->us - r->axis.origin_us, text, sizeof(text));
        snprintf(buf, size, "%s", text);
        break;
    default:
        snprintf(buf, size, "a time out of range");
    }
    return buf;
}

/* ---- back ---- */

bool cm_reading_store_number(const cm_reading *r, double number, void *out)
{
    const cm_dtype type = type_read(r);
    uint8_t element[8] = {0};
    cm_meaning again;
    cm_reading plain = *r;
    plain.is_time = false;
    double x = number;
    if (r->packed) {
        x = (number - r->offset) / r->scale;
        x = type.kind == CM_KIND_FLOAT ? x : rint(x);
    }
    if (!isfinite(x) || !cm_element_from_double(&type, x, element))
        return false;
    cm_reading_means(&plain, element, &again);
    if (cm_meaning_number(&again) != number)
        return false;
    memcpy(out, element, type.nbytes);
    return true;
}
