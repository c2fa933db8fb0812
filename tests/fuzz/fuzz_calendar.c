/* Units of time, calendars and dates: a moment that is printed reads back as that moment. */
#include "fuzz.h"
#include "model/calendar.h"

/* cm_time_axis_text has microseconds, and years that dates have too. */
static void check_moment(const cm_time_axis *axis, int64_t us)
{
    char text[32];
    cm_time_span span;
    cm_time_axis_text(axis, us, text, sizeof text);
    REQUIRE(strlen(text) < sizeof text - 1);
    if (cm_time_span_parse(axis, text, &span, NULL) == CM_OK)
        REQUIRE(span.first_us == us && span.end_us > us);
}

static void check_date(const cm_time_axis *axis, const char *date)
{
    cm_time_span span;
    double lower, upper;
    if (cm_time_span_parse(axis, date, &span, NULL) != CM_OK)
        return;
    REQUIRE(span.first_us < span.end_us);
    check_moment(axis, span.first_us);
    if (cm_time_axis_bound(axis, date, false, &lower, NULL) == CM_OK &&
        cm_time_axis_bound(axis, date, true, &upper, NULL) == CM_OK)
        REQUIRE(lower <= upper);
}

/* Three lines: units, calendar, a date; behind them numbers of 8 bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    fuzz_input in = {data, nbytes};
    char *units = fuzz_line(&in), *calendar = fuzz_line(&in), *date = fuzz_line(&in);
    cm_time_axis axis, again;
    cm_calendar known;
    if (cm_calendar_parse(calendar, &known, NULL) == CM_OK) {
        cm_calendar same;
        REQUIRE(cm_calendar_parse(cm_calendar_name(known), &same, NULL) == CM_OK && same == known);
    }
    if (cm_time_axis_parse(units, calendar, &axis, NULL) == CM_OK) {
        REQUIRE(cm_time_axis_is(units) && axis.unit_us > 0 && axis.per_us > 0);
        REQUIRE(cm_time_axis_parse(units, calendar, &again, NULL) == CM_OK &&
                again.origin_us == axis.origin_us && again.unit_us == axis.unit_us);
        check_date(&axis, date);
        while (in.nbytes > 0) {
            const int64_t us = (int64_t)fuzz_number(&in, 8);
            check_moment(&axis, us);
            (void)cm_time_axis_number(&axis, us);
        }
    }
    free(units);
    free(calendar);
    free(date);
    return 0;
}
