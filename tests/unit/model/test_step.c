

#include "../unit.h"
#include "model/step.h"

enum {
    MAX_DATES = 12
};

/* Dates, the step that they have, and the dates that are missing. */
static const struct {
    const char *name, *calendar, *dates[MAX_DATES], *step;
    uint64_t nmissing;
    const char *missing[4]; /* the first of them; "?" where they cannot be told */
} STEPS[] = {
    {"days",
     "standard",
     {"1999-12-30", "1999-12-31", "2000-01-01", "2000-01-04"},
     "1 day",
     2,
     {"2000-01-02", "2000-01-03"}},
    {"hours",
     "noleap",
     {"2000-02-28T18", "2000-03-01T00", "2000-03-01T06", "2000-03-01T18"},
     "6 hours",
     1,
     {"2000-03-01T12"}},
    {"months",
     "standard",
     {"2000-01-01", "2000-02-01", "2000-03-01", "2000-05-01"},
     "1 month",
     1,
     {"2000-04-01"}},
    {"months' ends",
     "standard",
     {"2000-01-31", "2000-02-29", "2000-04-30"},
     "1 month",
     1,
     {"2000-03-31"}},
    {"months' middles",
     "noleap",
     {"2000-01-16T12", "2000-02-15T00", "2000-03-16T12", "2000-06-16T00"},
     "1 month",
     2,
     {"2000-04-16", "2000-05-16T12"}},
    {"some day of each month",
     "standard",
     {"2000-01-14", "2000-02-15", "2000-03-16", "2000-05-14"},
     "1 month",
     1,
     {"?"}},
    {"months of 30 days",
     "360_day",
     {"2000-01-01", "2000-02-01", "2000-04-01"},
     "30 days",
     1,
     {"2000-03-01"}},
    {"years",
     "standard",
     {"1999-07-01", "2000-07-01", "2001-07-01", "2003-07-01"},
     "12 months",
     1,
     {"2002-07-01"}},
    {"seasons",
     "standard",
     {"2000-01-01", "2000-04-01", "2000-07-01", "2001-01-01"},
     "3 months",
     1,
     {"2000-10-01"}},
    {"two dates", "standard", {"2000-01-01", "2000-01-05"}, "4 days", 0, {0}},
    {"one date", "standard", {"2000-01-01"}, "no step", 0, {0}},
    {"more gaps than steps",
     "standard",
     {"2000-01-01", "2000-01-02", "2000-01-04", "2000-01-07", "2000-01-12"},
     "no step",
     0,
     {0}},
    {"two on one day of a monthly series",
     "standard",
     {"2000-01-01T00", "2000-01-01T00:00:07", "2000-02-01", "2000-03-01"},
     "no step",
     0,
     {0}},
    {"a microsecond off",
     "standard",
     {"2000-01-01T00:00:00.000001", "2000-01-01T01", "2000-01-01T01:59:59.999999", "2000-01-01T04"},
     "1 hour",
     1,
     {"2000-01-01T02:59:59.999999"}},
    {"the same date twice",
     "standard",
     {"2000-01-01", "2000-01-01", "2000-01-02"},
     "no step",
     0,
     {0}},
    {"over the change of 1582",
     "standard",
     {"1582-10-03", "1582-10-04", "1582-10-16"},
     "1 day",
     1,
     {"1582-10-15"}},
};

static int64_t moment(const cm_time_axis *axis, const char *date)
{
    cm_time_span span;
    cm_error err = {0};
    if (cm_time_span_parse(axis, date, &span, &err))
        fail_msg("%s: %s", date, err.text);
    return span.first_us + axis->origin_us;
}

static void test_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
        cm_time_axis axis;
        int64_t us[MAX_DATES];
        uint64_t n = 0, nmissing = 0;
        cm_time_step step;
        char text[48];
        print_message("  %s\n", STEPS[i].name);
        assert_int_equal(
            cm_time_axis_parse("days since 2000-01-01", STEPS[i].calendar, &axis, NULL), CM_OK);
        for (; n < MAX_DATES && STEPS[i].dates[n]; n++)
            us[n] = moment(&axis, STEPS[i].dates[n]);
        const bool has_step = cm_time_step_infer(axis.calendar, us, n, &step);
        assert_int_equal(has_step, step.kind != CM_TIME_STEP_NONE);
        assert_string_equal(cm_time_step_text(&step, text, sizeof text), STEPS[i].step);
        for (uint64_t j = 1; j < n; j++) {
            const uint64_t missing = cm_time_step_missing(&step, us[j - 1], us[j]);
            for (uint64_t k = 1; k <= missing; k++, nmissing++) {
                int64_t at = 0;
                const char *want = STEPS[i].missing[nmissing];
                assert_non_null(want);
                assert_int_equal(cm_time_step_add(&step, us[j - 1], k, &at), want[0] != '?');
                assert_true(want[0] == '?' || at == moment(&axis, want));
            }
        }
        assert_int_equal(nmissing, STEPS[i].nmissing);
    }
}

/* The bounds of one step become those of another. */
static void test_moves(void **state)
{
    (void)state;
    static const struct {
        const char *calendar, *first, *second, *from, *to, *a, *want;
    } MOVE[] = {
        {"standard", "2000-01-01", "2000-01-02", "2000-01-02", "2000-01-05", "2000-01-03",
         "2000-01-06"},
        {"standard", "2000-01-16T12", "2000-02-15T12", "2000-01-16T12", "2000-02-15T12",
         "2000-02-01", "2000-03-01"},
        {"noleap", "2000-01-01", "2000-02-01", "2000-01-01", "2001-02-01", "1961-01-01",
         "1962-02-01"},
        {"standard", "2000-01-31", "2000-02-29", "2000-01-31", "2000-04-30", "2000-01-31",
         "2000-04-30"},
    };
    for (size_t i = 0; i < sizeof MOVE / sizeof *MOVE; i++) {
        cm_time_axis axis;
        cm_time_step step;
        int64_t us[2], at = 0;
        assert_int_equal(cm_time_axis_parse("days since 2000-01-01", MOVE[i].calendar, &axis, NULL),
                         CM_OK);
        us[0] = moment(&axis, MOVE[i].first);
        us[1] = moment(&axis, MOVE[i].second);
        step = (cm_time_step){
            .kind = i == 0 ? CM_TIME_STEP_FIXED : CM_TIME_STEP_MONTHS,
            .calendar = axis.calendar,
            .us = us[1] - us[0],
            .months = 1,
        };
        assert_true(cm_time_step_move(&step, moment(&axis, MOVE[i].from), moment(&axis, MOVE[i].to),
                                      moment(&axis, MOVE[i].a), &at));
        assert_int_equal(at, moment(&axis, MOVE[i].want));
    }
}

static void test_numbers(void **state)
{
    (void)state;
    static const double STEADY[] = {0.1, 0.2, 0.3, 0.6, 0.7}, WILD[] = {0, 1, 2.5};
    double step;
    assert_true(cm_number_step_infer(STEADY, 5, &step));
    assert_int_equal(cm_number_step_missing(step, STEADY[0], STEADY[1]), 0);
    assert_int_equal(cm_number_step_missing(step, STEADY[2], STEADY[3]), 2);
    assert_false(cm_number_step_infer(WILD, 3, &step));
    assert_false(cm_number_step_infer(WILD, 1, &step));
}

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        int64_t value[4];
        uint64_t n, step; /* 0: none */
    } ROW[] = {{{INT64_C(1) << 60, (INT64_C(1) << 60) + 1, (INT64_C(1) << 60) + 3}, 3, 1},
               {{INT64_MIN, -1, INT64_MAX}, 3, 0}, /* the second is longer by one */
               {{-6, -3, 3, 6}, 4, 3},
               {{0, 2, 5}, 3, 0},
               {{0, 1, 1}, 3, 0},
               {{3, 2, 1}, 3, 0},
               {{7}, 1, 0}};
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        uint64_t step = 0;
        assert_int_equal(cm_integer_step_infer(ROW[i].value, ROW[i].n, &step), ROW[i].step > 0);
        assert_true(ROW[i].step == 0 || step == ROW[i].step);
    }
}

static void test_texts(void **state)
{
    (void)state;
    static const struct {
        int64_t us;
        const char *text;
    } TEXT[] = {{86400000000, "1 day"},
                {5400000000, "90 minutes"},
                {1000000, "1 second"},
                {2500000, "2.5 seconds"}};
    for (size_t i = 0; i < sizeof TEXT / sizeof *TEXT; i++) {
        char text[48];
        const cm_time_step step = {.kind = CM_TIME_STEP_FIXED, .us = TEXT[i].us};
        assert_string_equal(cm_time_step_text(&step, text, sizeof text), TEXT[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),   cmocka_unit_test(test_moves),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_integers),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
