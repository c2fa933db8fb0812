#include <math.h>

#include "../unit.h"
#include "model/feed.h"
#include "model/half.h"
#include "random.h"

static cm_feed feed_of(const char *src, cm_feed_to to)
{
    cm_feed f = {.to = to};
    assert_int_equal(cm_dtype_parse(src, &f.src, NULL), CM_OK);
    assert_int_equal(cm_feed_check(&f, NULL), CM_OK);
    return f;
}

/* ---- the reference: rounding by integer arithmetic ------------------------------------------- */

static const struct format {
    cm_feed_to to;
    int mantissa; /* bits stored */
    int bias;
    int nbytes;
} FORMATS[] = {
    {CM_FEED_FLOAT32, 23, 127, 4},
    {CM_FEED_FLOAT16, 10, 15, 2},
    {CM_FEED_BFLOAT16, 7, 127, 2},
};

/* The bits of m * 2^e in format F, to the nearest, ties to even. */
static uint32_t round_exact(const struct format *f, bool negative, uint64_t m, int e)
{
    const int top = f->nbytes * 8 - 1;
    const uint32_t sign = (uint32_t)negative << top;
    const uint32_t infinite = (uint32_t)(2 * f->bias + 1) << f->mantissa;
    if (m == 0)
        return sign;
    const int high = 63 - __builtin_clzll(m) + e; /* 2^high <= value < 2^(high+1) */
    if (high > f->bias + 1)
        return sign | infinite;
    const int lowest = 1 - f->bias - f->mantissa;
    const int last = high - f->mantissa > lowest ? high - f->mantissa : lowest; /* last place */
    const int drop = last - e;
    uint64_t count;
    if (drop <= 0)
        count = m << -drop;
    else if (drop > 64)
        count = 0;
    else {
        const uint64_t rest = drop == 64 ? m : m & ((UINT64_C(1) << drop) - 1);
        const uint64_t half = UINT64_C(1) << (drop - 1);
        count = drop == 64 ? 0 : m >> drop;
        count += rest > half || (rest == half && (count & 1));
    }
    /* Counts go on through the exponents: a carry is the next power of two. */
    const uint32_t bits = (uint32_t)count + ((uint32_t)(last - lowest) << f->mantissa);
    return sign | (bits > infinite ? infinite : bits);
}

static uint32_t round_double(const struct format *f, double v)
{
    uint64_t b;
    memcpy(&b, &v, 8);
    const int exponent = b >> 52 & 2047;
    const uint64_t m = b & ((UINT64_C(1) << 52) - 1);
    if (exponent == 2047)
        return round_exact(f, b >> 63, 1, 5000);
    return round_exact(f, b >> 63, exponent ? m | UINT64_C(1) << 52 : m,
                       (exponent ? exponent : 1) - 1075);
}

static uint32_t result_at(const struct format *f, const void *out, size_t i)
{
    return f->nbytes == 4 ? cm_load_le32((const uint8_t *)out + i * 4)
                          : cm_load_le16((const uint8_t *)out + i * 2);
}

static bool is_nan(const struct format *f, uint32_t bits)
{
    const uint32_t infinite = (uint32_t)(2 * f->bias + 1) << f->mantissa;
    return (bits & ((UINT32_C(1) << (f->nbytes * 8 - 1)) - 1)) > infinite;
}

enum {
    MANY = 65536 * 8
};

/* Feeds N doubles to every format, directly and, where it holds them, as float32 too. */
static void check_doubles(const double *v, size_t n)
{
    uint32_t *out = malloc(n * 4);
    float *single = malloc(n * 4);
    assert_non_null(out);
    assert_non_null(single);
    for (size_t i = 0; i < n; i++)
        single[i] = (float)v[i];
    for (size_t k = 0; k < sizeof FORMATS / sizeof *FORMATS; k++) {
        const struct format *f = &FORMATS[k];
        cm_feed feed = feed_of("float64", f->to);
        cm_feed_run(&feed, out, v, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(result_at(f, out, i), round_double(f, v[i]));
        feed = feed_of("float32", f->to);
        cm_feed_run(&feed, out, single, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(result_at(f, out, i), round_double(f, single[i]));
    }
    free(out);
    free(single);
}

/* Every number of a 16-bit format, the middle to its neighbour, and what lies just beside both. */
static void test_every_boundary(void **state)
{
    (void)state;
    double *v = malloc(MANY * sizeof *v);
    assert_non_null(v);
    for (int k = 1; k <= 2; k++) {
        size_t n = 0;
        for (uint32_t h = 0; h < 0x10000; h++) {
            if (is_nan(&FORMATS[k], h) || is_nan(&FORMATS[k], h + 1) || (h & 0x7fff) == 0x7fff)
                continue;
            double a, b;
            if (FORMATS[k].to == CM_FEED_FLOAT16) {
                a = cm_half_to_double((uint16_t)h);
                b = cm_half_to_double((uint16_t)(h + 1));
            } else {
                const uint32_t wide[] = {h << 16, (h + 1) << 16};
                float f[2];
                memcpy(f, wide, sizeof f);
                a = f[0];
                b = f[1];
            }
            if (isinf(b)) /* where the next number would be, were there one */
                b = copysign(FORMATS[k].to == CM_FEED_FLOAT16 ? 0x1p16 : 0x1p128, b);
            const double middle = (a + b) / 2;
            const double row[] = {a, nextafter(a, b), nextafter(middle, a), middle,
                                  nextafter(middle, b)};
            for (size_t i = 0; i < 5; i++)
                v[n++] = row[i];
        }
        assert_true(n > 300000);
        check_doubles(v, n);
    }
    free(v);
}

static void test_random_doubles(void **state)
{
    (void)state;
    double *v = malloc(MANY * sizeof *v);
    assert_non_null(v);
    uint64_t seed = 5;
    for (size_t i = 0; i < MANY; i++) {
        /* Half over all exponents, half where the targets have theirs. */
        uint64_t b = random_next(&seed);
        if (i & 1)
            b = (b & ~(UINT64_C(0x7ff) << 52)) | (1023 - 160 + (b >> 52 & 2047) % 320) << 52;
        memcpy(&v[i], &b, 8);
        if (isnan(v[i]))
            v[i] = INFINITY;
    }
    check_doubles(v, MANY);
    free(v);
}

/* A tie of bfloat16 whose last bit a float32 would lose: rounding twice gives another answer. */
static void test_rounds_once(void **state)
{
    (void)state;
    static const struct {
        cm_feed_to to;
        double in;
        uint16_t out;
    } rows[] = {
        {CM_FEED_BFLOAT16, 1.00390625 + 0x1p-40, 0x3f81},
        {CM_FEED_BFLOAT16, 1.00390625, 0x3f80},
        {CM_FEED_BFLOAT16, 1.01171875 - 0x1p-40, 0x3f81},
        {CM_FEED_BFLOAT16, 3.4e38, 0x7f80},
        {CM_FEED_BFLOAT16, 1e300, 0x7f80},
        {CM_FEED_BFLOAT16, -0x1p-134, 0x8000},
        {CM_FEED_BFLOAT16, 0x1.0000000000001p-134, 0x0001},
        {CM_FEED_FLOAT16, 1 + 0x1p-11 + 0x1p-52, 0x3c01},
        {CM_FEED_FLOAT16, 1 + 0x1p-11, 0x3c00},
        {CM_FEED_FLOAT16, 65519.999999999, 0x7bff},
        {CM_FEED_FLOAT16, 65520, 0x7c00},
        {CM_FEED_FLOAT16, 0x1p-25, 0x0000},
        {CM_FEED_FLOAT16, 0x1.0000000000001p-25, 0x0001},
        {CM_FEED_FLOAT16, -1e-300, 0x8000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const cm_feed f = feed_of("float64", rows[i].to);
        uint16_t out;
        cm_feed_run(&f, &out, &rows[i].in, 1);
        assert_int_equal(out, rows[i].out);
    }
}

/* ---- integers ------------------------------------------------------------------------------- */

static void check_integers(const char *type, bool is_signed, const uint64_t *v, size_t n)
{
    cm_dtype t;
    assert_int_equal(cm_dtype_parse(type, &t, NULL), CM_OK);
    uint8_t *in = malloc(n * 8);
    uint32_t *out = malloc(n * 4);
    assert_non_null(in);
    assert_non_null(out);
    for (size_t i = 0; i < n; i++)
        memcpy(in + i * t.nbytes, &v[i], t.nbytes);
    for (size_t k = 0; k < sizeof FORMATS / sizeof *FORMATS; k++) {
        const struct format *f = &FORMATS[k];
        const cm_feed feed = feed_of(type, f->to);
        cm_feed_run(&feed, out, in, n);
        for (size_t i = 0; i < n; i++) {
            const unsigned unused = 64 - t.nbytes * 8;
            const int64_t extended = (int64_t)(v[i] << unused) >> unused;
            const bool negative = is_signed && extended < 0;
            const uint64_t size = negative ? -(uint64_t)extended : v[i] << unused >> unused;
            assert_int_equal(result_at(f, out, i), round_exact(f, negative, size, 0));
        }
    }
    free(in);
    free(out);
}

static void test_integers(void **state)
{
    (void)state;
    static const char *const types[] = {"int8",  "uint8",  "int16", "uint16",
                                        "int32", "uint32", "int64", "uint64"};
    uint64_t *v = malloc(MANY * sizeof *v);
    assert_non_null(v);
    size_t n = 0;
    for (uint64_t i = 0; i < 65536; i++)
        v[n++] = i;
    /* Ties of every precision at every size, and their neighbours, of either sign. */
    for (int top = 8; top < 64; top++)
        for (int place = 0; place < top; place++)
            for (int beside = -2; beside <= 2; beside++) {
                const uint64_t tie = UINT64_C(1) << top | UINT64_C(1) << place;
                const uint64_t odd = tie | (place < 63 ? UINT64_C(1) << (place + 1) : 0);
                v[n++] = tie + (uint64_t)(int64_t)beside;
                v[n++] = odd + (uint64_t)(int64_t)beside;
                v[n++] = -(tie + (uint64_t)(int64_t)beside);
            }
    uint64_t seed = 9;
    while (n < MANY)
        v[n++] = random_next(&seed);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        check_integers(types[i], types[i][0] == 'i', v, n);
    free(v);
}

/* 0 and 1 of TYPE, N of them in turn. */
static void fill_with_bits(const cm_dtype *type, uint8_t *out, size_t n)
{
    const double one = 1;
    const float single = 1;
    const uint16_t half = 0x3c00;
    const uint64_t integer = 1;
    const void *bits = type->kind != CM_KIND_FLOAT ? (const void *)&integer
                       : type->nbytes == 8         ? (const void *)&one
                       : type->nbytes == 4         ? (const void *)&single
                                                   : (const void *)&half;
    memset(out, 0, n * type->nbytes);
    for (size_t i = 1; i < n; i += 2)
        memcpy(out + i * type->nbytes, bits, type->nbytes);
}

/* Each way through the kernel reads each type: directly, computing, and to each target. */
static void test_every_type_to_every_type(void **state)
{
    (void)state;
    static const char *const types[] = {"bool",   "int8",    "uint8",   "int16",
                                        "uint16", "int32",   "uint32",  "int64",
                                        "uint64", "float16", "float32", "float64"};
    static const struct {
        cm_feed_to to;
        uint64_t one;
    } targets[] = {
        {CM_FEED_FLOAT64, UINT64_C(0x3ff) << 52},
        {CM_FEED_FLOAT32, 0x3f800000},
        {CM_FEED_FLOAT16, 0x3c00},
        {CM_FEED_BFLOAT16, 0x3f80},
    };
    enum {
        N = 21
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (size_t k = 0; k < sizeof targets / sizeof *targets; k++)
            for (int normalize = 0; normalize < 2; normalize++) {
                uint8_t in[N * 8], out[N * 8];
                cm_feed f = feed_of(types[i], targets[k].to);
                f.normalize = normalize;
                f.normal = (cm_feed_normal){.mean = 0, .std = 1};
                fill_with_bits(&f.src, in, N);
                cm_feed_run(&f, out, in, N);
                for (size_t j = 0; j < N; j++) {
                    uint64_t got = 0;
                    memcpy(&got, out + j * cm_feed_nbytes(&f), cm_feed_nbytes(&f));
                    assert_int_equal(got, j % 2 ? targets[k].one : 0);
                }
            }
}

static void test_every_half(void **state)
{
    (void)state;
    float out[1];
    cm_feed f = feed_of("float16", CM_FEED_FLOAT32);
    const cm_feed same = feed_of("float32", CM_FEED_FLOAT16);
    for (uint32_t h = 0; h < 0x10000; h++) {
        const uint16_t in = (uint16_t)h;
        uint16_t back;
        cm_feed_run(&f, out, &in, 1);
        const double expected = cm_half_to_double(in);
        assert_true(isnan(expected) ? isnan(out[0]) && !signbit(out[0]) == !(in & 0x8000)
                                    : out[0] == expected && !signbit(out[0]) == !(in & 0x8000));
        cm_feed_run(&same, &back, out, 1);
        assert_int_equal(back, isnan(expected) ? in | 0x200 : in);
    }
}

/* ---- unpacking ------------------------------------------------------------------------------ */

static void test_unpack_every_int16(void **state)
{
    (void)state;
    static const double rows[][2] = {
        {0.0015, 273.15}, {1, 0}, {-0.25, 1e-3}, {1e36, 0}, {3e-41, -1e-40}, {0.1, -6553.6},
    };
    int16_t in[65536];
    uint32_t out[65536];
    for (size_t i = 0; i < 65536; i++)
        in[i] = (int16_t)(i - 32768);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t k = 0; k < sizeof FORMATS / sizeof *FORMATS; k++) {
            cm_feed f = feed_of("int16", FORMATS[k].to);
            f.unpack = true;
            f.scale = rows[r][0];
            f.offset = rows[r][1];
            cm_feed_run(&f, out, in, 65536);
            for (size_t i = 0; i < 65536; i++) {
                volatile double product = in[i] * rows[r][0]; /* rounded before the offset */
                assert_int_equal(result_at(&FORMATS[k], out, i),
                                 round_double(&FORMATS[k], product + rows[r][1]));
            }
        }
}

static void test_unpack_floats_in_their_type(void **state)
{
    (void)state;
    cm_feed f = feed_of("float64", CM_FEED_SAME);
    f.unpack = true;
    f.scale = 0.1;
    f.offset = 0.2;
    assert_int_equal(cm_feed_check(&f, NULL), CM_OK);
    const double in[] = {3, -1, NAN};
    double out[3];
    cm_feed_run(&f, out, in, 3);
    volatile double product = in[0] * 0.1;
    assert_true(out[0] == product + 0.2);
    assert_true(isnan(out[2]));
    assert_int_equal(cm_feed_nbytes(&f), 8);
}

static void set_fill(cm_feed *f, const void *value)
{
    memcpy(f->fill[f->nfills++], value, f->src.nbytes);
    assert_int_equal(cm_feed_check(f, NULL), CM_OK);
}

/* Of values that are unpacked, fill values apart; rounded once, at the end. */
static void test_normalize(void **state)
{
    (void)state;
    const int16_t in[] = {-32768, -3, 0, 7, 32767, -999};
    const int16_t fill = -999;
    for (size_t k = 0; k < sizeof FORMATS / sizeof *FORMATS; k++)
        for (int unpack = 0; unpack < 2; unpack++) {
            cm_feed f = feed_of("int16", FORMATS[k].to);
            uint32_t out[8];
            f.unpack = unpack;
            f.scale = 0.1;
            f.offset = 273.15;
            f.normalize = true;
            f.normal = (cm_feed_normal){271.3, 0.7};
            set_fill(&f, &fill);
            assert_int_equal(cm_feed_check(&f, NULL), CM_OK);
            assert_false(cm_feed_is_identity(&f));
            cm_feed_run(&f, out, in, 6);
            for (size_t i = 0; i < 5; i++) {
                volatile double product = in[i] * 0.1, value = unpack ? product + 273.15 : in[i];
                volatile double off = value - 271.3;
                assert_int_equal(result_at(&FORMATS[k], out, i),
                                 round_double(&FORMATS[k], off / 0.7));
            }
        }
    cm_feed f = feed_of("float32", CM_FEED_SAME);
    f.normalize = true;
    assert_int_equal(cm_feed_check(&f, NULL), CM_EINVAL); /* no standard deviation */
    f = feed_of("int16", CM_FEED_SAME);
    f.normalize = true;
    f.normal.std = 1;
    assert_int_equal(cm_feed_check(&f, NULL), CM_EINVAL); /* no fractions */
}

/* By the mean and the standard deviation of a level. */
static void test_levels(void **state)
{
    (void)state;
    const cm_feed_normal level[] = {{1, 2}, {-4, 0.5}};
    const float in = 3;
    float out;
    cm_feed f = feed_of("float32", CM_FEED_SAME), own;
    assert_ptr_equal(cm_feed_at_level(&f, 1, &own), &f);
    f.normalize = true;
    f.level = level;
    cm_feed_run(cm_feed_at_level(&f, 0, &own), &out, &in, 1);
    assert_float_equal(out, 1, 0);
    cm_feed_run(cm_feed_at_level(&f, 1, &own), &out, &in, 1);
    assert_float_equal(out, 14, 0);
    assert_ptr_equal(f.level, level);
}

/* ---- fill values ---------------------------------------------------------------------------- */

static void test_fills(void **state)
{
    (void)state;
    static const uint16_t quiet[] = {0, 0, 0x7e00, 0x7fc0};
    const int16_t in[] = {-32767, 5, -9999, 0, -32767, 7};
    const int16_t fills[] = {-32767, -9999};
    for (cm_feed_to to = CM_FEED_FLOAT32; to <= CM_FEED_BFLOAT16; to++) {
        cm_feed f = feed_of("int16", to);
        set_fill(&f, &fills[0]);
        set_fill(&f, &fills[1]);
        f.unpack = true;
        f.scale = 2;
        f.offset = 1;
        uint32_t out[6];
        const struct format *format = &FORMATS[to - CM_FEED_FLOAT32];
        cm_feed_run(&f, out, in, 6);
        for (size_t i = 0; i < 6; i++) {
            const bool fill = in[i] == fills[0] || in[i] == fills[1];
            const uint32_t nan = to == CM_FEED_FLOAT32 ? 0x7fc00000 : quiet[to];
            assert_int_equal(result_at(format, out, i),
                             fill ? nan : round_double(format, in[i] * 2.0 + 1));
        }
    }
}

static void test_fills_are_compared_in_their_type(void **state)
{
    (void)state;
    float out[4];
    /* As doubles the two would be equal. */
    const int64_t wide[] = {(INT64_C(1) << 53) + 1, INT64_C(1) << 53};
    cm_feed f = feed_of("int64", CM_FEED_FLOAT32);
    set_fill(&f, &wide[0]);
    cm_feed_run(&f, out, wide, 2);
    assert_true(isnan(out[0]) && out[1] == 0x1p53f);

    const float floats[] = {9.96921e36f, NAN, -0.0f, 1.5f};
    const float zero = 0;
    f = feed_of("float32", CM_FEED_SAME);
    set_fill(&f, &floats[0]);
    set_fill(&f, &floats[1]);
    cm_feed_run(&f, out, floats, 4);
    assert_true(isnan(out[0]) && isnan(out[1]) && out[2] == 0 && signbit(out[2]) && out[3] == 1.5f);
    set_fill(&f, &zero);
    cm_feed_run(&f, out, floats, 4);
    assert_true(isnan(out[2]));

    const uint16_t halves[] = {0x8000, 0x3c00, 0x0000};
    const uint16_t half_zero = 0;
    f = feed_of("float16", CM_FEED_FLOAT32);
    set_fill(&f, &half_zero);
    cm_feed_run(&f, out, halves, 3);
    assert_true(isnan(out[0]) && out[1] == 1 && isnan(out[2]));

    const double far[] = {1e20, -1e300, 1e20 + 65536};
    uint16_t small[3];
    f = feed_of("float64", CM_FEED_FLOAT16);
    set_fill(&f, &far[0]);
    cm_feed_run(&f, small, far, 3);
    assert_int_equal(small[0], 0x7e00);
    assert_int_equal(small[1], 0xfc00);
    assert_int_equal(small[2], 0x7c00);
}

static void test_nan_stays(void **state)
{
    (void)state;
    /* Quiet and signalling, payloads high and low, of either sign. */
    static const uint64_t nans[] = {
        UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8000000000001), UINT64_C(0x7ff0000000000001),
        UINT64_C(0xfff0000020000000), UINT64_C(0x7fffffffffffffff),
    };
    for (size_t k = 0; k < sizeof FORMATS / sizeof *FORMATS; k++)
        for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
            const cm_feed f = feed_of("float64", FORMATS[k].to);
            uint32_t out = 0;
            cm_feed_run(&f, &out, &nans[i], 1);
            assert_true(is_nan(&FORMATS[k], out));
            assert_int_equal(out >> (FORMATS[k].nbytes * 8 - 1), nans[i] >> 63);
        }
    static const uint32_t singles[] = {0x7f800001, 0xff800001, 0x7fc00000, 0xffffffff};
    for (size_t k = 1; k < sizeof FORMATS / sizeof *FORMATS; k++)
        for (size_t i = 0; i < sizeof singles / sizeof *singles; i++) {
            const cm_feed f = feed_of("float32", FORMATS[k].to);
            uint32_t out = 0;
            cm_feed_run(&f, &out, &singles[i], 1);
            assert_true(is_nan(&FORMATS[k], out));
            assert_int_equal(out >> 15, singles[i] >> 31);
        }
}

/* ---- memory and arguments ------------------------------------------------------------------- */

static void test_lengths_places_and_overlap(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 7, 511, 512, 513, 1500};
    const cm_feed f = feed_of("float64", CM_FEED_FLOAT32);
    uint8_t in[1500 * 8 + 3], out[1500 * 4 + 3];
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        const size_t n = lengths[k];
        for (size_t i = 0; i < n; i++) {
            const double v = (double)i * 1.1;
            memcpy(in + 3 + i * 8, &v, 8);
        }
        memset(out, 0xa5, sizeof out);
        cm_feed_run(&f, out + 1, in + 3, n);
        for (size_t i = 0; i < n; i++) {
            const float v = (float)((double)i * 1.1);
            assert_memory_equal(out + 1 + i * 4, &v, 4);
        }
        assert_int_equal(out[0], 0xa5);
        assert_int_equal(out[1 + n * 4], 0xa5);
        cm_feed_run(&f, in + 3, in + 3, n);
        assert_memory_equal(in + 3, out + 1, n * 4);
    }
}

static void test_check(void **state)
{
    (void)state;
    static const struct {
        const char *src;
        cm_feed_to to;
        bool unpack;
        double scale;
        unsigned nfills;
        const char *text; /* NULL: accepted */
    } rows[] = {
        {"complex64", CM_FEED_SAME, false, 0, 0, NULL},
        {"complex64", CM_FEED_FLOAT32, false, 0, 0,
         "complex64 is not a number: it cannot be cast or unpacked"},
        {"string", CM_FEED_SAME, false, 0, 0, "string has elements of no fixed size"},
        {"int16", CM_FEED_SAME, true, 1, 0,
         "int16 holds neither fractions nor NaN: a cast is needed too"},
        {"int16", CM_FEED_SAME, false, 0, 1,
         "int16 holds neither fractions nor NaN: a cast is needed too"},
        {"float32", CM_FEED_SAME, true, 1, 4, NULL},
        {"bool", CM_FEED_FLOAT32, true, 1, 0, "bool has no scale and offset"},
        {"int16", CM_FEED_FLOAT32, true, INFINITY, 0, "scale and offset must be finite"},
        {"int16", CM_FEED_FLOAT32, false, 0, 5, "5 fill values, 4 at most"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cm_feed f = {.to = rows[i].to,
                     .unpack = rows[i].unpack,
                     .scale = rows[i].scale,
                     .nfills = rows[i].nfills};
        cm_error err = {0};
        assert_int_equal(cm_dtype_parse(rows[i].src, &f.src, NULL), CM_OK);
        const int rc = cm_feed_check(&f, &err);
        if (rows[i].text) {
            assert_int_not_equal(rc, CM_OK);
            assert_string_equal(err.text, rows[i].text);
        } else
            assert_int_equal(rc, CM_OK);
    }
}

static void test_names(void **state)
{
    (void)state;
    static const char *const names[] = {"float32", "float16", "bfloat16", "float64"};
    static const uint32_t size[] = {4, 2, 2, 8};
    for (size_t i = 0; i < 4; i++) {
        cm_feed f = feed_of("int16", CM_FEED_SAME);
        char name[32];
        assert_string_equal(cm_feed_type_name(&f, name, sizeof name), "int16");
        assert_true(cm_feed_is_identity(&f));
        assert_int_equal(cm_feed_nbytes(&f), 2);
        assert_int_equal(cm_feed_parse(names[i], &f.to, NULL), CM_OK);
        assert_int_equal(f.to, CM_FEED_FLOAT32 + i);
        assert_string_equal(cm_feed_type_name(&f, name, sizeof name), names[i]);
        assert_false(cm_feed_is_identity(&f));
        assert_int_equal(cm_feed_nbytes(&f), size[i]);
    }
    cm_feed_to to;
    cm_error err;
    assert_int_equal(cm_feed_parse("int8", &to, &err), CM_EINVAL);
    assert_string_equal(err.text, "'int8' is none of float64, float32, float16 and bfloat16");
    const cm_feed f = feed_of("float32", CM_FEED_FLOAT32);
    assert_true(cm_feed_is_identity(&f));
}

/* Every narrow integer, 64-bit ones to the nearest, fill values, and what passes as it is. */
static void test_to_double(void **state)
{
    (void)state;
    cm_feed f = feed_of("int16", CM_FEED_FLOAT64);
    const int16_t narrow[] = {-32768, -1, 0, 7, 32767};
    double out[5];
    f.nfills = 1;
    memcpy(f.fill[0], &narrow[3], 2);
    cm_feed_run(&f, out, narrow, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_true(i == 3 ? isnan(out[i]) : out[i] == narrow[i]);

    f = feed_of("int64", CM_FEED_FLOAT64);
    const int64_t wide[] = {(INT64_C(1) << 53) + 1, (INT64_C(1) << 53) + 3, INT64_MAX, INT64_MIN};
    cm_feed_run(&f, out, wide, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_true(out[i] == (double)wide[i]);

    f = feed_of("float32", CM_FEED_FLOAT64);
    const float single[] = {0.1f, -INFINITY, 3e38f};
    cm_feed_run(&f, out, single, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_true(out[i] == single[i]);
    f = feed_of("float64", CM_FEED_FLOAT64);
    assert_true(cm_feed_is_identity(&f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_boundary),
        cmocka_unit_test(test_random_doubles),
        cmocka_unit_test(test_rounds_once),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_every_type_to_every_type),
        cmocka_unit_test(test_every_half),
        cmocka_unit_test(test_unpack_every_int16),
        cmocka_unit_test(test_unpack_floats_in_their_type),
        cmocka_unit_test(test_normalize),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_fills),
        cmocka_unit_test(test_to_double),
        cmocka_unit_test(test_fills_are_compared_in_their_type),
        cmocka_unit_test(test_nan_stays),
        cmocka_unit_test(test_lengths_places_and_overlap),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
