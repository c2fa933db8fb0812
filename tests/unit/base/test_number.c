#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "../unit.h"
#include "base/number.h"

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int u_ok, i_ok;
        uint64_t u;
        int64_t i;
    } ROW[] = {
        {"0", 1, 1, 0, 0},
        {"42", 1, 1, 42, 42},
        {"007", 1, 1, 7, 7},
        {"18446744073709551615", 1, 0, UINT64_MAX, 0},
        {"18446744073709551616", 0, 0, 0, 0},
        {"99999999999999999999999", 0, 0, 0, 0},
        {"9223372036854775807", 1, 1, INT64_MAX, INT64_MAX},
        {"9223372036854775808", 1, 0, UINT64_C(1) << 63, 0},
        {"-9223372036854775808", 0, 1, 0, INT64_MIN},
        {"-9223372036854775809", 0, 0, 0, 0},
        {"-5", 0, 1, 0, -5},
        {"+5", 0, 1, 0, 5},
        {"--5", 0, 0, 0, 0},
        {"", 0, 0, 0, 0},
        {"-", 0, 0, 0, 0},
        {" 5", 0, 0, 0, 0},
        {"5 ", 0, 0, 0, 0},
        {"5x", 0, 0, 0, 0},
        {"0x10", 0, 0, 0, 0},
        {"1e3", 0, 0, 0, 0},
    };
    for (size_t k = 0; k < sizeof ROW / sizeof *ROW; k++) {
        cm_error err = {0};
        uint64_t u = 99;
        int64_t i = 99;
        print_message("  '%s'\n", ROW[k].text);
        assert_int_equal(cm_parse_u64(ROW[k].text, &u, &err), ROW[k].u_ok ? CM_OK : CM_EINVAL);
        assert_true(u == (ROW[k].u_ok ? ROW[k].u : 99));
        assert_int_equal(cm_parse_i64(ROW[k].text, &i, &err), ROW[k].i_ok ? CM_OK : CM_EINVAL);
        assert_true(i == (ROW[k].i_ok ? ROW[k].i : 99));
        if (!ROW[k].i_ok)
            assert_non_null(strstr(err.text, ROW[k].text));
    }
}

static void test_doubles(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value; /* NAN: refused */
    } ROW[] = {
        {"1", 1},     {"-0.5", -0.5},    {"1e3", 1000},    {"1.5E-3", 0.0015}, {".5", 0.5},
        {"5.", 5},    {"+2", 2},         {"1e308", 1e308}, {"1e309", NAN},     {"nan", NAN},
        {"inf", NAN}, {"Infinity", NAN}, {"0x10", NAN},    {"", NAN},          {".", NAN},
        {" 1", NAN},  {"1 ", NAN},       {"1,5", NAN},     {"1e", NAN},        {"e5", NAN},
        {"-", NAN},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_error err = {0};
        double value = -99;
        const int rc = cm_parse_double(ROW[i].text, &value, &err);
        print_message("  '%s'\n", ROW[i].text);
        assert_int_equal(rc, isnan(ROW[i].value) ? CM_EINVAL : CM_OK);
        assert_true(value == (rc ? -99 : ROW[i].value));
    }
}

static void test_sizes(void **state)
{
    (void)state;
    enum {
        BAD = 0
    };
    static const struct {
        const char *text;
        int ok;
        uint64_t nbytes;
    } ROW[] = {
        {"65536", 1, 65536},
        {"0", 1, 0},
        {"512MiB", 1, UINT64_C(512) << 20},
        {"4GiB", 1, UINT64_C(4) << 30},
        {"2GB", 1, UINT64_C(2000000000)},
        {"2 GB", 1, UINT64_C(2000000000)},
        {"1kB", 1, 1000},
        {"1KiB", 1, 1024},
        {"1kib", 1, 1024},
        {"1K", 1, 1024},
        {"3m", 1, UINT64_C(3) << 20},
        {"1T", 1, UINT64_C(1) << 40},
        {"7B", 1, 7},
        {"1.5GiB", 1, UINT64_C(3) << 29},
        {"0.3KiB", 1, 307},
        {"1.25GB", 1, UINT64_C(1250000000)},
        {"16777215TiB", 1, UINT64_C(16777215) << 40},
        {"16777216TiB", BAD, 0},
        {"18446744073709551615", 1, UINT64_MAX},
        {"18446744073709551616", BAD, 0},
        {"1.5", BAD, 0},
        {"1.5B", BAD, 0},
        {"-1", BAD, 0},
        {"", BAD, 0},
        {"GiB", BAD, 0},
        {".5GiB", BAD, 0},
        {"1.GiB", BAD, 0},
        {"1GiBs", BAD, 0},
        {"1  GiB", BAD, 0},
        {"1Gi", BAD, 0},
        {"1e3", BAD, 0},
        {"1,5GB", BAD, 0},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_error err = {0};
        uint64_t nbytes = 99;
        print_message("  '%s'\n", ROW[i].text);
        assert_int_equal(cm_parse_size(ROW[i].text, &nbytes, &err), ROW[i].ok ? CM_OK : CM_EINVAL);
        assert_true(nbytes == (ROW[i].ok ? ROW[i].nbytes : 99));
        if (!ROW[i].ok)
            assert_non_null(strstr(err.text, ROW[i].text));
    }
}

static void test_times_and_rates(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double time, rate; /* NAN: refused */
    } ROW[] = {
        {"30ms", 0.03, NAN},      {"1.5s", 1.5, NAN},      {"250us", 250e-6, NAN},
        {"7ns", 7e-9, NAN},       {"2min", 120, NAN},      {"1.5 h", 5400, NAN},
        {"0s", 0, NAN},           {"0", 0, NAN},           {"0.0x", NAN, NAN},
        {"1e-3s", 0.001, NAN},    {"30", NAN, NAN},        {"-1s", NAN, NAN},
        {"s", NAN, NAN},          {"1S", NAN, NAN},        {"1 month", NAN, NAN},
        {"infs", NAN, NAN},       {"1.2GB/s", NAN, 1.2e9}, {"300 MB/s", NAN, 3e8},
        {"500KiB/s", NAN, 512e3}, {"10/s", NAN, 10},       {"1G/s", NAN, 0x1p30},
        {"1.2GB", NAN, NAN},      {"1.2Gb/h", NAN, NAN},   {"/s", NAN, NAN},
        {"-1B/s", NAN, NAN},      {"GB/s", NAN, NAN},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_error err = {0};
        double value = -99;
        print_message("  '%s'\n", ROW[i].text);
        int rc = cm_parse_time(ROW[i].text, &value, &err);
        assert_int_equal(rc, isnan(ROW[i].time) ? CM_EINVAL : CM_OK);
        assert_true(value == (rc ? -99 : ROW[i].time));
        value = -99;
        rc = cm_parse_rate(ROW[i].text, &value, &err);
        assert_int_equal(rc, isnan(ROW[i].rate) ? CM_EINVAL : CM_OK);
        assert_true(value == (rc ? -99 : ROW[i].rate));
    }
}

static void test_formatting(void **state)
{
    (void)state;
    static const struct {
        uint64_t nbytes;
        const char *text;
    } SIZE[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.00 KiB"},
        {UINT64_C(4) << 20, "4.00 MiB"},
        {UINT64_C(1138166784), "1.06 GiB"},
        {(UINT64_C(1) << 20) - 1, "1.00 MiB"},
        {UINT64_MAX, "16.00 EiB"},
    };
    static const struct {
        double value;
        const char *time, *rate;
    } ROW[] = {
        {0, "0 s", "0 B/s"},
        {12e-9, "12.0 ns", "0.00 B/s"},
        {830e-6, "830 us", "0.00 B/s"},
        {0.0009996, "1.00 ms", "0.00 B/s"},
        {1.52, "1.52 s", "1.52 B/s"},
        {59.949, "59.9 s", "59.9 B/s"},
        {59.96, "1 min 0 s", "60.0 B/s"},
        {200, "3 min 20 s", "200 B/s"},
        {7260, "2 h 1 min", "7.26 kB/s"},
        {1.25e9, "347222 h 13 min", "1.25 GB/s"},
        {999.6e6, "277666 h 40 min", "1.00 GB/s"},
        {NAN, "unknown", "unknown"},
        {INFINITY, "unknown", "unknown"},
        {-1, "unknown", "unknown"},
    };
    char buf[32];
    for (size_t i = 0; i < sizeof SIZE / sizeof *SIZE; i++)
        assert_string_equal(cm_format_size(SIZE[i].nbytes, buf, sizeof buf), SIZE[i].text);
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        assert_string_equal(cm_format_time(ROW[i].value, buf, sizeof buf), ROW[i].time);
        assert_string_equal(cm_format_rate(ROW[i].value, buf, sizeof buf), ROW[i].rate);
    }
    assert_true(strlen(cm_format_rate(DBL_MAX, buf, sizeof buf)) < 31);
    assert_true(strlen(cm_format_time(DBL_MAX, buf, sizeof buf)) < 31);
    assert_true(strlen(cm_format_time(1e15, buf, sizeof buf)) < 31);
}

static void test_shortest_doubles(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } ROW[] = {
        {0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1e20f, "1.0000000200408773e+20"},
        {1e22, "1e+22"},
        {5e-324, "5e-324"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {2.2250738585072009e-308, "2.225073858507201e-308"},
        {9.9692099683868690e+36, "9.969209968386869e+36"},
        {NAN, "NaN"},
        {INFINITY, "Infinity"},
        {-INFINITY, "-Infinity"},
    };
    char buf[32];
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++)
        assert_string_equal(cm_format_double(ROW[i].value, buf, sizeof buf), ROW[i].text);
    assert_string_equal(cm_format_float(0.1f, buf, sizeof buf), "0.1");
    assert_string_equal(cm_format_float(1e20f, buf, sizeof buf), "1e+20");
    assert_string_equal(cm_format_float(FLT_MAX, buf, sizeof buf), "3.4028235e+38");
    assert_string_equal(cm_format_float(1e-45f, buf, sizeof buf), "1e-45");
}

static void test_doubles_read_back(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    char buf[32];
    for (int i = 0; i < 20000; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        double d;
        float f;
        const uint32_t half = (uint32_t)seed;
        memcpy(&d, &seed, sizeof d);
        memcpy(&f, &half, sizeof f);
        if (isfinite(d))
            assert_true(strtod(cm_format_double(d, buf, sizeof buf), NULL) == d);
        if (isfinite(f))
            assert_true(strtof(cm_format_float(f, buf, sizeof buf), NULL) == f);
    }
}

static void test_locale_does_not_matter(void **state)
{
    (void)state;
    /* Any locale with a decimal comma will do; where none is installed there is nothing to see. */
    static const char *const NAME[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "es_ES.UTF-8"};
    bool found = false;
    for (size_t i = 0; i < sizeof NAME / sizeof *NAME && !found; i++)
        found = setlocale(LC_NUMERIC, NAME[i]) != NULL;
    if (!found)
        skip();
    char buf[32];
    double value = 0;
    assert_string_equal(cm_format_double(1.5, buf, sizeof buf), "1.5");
    assert_int_equal(cm_parse_double("1.5", &value, NULL), CM_OK);
    assert_true(value == 1.5);
    setlocale(LC_NUMERIC, "C");
}

static void test_integer_arithmetic(void **state)
{
    (void)state;
    assert_int_equal(cm_gcd_u64(12, 18), 6);
    assert_int_equal(cm_gcd_u64(0, 5), 5);
    assert_int_equal(cm_gcd_u64(5, 0), 5);
    assert_int_equal(cm_gcd_u64(17, 13), 1);
    assert_int_equal(cm_div_ceil(0, 3), 0);
    assert_int_equal(cm_div_ceil(9, 3), 3);
    assert_int_equal(cm_div_ceil(10, 3), 4);
    assert_true(cm_div_ceil(UINT64_MAX, 1) == UINT64_MAX);
    assert_int_equal(cm_div_ceil(UINT64_MAX, UINT64_MAX), 1);
}

/* A mean is one where its three digits say so. */
static void test_means_of_one(void **state)
{
    (void)state;
    static const double ROW[] = {0, 0.5, 0.99, 0.9994, 0.9996, 1, 1.0049, 1.0051, 1.01, 2, 1e9};
    for (size_t k = 0; k < sizeof ROW / sizeof *ROW; k++) {
        char text[32];
        snprintf(text, sizeof text, "%.3g", ROW[k]);
        assert_string_equal(cm_of_mean(ROW[k], "read", "reads"),
                            strcmp(text, "1") == 0 ? "read" : "reads");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_times_and_rates),
        cmocka_unit_test(test_formatting),
        cmocka_unit_test(test_shortest_doubles),
        cmocka_unit_test(test_doubles_read_back),
        cmocka_unit_test(test_locale_does_not_matter),
        cmocka_unit_test(test_integer_arithmetic),
        cmocka_unit_test(test_means_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
