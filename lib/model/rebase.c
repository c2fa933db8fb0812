#include "model/rebase.h"

#include <math.h>
#include <string.h>

#include "model/days.h"
#include "model/rebase_impl.h"

#define SECOND_US INT64_C(1000000)

bool cm_calendars_join(cm_calendar a, cm_calendar b)
{
    return a == b || (a == CM_CALENDAR_STANDARD && b == CM_CALENDAR_PROLEPTIC_GREGORIAN) ||
           (b == CM_CALENDAR_STANDARD && a == CM_CALENDAR_PROLEPTIC_GREGORIAN);
}

/* One reference date and one unit: numbers mean the same on both. */
static bool axes_equal(const cm_time_axis *a, const cm_time_axis *b)
{
    return cm_calendars_join(a->calendar, b->calendar) && a->origin_us == b->origin_us &&
           a->unit_us == b->unit_us && a->per_us == b->per_us;
}

static bool before_reform(int64_t us)
{
    const cm_day first = {.year = 1582, .month = 10, .day = 15};
    int64_t days = 0;
    (void)cm_days_from_date(CM_CALENDAR_PROLEPTIC_GREGORIAN, &first, &days);
    return us < days * 86400 * SECOND_US;
}

/* ---- elements ------------------------------------------------------------------------------- */

/* An element as what it is: an integer, or a double. */
typedef struct number {
    bool is_float;
    int64_t i;
    double d;
} number;

static bool load(const cm_dtype *t, const void *element, number *out)
{
    *out = (number){.is_float = t->kind == CM_KIND_FLOAT};
    if (out->is_float) {
        float f;
        if (t->nbytes == sizeof f) {
            memcpy(&f, element, sizeof f);
            out->d = (double)f;
        } else {
            memcpy(&out->d, element, sizeof out->d);
        }
        return true;
    }
    uint64_t bits = 0;
    memcpy(&bits, element, t->nbytes);
    if (t->kind == CM_KIND_INT && t->nbytes < 8) {
        const unsigned shift = 64 - 8 * t->nbytes;
        out->i = (int64_t)(bits << shift) >> shift;
        return true;
    }
    out->i = (int64_t)bits;
    return t->kind == CM_KIND_INT || bits <= INT64_MAX;
}

bool cm_time_exact_in_double(int64_t value)
{
    return value >= -(INT64_C(1) << 53) && value <= INT64_C(1) << 53;
}

bool cm_time_int_fits(const cm_dtype *t, int64_t value)
{
    const unsigned bits = 8 * t->nbytes;
    if (t->kind == CM_KIND_UINT)
        return value >= 0 && (bits == 64 || value < INT64_C(1) << bits);
    return bits == 64 || (value >= -(INT64_C(1) << (bits - 1)) && value < INT64_C(1) << (bits - 1));
}

static bool is_element(const cm_time_coding *c, const uint8_t *fill, const void *element,
                       const number *n)
{
    number f;
    if (!memcmp(element, fill, c->dtype.nbytes))
        return true;
    return n->is_float && load(&c->dtype, fill, &f) && f.d == n->d; /* zeros of either sign */
}

static bool is_missing(const cm_time_coding *c, const void *element, const number *n)
{
    bool missing =
        (n->is_float && isnan(n->d)) || (c->has_fill && is_element(c, c->fill, element, n));
    for (unsigned i = 0; i < c->nothers; i++)
        missing = missing || is_element(c, c->other[i], element, n);
    return missing;
}

/*
 * Microseconds since the reference date, by the rule of cftime (num2date in 1.6): the product
 * in long double, rounded to even; for units of seconds and longer a result one microsecond
 * beside a whole second is taken back to the other side of the product.
 */
static bool float_offset(const cm_time_axis *axis, double d, int64_t *us)
{
    const long double scaled = (long double)d * (long double)axis->unit_us;
    /* The largest double below 2^63, so that no rounding reaches it. */
    if (!(fabsl(scaled) <= 0x1.fffffffffffffp62L))
        return false;
    *us = (int64_t)rintl(scaled);
    if (axis->unit_us < SECOND_US)
        return true;
    int64_t past = *us % SECOND_US;
    past += past < 0 ? SECOND_US : 0;
    if (past == 1)
        *us = (int64_t)floorl(scaled);
    else if (past == SECOND_US - 1)
        *us = (int64_t)ceill(scaled);
    return true;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Leaves OUT->missing alone. */
static bool number_point(const cm_time_axis *axis, const number *n, cm_time_point *out)
{
    int64_t count = n->i, offset;
    out->ns = 0;
    if (n->is_float && axis->per_us == 1) {
        if (!float_offset(axis, n->d, &offset))
            return false;
    } else {
        /* xarray cuts fractions of nanoseconds off; cftime has no such unit. */
        if (n->is_float && !(fabs(n->d) < 0x1p63))
            return false;
        if (n->is_float)
            count = (int64_t)n->d;
        const int64_t whole = floor_div(count, axis->per_us);
        const int64_t rest = count % axis->per_us;
        out->ns = (int32_t)(rest < 0 ? rest + axis->per_us : rest);
        if (__builtin_mul_overflow(whole, axis->unit_us, &offset))
            return false;
    }
    return !__builtin_add_overflow(axis->origin_us, offset, &out->us);
}

bool cm_time_coding_point(const cm_time_coding *coding, const void *element, cm_time_point *out)
{
    number n;
    const bool in_range = load(&coding->dtype, element, &n);
    *out = (cm_time_point){.missing = is_missing(coding, element, &n)};
    return out->missing || (in_range && number_point(&coding->axis, &n, out));
}

/* ---- numbers that hold an instant exactly ---------------------------------------------------- */

bool cm_time_integer(const cm_time_axis *to, const cm_time_point *point, int64_t *out)
{
    int64_t offset;
    if (__builtin_sub_overflow(point->us, to->origin_us, &offset) || offset % to->unit_us)
        return false;
    if (__builtin_mul_overflow(offset / to->unit_us, to->per_us, out))
        return false;
    if (to->per_us == 1)
        return point->ns == 0;
    return !__builtin_add_overflow(*out, point->ns, out);
}

/*
 * Adds the distance of the two dates to the number: a double that is not a whole microsecond keeps
 * its meaning, if the sum is exact.
 */
static bool shifted(const cm_time_axis *from, const cm_time_axis *to, double d, double *out)
{
    int64_t apart;
    if (from->unit_us != to->unit_us || from->per_us != to->per_us ||
        __builtin_sub_overflow(from->origin_us, to->origin_us, &apart) || apart % to->unit_us ||
        __builtin_mul_overflow(apart / to->unit_us, to->per_us, &apart) ||
        !cm_time_exact_in_double(apart))
        return false;
    const double by = (double)apart, sum = d + by;
    /* The rounding error of a sum, exactly (Knuth's TwoSum). */
    const double part = sum - d, error = (d - (sum - part)) + (by - part);
    *out = sum;
    return error == 0;
}

/*
 * The double that is the instant and not only near it.  The product with nanoseconds is what
 * xarray computes, in double, and cuts off; it has to be exact too.
 */
static bool exact_double(const cm_time_axis *to, const cm_time_point *point, double *out)
{
    int64_t offset;
    if (point->ns || to->per_us != 1 || __builtin_sub_overflow(point->us, to->origin_us, &offset))
        return false;
    const double d = (double)((long double)offset / (long double)to->unit_us);
    const double unit = (double)to->unit_us, us = d * unit;
    if (!(fabs(us) < 0x1p63) || (int64_t)us != offset || fma(d, unit, -us) != 0)
        return false;
    const double unit_ns = unit * 1000, ns = d * unit_ns;
    *out = d;
    return fabs(ns) >= 0x1p63 || fma(d, unit_ns, -ns) == 0;
}

static bool find_double(const cm_time_axis *from, const number *n, const cm_time_point *point,
                        const cm_time_axis *to, double *out)
{
    if (n->is_float && shifted(from, to, n->d, out)) {
        /* Half a microsecond may be rounded down from one date and up from another. */
        const number again = {.is_float = true, .d = *out};
        cm_time_point there;
        return number_point(to, &again, &there) && there.us == point->us;
    }
    int64_t integer;
    if (!cm_time_integer(to, point, &integer))
        return exact_double(to, point, out);
    *out = (double)integer;
    /* Whole seconds a century and a half away have nanoseconds that a double rounds. */
    return cm_time_exact_in_double(integer) && (to->per_us != 1 || exact_double(to, point, out));
}

bool cm_time_double(const cm_time_coding *from, const void *element, const cm_time_point *point,
                    const cm_time_axis *to, double *out)
{
    number n;
    if (!load(&from->dtype, element, &n))
        return false;
    if (!axes_equal(&from->axis, to))
        return find_double(&from->axis, &n, point, to, out);
    *out = n.is_float ? n.d : (double)n.i;
    return n.is_float || cm_time_exact_in_double(n.i);
}

/* ---- re-basing ------------------------------------------------------------------------------ */

static int outside(const cm_time_coding *from, const cm_time_point *point, cm_status status,
                   const char *what, cm_error *err)
{
    char text[40];
    const cm_time_axis day_count = {.calendar = from->axis.calendar, .unit_us = 1, .per_us = 1};
    return cm_fail(err, status, "%s %s",
                   cm_time_axis_text(&day_count, point->us, text, sizeof text), what);
}

static bool store_number(const cm_time_coding *from, const cm_time_coding *to, const void *element,
                         const cm_time_point *point, void *out)
{
    if (to->dtype.kind != CM_KIND_FLOAT) {
        int64_t integer;
        number n;
        if (axes_equal(&from->axis, &to->axis) && load(&from->dtype, element, &n) && !n.is_float)
            integer = n.i;
        else if (!cm_time_integer(&to->axis, point, &integer))
            return false;
        memcpy(out, &integer, to->dtype.nbytes);
        return cm_time_int_fits(&to->dtype, integer);
    }
    double d;
    if (!cm_time_double(from, element, point, &to->axis, &d))
        return false;
    const float f = (float)d;
    if (to->dtype.nbytes == sizeof d)
        memcpy(out, &d, sizeof d);
    else
        memcpy(out, &f, sizeof f);
    return to->dtype.nbytes == sizeof d || (double)f == d;
}

static bool store_missing(const cm_time_coding *to, void *out)
{
    const double d = NAN;
    const float f = NAN;
    if (to->has_fill)
        memcpy(out, to->fill, to->dtype.nbytes);
    else if (to->dtype.nbytes == sizeof d)
        memcpy(out, &d, sizeof d);
    else
        memcpy(out, &f, sizeof f);
    return to->has_fill || to->dtype.kind == CM_KIND_FLOAT;
}

int cm_time_check_date(const cm_time_coding *from, cm_calendar to, const cm_time_point *point,
                       cm_error *err)
{
    if (from->axis.calendar == to || !before_reform(point->us))
        return CM_OK;
    return outside(from, point, CM_EUNSUPPORTED,
                   "lies before 1582-10-15, where the calendars standard and "
                   "proleptic_gregorian differ",
                   err);
}

static int rebase_one(const cm_time_coding *from, const cm_time_coding *to, const void *element,
                      void *out, cm_error *err)
{
    cm_time_point point;
    if (!cm_time_coding_point(from, element, &point)) {
        /* A number that no reader can decode is kept if axis and type are unchanged. */
        if (axes_equal(&from->axis, &to->axis) && cm_dtype_equal(&from->dtype, &to->dtype)) {
            memcpy(out, element, from->dtype.nbytes);
            return CM_OK;
        }
        return cm_fail(err, CM_EINVAL, "a time is out of range");
    }
    if (point.missing)
        return store_missing(to, out)
                   ? CM_OK
                   : cm_fail(err, CM_EINVAL, "a missing time, and no fill value to say so");
    int rc = cm_time_check_date(from, to->axis.calendar, &point, err);
    if (rc != CM_OK)
        return rc;
    if (!store_number(from, to, element, &point, out))
        return outside(from, &point, CM_EINVAL, "has no exact value in the new units and type",
                       err);
    number made;
    (void)load(&to->dtype, out, &made);
    if (is_missing(to, out, &made))
        return outside(from, &point, CM_EINVAL, "would become the fill value", err);
    return CM_OK;
}

int cm_time_rebase(const cm_time_coding *from, const cm_time_coding *to, const void *src, void *dst,
                   uint64_t nelem, uint64_t *bad, cm_error *err)
{
    if (!cm_calendars_join(from->axis.calendar, to->axis.calendar)) {
        *bad = 0;
        return cm_fail(err, CM_EUNSUPPORTED, "times of the calendars %s and %s cannot be joined",
                       cm_calendar_name(to->axis.calendar), cm_calendar_name(from->axis.calendar));
    }
    const uint8_t *in = src;
    uint8_t *out = dst;
    for (uint64_t i = 0; i < nelem; i++) {
        int rc = rebase_one(from, to, in + i * from->dtype.nbytes, out + i * to->dtype.nbytes, err);
        if (rc != CM_OK) {
            *bad = i;
            return rc;
        }
    }
    return CM_OK;
}
