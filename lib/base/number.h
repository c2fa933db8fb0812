/*
 * Numbers as people type and read them: sizes, times, rates, integers, floats.
 *
 * Sizes: decimal digits, an optional fraction, and one of B, kB, MB, GB, TB
 * (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024), or K, M, G, T (powers
 * of 1024, as `dd` and `ls` take them).  Case of the unit's letters is ignored
 * but for the meaning of the i.  Times: ns, us, ms, s, min, h.  Rates: a size
 * and "/s".  Parsers take the whole text or refuse it with a sentence that
 * quotes it; nothing is clipped silently.
 */
#ifndef CM_BASE_NUMBER_H
#define CM_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#include <chunkmill/error.h>

/* Singular or plural by N: "file is", or "files are". */
static inline const char *cm_of_count(uint64_t n, const char *one, const char *more)
{
    return n == 1 ? one : more;
}

/* The same by X as "%.3g" prints it. */
static inline const char *cm_of_mean(double x, const char *one, const char *more)
{
    return x >= 0.9995 && x < 1.005 ? one : more;
}

int cm_parse_u64(const char *text, uint64_t *out, cm_error *err);
int cm_parse_i64(const char *text, int64_t *out, cm_error *err);
int cm_parse_double(const char *text, double *out, cm_error *err); /* finite, C locale */
int cm_parse_size(const char *text, uint64_t *nbytes, cm_error *err);
int cm_parse_time(const char *text, double *seconds, cm_error *err);
int cm_parse_rate(const char *text, double *bytes_per_s, cm_error *err);

/*
 * The inverse functions, into BUF of SIZE bytes, which is returned: "512 B", "4.00 MiB", "1.06
 * GiB"; "830 us", "1.52 s", "3 min 20 s"; "1.25 GB/s".  32 bytes always suffice.
 */
char *cm_format_size(uint64_t nbytes, char *buf, size_t size);
/* cm_format_size of a mean, or of bytes that 64 bits may not hold; not negative. */
char *cm_format_mean_size(double nbytes, char *buf, size_t size);
char *cm_format_time(double seconds, char *buf, size_t size);
char *cm_format_rate(double bytes_per_s, char *buf, size_t size);

/*
 * The shortest decimal text that strtod reads back as VALUE, always with '.' or 'e'; "NaN",
 * "Infinity", "-Infinity".
 */
char *cm_format_double(double value, char *buf, size_t size);
char *cm_format_float(float value, char *buf, size_t size);

uint64_t cm_gcd_u64(uint64_t a, uint64_t b);
/* ceil(a / b), b > 0. */
uint64_t cm_div_ceil(uint64_t a, uint64_t b);

static inline uint64_t cm_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t cm_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* In ascending order; none is NaN. */
void cm_sort_doubles(double *value, size_t n);

#endif
