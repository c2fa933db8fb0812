#include <math.h>
#include <stdio.h>

#include "../unit.h"
#include "model/calendar.h"
#include "model/days.h"

static cm_time_axis axis_of(const char *units, const char *calendar)
{
    cm_time_axis axis;
    cm_error err = {0};
    if (cm_time_axis_parse(units, calendar, &axis, &err))
        fail_msg("%s, %s: %s", units, calendar, err.text);
    return axis;
}

/* Made with cftime 1.6, but for the rows that say otherwise. */
static const struct {
    const char *units, *calendar;
    double number;
    const char *date;
} GOLDEN[] = {
    {"days since 1850-01-01", "standard", 0, "1850-01-01T00:00:00"},
    {"days since 1850-01-01", "standard", 54786.5, "2000-01-01T12:00:00"},
    {"days since 1850-01-01", "noleap", 54786.5, "2000-02-06T12:00:00"},
    {"days since 1850-01-01", "360_day", 54786.5, "2002-03-07T12:00:00"},
    {"days since 1850-01-01", "all_leap", 54786.5, "1999-09-09T12:00:00"},
    {"days since 1850-01-01", "julian", 54786.5, "1999-12-31T12:00:00"},
    {"days since 1582-10-04", "standard", 1, "1582-10-15T00:00:00"},
    {"days since 1582-10-04", "proleptic_gregorian", 1, "1582-10-05T00:00:00"},
    {"days since 1582-10-15", "standard", -1, "1582-10-04T00:00:00"},
    {"days since 1-1-1", "standard", 577736, "1582-10-04T00:00:00"},
    {"days since 1-1-1", "standard", -1, "-0001-12-31T00:00:00"},
    {"days since 1-1-1", "julian", -366, "-0001-01-01T00:00:00"},
    {"days since 1-1-1", "proleptic_gregorian", -1, "0000-12-31T00:00:00"},
    {"days since -4712-01-01 12:00:00", "julian", 2400000.5, "1859-11-06T00:00:00"},
    {"hours since 1900-01-01 00:00:0.0", "gregorian", 1051896, "2020-01-01T00:00:00"},
    {"hours since 1800-01-01", "gregorian", -1, "1799-12-31T23:00:00"},
    {"hours since 2000-01-01 12:00:00 +01:00", "standard", 1, "2000-01-01T12:00:00"},
    {"minutes since 2000-02-28 23:59:00", "standard", 1, "2000-02-29T00:00:00"},
    {"minutes since 2000-02-28 23:59:00", "365_day", 1, "2000-03-01T00:00:00"},
    {"seconds since 1970-01-01T00:00:00Z", "standard", 951782400, "2000-02-29T00:00:00"},
    {"seconds since 1970-01-01 00:00:00 UTC", "standard", -0.5, "1969-12-31T23:59:59.500000"},
    {"seconds since 2011-05-10 00:00:00 0:00", "standard", 60, "2011-05-10T00:01:00"},
    {"seconds since 2011-05-10T00:00:00.0 00", "noleap", 60, "2011-05-10T00:01:00"},
    {"milliseconds since 1970-01-01", "proleptic_gregorian", 951782400250,
     "2000-02-29T00:00:00.250000"},
    {"microseconds since 1970-01-01", "standard", 1, "1970-01-01T00:00:00.000001"},
    {"months since 2000-01-30", "360_day", 13, "2001-02-30T00:00:00"},
    {"days since 1900-02-29", "julian", 0, "1900-02-29T00:00:00"},
    {"days since 1900-02-29", "366_day", 365, "1901-02-28T00:00:00"},
    {"days since 2000-02-30", "360_day", 1, "2000-03-01T00:00:00"},
    {"days since 0000-01-01", "noleap", 730000, "2000-01-01T00:00:00"},
    {"Days Since 2000-1-1", "STANDARD", 59, "2000-02-29T00:00:00"},
    {"h since 2000-01-01T00:00:00-0330", "standard", 0, "2000-01-01T03:30:00"},
    {"d since 1600-02-29", "proleptic_gregorian", 146097, "2000-02-29T00:00:00"},
    {"days since 2000-01-01", "standard", 0.3333333333333333, "2000-01-01T08:00:00"},
    {"hours since 0001-01-01 00:00:00", "standard", 17522904, "2000-01-01T00:00:00"},
    /* cftime does not read a zone of one digit or a year alone, and has no such units. */
    {"days since 2000-01-01 -6:00", "standard", 0, "2000-01-01T06:00:00"},
    {"days since 2000", "standard", 31, "2000-02-01T00:00:00"},
    {"days since 2000-06", "standard", 30, "2000-07-01T00:00:00"},
    {"weeks since 2000-01-01", "standard", 2, "2000-01-15T00:00:00"},
    {"nanoseconds since 1970-01-01", "proleptic_gregorian", 951782400250000000,
     "2000-02-29T00:00:00.250000"},
    {"common_years since 2000-01-01", "noleap", 3, "2003-01-01T00:00:00"},
};

static void test_golden_dates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof GOLDEN / sizeof *GOLDEN; i++) {
        const cm_time_axis axis = axis_of(GOLDEN[i].units, GOLDEN[i].calendar);
        char text[32];
        cm_time_span span;
        print_message("  %s, %s, %g\n", GOLDEN[i].units, GOLDEN[i].calendar, GOLDEN[i].number);
        assert_true(cm_time_axis_is(GOLDEN[i].units));
        assert_int_equal(cm_time_span_parse(&axis, GOLDEN[i].date, &span, NULL), CM_OK);
        const int64_t us = span.first_us;
        assert_string_equal(cm_time_axis_text(&axis, us, text, sizeof text), GOLDEN[i].date);
        assert_true(cm_time_axis_number(&axis, us) == GOLDEN[i].number);
    }
}

static void test_bad_axes(void **state)
{
    (void)state;
    static const struct {
        const char *units, *calendar;
        int rc;
        bool is_axis;
    } ROW[] = {
        {"", NULL, CM_EFORMAT, false},
        {"K", NULL, CM_EFORMAT, false},
        {"days", NULL, CM_EFORMAT, false},
        {"days since", NULL, CM_EFORMAT, false},
        {"since 2000-01-01", NULL, CM_EFORMAT, false},
        {"days since ", NULL, CM_EFORMAT, true},
        {"days since yesterday", NULL, CM_EFORMAT, true},
        {"days since 2000-13-01", NULL, CM_EFORMAT, true},
        {"days since 2000-00-01", NULL, CM_EFORMAT, true},
        {"days since 2001-02-29", "standard", CM_EFORMAT, true},
        {"seconds since 2000-01-01 08:28:00 0:00", "standard", CM_EFORMAT, true},
        {"seconds since 2000-01-01 00:00:00 1:00", "standard", CM_EFORMAT, true},
        {"seconds since 2000-01-01 00:00:00 000", "standard", CM_EFORMAT, true},
        {"days since 2000-02-29", "noleap", CM_EFORMAT, true},
        {"days since 2000-01-31", "360_day", CM_EFORMAT, true},
        {"days since 1582-10-10", "standard", CM_EFORMAT, true},
        {"days since 0000-01-01", "standard", CM_EFORMAT, true},
        {"days since 0-1-1", "julian", CM_EFORMAT, true},
        {"days since 2000-01-01 24:00", NULL, CM_EFORMAT, true},
        {"days since 2000-01-01 12:60", NULL, CM_EFORMAT, true},
        {"days since 2000-01-01 12:00:60", NULL, CM_EFORMAT, true},
        {"days since 2000-01-01 12:00 +25:00", NULL, CM_EFORMAT, true},
        {"days since 2000-01-01 12:00 PST", NULL, CM_EFORMAT, true},
        {"days since 2000-01-01-05", NULL, CM_OK, true}, /* a zone */
        {"days since 99999999-01-01", NULL, CM_EFORMAT, true},
        {"days since 9999999-01-01", NULL, CM_EFORMAT, true},
        {"months since 2000-01-01", "standard", CM_EUNSUPPORTED, true},
        {"months since 2000-01-01", NULL, CM_EUNSUPPORTED, true},
        {"years since 2000-01-01", "360_day", CM_EUNSUPPORTED, true},
        {"common_years since 2000-01-01", "standard", CM_EUNSUPPORTED, true},
        {"fortnights since 2000-01-01", NULL, CM_EUNSUPPORTED, true},
        {"days since 2000-01-01", "martian", CM_EUNSUPPORTED, true},
        {"days since 2000-01-01", "none", CM_EUNSUPPORTED, true},
        {"days since 2000-01-01", "", CM_OK, true},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_time_axis axis;
        cm_error err = {0};
        print_message("  '%s' %s\n", ROW[i].units, ROW[i].calendar ? ROW[i].calendar : "");
        assert_int_equal(cm_time_axis_parse(ROW[i].units, ROW[i].calendar, &axis, &err), ROW[i].rc);
        assert_int_equal(err.text[0] != 0, ROW[i].rc != CM_OK);
        assert_int_equal(cm_time_axis_is(ROW[i].units), ROW[i].is_axis);
    }
    assert_false(cm_time_axis_is(NULL));
}

static void test_partial_dates(void **state)
{
    (void)state;
    static const struct {
        const char *calendar, *date;
        const char *first, *end; /* NULL: refused */
    } ROW[] = {
        {"standard", "2009", "2009-01-01T00:00:00", "2010-01-01T00:00:00"},
        {"standard", "2009-02", "2009-02-01T00:00:00", "2009-03-01T00:00:00"},
        {"standard", "2008-02", "2008-02-01T00:00:00", "2008-03-01T00:00:00"},
        {"standard", "2009-12", "2009-12-01T00:00:00", "2010-01-01T00:00:00"},
        {"standard", "2009-12-31", "2009-12-31T00:00:00", "2010-01-01T00:00:00"},
        {"standard", "2009-12-31T23", "2009-12-31T23:00:00", "2010-01-01T00:00:00"},
        {"standard", "2009-12-31 23:59", "2009-12-31T23:59:00", "2010-01-01T00:00:00"},
        {"standard", "2009-12-31T23:59:59", "2009-12-31T23:59:59", "2010-01-01T00:00:00"},
        {"standard", "2009-12-31T23:59:59.5", "2009-12-31T23:59:59.500000",
         "2009-12-31T23:59:59.500001"},
        {"standard", "2010-01-01T01:30+02:00", "2009-12-31T23:30:00", "2009-12-31T23:31:00"},
        {"standard", "2009-1-5", "2009-01-05T00:00:00", "2009-01-06T00:00:00"},
        {"standard", "1582", "1582-01-01T00:00:00", "1583-01-01T00:00:00"},
        {"standard", "1582-10-04", "1582-10-04T00:00:00", "1582-10-15T00:00:00"},
        {"standard", "-1", "-0001-01-01T00:00:00", "0001-01-01T00:00:00"},
        {"standard", "-0001-02", "-0001-02-01T00:00:00", "-0001-03-01T00:00:00"},
        {"standard", "0", NULL, NULL},
        {"proleptic_gregorian", "0", "0000-01-01T00:00:00", "0001-01-01T00:00:00"},
        {"360_day", "2009", "2009-01-01T00:00:00", "2010-01-01T00:00:00"},
        {"360_day", "2009-02", "2009-02-01T00:00:00", "2009-03-01T00:00:00"},
        {"360_day", "2009-02-30", "2009-02-30T00:00:00", "2009-03-01T00:00:00"},
        {"360_day", "2009-01-31", NULL, NULL},
        {"noleap", "2008-02", "2008-02-01T00:00:00", "2008-03-01T00:00:00"},
        {"noleap", "2008-02-29", NULL, NULL},
        {"all_leap", "2009-02-29", "2009-02-29T00:00:00", "2009-03-01T00:00:00"},
        {"julian", "1900-02", "1900-02-01T00:00:00", "1900-03-01T00:00:00"},
        {"julian", "1900-02-29", "1900-02-29T00:00:00", "1900-03-01T00:00:00"},
        {"standard", "", NULL, NULL},
        {"standard", "2009-", NULL, NULL},
        {"standard", "2009-00", NULL, NULL},
        {"standard", "2009-01-00", NULL, NULL},
        {"standard", "2009-01-01T", NULL, NULL},
        {"standard", "2009-01-01T12:", NULL, NULL},
        {"standard", "2009T12", NULL, NULL},
        {"standard", "20090101", NULL, NULL},
        {"standard", "2009-01-01x", NULL, NULL},
        {"standard", "12 Jan 2009", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        const cm_time_axis axis = axis_of("hours since 2000-01-01 06:00", ROW[i].calendar);
        cm_time_span span;
        cm_error err = {0};
        char text[32];
        print_message("  %s, %s\n", ROW[i].date, ROW[i].calendar);
        const int rc = cm_time_span_parse(&axis, ROW[i].date, &span, &err);
        assert_int_equal(rc, ROW[i].first ? CM_OK : CM_EINVAL);
        if (rc) {
            assert_non_null(strstr(err.text, ROW[i].date));
            continue;
        }
        assert_string_equal(cm_time_axis_text(&axis, span.first_us, text, sizeof text),
                            ROW[i].first);
        assert_string_equal(cm_time_axis_text(&axis, span.end_us, text, sizeof text), ROW[i].end);
    }
}

static void test_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *name, *from, *to;
        double number; /* days since 2000-01-01 */
        bool inside;
    } ROW[] = {
        {"first moment", "2000-02", "2000-02", 31, true},
        {"just before it by rounding", "2000-02", "2000-02", 31 - 1e-11, true},
        {"an hour before it", "2000-02", "2000-02", 31 - 1 / 24.0, false},
        {"last day at noon", "2000-02", "2000-02-29", 59.5, true},
        {"last second", "2000-02", "2000-02-29", 60 - 1 / 86400.0, true},
        {"moment after the end", "2000-02", "2000-02-29", 60, false},
        {"moment after the end, by rounding", "2000-02", "2000-02-29", 60 - 1e-11, false},
        {"whole years", "2000", "2001", 730, true},
        {"after whole years", "2000", "2001", 731, false},
        {"one moment", "2000-01-01T12:00:00.0", "2000-01-01T12:00:00.0", 0.5, true},
        {"beside one moment", "2000-01-01T12:00:00.0", "2000-01-01T12:00:00.0", 0.6, false},
    };
    const cm_time_axis axis = axis_of("days since 2000-01-01", "standard");
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        double low, high;
        print_message("  %s\n", ROW[i].name);
        assert_int_equal(cm_time_axis_bound(&axis, ROW[i].from, false, &low, NULL), CM_OK);
        assert_int_equal(cm_time_axis_bound(&axis, ROW[i].to, true, &high, NULL), CM_OK);
        assert_int_equal(low <= ROW[i].number && ROW[i].number <= high, ROW[i].inside);
    }
    double unused;
    assert_int_equal(cm_time_axis_bound(&axis, "soon", true, &unused, NULL), CM_EINVAL);
}

static void test_both_ends_of_moments_have_a_text(void **state)
{
    (void)state;
    char text[32];
    const cm_time_axis far = axis_of("days since 250000-01-01", "standard");
    cm_time_axis_text(&far, INT64_MAX, text, sizeof text);
    assert_memory_equal(text, "542277", 6);
    cm_time_axis_text(&far, INT64_MIN, text, sizeof text);
    assert_memory_equal(text, "-4227", 5);
}

static void test_days_follow_each_other(void **state)
{
    (void)state;
    for (int c = CM_CALENDAR_STANDARD; c <= CM_CALENDAR_360_DAY; c++) {
        const cm_calendar calendar = (cm_calendar)c;
        cm_day before = cm_days_to_date(calendar, -1000001);
        for (int64_t n = -1000000; n < 1000000; n++) {
            const cm_day date = cm_days_to_date(calendar, n);
            int64_t back;
            assert_true(cm_days_from_date(calendar, &date, &back));
            assert_true(back == n);
            const bool next_day =
                date.year == before.year && date.month == before.month &&
                (date.day == before.day + 1 || (calendar == CM_CALENDAR_STANDARD && n == -141427 &&
                                                before.day == 4 && date.day == 15));
            const int last = cm_days_in_month(calendar, before.year, before.month);
            const bool next_month = date.day == 1 && before.day == last &&
                                    date.year == before.year + (before.month == 12) &&
                                    date.month == before.month % 12 + 1;
            assert_true(next_day || next_month);
            before = date;
        }
        cm_calendar parsed;
        assert_int_equal(cm_calendar_parse(cm_calendar_name(calendar), &parsed, NULL), CM_OK);
        assert_int_equal(parsed, calendar);
    }
}

/* A number behind the time is a zone to some readers and a time to others: the reason says so. */
static void test_reasons(void **state)
{
    (void)state;
    static const struct {
        const char *units, *why;
    } ROW[] = {
        {"seconds since 2020-02-01 12:00:00 0:00", ": readers do not agree on what '0:00' behind "
                                                   "the time means"},
        {"days since 2020-02-01 12:00 00:30:00", ": readers do not agree on what '00:30:00' behind "
                                                 "the time means"},
        {"seconds since 2020-02-01 12:00:00 noon", ""},
        {"seconds since 2020-02-01 12:61:00 0:00", ""},
        {"seconds since then 0:00", ""},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_time_axis axis;
        cm_error err = {0};
        char want[200];
        snprintf(want, sizeof(want), "'%s': the reference date cannot be read%s", ROW[i].units,
                 ROW[i].why);
        assert_int_equal(cm_time_axis_parse(ROW[i].units, "standard", &axis, &err), CM_EFORMAT);
        assert_string_equal(err.text, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_dates),
        cmocka_unit_test(test_bad_axes),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_partial_dates),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_both_ends_of_moments_have_a_text),
        cmocka_unit_test(test_days_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
