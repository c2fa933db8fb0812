/*
 * Calendars as arithmetic: days counted from 1970-01-01 (Gregorian) where the
 * calendar is a real one, from 0000-01-01 where it is idealised.  Years are
 * astronomical here: 0 is the year before 1.
 */
#ifndef CM_MODEL_DAYS_H
#define CM_MODEL_DAYS_H

#include "model/calendar.h"

typedef struct cm_day {
    int64_t year;
    int month, day; /* from 1 */
} cm_day;

/* 28 ... 31; MONTH is 1 ... 12. */
int cm_days_in_month(cm_calendar calendar, int64_t year, int month);
/* False for days that the calendar lacks, and years beyond 10^9. */
bool cm_days_from_date(cm_calendar calendar, const cm_day *date, int64_t *days);
cm_day cm_days_to_date(cm_calendar calendar, int64_t days);

#endif
