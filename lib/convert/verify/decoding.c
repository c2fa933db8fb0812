#include "convert/verify/decoding.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format/attr_value.h"
#include "model/convert.h"

#define NS_PER_US 1000

/* ---- numbers as they are stored ---- */

static bool is_integer(const cm_dtype *t)
{
    return t->kind == CM_KIND_INT || t->kind == CM_KIND_UINT;
}

static long double stored_number(const cm_decoding *m, const uint8_t *p)
{
    uint64_t bits = 0;
    const unsigned unused = 64 - 8 * (m->dtype.nbytes <= 8 ? m->dtype.nbytes : 8);
    if (!is_integer(&m->dtype))
        return (long double)cm_element_to_double(&m->dtype, p);
    memcpy(&bits, p, m->dtype.nbytes); /* little-endian */
    return m->is_unsigned ? (long double)bits : (long double)((int64_t)(bits << unused) >> unused);
}

/* ---- what the attributes say ---- */

static bool number_of(const cm_json *j, long double *out)
{
    int64_t i;
    uint64_t u;
    double x;
    if (cm_json_get_i64(j, &i))
        *out = (long double)i;
    else if (cm_json_get_u64(j, &u))
        *out = (long double)u;
    else if (cm_attr_number(j, &x))
        *out = (long double)x;
    else
        return false;
    return true;
}

static int add_missing(cm_decoding *m, const cm_json *value, cm_error *err)
{
    long double x;
    if (!number_of(value, &x))
        return CM_OK;
    if (m->nmissing == CM_DECODING_MISSING)
        return cm_fail(err, CM_EUNSUPPORTED, "more than %d values stand for missing ones",
                       CM_DECODING_MISSING);
    m->missing[m->nmissing++] = x;
    return CM_OK;
}

static int read_missing(const cm_decoding_of *of, cm_decoding *m, cm_error *err)
{
    const cm_json *value = cm_json_member(of->attrs, "missing_value");
    int rc = CM_OK;
    if (of->fill != NULL)
        m->missing[m->nmissing++] = stored_number(m, of->fill);
    if (!cm_json_is(value, CM_JSON_ARRAY))
        return add_missing(m, value, err);
    for (size_t i = 0; rc == CM_OK && i < cm_json_length(value); i++)
        rc = add_missing(m, cm_json_at(value, i), err);
    return rc;
}

/* For bounds without the attribute, that of their coordinate. */
static const char *text_of(const cm_decoding_of *of, const char *name)
{
    const char *text = cm_json_text(cm_json_member(of->attrs, name), NULL);
    return text != NULL || of->parent == NULL
               ? text
               : cm_json_text(cm_json_member(of->parent, name), NULL);
}

static void read_sign(const cm_decoding_of *of, cm_decoding *m)
{
    const char *sign = cm_json_text(cm_json_member(of->attrs, "_Unsigned"), NULL);
    m->is_unsigned = m->dtype.kind == CM_KIND_UINT;
    if (sign != NULL && is_integer(&m->dtype) && strcmp(sign, "true") == 0)
        m->is_unsigned = true;
    if (sign != NULL && is_integer(&m->dtype) && strcmp(sign, "false") == 0)
        m->is_unsigned = false;
}

int cm_decoding_read(const cm_decoding_of *of, cm_decoding *out, cm_error *err)
{
    cm_decoding m = {.dtype = of->dtype, .scale = 1, .units = text_of(of, "units")};
    m.is_number = cm_dtype_is_number(&of->dtype);
    if (m.is_number) {
        read_sign(of, &m);
        const cm_json *scale = cm_json_member(of->attrs, "scale_factor");
        const cm_json *offset = cm_json_member(of->attrs, "add_offset");
        bool scales = cm_json_get_double(scale, &m.scale);
        m.is_packed = cm_json_get_double(offset, &m.offset) || scales;
        m.is_time = m.units != NULL && cm_time_axis_is(m.units) &&
                    cm_time_axis_parse(m.units, text_of(of, "calendar"), &m.axis, NULL) == CM_OK;
    }
    int rc = m.is_number ? read_missing(of, &m, err) : CM_OK;
    *out = m;
    return rc;
}

/* ---- elements ---- */

static __int128 instant(const cm_decoding *m, long double x)
{
    const __int128 unit = (__int128)m->axis.unit_us * NS_PER_US / m->axis.per_us;
    const long double whole = truncl(x);
    /* Beyond any calendar, and within what the product holds. */
    if (!(fabsl(whole) < ldexpl(1, 62)))
        return 0;
    return (__int128)m->axis.origin_us * NS_PER_US + (__int128)whole * unit +
           (__int128)roundl((x - whole) * (long double)unit);
}

void cm_decoded_read(const cm_decoding *m, const uint8_t *p, cm_decoded *out)
{
    const long double x = stored_number(m, p);
    *out = (cm_decoded){.number = x, .missing = isnan(x)};
    for (unsigned i = 0; i < m->nmissing; i++)
        out->missing = out->missing || x == m->missing[i];
    out->rounded = m->is_packed || m->dtype.kind == CM_KIND_FLOAT;
    if (m->is_packed) {
        const double scaled = (double)x * m->scale;
        const float narrow = (float)((double)(float)x * m->scale);
        out->number = (long double)(scaled + m->offset);
        out->single = (float)((double)narrow + m->offset);
    }
    if (m->is_time && !out->missing)
        out->ns = instant(m, out->number);
}

/* X unpacked, in one of the ways in which readers do it, is Y. */
static bool is_unpacked(const cm_decoded *x, long double y)
{
    return (long double)(float)x->number == y || (long double)x->single == y;
}

/* X in the type that the store has; packed ones are rounded before they are scaled. */
static bool is_cast(long double x, const cm_decoding *store, long double y)
{
    const bool whole = is_integer(&store->dtype);
    if (store->is_packed)
        return fabsl(x - y) <= (whole ? fabsl((long double)store->scale) / 2 : 0) +
                                   ldexpl(fabsl(x) + fabsl((long double)store->offset), -22);
    return whole                      ? rintl(x) == y
           : store->dtype.nbytes == 4 ? (long double)(float)x == y
                                      : (long double)(double)x == y;
}

bool cm_decoded_same(const cm_decoding *file, const cm_decoded *a, const cm_decoding *store,
                     const cm_decoded *b, const cm_decoding_leeway *leeway)
{
    enum {
        ROUNDED_NS = 3000
    };
    if (a->missing || b->missing)
        return a->missing && b->missing;
    if (file->is_time != store->is_time)
        return false;
    if (file->is_time) {
        const __int128 apart = a->ns > b->ns ? a->ns - b->ns : b->ns - a->ns;
        return apart <= (a->rounded || b->rounded ? ROUNDED_NS : 0);
    }
    return a->number == b->number || (file->is_packed && is_unpacked(a, b->number)) ||
           (store->is_packed && is_unpacked(b, a->number)) ||
           (leeway->is_cast && is_cast(a->number, store, b->number)) ||
           (leeway->tolerance > 0 &&
            fabsl(a->number - b->number) <= (long double)leeway->tolerance);
}

/* ---- two meanings ---- */

/* Their days are one count; before 1582 the instants tell them apart. */
static bool same_calendar(cm_calendar a, cm_calendar b)
{
    return a == b || (a <= CM_CALENDAR_PROLEPTIC_GREGORIAN && b <= CM_CALENDAR_PROLEPTIC_GREGORIAN);
}

static bool same_axis(const cm_time_axis *a, const cm_time_axis *b)
{
    return same_calendar(a->calendar, b->calendar) && a->origin_us == b->origin_us &&
           a->unit_us == b->unit_us && a->per_us == b->per_us;
}

bool cm_decoding_alike(const cm_decoding *a, const cm_decoding *b)
{
    bool alike = cm_dtype_equal(&a->dtype, &b->dtype) && a->is_unsigned == b->is_unsigned &&
                 a->is_packed == b->is_packed && a->scale == b->scale && a->offset == b->offset &&
                 a->is_time == b->is_time && (!a->is_time || same_axis(&a->axis, &b->axis)) &&
                 a->nmissing == b->nmissing;
    for (unsigned i = 0; alike && i < a->nmissing; i++)
        alike = a->missing[i] == b->missing[i] || (isnan(a->missing[i]) && isnan(b->missing[i]));
    return alike;
}

const char *cm_decoding_clash(const cm_decoding *file, const cm_decoding *store)
{
    if (file->is_number != store->is_number)
        return "is of another kind";
    if (file->is_time != store->is_time)
        return file->is_time ? "counts time, and is a number in the store"
                             : "is a number, and counts time in the store";
    if (file->is_time && !same_calendar(file->axis.calendar, store->axis.calendar))
        return "has another calendar";
    if (!file->is_time && file->is_number && file->units != NULL && store->units != NULL &&
        strcmp(file->units, store->units) != 0)
        return "has other units";
    return NULL;
}

char *cm_decoding_text(const cm_decoding *m, const uint8_t *p, char *buf, size_t size)
{
    cm_decoded x = {0};
    if (m->is_number)
        cm_decoded_read(m, p, &x);
    if (x.missing)
        snprintf(buf, size, "missing");
    else if (m->is_number && m->is_time)
        cm_time_axis_text(&m->axis, (int64_t)(x.ns / NS_PER_US) - m->axis.origin_us, buf, size);
    else if (m->is_number && m->is_packed)
        snprintf(buf, size, "%.17g", (double)x.number);
    else
        cm_element_text(&m->dtype, p, buf, size);
    return buf;
}
