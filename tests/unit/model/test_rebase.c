#include <math.h>

#include "../unit.h"
#include "model/rebase.h"

/* The instants themselves are held against cftime and xarray by tests/interop/test_rebase.py. */

static cm_time_coding coding_of(const char *units, const char *calendar, const char *type)
{
    cm_time_coding c = {.has_fill = false};
    cm_error err = {0};
    if (cm_time_axis_parse(units, calendar, &c.axis, &err) || cm_dtype_parse(type, &c.dtype, &err))
        fail_msg("%s, %s: %s", units, calendar, err.text);
    return c;
}

static void see(cm_time_choice *choice, unsigned member, const cm_time_coding *c,
                const void *values, uint64_t nelem, uint64_t file)
{
    cm_error err = {0};
    uint64_t bad;
    if (cm_time_choice_see(choice, member, c, values, nelem, file, &bad, &err))
        fail_msg("element %d: %s", (int)bad, err.text);
}

/* Bounds have no units of their own: what they need decides for the time as well. */
static void test_bounds_decide_too(void **state)
{
    (void)state;
    const char *units = "days since 2000-01-01";
    const cm_time_coding time[2] = {coding_of(units, "noleap", "int32"),
                                    coding_of("days since 2000-02-01", "noleap", "int32")};
    const cm_time_coding bounds[2] = {coding_of(units, "noleap", "int32"),
                                      coding_of("hours since 2000-02-01", "noleap", "int64")};
    const int32_t days[] = {0, 1};
    const int64_t hours[] = {0, 12, 24, 36};
    const int32_t day_bounds[] = {0, 1, 1, 2};
    cm_time_choice choice;
    cm_time_chosen chosen;
    cm_error err = {0};

    cm_time_choice_begin(&choice, &time[0].axis, false);
    see(&choice, 0, &time[0], days, 2, 0);
    see(&choice, 1, &bounds[0], day_bounds, 4, 0);
    see(&choice, 0, &time[1], days, 2, 7);
    assert_false(choice.any_lost);
    see(&choice, 1, &bounds[1], hours, 4, 7);
    assert_true(choice.any_lost);
    assert_int_equal(choice.lost, 7);
    assert_int_equal(cm_time_choice_end(&choice, units, &chosen, &err), CM_OK);
    assert_false(chosen.same_unit);
    assert_string_equal(chosen.units, "hours since 2000-01-01");
    assert_int_equal(chosen.coding[0].dtype.nbytes, 8);
    assert_int_equal(chosen.coding[2].dtype.nbytes, 0);

    int64_t out[4];
    uint64_t bad;
    assert_int_equal(cm_time_rebase(&time[1], &chosen.coding[0], days, out, 2, &bad, &err), CM_OK);
    assert_int_equal(out[0], 31 * 24);
    assert_int_equal(out[1], 32 * 24);
    assert_int_equal(cm_time_rebase(&bounds[1], &chosen.coding[1], hours, out, 4, &bad, &err),
                     CM_OK);
    assert_int_equal(out[3], 31 * 24 + 36);
}

/* Errors say which element; what stands before it is done. */
static void test_the_first_bad_element(void **state)
{
    (void)state;
    const cm_time_coding from = coding_of("hours since 2000-01-01", "standard", "float64");
    const cm_time_coding to = coding_of("days since 2000-01-01", "standard", "int16");
    const double values[] = {24, 48, 36, INFINITY};
    int16_t out[4] = {0};
    uint64_t bad = 99;
    cm_error err = {0};
    assert_int_equal(cm_time_rebase(&from, &to, values, out, 4, &bad, &err), CM_EINVAL);
    assert_int_equal(bad, 2);
    assert_non_null(strstr(err.text, "2000-01-02T12:00:00"));
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 2);
    assert_int_equal(cm_time_rebase(&from, &to, values + 3, out, 1, &bad, &err), CM_EINVAL);
    const double far = 1e9;
    assert_int_equal(cm_time_rebase(&from, &to, &far, out, 1, &bad, &err), CM_EINVAL);
    const double nan = NAN;
    assert_int_equal(cm_time_rebase(&from, &to, &nan, out, 1, &bad, &err), CM_EINVAL);
}

/* Numbers that no reader can decode pass where units and type stay. */
static void test_one_axis_passes_everything(void **state)
{
    (void)state;
    const cm_time_coding c = coding_of("days since 2000-01-01", "standard", "float64");
    const double values[] = {INFINITY, 1e300, NAN, 0.1, -0.0};
    double out[5];
    uint64_t bad;
    cm_error err = {0};
    assert_int_equal(cm_time_rebase(&c, &c, values, out, 5, &bad, &err), CM_OK);
    assert_memory_equal(out, values, 2 * sizeof *out);
    assert_true(isnan(out[2]));
    assert_memory_equal(out + 3, values + 3, 2 * sizeof *out);
}

static const struct {
    const char *from, *from_type, *to, *to_type;
    int64_t number, want;
} INTEGERS[] = {
    {"nanoseconds since 2000-01-01", "int64", "nanoseconds since 1999-12-31", "int64", -1,
     86399999999999},
    {"nanoseconds since 2000-01-01", "int64", "microseconds since 2000-01-01", "int64", 5000, 5},
    {"weeks since 2000-01-01", "int8", "days since 2000-01-01", "uint8", 3, 21},
    {"common_years since 2000-01-01", "int8", "days since 2001-01-01", "int32", 2, 365},
    {"days since 2000-01-01", "uint64", "seconds since 2000-01-01", "uint32", 2, 172800},
};

static void test_integers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof INTEGERS / sizeof *INTEGERS; i++) {
        const cm_time_coding from = coding_of(INTEGERS[i].from, "noleap", INTEGERS[i].from_type);
        const cm_time_coding to = coding_of(INTEGERS[i].to, "noleap", INTEGERS[i].to_type);
        int64_t out = 0;
        uint64_t bad;
        cm_error err = {0};
        print_message("  %s, %s\n", INTEGERS[i].from, INTEGERS[i].to);
        assert_int_equal(cm_time_rebase(&from, &to, &INTEGERS[i].number, &out, 1, &bad, &err),
                         CM_OK);
        assert_int_equal(out, INTEGERS[i].want);
    }
    const cm_time_coding ns = coding_of("nanoseconds since 2000-01-01", "noleap", "int64");
    const cm_time_coding us = coding_of("microseconds since 2000-01-01", "noleap", "float64");
    const int64_t odd = 5001;
    double d;
    uint64_t bad;
    assert_int_equal(cm_time_rebase(&ns, &us, &odd, &d, 1, &bad, NULL), CM_EINVAL);
}

/* Extremes of every type and axis: no overflow, which the sanitizers would see. */
static void test_extremes(void **state)
{
    (void)state;
    static const char *const UNITS[] = {"nanoseconds since 2000-01-01", "days since -290000-01-01",
                                        "days since 290000-01-01", "microseconds since 1-1-1"};
    static const char *const TYPES[] = {"int64", "uint64", "float64", "int8", "float32"};
    const uint64_t bits[] = {0,
                             UINT64_MAX,
                             INT64_MAX,
                             UINT64_C(1) << 63,
                             UINT64_C(0x43dfffffffffffff),
                             UINT64_C(0x7fefffffffffffff),
                             UINT64_C(0x7ff0000000000000),
                             UINT64_C(0xc3e0000000000000)};
    for (size_t u = 0; u < 4; u++) {
        for (size_t v = 0; v < 4; v++) {
            for (size_t t = 0; t < 25; t++) {
                const cm_time_coding from = coding_of(UNITS[u], "julian", TYPES[t % 5]);
                const cm_time_coding to = coding_of(UNITS[v], "julian", TYPES[t / 5]);
                cm_time_choice choice;
                cm_time_chosen chosen;
                cm_time_choice_begin(&choice, &to.axis, false);
                for (size_t b = 0; b < sizeof bits / sizeof *bits; b++) {
                    uint64_t out, bad;
                    cm_error err = {0};
                    const int rc = cm_time_rebase(&from, &to, &bits[b], &out, 1, &bad, &err);
                    assert_true(rc == CM_OK || err.text[0]);
                    (void)cm_time_choice_see(&choice, 0, &from, &bits[b], 1, 0, &bad, &err);
                }
                (void)cm_time_choice_end(&choice, UNITS[v], &chosen, NULL);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_decide_too),
        cmocka_unit_test(test_the_first_bad_element),
        cmocka_unit_test(test_one_axis_passes_everything),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
