/*
 * Time axes of the CF conventions: "days since 1850-01-01" in one of their calendars.
 *
 * A moment is a count of microseconds since the axis' reference date, exact and
 * independent of the unit.  The calendars, and their years before 1, are those of
 * CF 1.11 section 4.4 as cftime reads them: `standard` is Julian up to 1582-10-04
 * and Gregorian from 1582-10-15, and it and `julian` have no year 0; the others
 * have one.  Leap seconds do not exist.
 *
 * All functions are pure and may run in any thread.
 */
#ifndef CM_MODEL_CALENDAR_H
#define CM_MODEL_CALENDAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <chunkmill/error.h>

typedef enum cm_calendar {
    CM_CALENDAR_STANDARD, /* also "gregorian" */
    CM_CALENDAR_PROLEPTIC_GREGORIAN,
    CM_CALENDAR_JULIAN,
    CM_CALENDAR_NOLEAP,   /* also "365_day" */
    CM_CALENDAR_ALL_LEAP, /* also "366_day" */
    CM_CALENDAR_360_DAY
} cm_calendar;

/*
 * Upper and lower case are the same; NULL and "" are the standard calendar.  Others:
 * CM_EUNSUPPORTED.
 */
int cm_calendar_parse(const char *name, cm_calendar *out, cm_error *err);
const char *cm_calendar_name(cm_calendar calendar);

typedef struct cm_time_axis {
    cm_calendar calendar;
    int64_t origin_us; /* reference date, UTC, in microseconds on the calendar's own day count */
    int64_t unit_us;   /* one unit is unit_us / per_us microseconds; */
    int64_t per_us;    /* per_us is 1000 for nanoseconds, else 1 */
} cm_time_axis;

/* True when UNITS has the form of a time axis, "... since ...". */
bool cm_time_axis_is(const char *units);
/* The text behind "since", inside UNITS; NULL when that is no time axis. */
const char *cm_time_axis_date(const char *units);

/*
 * "UNIT since DATE[ TIME[ ZONE]]".  Units: weeks, days, hours, minutes, seconds,
 * milliseconds, microseconds, nanoseconds with their usual short forms; months in
 * 360_day and common_years in noleap, where these are fixed lengths.  CM_EFORMAT
 * when the text or its date is no such thing, CM_EUNSUPPORTED when the unit has
 * no fixed length or the calendar is not known.
 */
int cm_time_axis_parse(const char *units, const char *calendar, cm_time_axis *out, cm_error *err);

/* The span of a date: from FIRST_US up to, not including, END_US. */
typedef struct cm_time_span {
    int64_t first_us, end_us;
} cm_time_span;

/*
 * "2000", "2000-06", "2000-06-01", "2000-06-01T12", "...T12:30", "...T12:30:15",
 * "...T12:30:15.25", each with 'T' or a space, and a zone ("Z", "+01:00") behind a
 * time.  What is left out is all that it can be: "2009" ends with its last day.
 */
int cm_time_span_parse(const cm_time_axis *axis, const char *date, cm_time_span *out,
                       cm_error *err);

/*
 * A date as one side of a comparison LOWER <= value <= UPPER with numbers on the axis.  Bounds
 * coarser than a fraction of a second lie half a millisecond early, so that a value rounded to just
 * before its moment counts as that moment.
 */
int cm_time_axis_bound(const cm_time_axis *axis, const char *date, bool upper, double *out,
                       cm_error *err);

/* The axis' number of a moment. */
double cm_time_axis_number(const cm_time_axis *axis, int64_t us);

/* "2000-01-01T12:00:00", with ".250000" where there is a fraction.  32 bytes suffice. */
char *cm_time_axis_text(const cm_time_axis *axis, int64_t us, char *buf, size_t size);

#endif
