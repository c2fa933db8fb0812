/*
 * Times of two files on one axis: whatever the numbers, what is chosen and re-based means the
 * same instant, or there is an error.  And patterns of file names, which end.
 */
#include "fuzz.h"
#include "model/name_pattern.h"
#include "model/rebase.h"

enum {
    NELEM = 4
};

static const char *const UNITS[] = {
    "days since 2000-01-01",           "days since 1850-01-01 12:00:00",
    "hours since 1999-12-30 23:00",    "seconds since 1970-01-01",
    "milliseconds since 2000-03-01",   "microseconds since 2000-01-01",
    "nanoseconds since 1970-01-01",    "weeks since 0001-01-01",
    "minutes since 2262-01-01 +01:30", "days since -4712-01-01",
};
static const char *const TYPES[] = {"float64", "float32", "int32", "int64", "uint8", "uint64"};
static const char *const CALENDARS[] = {"julian", "noleap", "360_day"};

typedef struct file {
    cm_time_coding coding;
    uint8_t values[NELEM * 8];
} file;

static uint8_t take(fuzz_input *in)
{
    return (uint8_t)fuzz_number(in, 1);
}

/* Numbers of a size that dates have, most of them; the others are any bits. */
static void take_number(fuzz_input *in, const cm_dtype *t, uint8_t *out)
{
    uint8_t bits[8];
    const bool any = take(in) % 4 == 0;
    for (size_t i = 0; i < sizeof bits; i++)
        bits[i] = take(in);
    int16_t small;
    memcpy(&small, bits, sizeof small);
    const double d = small / 24.0;
    const float f = (float)small / 8;
    const int64_t i = small < 0 && t->kind == CM_KIND_UINT ? -small : small;
    if (any)
        memcpy(out, bits, t->nbytes);
    else if (t->kind != CM_KIND_FLOAT)
        memcpy(out, &i, t->nbytes);
    else if (t->nbytes == sizeof f)
        memcpy(out, &f, sizeof f);
    else
        memcpy(out, &d, sizeof d);
}

static void take_file(fuzz_input *in, const char *calendar, file *out)
{
    memset(out, 0, sizeof *out);
    const char *units = UNITS[take(in) % (sizeof UNITS / sizeof *UNITS)];
    REQUIRE(!cm_time_axis_parse(units, calendar, &out->coding.axis, NULL));
    REQUIRE(!cm_dtype_parse(TYPES[take(in) % (sizeof TYPES / sizeof *TYPES)], &out->coding.dtype,
                            NULL));
    for (size_t i = 0; i < NELEM; i++)
        take_number(in, &out->coding.dtype, out->values + i * out->coding.dtype.nbytes);
}

static void check_file(const file *f, const cm_time_coding *to)
{
    uint8_t out[NELEM * 8];
    uint64_t bad = 0;
    REQUIRE(!cm_time_rebase(&f->coding, to, f->values, out, NELEM, &bad, NULL));
    for (size_t i = 0; i < NELEM; i++) {
        cm_time_point before, after;
        REQUIRE(cm_time_coding_point(&f->coding, f->values + i * f->coding.dtype.nbytes, &before));
        REQUIRE(cm_time_coding_point(to, out + i * to->dtype.nbytes, &after));
        REQUIRE(before.missing == after.missing);
        REQUIRE(before.missing || (before.us == after.us && before.ns == after.ns));
    }
}

static void check_times(fuzz_input *in)
{
    const char *calendar = CALENDARS[take(in) % (sizeof CALENDARS / sizeof *CALENDARS)];
    const bool fixed = take(in) % 4 == 0;
    file files[3];
    cm_time_choice choice;
    cm_time_chosen chosen;
    const char *units = UNITS[take(in) % (sizeof UNITS / sizeof *UNITS)];
    cm_time_axis first;
    REQUIRE(!cm_time_axis_parse(units, calendar, &first, NULL));
    cm_time_choice_begin(&choice, &first, fixed);
    for (size_t i = 0; i < 3; i++) {
        uint64_t bad;
        take_file(in, calendar, &files[i]);
        if (cm_time_choice_see(&choice, 0, &files[i].coding, files[i].values, NELEM, i, &bad, NULL))
            return;
    }
    if (cm_time_choice_end(&choice, units, &chosen, NULL))
        return;
    cm_time_axis named;
    REQUIRE(!cm_time_axis_parse(chosen.units, calendar, &named, NULL));
    REQUIRE(named.unit_us == chosen.coding[0].axis.unit_us &&
            named.per_us == chosen.coding[0].axis.per_us &&
            named.origin_us == chosen.coding[0].axis.origin_us);
    for (size_t i = 0; i < 3; i++)
        check_file(&files[i], &chosen.coding[0]);
}

static void check_pattern(fuzz_input *in)
{
    char *option = fuzz_line(in), *path = fuzz_line(in);
    cm_name_pattern pattern;
    if (!cm_name_pattern_parse(option, &pattern, NULL)) {
        int64_t us = 0;
        const char *value = NULL;
        size_t n = 0;
        if (pattern.kind == CM_PATTERN_TIME)
            (void)cm_name_pattern_time(&pattern, CM_CALENDAR_STANDARD, path, &us, NULL);
        else if (pattern.kind == CM_PATTERN_TEXT &&
                 !cm_name_pattern_value(&pattern, path, &value, &n, NULL))
            REQUIRE(n > 0 && value >= path && value + n <= path + strlen(path));
    }
    free(option);
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    fuzz_input in = {data, nbytes < 512 ? nbytes : 512};
    if (take(&in) % 2)
        check_pattern(&in);
    else
        check_times(&in);
    return 0;
}
