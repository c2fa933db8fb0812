#include "model/days.h"

static const int CUMULATIVE[2][13] = {{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365},
                                      {0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, 366}};

/* The first Gregorian day of the mixed calendar, 1582-10-15, which follows Julian 1582-10-04. */
#define FIRST_GREGORIAN_DAY INT64_C(-141427)

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static bool is_leap(cm_calendar calendar, int64_t year)
{
    switch (calendar) {
    case CM_CALENDAR_NOLEAP:
    case CM_CALENDAR_360_DAY:
        return false;
    case CM_CALENDAR_ALL_LEAP:
        return true;
    case CM_CALENDAR_JULIAN:
        return year % 4 == 0;
    case CM_CALENDAR_STANDARD:
        /* The years in which the rules differ, 1700 and on, lie behind the change. */
        if (year < 1582)
            return year % 4 == 0;
        break;
    case CM_CALENDAR_PROLEPTIC_GREGORIAN:
        break;
    }
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int cm_days_in_month(cm_calendar calendar, int64_t year, int month)
{
    if (calendar == CM_CALENDAR_360_DAY)
        return 30;
    const int *cumulative = CUMULATIVE[is_leap(calendar, year)];
    return cumulative[month] - cumulative[month - 1];
}

/*
 * Both real calendars by the method of H. Hinnant (chrono-compatible low-level
 * date algorithms): years begin in March, so that the leap day is their last, and
 * are grouped into cycles of 400 Gregorian or 4 Julian years.
 */
typedef struct cycle {
    int64_t years, days, offset; /* OFFSET: days from 0000-03-01 to 1970-01-01 */
} cycle;

static const cycle GREGORIAN = {400, 146097, 719468};
static const cycle JULIAN = {4, 1461, 719470};

static int64_t real_days(const cycle *c, const cm_day *date)
{
    const int64_t year = date->year - (date->month <= 2);
    const int64_t era = floor_div(year, c->years), yoe = year - era * c->years;
    const int64_t month = date->month > 2 ? date->month - 3 : date->month + 9;
    const int64_t doy = (153 * month + 2) / 5 + date->day - 1;
    /* Within four years the centuries add and take nothing. */
    return era * c->days + yoe * 365 + yoe / 4 - yoe / 100 + doy - c->offset;
}

static cm_day real_date(const cycle *c, int64_t days)
{
    const int64_t z = days + c->offset, era = floor_div(z, c->days), doe = z - era * c->days;
    const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), month = (5 * doy + 2) / 153;
    return (cm_day){.year = era * c->years + yoe + (month >= 10),
                    .month = (int)(month < 10 ? month + 3 : month - 9),
                    .day = (int)(doy - (153 * month + 2) / 5 + 1)};
}

static int64_t ideal_days(cm_calendar calendar, const cm_day *date)
{
    if (calendar == CM_CALENDAR_360_DAY)
        return date->year * 360 + (date->month - 1) * 30 + date->day - 1;
    const int *cumulative = CUMULATIVE[calendar == CM_CALENDAR_ALL_LEAP];
    return date->year * cumulative[12] + cumulative[date->month - 1] + date->day - 1;
}

static cm_day ideal_date(cm_calendar calendar, int64_t days)
{
    if (calendar == CM_CALENDAR_360_DAY) {
        const int64_t year = floor_div(days, 360), doy = days - year * 360;
        return (cm_day){.year = year, .month = (int)(doy / 30) + 1, .day = (int)(doy % 30) + 1};
    }
    const int *cumulative = CUMULATIVE[calendar == CM_CALENDAR_ALL_LEAP];
    const int64_t year = floor_div(days, cumulative[12]), doy = days - year * cumulative[12];
    int month = 1;
    while (doy >= cumulative[month])
        month++;
    return (cm_day){.year = year, .month = month, .day = (int)(doy - cumulative[month - 1]) + 1};
}

bool cm_days_from_date(cm_calendar calendar, const cm_day *date, int64_t *days)
{
    const int64_t most = 1000000000;
    if (date->year < -most || date->year > most || date->month < 1 || date->month > 12 ||
        date->day < 1 || date->day > cm_days_in_month(calendar, date->year, date->month))
        return false;
    switch (calendar) {
    case CM_CALENDAR_STANDARD:
        *days = real_days(&GREGORIAN, date);
        if (*days >= FIRST_GREGORIAN_DAY)
            return true;
        *days = real_days(&JULIAN, date);
        /* The ten days between were never counted. */
        return *days < FIRST_GREGORIAN_DAY;
    case CM_CALENDAR_PROLEPTIC_GREGORIAN:
        *days = real_days(&GREGORIAN, date);
        return true;
    case CM_CALENDAR_JULIAN:
        *days = real_days(&JULIAN, date);
        return true;
    case CM_CALENDAR_NOLEAP:
    case CM_CALENDAR_ALL_LEAP:
    case CM_CALENDAR_360_DAY:
        break;
    }
    *days = ideal_days(calendar, date);
    return true;
}

cm_day cm_days_to_date(cm_calendar calendar, int64_t days)
{
    switch (calendar) {
    case CM_CALENDAR_STANDARD:
        return real_date(days >= FIRST_GREGORIAN_DAY ? &GREGORIAN : &JULIAN, days);
    case CM_CALENDAR_PROLEPTIC_GREGORIAN:
        return real_date(&GREGORIAN, days);
    case CM_CALENDAR_JULIAN:
        return real_date(&JULIAN, days);
    case CM_CALENDAR_NOLEAP:
    case CM_CALENDAR_ALL_LEAP:
    case CM_CALENDAR_360_DAY:
        break;
    }
    return ideal_date(calendar, days);
}
