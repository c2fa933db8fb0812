

#include "../unit.h"
#include "model/name_pattern.h"

static const struct {
    const char *pattern, *path, *want; /* WANT: the date, or "!" and a word of the error */
} TIMES[] = {
    {"%Y%m%d_%H", "data/ocean_20000131_06.nc", "2000-01-31T06:00:00"},
    {"%Y%m%d_%H", "20000131_06", "2000-01-31T06:00:00"},
    {"%Y-%m-%d_%H:%M:%S", "wrfout_d01_2005-08-28_00:00:30", "2005-08-28T00:00:30"},
    {"s%Y%j%H%M%S%f", "OR_ABI-L1b-RadF-M6C01_G16_s20203661200213_e20203661209521_c2020366.nc",
     "2020-12-31T12:00:21.300000"},
    {"s%Y%j", "x_s2021366.nc", "!does not match"},
    {"%Y%m", "tas_Amon_M_185001-185012.nc", "!twice"},
    {"_%Y%m-", "tas_Amon_M_185001-185012.nc", "1850-01-01T00:00:00"},
    {"%Y%m%d", "a_120000101.nc", "!twice"},
    {"%Y%m%d", "a_120001012.nc", "!twice"},
    {"%Y%m%d", "run7_20000101_x99.nc", "2000-01-01T00:00:00"},
    {"%Y%m%d", "v12000010_20000102.nc", "2000-01-02T00:00:00"},
    {"%Y/%m/%d", "/archive/2001/02/03/ocean.nc", "2001-02-03T00:00:00"},
    {"%Y", "/archive/2001/ocean.nc", "!does not match"},
    {"%d%b%Y", "sst_05MAR1999.nc", "1999-03-05T00:00:00"},
    {"%d %B %Y", "sst 5 march 1999.nc", "1999-03-05T00:00:00"},
    {"%y%m%d", "n690228", "1969-02-28T00:00:00"},
    {"%y%m%d", "n000229", "2000-02-29T00:00:00"},
    {"%Y%m%d", "n20010229", "!does not match"},
    {"%Y*_%m", "a2001_east_05.nc", "2001-05-01T00:00:00"},
    {"t%Y??%m", "at2001xx05.nc", "2001-05-01T00:00:00"},
    {"100%%_%Y", "b100%_2001.nc", "2001-01-01T00:00:00"},
    {"%Y", "same_2001_and_2001.nc", "2001-01-01T00:00:00"},
};

static void test_times(void **state)
{
    (void)state;
    const cm_time_axis axis = {.calendar = CM_CALENDAR_STANDARD, .unit_us = 1, .per_us = 1};
    for (size_t i = 0; i < sizeof TIMES / sizeof *TIMES; i++) {
        cm_name_pattern pattern;
        char option[256] = "time=", text[40];
        cm_error err = {0};
        int64_t us;
        print_message("  %s, %s\n", TIMES[i].pattern, TIMES[i].path);
        strcat(option, TIMES[i].pattern);
        assert_int_equal(cm_name_pattern_parse(option, &pattern, &err), CM_OK);
        assert_string_equal(pattern.dim, "time");
        const int rc =
            cm_name_pattern_time(&pattern, CM_CALENDAR_STANDARD, TIMES[i].path, &us, &err);
        if (TIMES[i].want[0] == '!') {
            assert_int_not_equal(rc, CM_OK);
            assert_non_null(strstr(err.text, TIMES[i].want + 1));
            continue;
        }
        assert_int_equal(rc, CM_OK);
        assert_string_equal(cm_time_axis_text(&axis, us, text, sizeof text), TIMES[i].want);
    }
}

/* The day 30 of February is one of a calendar, and no day of another. */
static void test_calendars(void **state)
{
    (void)state;
    cm_name_pattern pattern;
    int64_t us;
    assert_int_equal(cm_name_pattern_parse("t=%Y%m%d", &pattern, NULL), CM_OK);
    assert_int_equal(
        cm_name_pattern_time(&pattern, CM_CALENDAR_360_DAY, "a_20000230.nc", &us, NULL), CM_OK);
    assert_int_equal(cm_name_pattern_time(&pattern, CM_CALENDAR_NOLEAP, "a_20000230.nc", &us, NULL),
                     CM_ENOTFOUND);
    assert_int_equal(cm_name_pattern_time(&pattern, CM_CALENDAR_NOLEAP, "a_20000229.nc", &us, NULL),
                     CM_ENOTFOUND);
    assert_int_equal(
        cm_name_pattern_time(&pattern, CM_CALENDAR_ALL_LEAP, "a_20010229.nc", &us, NULL), CM_OK);
}

static const struct {
    const char *pattern, *path, *want;
} VALUES[] = {
    {"r*i1p1", "tas_day_M_historical_r12i1p1f1_gn.nc", "12"},
    {"ens*", "run/ens07_tas.nc", "07"},
    {"ens*", "run/ens07.nc", "07"},
    {"*_tas", "run/ens07_tas.nc", "ens07"},
    {"r*i*p1", "tas_r3i2p1_gn.nc", "r3i2p1"},
    {"/r*/", "/data/r10i1/tas.nc", "10i1"},
    {"m*.nc", "m.nc", "!does not match"},
    {"m*_", "m1_m2_.nc", "!more than once"},
    {"m*_", "m1_m1_.nc", "1"},
    {"m*_", "m123_m1_.nc", "1"},
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++) {
        cm_name_pattern pattern;
        char option[256] = "member=";
        cm_error err = {0};
        const char *value;
        size_t n;
        print_message("  %s, %s\n", VALUES[i].pattern, VALUES[i].path);
        strcat(option, VALUES[i].pattern);
        assert_int_equal(cm_name_pattern_parse(option, &pattern, &err), CM_OK);
        const int rc = cm_name_pattern_value(&pattern, VALUES[i].path, &value, &n, &err);
        if (VALUES[i].want[0] == '!') {
            assert_int_not_equal(rc, CM_OK);
            assert_non_null(strstr(err.text, VALUES[i].want + 1));
            continue;
        }
        assert_int_equal(rc, CM_OK);
        assert_int_equal(n, strlen(VALUES[i].want));
        assert_memory_equal(value, VALUES[i].want, n);
    }
}

static void test_options(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "time",        "=%Y",       "time=",    "time=%m%d", "time=%Y%q",  "time=%Y%",
        "time=%Y%j%m", "member=r1", "member=*", "member=@",  "m=********", "member=r*i*p*f*g*",
    };
    cm_name_pattern pattern;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        cm_error err = {0};
        print_message("  %s\n", BAD[i]);
        assert_int_equal(cm_name_pattern_parse(BAD[i], &pattern, &err), CM_EINVAL);
        assert_true(err.text[0]);
    }
    assert_int_equal(cm_name_pattern_parse("member=@realization_index", &pattern, NULL), CM_OK);
    assert_int_equal(pattern.kind, CM_PATTERN_ATTRIBUTE);
    assert_string_equal(pattern.text, "realization_index");
}

/* A name of 4,096 stars' worth of letters ends soon, and says that it does not match. */
static void test_long_names(void **state)
{
    (void)state;
    static char name[256];
    cm_name_pattern pattern;
    const char *value;
    size_t n;
    memset(name, 'a', sizeof name - 1);
    assert_int_equal(cm_name_pattern_parse("m=a*a*a*b", &pattern, NULL), CM_OK);
    assert_int_equal(cm_name_pattern_value(&pattern, name, &value, &n, NULL), CM_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),      cmocka_unit_test(test_calendars),
        cmocka_unit_test(test_values),     cmocka_unit_test(test_options),
        cmocka_unit_test(test_long_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
