#include "base/number.h"

#include <ctype.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A program may have set a locale whose decimal point is a comma.  glibc's "C" is static: nothing
   is allocated, and nothing needs freeing. */
static locale_t c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

int cm_parse_u64(const char *text, uint64_t *out, cm_error *err)
{
    uint64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return cm_fail(err, CM_EINVAL, "'%s' is larger than 18446744073709551615", text);
    }
    if (p == text || *p)
        return cm_fail(err, CM_EINVAL, "'%s' is not an integer", text);
    *out = value;
    return CM_OK;
}

int cm_parse_i64(const char *text, int64_t *out, cm_error *err)
{
    const bool negative = text[0] == '-';
    const char *digits = text + (negative || text[0] == '+');
    uint64_t size = 0;
    if (!isdigit((unsigned char)digits[0]) || digits[strspn(digits, "0123456789")])
        return cm_fail(err, CM_EINVAL, "'%s' is not an integer", text);
    if (cm_parse_u64(digits, &size, NULL) || size > (uint64_t)INT64_MAX + negative)
        return cm_fail(err, CM_EINVAL, "'%s' does not fit 64 bits with a sign", text);
    *out = (int64_t)(negative ? -size : size);
    return CM_OK;
}

/*
 * The number at TEXT: digits, a point, an exponent if allowed.  *end is what follows; NULL: no
 * number.
 */
static double read_double(const char *text, bool exponent, const char **end)
{
    char number[128];
    const char *p = text + (*text == '-' || *text == '+');
    size_t before = strspn(p, "0123456789");
    p += before;
    size_t after = 0;
    if (*p == '.') {
        after = strspn(p + 1, "0123456789");
        p += 1 + after;
    }
    *end = NULL;
    if (before + after == 0)
        return 0;
    if (exponent && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1 + (p[1] == '-' || p[1] == '+');
        size_t digits = strspn(q, "0123456789");
        if (digits)
            p = q + digits;
    }
    /*
     * strtod would also take what stands behind, as in 0x10, so it gets no more than was
     * checked.
     */
    if ((size_t)(p - text) >= sizeof number)
        return 0;
    memcpy(number, text, (size_t)(p - text));
    number[p - text] = 0;
    *end = p;
    return strtod_l(number, NULL, c_locale());
}

int cm_parse_double(const char *text, double *out, cm_error *err)
{
    const char *end;
    double value = read_double(text, true, &end);
    if (end == NULL || *end)
        return cm_fail(err, CM_EINVAL, "'%s' is not a number", text);
    if (!isfinite(value))
        return cm_fail(err, CM_EINVAL, "'%s' is too large for a double", text);
    *out = value;
    return CM_OK;
}

typedef struct unit {
    const char *name;
    uint64_t factor;
} unit;

static const unit SIZE_UNIT[] = {
    {"", 1},
    {"b", 1},
    {"kb", 1000u},
    {"mb", 1000000u},
    {"gb", 1000000000u},
    {"tb", 1000000000000u},
    {"kib", UINT64_C(1) << 10},
    {"mib", UINT64_C(1) << 20},
    {"gib", UINT64_C(1) << 30},
    {"tib", UINT64_C(1) << 40},
    {"k", UINT64_C(1) << 10},
    {"m", UINT64_C(1) << 20},
    {"g", UINT64_C(1) << 30},
    {"t", UINT64_C(1) << 40},
};

/* The factor of the unit that is all of the NBYTES at TEXT; 0: no such unit. */
static uint64_t size_unit(const char *text, size_t nbytes)
{
    for (size_t i = 0; i < sizeof SIZE_UNIT / sizeof *SIZE_UNIT; i++) {
        if (strlen(SIZE_UNIT[i].name) == nbytes && !strncasecmp(text, SIZE_UNIT[i].name, nbytes))
            return SIZE_UNIT[i].factor;
    }
    return 0;
}

int cm_parse_size(const char *text, uint64_t *nbytes, cm_error *err)
{
    enum {
        MAX_DIGITS = 15
    }; /* of the fraction: times a TiB, still below 2^128 */
    const size_t before = strspn(text, "0123456789");
    const char *p = text + before;
    uint64_t whole = 0, part = 0, scale = 1;
    for (size_t i = 0; i < before; i++) {
        if (__builtin_mul_overflow(whole, 10u, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(text[i] - '0'), &whole))
            return cm_fail(err, CM_EINVAL, "the size '%s' does not fit 64 bits", text);
    }
    size_t after = 0;
    if (before && *p == '.') {
        after = strspn(p + 1, "0123456789");
        for (size_t i = 0; i < after && i < MAX_DIGITS; i++) {
            part = part * 10 + (uint64_t)(p[1 + i] - '0');
            scale *= 10;
        }
        p += 1 + after;
    }
    if (*p == ' ')
        p++;
    const uint64_t factor = size_unit(p, strlen(p));
    if (!before || !factor || (text[before] == '.' && !after))
        return cm_fail(err, CM_EINVAL, "'%s' is not a size: write 65536, 512MiB, 1.5GiB or 2GB",
                       text);
    if (after && factor == 1)
        return cm_fail(err, CM_EINVAL, "the size '%s' is not a whole number of bytes", text);

    unsigned __int128 total = (unsigned __int128)whole * factor;
    total += ((unsigned __int128)part * factor + scale / 2) / scale;
    if (total > UINT64_MAX)
        return cm_fail(err, CM_EINVAL, "the size '%s' does not fit 64 bits", text);
    *nbytes = (uint64_t)total;
    return CM_OK;
}

int cm_parse_time(const char *text, double *seconds, cm_error *err)
{
    static const struct {
        const char *name;
        double per_second, seconds;
    } UNIT[] = {{"ns", 1e9, 1}, {"us", 1e6, 1}, {"ms", 1e3, 1},
                {"s", 1, 1},    {"min", 1, 60}, {"h", 1, 3600}};
    const char *end;
    double value = read_double(text, true, &end);
    if (end != NULL && *text != '-') {
        end += *end == ' ';
        for (size_t i = 0; i < sizeof UNIT / sizeof *UNIT; i++) {
            if (strcmp(end, UNIT[i].name))
                continue;
            /* Dividing by 1000 rounds once; multiplying by 0.001 rounds twice. */
            value = value / UNIT[i].per_second * UNIT[i].seconds;
            if (!isfinite(value))
                return cm_fail(err, CM_EINVAL, "the time '%s' is too long", text);
            *seconds = value;
            return CM_OK;
        }
        if (value == 0 && *end == '\0') { /* in any unit */
            *seconds = 0;
            return CM_OK;
        }
    }
    return cm_fail(err, CM_EINVAL, "'%s' is not a time: write 30ms, 1.5s, 2min or 1h", text);
}

int cm_parse_rate(const char *text, double *bytes_per_s, cm_error *err)
{
    const size_t length = strlen(text);
    const char *end;
    double value = read_double(text, false, &end);
    if (end != NULL && isdigit((unsigned char)*text) && length > 2 &&
        !strcmp(text + length - 2, "/s") && end <= text + length - 2) {
        end += *end == ' ';
        uint64_t factor = size_unit(end, (size_t)(text + length - 2 - end));
        if (factor) {
            value *= (double)factor;
            if (!isfinite(value))
                return cm_fail(err, CM_EINVAL, "the rate '%s' is too high", text);
            *bytes_per_s = value;
            return CM_OK;
        }
    }
    return cm_fail(err, CM_EINVAL, "'%s' is not a rate: write 300MB/s, 1.2GB/s or 500KiB/s", text);
}

char *cm_format_mean_size(double nbytes, char *buf, size_t size)
{
    static const char *const NAME[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (nbytes < 1024) {
        snprintf(buf, size, "%u B", (unsigned)nbytes);
        return buf;
    }
    double value = nbytes / 1024;
    size_t i = 0;
    /* 1023.995 would print as 1024.00. */
    for (; value >= 1023.995 && i + 1 < sizeof NAME / sizeof *NAME; i++)
        value /= 1024;
    snprintf(buf, size, value < 1e9 ? "%.2f %s" : "%.3g %s", value, NAME[i]);
    return buf;
}

char *cm_format_size(uint64_t nbytes, char *buf, size_t size)
{
    return cm_format_mean_size((double)nbytes, buf, size);
}

/* VALUE with three digits, as long as it lies in [0, 999.5). */
static void print_three(double value, const char *name, char *buf, size_t size)
{
    int decimals = value == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(buf, size, "%.*f %s", decimals, value, name);
}

char *cm_format_time(double seconds, char *buf, size_t size)
{
    static const struct {
        const char *name;
        double per_second, limit; /* seconds below which this unit is used */
    } UNIT[] = {{"ns", 1e9, 999.5e-9}, {"us", 1e6, 999.5e-6}, {"ms", 1e3, 0.9995}, {"s", 1, 59.95}};
    if (!isfinite(seconds) || seconds < 0) {
        snprintf(buf, size, "unknown");
        return buf;
    }
    if (seconds == 0) {
        snprintf(buf, size, "0 s");
        return buf;
    }
    for (size_t i = 0; i < sizeof UNIT / sizeof *UNIT; i++) {
        if (seconds < UNIT[i].limit) {
            print_three(seconds * UNIT[i].per_second, UNIT[i].name, buf, size);
            return buf;
        }
    }
    if (seconds > 1e15) {
        snprintf(buf, size, "%.3g h", seconds / 3600);
        return buf;
    }
    unsigned long long s = (unsigned long long)(seconds + 0.5);
    if (s < 3600)
        snprintf(buf, size, "%llu min %llu s", s / 60, s % 60);
    else
        snprintf(buf, size, "%llu h %llu min", s / 3600, s % 3600 / 60);
    return buf;
}

char *cm_format_rate(double bytes_per_s, char *buf, size_t size)
{
    static const char *const NAME[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
    if (!isfinite(bytes_per_s) || bytes_per_s < 0) {
        snprintf(buf, size, "unknown");
        return buf;
    }
    size_t i = 0;
    for (; bytes_per_s >= 999.5 && i + 1 < sizeof NAME / sizeof *NAME; i++)
        bytes_per_s /= 1000;
    if (bytes_per_s >= 1e6)
        snprintf(buf, size, "%.3g %s", bytes_per_s, NAME[i]);
    else
        print_three(bytes_per_s, NAME[i], buf, size);
    return buf;
}

static bool reads_back(const char *text, double value, bool is_float)
{
    return is_float ? strtof_l(text, NULL, c_locale()) == (float)value
                    : strtod_l(text, NULL, c_locale()) == value;
}

static char *format_shortest(double value, bool is_float, char *buf, size_t size)
{
    if (isnan(value) || isinf(value)) {
        snprintf(buf, size, "%s", isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        return buf;
    }
    /* Decimals of up to DBL_DIG digits survive the way to double and back, so the text with that
       many, its zeros dropped, is the shortest if it reads back at all.  Subnormals have fewer. */
    const bool subnormal = fabs(value) < (is_float ? FLT_MIN : DBL_MIN);
    const int last = is_float ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
    int digits = subnormal ? 1 : is_float ? FLT_DIG : DBL_DIG;
    char text[40];
    locale_t old = uselocale(c_locale());
    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (digits++ < last && !reads_back(text, value, is_float));
    uselocale(old);
    const char *tail = strpbrk(text, ".e") != NULL ? "" : ".0";
    snprintf(buf, size, "%s%s", text, tail);
    return buf;
}

char *cm_format_double(double value, char *buf, size_t size)
{
    return format_shortest(value, false, buf, size);
}

char *cm_format_float(float value, char *buf, size_t size)
{
    return format_shortest((double)value, true, buf, size);
}

uint64_t cm_gcd_u64(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint64_t cm_div_ceil(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* ---- lists ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void cm_sort_doubles(double *value, size_t n)
{
    qsort(value, n, sizeof *value, by_value);
}
