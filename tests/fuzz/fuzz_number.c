/* Sizes, times, rates and numbers as people type them: what is printed again is what was read. */
#include <math.h>
#include <stdbool.h>

#include "base/number.h"
#include "fuzz.h"

enum {
    ENOUGH = 32 /* bytes for every formatter */
};

static void check_numbers(const char *text)
{
    char buf[ENOUGH];
    uint64_t u, u2;
    int64_t i, i2;
    double d, d2;
    if (cm_parse_u64(text, &u, NULL) == CM_OK) {
        snprintf(buf, sizeof buf, "%llu", (unsigned long long)u);
        REQUIRE(cm_parse_u64(buf, &u2, NULL) == CM_OK && u2 == u);
    }
    if (cm_parse_i64(text, &i, NULL) == CM_OK) {
        snprintf(buf, sizeof buf, "%lld", (long long)i);
        REQUIRE(cm_parse_i64(buf, &i2, NULL) == CM_OK && i2 == i);
    }
    if (cm_parse_double(text, &d, NULL) == CM_OK) {
        cm_format_double(d, buf, sizeof buf);
        REQUIRE(strlen(buf) < ENOUGH - 1);
        REQUIRE(cm_parse_double(buf, &d2, NULL) == CM_OK && memcmp(&d, &d2, sizeof d) == 0);
        if (isfinite((float)d)) {
            const float f = (float)d;
            cm_format_float(f, buf, sizeof buf);
            REQUIRE(strtof(buf, NULL) == f && strlen(buf) < ENOUGH - 1);
        }
    }
}

/* Three digits are printed, or two behind the point. */
static bool is_near(double a, double b)
{
    return fabs(a - b) <= 0.0051 * fmax(fabs(a), fabs(b));
}

static void check_quantities(const char *text)
{
    char buf[ENOUGH];
    uint64_t size, size2;
    double d, d2;
    if (cm_parse_size(text, &size, NULL) == CM_OK) {
        cm_format_size(size, buf, sizeof buf);
        REQUIRE(strlen(buf) < ENOUGH - 1);
        if (size >> 50 == 0)
            REQUIRE(cm_parse_size(buf, &size2, NULL) == CM_OK &&
                    is_near((double)size, (double)size2));
    }
    if (cm_parse_time(text, &d, NULL) == CM_OK) {
        REQUIRE(isfinite(d) && d >= 0);
        cm_format_time(d, buf, sizeof buf);
        REQUIRE(strlen(buf) < ENOUGH - 1);
        if (d >= 1e-9 && d < 59)
            REQUIRE(cm_parse_time(buf, &d2, NULL) == CM_OK && is_near(d, d2));
    }
    if (cm_parse_rate(text, &d, NULL) == CM_OK) {
        REQUIRE(isfinite(d) && d >= 0);
        cm_format_rate(d, buf, sizeof buf);
        REQUIRE(strlen(buf) < ENOUGH - 1);
        if (d >= 1 && d < 1e15)
            REQUIRE(cm_parse_rate(buf, &d2, NULL) == CM_OK && is_near(d, d2));
    }
}

/* Any double, not only those that are typed. */
static void check_bits(const uint8_t *data, size_t nbytes)
{
    char buf[ENOUGH];
    double d = 0, d2;
    memcpy(&d, data, nbytes < sizeof d ? nbytes : sizeof d);
    cm_format_double(d, buf, sizeof buf);
    REQUIRE(strlen(buf) < ENOUGH - 1);
    if (isfinite(d))
        REQUIRE(cm_parse_double(buf, &d2, NULL) == CM_OK && memcmp(&d, &d2, sizeof d) == 0);
    REQUIRE(strlen(cm_format_time(d, buf, sizeof buf)) < ENOUGH - 1);
    REQUIRE(strlen(cm_format_rate(d, buf, sizeof buf)) < ENOUGH - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    char *text = fuzz_text(data, nbytes);
    check_numbers(text);
    check_quantities(text);
    check_bits(data, nbytes);
    free(text);
    return 0;
}
