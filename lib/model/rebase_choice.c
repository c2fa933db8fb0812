#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/rebase_impl.h"

/* Finest first. */
static const struct {
    const char *name;
    int64_t unit_us, per_us;
} UNIT[CM_TIME_UNITS] = {
    {"nanoseconds", 1, 1000},          {"microseconds", 1, 1},
    {"milliseconds", 1000, 1},         {"seconds", INT64_C(1000000), 1},
    {"minutes", INT64_C(60000000), 1}, {"hours", INT64_C(3600000000), 1},
    {"days", INT64_C(86400000000), 1},
};

static cm_time_axis axis_in(const cm_time_axis *axis, unsigned unit)
{
    cm_time_axis a = *axis;
    a.unit_us = UNIT[unit].unit_us;
    a.per_us = UNIT[unit].per_us;
    return a;
}

/* The place in UNIT of an axis' unit, or of the next finer one (weeks are 7 days). */
static unsigned unit_of(const cm_time_axis *axis)
{
    for (unsigned u = CM_TIME_UNITS; u-- > 0;) {
        if (axis->per_us == UNIT[u].per_us && axis->unit_us % UNIT[u].unit_us == 0)
            return u;
    }
    return 0;
}

void cm_time_choice_begin(cm_time_choice *choice, const cm_time_axis *first, bool fixed)
{
    memset(choice, 0, sizeof *choice);
    choice->axis = *first;
    choice->fixed = fixed;
    choice->whole_first = true;
    choice->finest = unit_of(first);
    for (unsigned u = 0; u < CM_TIME_UNITS; u++)
        choice->whole[u] = true;
    for (unsigned m = 0; m < CM_TIME_MEMBERS; m++)
        choice->seen[m] = (cm_time_seen){.fits_f32 = true, .fits_f64 = true};
}

static void see_type(cm_time_seen *seen, const cm_time_coding *coding)
{
    const cm_dtype *t = &coding->dtype;
    if (t->kind == CM_KIND_FLOAT) {
        seen->floats = true;
        seen->needs_f64 |= t->nbytes > 4;
    } else {
        uint32_t *widest = &seen->int_nbytes[t->kind == CM_KIND_UINT];
        *widest = t->nbytes > *widest ? t->nbytes : *widest;
        /* float32 has 24 bits. */
        seen->needs_f64 |= t->nbytes > 2;
    }
    if (coding->has_fill && !seen->any) {
        seen->has_fill = true;
        seen->fill_dtype = *t;
        memcpy(seen->fill, coding->fill, sizeof seen->fill);
    }
    seen->any = true;
}

/* True when the integer of POINT on AXIS exists, and stays within what readers decode exactly. */
static bool whole_on(const cm_time_axis *axis, const cm_time_point *point, int64_t *out)
{
    return cm_time_integer(axis, point, out) &&
           (axis->per_us != 1 || cm_time_exact_in_double(*out));
}

static void see_point(cm_time_choice *choice, cm_time_seen *seen, const cm_time_coding *coding,
                      const void *element, const cm_time_point *point)
{
    int64_t integer;
    double d = 0;
    for (unsigned u = 0; u < CM_TIME_UNITS; u++) {
        const cm_time_axis axis = axis_in(&choice->axis, u);
        choice->whole[u] = choice->whole[u] && whole_on(&axis, point, &integer);
    }
    if (whole_on(&choice->axis, point, &integer)) {
        seen->low = integer < seen->low ? integer : seen->low;
        seen->high = integer > seen->high ? integer : seen->high;
    } else {
        choice->whole_first = false;
    }
    if (seen->fits_f64 && !cm_time_double(coding, element, point, &choice->axis, &d))
        seen->fits_f64 = seen->fits_f32 = false;
    seen->fits_f32 = seen->fits_f32 && (double)(float)d == d;
}

/* Does the common type of a member, or a wider one, hold it on the first axis? */
static bool first_type(const cm_time_choice *choice, const cm_time_seen *seen, cm_dtype *out)
{
    if (seen->floats) {
        const bool small = !seen->needs_f64 && seen->fits_f32;
        *out = cm_dtype_make(CM_KIND_FLOAT, small ? 4 : 8);
        return seen->fits_f64;
    }
    const uint32_t s = seen->int_nbytes[0], u = seen->int_nbytes[1];
    *out = cm_dtype_make(CM_KIND_INT, 8);
    if (s > u)
        *out = cm_dtype_make(CM_KIND_INT, s);
    else if (s == 0)
        *out = cm_dtype_make(CM_KIND_UINT, u);
    else if (u < 8)
        *out = cm_dtype_make(CM_KIND_INT, 2 * u);
    if (!cm_time_int_fits(out, seen->low) || !cm_time_int_fits(out, seen->high))
        *out = cm_dtype_make(CM_KIND_INT, 8);
    return choice->whole_first;
}

static bool first_holds(const cm_time_choice *choice)
{
    bool holds = true;
    cm_dtype type;
    for (unsigned m = 0; m < CM_TIME_MEMBERS; m++)
        holds = holds && (!choice->seen[m].any || first_type(choice, &choice->seen[m], &type));
    return holds;
}

static int joins(const cm_time_choice *choice, const cm_time_coding *coding, cm_error *err)
{
    if (cm_calendars_join(choice->axis.calendar, coding->axis.calendar))
        return CM_OK;
    return cm_fail(err, CM_EUNSUPPORTED, "times of the calendars %s and %s cannot be joined",
                   cm_calendar_name(choice->axis.calendar),
                   cm_calendar_name(coding->axis.calendar));
}

int cm_time_choice_see(cm_time_choice *choice, unsigned member, const cm_time_coding *coding,
                       const void *values, uint64_t nelem, uint64_t file, uint64_t *bad,
                       cm_error *err)
{
    cm_time_seen *seen = &choice->seen[member];
    *bad = nelem;
    int rc = joins(choice, coding, err);
    if (rc != CM_OK)
        return rc;
    see_type(seen, coding);
    const unsigned unit = unit_of(&coding->axis);
    if (!choice->fixed && unit < choice->finest)
        choice->finest = unit;
    for (uint64_t i = 0; i < nelem; i++) {
        const uint8_t *element = (const uint8_t *)values + i * coding->dtype.nbytes;
        cm_time_point point;
        *bad = i;
        if (!cm_time_coding_point(coding, element, &point))
            return cm_fail(err, CM_EINVAL, "a time is out of range");
        rc = point.missing ? CM_OK : cm_time_check_date(coding, choice->axis.calendar, &point, err);
        if (rc != CM_OK)
            return rc;
        if (point.missing)
            seen->missing = true;
        else
            see_point(choice, seen, coding, element, &point);
    }
    if (!choice->any_lost && !first_holds(choice)) {
        choice->any_lost = true;
        choice->lost = file;
    }
    return CM_OK;
}

/*
 * The fill value of a member in the type that was chosen: the first file's where it has one
 * that the type can say, else NaN or the lowest integer, which xarray reads as no time.
 */
static void chosen_fill(const cm_time_seen *seen, cm_time_coding *coding)
{
    if (seen->has_fill && cm_dtype_equal(&seen->fill_dtype, &coding->dtype)) {
        coding->has_fill = true;
        memcpy(coding->fill, seen->fill, sizeof coding->fill);
    } else if (seen->has_fill || (seen->missing && coding->dtype.kind != CM_KIND_FLOAT)) {
        const double d = NAN;
        const float f = NAN;
        const uint64_t lowest = UINT64_C(1) << (8 * coding->dtype.nbytes - 1), most = UINT64_MAX;
        coding->has_fill = true;
        if (coding->dtype.kind == CM_KIND_FLOAT && coding->dtype.nbytes == sizeof d)
            memcpy(coding->fill, &d, sizeof d);
        else if (coding->dtype.kind == CM_KIND_FLOAT)
            memcpy(coding->fill, &f, sizeof f);
        else
            memcpy(coding->fill, coding->dtype.kind == CM_KIND_INT ? &lowest : &most,
                   coding->dtype.nbytes);
    }
}

static void choose_unit(const cm_time_choice *choice, unsigned unit, cm_time_chosen *out)
{
    for (unsigned m = 0; m < CM_TIME_MEMBERS; m++) {
        if (!choice->seen[m].any)
            continue;
        out->coding[m].axis = axis_in(&choice->axis, unit);
        out->coding[m].dtype = cm_dtype_make(CM_KIND_INT, 8);
        chosen_fill(&choice->seen[m], &out->coding[m]);
    }
}

static void choose_first(const cm_time_choice *choice, bool integers, cm_time_chosen *out)
{
    out->same_unit = true;
    for (unsigned m = 0; m < CM_TIME_MEMBERS; m++) {
        if (!choice->seen[m].any)
            continue;
        out->coding[m].axis = choice->axis;
        if (integers)
            out->coding[m].dtype = cm_dtype_make(CM_KIND_INT, 8);
        else
            (void)first_type(choice, &choice->seen[m], &out->coding[m].dtype);
        chosen_fill(&choice->seen[m], &out->coding[m]);
    }
}

/* "UNIT since ..." with the date as it is written in UNITS. */
static int name_units(const char *unit, const char *units, cm_time_chosen *out, cm_error *err)
{
    const char *date = cm_time_axis_date(units);
    const int n =
        snprintf(out->units, sizeof out->units, "%s since %s", unit, date != NULL ? date : "");
    if (date == NULL || n < 0 || (size_t)n >= sizeof out->units)
        return cm_fail(err, CM_EFORMAT, "'%.100s' is not a time axis, \"UNIT since DATE\"", units);
    return CM_OK;
}

int cm_time_choice_end(const cm_time_choice *choice, const char *units, cm_time_chosen *out,
                       cm_error *err)
{
    memset(out, 0, sizeof *out);
    const bool holds = first_holds(choice);
    if (holds || (choice->fixed && choice->whole_first)) {
        choose_first(choice, !holds, out);
        const int n = snprintf(out->units, sizeof out->units, "%s", units);
        if (n < 0 || (size_t)n >= sizeof out->units)
            return cm_fail(err, CM_EFORMAT, "the units '%.100s...' are too long", units);
        return CM_OK;
    }
    for (unsigned u = choice->finest + 1; !choice->fixed && u-- > 0;) {
        if (!choice->whole[u])
            continue;
        choose_unit(choice, u, out);
        return name_units(UNIT[u].name, units, out, err);
    }
    return cm_fail(err, CM_EUNSUPPORTED, "no type holds every time exactly in '%.100s'%s", units,
                   choice->fixed ? "" : " or in a finer unit");
}
