#include "model/calendar.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "model/days.h"

#define SECOND_US INT64_C(1000000)
#define MINUTE_US (60 * SECOND_US)
#define HOUR_US   (60 * MINUTE_US)
#define DAY_US    (24 * HOUR_US)

static const struct {
    const char *name;
    cm_calendar calendar;
} CALENDAR[] = {
    {"standard", CM_CALENDAR_STANDARD},
    {"gregorian", CM_CALENDAR_STANDARD},
    {"proleptic_gregorian", CM_CALENDAR_PROLEPTIC_GREGORIAN},
    {"julian", CM_CALENDAR_JULIAN},
    {"noleap", CM_CALENDAR_NOLEAP},
    {"365_day", CM_CALENDAR_NOLEAP},
    {"all_leap", CM_CALENDAR_ALL_LEAP},
    {"366_day", CM_CALENDAR_ALL_LEAP},
    {"360_day", CM_CALENDAR_360_DAY},
};

int cm_calendar_parse(const char *name, cm_calendar *out, cm_error *err)
{
    if (name == NULL || !*name)
        name = "standard";
    for (size_t i = 0; i < sizeof CALENDAR / sizeof *CALENDAR; i++) {
        if (!strcasecmp(name, CALENDAR[i].name)) {
            *out = CALENDAR[i].calendar;
            return CM_OK;
        }
    }
    return cm_fail(err, CM_EUNSUPPORTED, "the calendar '%.100s' is not known", name);
}

const char *cm_calendar_name(cm_calendar calendar)
{
    size_t i = 0;
    while (CALENDAR[i].calendar != calendar)
        i++;
    return CALENDAR[i].name;
}

/* CF 1.11, 4.4.1: `standard` and `julian` go from 1 BC, written -1, to 1. */
static bool has_year_zero(cm_calendar calendar)
{
    return calendar != CM_CALENDAR_STANDARD && calendar != CM_CALENDAR_JULIAN;
}

/* ---- dates as text -------------------------------------------------------------------------- */

typedef enum precision {
    TO_YEAR,
    TO_MONTH,
    TO_DAY,
    TO_HOUR,
    TO_MINUTE,
    TO_SECOND,
    TO_FRACTION
} precision;

typedef struct stamp {
    cm_day date;
    int64_t time_us; /* since midnight */
    int64_t zone_us; /* local time less UTC */
    precision precision;
} stamp;

/* Up to MAX digits at *P; false when there is none, or one more. */
static bool digits(const char **p, size_t max, int64_t *out)
{
    const size_t n = strspn(*p, "0123456789");
    if (n == 0 || n > max)
        return false;
    *out = 0;
    for (size_t i = 0; i < n; i++)
        *out = *out * 10 + ((*p)[i] - '0');
    *p += n;
    return true;
}

static bool below(const char **p, int64_t limit, int64_t *out)
{
    return digits(p, 2, out) && *out < limit;
}

/* ":MM[:SS[.F]]" at *P; digits past the microsecond say nothing that could be kept. */
static bool read_time_rest(const char **p, stamp *s)
{
    int64_t value;
    if (**p != ':')
        return true;
    (*p)++;
    if (!below(p, 60, &value))
        return false;
    s->time_us += value * MINUTE_US;
    s->precision = TO_MINUTE;
    if (**p != ':')
        return true;
    (*p)++;
    if (!below(p, 60, &value))
        return false;
    s->time_us += value * SECOND_US;
    s->precision = TO_SECOND;
    if (**p != '.')
        return true;
    (*p)++;
    int64_t scale = SECOND_US / 10;
    for (; **p >= '0' && **p <= '9'; (*p)++, scale /= 10) {
        s->time_us += (**p - '0') * scale;
        s->precision = TO_FRACTION;
    }
    return true;
}

/* "0:00" without a sign, as files of ARM have it; readers agree about it at midnight alone. */
static void skip_bare_zero(const char **p, const stamp *s)
{
    const char *zone = *p;
    const size_t n = strspn(zone, "0");
    if (s->precision < TO_HOUR || s->time_us != 0 || zone[-1] != ' ' || n == 0 || n > 2)
        return;
    zone += n;
    *p = strncmp(zone, ":00", 3) == 0 ? zone + 3 : zone;
}

/* "Z", "UTC", "GMT", "+H", "-HH", "+HH:MM", "+HHMM", a zero, and nothing. */
static bool read_zone(const char **p, stamp *s)
{
    static const char *const UTC[] = {"utc", "gmt", "z"};
    int64_t hours, minutes = 0;
    *p += strspn(*p, " ");
    for (size_t i = 0; i < 3; i++) {
        const size_t n = strlen(UTC[i]);
        if (!strncasecmp(*p, UTC[i], n)) {
            *p += n;
            return true;
        }
    }
    if (**p != '+' && **p != '-') {
        skip_bare_zero(p, s);
        return true;
    }
    const int64_t sign = **p == '-' ? -1 : 1;
    (*p)++;
    const bool packed = strspn(*p, "0123456789") == 4;
    if (!digits(p, packed ? 4 : 2, &hours))
        return false;
    if (packed) {
        minutes = hours % 100;
        hours /= 100;
    } else if (**p == ':') {
        (*p)++;
        if (!below(p, 60, &minutes))
            return false;
    }
    s->zone_us = sign * (hours * HOUR_US + minutes * MINUTE_US);
    return hours < 24 && minutes < 60;
}

/* The form only: whether the calendar has such a day is for the caller. */
static bool read_stamp(const char *text, stamp *s)
{
    const char *p = text + strspn(text, " ");
    int64_t value;
    const int64_t sign = *p == '-' ? -1 : 1;
    *s = (stamp){.date = {.month = 1, .day = 1}};
    p += *p == '-' || *p == '+';
    if (!digits(&p, 7, &value))
        return false;
    s->date.year = sign * value;
    if (*p == '-') {
        p++;
        if (!below(&p, 13, &value))
            return false;
        s->date.month = (int)value;
        s->precision = TO_MONTH;
    }
    if (*p == '-' && s->precision == TO_MONTH) {
        p++;
        if (!below(&p, 32, &value))
            return false;
        s->date.day = (int)value;
        s->precision = TO_DAY;
    }
    const size_t gap = *p == 'T' || *p == 't' ? 1 : strspn(p, " ");
    if (s->precision == TO_DAY && gap && p[gap] >= '0' && p[gap] <= '9') {
        p += gap;
        if (!below(&p, 24, &value))
            return false;
        s->time_us = value * HOUR_US;
        s->precision = TO_HOUR;
        if (!read_time_rest(&p, s))
            return false;
    }
    if (s->precision >= TO_DAY && !read_zone(&p, s))
        return false;
    return p[strspn(p, " ")] == 0;
}

/* A number behind the time of DATE, "0:00", which is no zone; NULL: there is none. */
static const char *number_behind(const char *date)
{
    char before[64];
    stamp s;
    const char *space = strrchr(date, ' ');
    if (space == NULL || space[1] < '0' || space[1] > '9' ||
        (size_t)(space - date) >= sizeof(before))
        return NULL;
    memcpy(before, date, (size_t)(space - date));
    before[space - date] = '\0';
    return read_stamp(before, &s) && s.precision > TO_DAY ? space + 1 : NULL;
}

/* Microseconds on the calendar's day count; failures have STATUS and quote TEXT. */
static int absolute_us(cm_calendar calendar, const stamp *s, cm_status status, const char *text,
                       int64_t *out, cm_error *err)
{
    cm_day date = s->date;
    int64_t days;
    if (date.year == 0 && !has_year_zero(calendar))
        return cm_fail(err, status, "'%.100s': the %s calendar has no year 0", text,
                       cm_calendar_name(calendar));
    if (date.year < 0 && !has_year_zero(calendar))
        date.year++;
    if (!cm_days_from_date(calendar, &date, &days))
        return cm_fail(err, status, "'%.100s' is not a day of the %s calendar", text,
                       cm_calendar_name(calendar));
    if (__builtin_mul_overflow(days, DAY_US, out) ||
        __builtin_add_overflow(*out, s->time_us - s->zone_us, out))
        return cm_fail(err, status, "'%.100s' is too far away", text);
    return CM_OK;
}

/* ---- axes ----------------------------------------------------------------------------------- */

enum {
    ANY_CALENDAR = -1
};

static const struct {
    const char *name;
    int64_t unit_us, per_us;
    int calendar; /* the only one in which the unit has a fixed length, or ANY_CALENDAR */
} UNIT[] = {
    {"day", DAY_US, 1, ANY_CALENDAR},
    {"days", DAY_US, 1, ANY_CALENDAR},
    {"d", DAY_US, 1, ANY_CALENDAR},
    {"hour", HOUR_US, 1, ANY_CALENDAR},
    {"hours", HOUR_US, 1, ANY_CALENDAR},
    {"hr", HOUR_US, 1, ANY_CALENDAR},
    {"hrs", HOUR_US, 1, ANY_CALENDAR},
    {"h", HOUR_US, 1, ANY_CALENDAR},
    {"minute", MINUTE_US, 1, ANY_CALENDAR},
    {"minutes", MINUTE_US, 1, ANY_CALENDAR},
    {"min", MINUTE_US, 1, ANY_CALENDAR},
    {"mins", MINUTE_US, 1, ANY_CALENDAR},
    {"second", SECOND_US, 1, ANY_CALENDAR},
    {"seconds", SECOND_US, 1, ANY_CALENDAR},
    {"sec", SECOND_US, 1, ANY_CALENDAR},
    {"secs", SECOND_US, 1, ANY_CALENDAR},
    {"s", SECOND_US, 1, ANY_CALENDAR},
    {"millisecond", 1000, 1, ANY_CALENDAR},
    {"milliseconds", 1000, 1, ANY_CALENDAR},
    {"millisec", 1000, 1, ANY_CALENDAR},
    {"millisecs", 1000, 1, ANY_CALENDAR},
    {"msec", 1000, 1, ANY_CALENDAR},
    {"msecs", 1000, 1, ANY_CALENDAR},
    {"ms", 1000, 1, ANY_CALENDAR},
    {"microsecond", 1, 1, ANY_CALENDAR},
    {"microseconds", 1, 1, ANY_CALENDAR},
    {"microsec", 1, 1, ANY_CALENDAR},
    {"microsecs", 1, 1, ANY_CALENDAR},
    {"us", 1, 1, ANY_CALENDAR},
    {"nanosecond", 1, 1000, ANY_CALENDAR},
    {"nanoseconds", 1, 1000, ANY_CALENDAR},
    {"ns", 1, 1000, ANY_CALENDAR},
    {"week", 7 * DAY_US, 1, ANY_CALENDAR},
    {"weeks", 7 * DAY_US, 1, ANY_CALENDAR},
    {"month", 30 * DAY_US, 1, CM_CALENDAR_360_DAY},
    {"months", 30 * DAY_US, 1, CM_CALENDAR_360_DAY},
    {"common_year", 365 * DAY_US, 1, CM_CALENDAR_NOLEAP},
    {"common_years", 365 * DAY_US, 1, CM_CALENDAR_NOLEAP},
};

/*
 * The date behind "since"; *nunit is the length of the unit in front, which begins at
 * *UNIT_TEXT.
 */
static const char *split(const char *units, const char **unit_text, size_t *nunit)
{
    static const char SPACE[] = " \t";
    *unit_text = units + strspn(units, SPACE);
    *nunit = strcspn(*unit_text, SPACE);
    const char *since = *unit_text + *nunit;
    since += strspn(since, SPACE);
    if (*nunit == 0 || strncasecmp(since, "since", 5) || !since[5] ||
        strchr(SPACE, since[5]) == NULL)
        return NULL;
    return since + 5 + strspn(since + 5, SPACE);
}

bool cm_time_axis_is(const char *units)
{
    const char *unit;
    size_t n;
    return units != NULL && split(units, &unit, &n) != NULL;
}

const char *cm_time_axis_date(const char *units)
{
    const char *unit;
    size_t n;
    return units != NULL ? split(units, &unit, &n) : NULL;
}

static int find_unit(const char *text, size_t n, cm_time_axis *axis, cm_error *err)
{
    for (size_t i = 0; i < sizeof UNIT / sizeof *UNIT; i++) {
        if (strlen(UNIT[i].name) != n || strncasecmp(text, UNIT[i].name, n))
            continue;
        if (UNIT[i].calendar != ANY_CALENDAR && UNIT[i].calendar != (int)axis->calendar)
            break;
        axis->unit_us = UNIT[i].unit_us;
        axis->per_us = UNIT[i].per_us;
        return CM_OK;
    }
    return cm_fail(err, CM_EUNSUPPORTED, "'%.*s' has no fixed length in the %s calendar",
                   (int)(n < 40 ? n : 40), text, cm_calendar_name(axis->calendar));
}

int cm_time_axis_parse(const char *units, const char *calendar, cm_time_axis *out, cm_error *err)
{
    const char *unit;
    size_t nunit;
    const char *date = split(units, &unit, &nunit);
    if (date == NULL)
        return cm_fail(err, CM_EFORMAT, "'%.100s' is not a time axis, \"UNIT since DATE\"", units);
    cm_time_axis axis;
    int rc = cm_calendar_parse(calendar, &axis.calendar, err);
    if (rc == CM_OK)
        rc = find_unit(unit, nunit, &axis, err);
    if (rc != CM_OK)
        return rc;
    stamp s;
    if (!read_stamp(date, &s)) {
        const char *number = number_behind(date);
        return cm_fail(err, CM_EFORMAT, "'%.100s': the reference date cannot be read%s%.20s%s",
                       units, number != NULL ? ": readers do not agree on what '" : "",
                       number != NULL ? number : "",
                       number != NULL ? "' behind the time means" : "");
    }
    rc = absolute_us(axis.calendar, &s, CM_EFORMAT, units, &axis.origin_us, err);
    if (rc == CM_OK)
        *out = axis;
    return rc;
}

/* ---- moments -------------------------------------------------------------------------------- */

/* The last day of the year or the month that S means, and all microseconds of its finest part. */
static int64_t widen(cm_calendar calendar, stamp *s)
{
    static const int64_t LENGTH[] = {
        [TO_DAY] = DAY_US,       [TO_HOUR] = HOUR_US, [TO_MINUTE] = MINUTE_US,
        [TO_SECOND] = SECOND_US, [TO_FRACTION] = 1,
    };
    if (s->precision >= TO_DAY)
        return LENGTH[s->precision];
    if (s->precision == TO_YEAR)
        s->date.month = 12;
    const int64_t year = s->date.year + (s->date.year < 0 && !has_year_zero(calendar));
    s->date.day = cm_days_in_month(calendar, year, s->date.month);
    return DAY_US;
}

static int parse_span(const cm_time_axis *axis, const char *date, cm_time_span *out,
                      precision *given, cm_error *err)
{
    stamp s;
    int64_t first = 0, last = 0;
    if (!read_stamp(date, &s) || s.date.month < 1 || s.date.day < 1)
        return cm_fail(err, CM_EINVAL,
                       "'%.100s' is not a date: write 2000, 2000-06, 2000-06-01 or "
                       "2000-06-01T12:30:00",
                       date);
    *given = s.precision;
    int rc = absolute_us(axis->calendar, &s, CM_EINVAL, date, &first, err);
    if (rc != CM_OK)
        return rc;
    const int64_t length = widen(axis->calendar, &s);
    rc = absolute_us(axis->calendar, &s, CM_EINVAL, date, &last, err);
    if (rc != CM_OK)
        return rc;
    if (__builtin_add_overflow(last, length, &last) ||
        __builtin_sub_overflow(first, axis->origin_us, &out->first_us) ||
        __builtin_sub_overflow(last, axis->origin_us, &out->end_us))
        return cm_fail(err, CM_EINVAL, "'%.100s' is too far away", date);
    return CM_OK;
}

int cm_time_span_parse(const cm_time_axis *axis, const char *date, cm_time_span *out, cm_error *err)
{
    precision given;
    return parse_span(axis, date, out, &given, err);
}

int cm_time_axis_bound(const cm_time_axis *axis, const char *date, bool upper, double *out,
                       cm_error *err)
{
    const double early_us = 500;
    precision given = TO_YEAR;
    cm_time_span span = {0, 0};
    int rc = parse_span(axis, date, &span, &given, err);
    if (rc != CM_OK)
        return rc;
    /* A fraction is one moment: both ends are the number that is nearest to it. */
    if (given == TO_FRACTION) {
        *out = cm_time_axis_number(axis, span.first_us);
        return CM_OK;
    }
    const int64_t us = upper ? span.end_us : span.first_us;
    const double early = early_us * (double)axis->per_us / (double)axis->unit_us;
    const double number = cm_time_axis_number(axis, us) - early;
    *out = upper ? nextafter(number, -INFINITY) : number;
    return CM_OK;
}

double cm_time_axis_number(const cm_time_axis *axis, int64_t us)
{
    /* The whole part apart, so that a far moment keeps its fraction. */
    const int64_t whole = us / axis->unit_us, rest = us % axis->unit_us;
    const double number = (double)whole + (double)rest / (double)axis->unit_us;
    return number * (double)axis->per_us;
}

char *cm_time_axis_text(const cm_time_axis *axis, int64_t us, char *buf, size_t size)
{
    /* Days of both, then their times of day: the sum of the moments may not fit. */
    int64_t days = us / DAY_US + axis->origin_us / DAY_US;
    int64_t rest = us % DAY_US + axis->origin_us % DAY_US;
    for (; rest < 0; rest += DAY_US)
        days--;
    for (; rest >= DAY_US; rest -= DAY_US)
        days++;
    const cm_day date = cm_days_to_date(axis->calendar, days);
    long long year = date.year;
    if (year <= 0 && !has_year_zero(axis->calendar))
        year--;
    int n = snprintf(buf, size, "%s%04lld-%02d-%02dT%02d:%02d:%02d", year < 0 ? "-" : "",
                     year < 0 ? -year : year, date.month, date.day, (int)(rest / HOUR_US),
                     (int)(rest / MINUTE_US % 60), (int)(rest / SECOND_US % 60));
    if (rest % SECOND_US && n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, ".%06d", (int)(rest % SECOND_US));
    return buf;
}
