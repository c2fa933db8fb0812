#include <float.h>
#include <math.h>

#include "../unit.h"
#include "model/convert.h"

static cm_dtype type_of(const char *name)
{
    cm_dtype t;
    assert_int_equal(cm_dtype_parse(name, &t, NULL), CM_OK);
    return t;
}

/* ---- bitround ------------------------------------------------------------------------------- */

/* Made with the BitRound codec of numcodecs 0.16. */
static const struct {
    const char *type;
    unsigned keepbits;
    uint64_t in, out;
} ROUND[] = {
    {"f4", 1, 0x3f8ccccd, 0x3f800000}, /* 1.1 */
    {"f4", 1, 0xc3889333, 0xc3800000}, /* -273.15 */
    {"f4", 1, 0x60ad78ec, 0x60c00000}, /* 1e20 */
    {"f4", 1, 0x7cf00000, 0x7d000000}, /* 9.96921e36 */
    {"f4", 1, 0x000116c2, 0x00000000}, /* 1e-40 */
    {"f4", 1, 0x3fa00000, 0x3f800000}, /* 1.25, a tie */
    {"f4", 1, 0x3fe00000, 0x40000000}, /* 1.75, a tie */
    {"f4", 1, 0x80000000, 0x80000000}, /* -0.0 */
    {"f4", 1, 0x7f800000, 0x7f800000}, /* infinity */
    {"f4", 7, 0x3f8ccccd, 0x3f8d0000},
    {"f4", 7, 0xc3889333, 0xc3890000},
    {"f4", 7, 0x40490fdb, 0x40490000}, /* pi */
    {"f4", 7, 0x60ad78ec, 0x60ad0000},
    {"f4", 7, 0x000116c2, 0x00010000},
    {"f4", 7, 0x3fffffff, 0x40000000}, /* carries into the exponent */
    {"f4", 7, 0x7f7fffff, 0x7f800000}, /* the largest number */
    {"f4", 10, 0x3f8ccccd, 0x3f8cc000},
    {"f4", 10, 0xc3889333, 0xc388a000},
    {"f4", 10, 0x60ad78ec, 0x60ad8000},
    {"f4", 22, 0x3f8ccccd, 0x3f8ccccc},
    {"f4", 22, 0xc3889333, 0xc3889334},
    {"f4", 22, 0x40490fdb, 0x40490fdc},
    {"f4", 23, 0x40490fdb, 0x40490fdb},
    {"f8", 1, 0x3ff199999999999a, 0x3ff0000000000000},
    {"f8", 1, 0x7e37e43c8800759c, 0x7e38000000000000},
    {"f8", 12, 0x3ff199999999999a, 0x3ff19a0000000000},
    {"f8", 12, 0xc071126666666666, 0xc071120000000000},
    {"f8", 12, 0x400921fb54442d18, 0x4009220000000000},
    {"f8", 12, 0x7e37e43c8800759c, 0x7e37e40000000000},
    {"f8", 12, 0x0000000000000001, 0x0000000000000000},
    {"f8", 51, 0x0000000000000001, 0x0000000000000000},
    {"f8", 51, 0x7fefffffffffffff, 0x7ff0000000000000},
    {"f8", 52, 0x0000000000000001, 0x0000000000000001},
    {"f2", 1, 0x3c66, 0x3c00},
    {"f2", 1, 0x03ef, 0x0400},
    {"f2", 5, 0x3c66, 0x3c60},
    {"f2", 5, 0xdc45, 0xdc40},
    {"f2", 5, 0x7bff, 0x7c00},
    /* NaN keeps every bit; the codec itself turns these into other values. */
    {"f4", 7, 0x7fc00000, 0x7fc00000},
    {"f4", 7, 0x7fffffff, 0x7fffffff},
    {"f4", 7, 0xff800001, 0xff800001},
    {"f8", 7, 0x7fffffffffffffff, 0x7fffffffffffffff},
    {"f2", 5, 0xffff, 0xffff},
};

static void test_bitround(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROUND / sizeof *ROUND; i++) {
        const cm_dtype t = type_of(ROUND[i].type);
        uint64_t got[9] = {0};
        /* Enough elements for vector code, and one left over. */
        for (size_t k = 0; k < 9; k++)
            memcpy((uint8_t *)got + k * t.nbytes, &ROUND[i].in, t.nbytes);
        cm_bitround(&t, ROUND[i].keepbits, got, 9);
        for (size_t k = 0; k < 9; k++) {
            uint64_t one = 0;
            memcpy(&one, (uint8_t *)got + k * t.nbytes, t.nbytes);
            if (one != ROUND[i].out)
                fail_msg("row %zu: %llx", i, (unsigned long long)one);
        }
    }
}

/* ---- casts ---------------------------------------------------------------------------------- */

/* One element by the bytes of its little-endian value. */
typedef struct cast {
    const char *src, *dst;
    uint64_t in, out;
    bool fits;
} cast;

#define F4(x)                                                                                      \
    ((union {                                                                                      \
         float f;                                                                                  \
         uint32_t u;                                                                               \
     }){.f = x}                                                                                    \
         .u)
#define F8(x)                                                                                      \
    ((union {                                                                                      \
         double f;                                                                                 \
         uint64_t u;                                                                               \
     }){.f = x}                                                                                    \
         .u)

static void test_casts(void **state)
{
    (void)state;
    const uint64_t big = (UINT64_C(1) << 53) + 1;
    const cast ROW[] = {
        {"i2", "i4", 0xffff, 0xffffffff, true},
        {"i2", "u1", 255, 255, true},
        {"i2", "u1", 256, 0, false},
        {"i2", "u1", 0xffff, 0, false},
        {"i1", "u8", 0xff, 0, false},
        {"u8", "i8", UINT64_C(1) << 63, 0, false},
        {"u8", "i8", INT64_MAX, INT64_MAX, true},
        {"i8", "u8", big, big, true},
        {"i8", "i1", (uint64_t)-128, 0x80, true},
        {"i8", "i1", (uint64_t)-129, 0, false},
        {"u4", "i4", 0x80000000, 0, false},
        {"i8", "f8", big, F8(0x1p53), true},
        {"u8", "f8", UINT64_MAX, F8(0x1p64), true},
        {"i4", "f4", 16777217, F4(16777216), true},
        /* Rounded once: by way of double the tie at the end would be lost. */
        {"i8", "f4", (UINT64_C(1) << 60) + (UINT64_C(1) << 36) + 1, F4(0x1.000002p60f), true},
        {"u8", "f4", (UINT64_C(1) << 63) + (UINT64_C(1) << 39) + 1, F4(0x1.000002p63f), true},
        {"f8", "f4", F8(0.1), F4(0.1f), true},
        {"f8", "f4", F8(1e39), 0, false},
        {"f8", "f4", F8(0x1.fffffefp127), F4(FLT_MAX), true},
        {"f8", "f4", F8(0x1.ffffffp127), 0, false},
        {"f8", "f4", F8(-INFINITY), F4(-INFINITY), true},
        {"f8", "f4", F8(1e-50), 0, true},
        {"f4", "f8", F4(0.1f), F8((double)0.1f), true},
        {"f8", "f2", F8(65504), 0x7bff, true},
        {"f8", "f2", F8(65519.99), 0x7bff, true},
        {"f8", "f2", F8(65520), 0, false},
        {"f8", "f2", F8(-1.1), 0xbc66, true},
        {"f8", "f2", F8(0x1p-24), 0x0001, true},
        {"f8", "f2", F8(0x1p-25), 0x0000, true},
        {"f8", "f2", F8(0x1.8p-24), 0x0002, true},
        {"f8", "f2", F8(0x1.ffcp-15), 0x0400, true},
        {"f8", "f2", F8(INFINITY), 0x7c00, true},
        {"u2", "f2", 65535, 0, false},
        {"f2", "f4", 0x3c66, F4(1.0996094f), true},
        {"f2", "f8", 0x8001, F8(-0x1p-24), true},
        {"f2", "f4", 0xfc00, F4(-INFINITY), true},
        {"f4", "i2", F4(2.5f), 2, true},
        {"f4", "i2", F4(3.5f), 4, true},
        {"f4", "i2", F4(-0.4f), 0, true},
        {"f4", "i2", F4(32767.4f), 32767, true},
        {"f4", "i2", F4(32767.6f), 0, false},
        {"f4", "i2", F4(-32768.4f), 0x8000, true},
        {"f4", "i2", F4(NAN), 0, false},
        {"f8", "i8", F8(-0x1p63), UINT64_C(1) << 63, true},
        {"f8", "i8", F8(0x1p63), 0, false},
        {"f8", "u8", F8(0x1p63), UINT64_C(1) << 63, true},
        {"f8", "u8", F8(0x1p64), 0, false},
        {"f8", "u8", F8(-0.5), 0, true},
        {"f8", "u8", F8(-0.6), 0, false},
        {"f8", "u1", F8(INFINITY), 0, false},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_error err = {0};
        cm_conversion c = {.src = type_of(ROW[i].src), .dst = type_of(ROW[i].dst)};
        uint64_t got = 0, bad = 99;
        assert_int_equal(cm_conversion_check(&c, &err), CM_OK);
        const int rc = cm_conversion_run(&c, &got, &ROW[i].in, 1, &bad, &err);
        if (rc != (ROW[i].fits ? CM_OK : CM_EINVAL) || (!rc && got != ROW[i].out))
            fail_msg("row %zu, %s to %s: %llx", i, ROW[i].src, ROW[i].dst, (unsigned long long)got);
        assert_int_equal(bad, ROW[i].fits ? 99 : 0);
    }
}

static void test_exact_casts(void **state)
{
    (void)state;
    const struct {
        const char *src, *dst;
        uint64_t in;
        bool held;
    } ROW[] = {
        {"i8", "f8", UINT64_C(1) << 53, true},
        {"i8", "f8", (UINT64_C(1) << 53) + 1, false},
        {"i8", "f8", (uint64_t) - ((INT64_C(1) << 53) + 1), false},
        {"i8", "f8", UINT64_C(1) << 63, true}, /* the least */
        {"i8", "f8", INT64_MAX, false},
        {"u8", "f8", UINT64_MAX, false},
        {"u8", "f8", UINT64_C(1) << 63, true},
        {"u4", "f4", UINT32_MAX, false},
        {"i4", "f4", 1 << 24, true},
        {"i4", "f4", (1 << 24) + 1, false},
        {"i2", "f2", 2049, false},
        {"u8", "i8", INT64_MAX, true},
        {"u8", "i8", UINT64_C(1) << 63, false},
        {"f8", "i8", F8(3.0), true},
        {"f8", "i8", F8(3.5), false},
        {"f8", "i8", F8(0.0), true},
        {"f8", "i8", F8(-0.0), false},
        {"f8", "i8", F8(0x1p62), true},
        {"f8", "u8", F8(0x1p63), true},
        {"f8", "f4", F8(0.5), true},
        {"f8", "f4", F8(0.1), false},
        {"f8", "f4", F8(NAN), true},
        {"f8", "f4", F8(-INFINITY), true},
        {"f4", "f8", F4(0.1f), true},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_error err = {0};
        cm_conversion c = {.src = type_of(ROW[i].src), .dst = type_of(ROW[i].dst), .exact = true};
        uint64_t got = 0, bad = 99;
        const int rc = cm_conversion_run(&c, &got, &ROW[i].in, 1, &bad, &err);
        if (rc != (ROW[i].held ? CM_OK : CM_EINVAL))
            fail_msg("row %zu, %s to %s: %s", i, ROW[i].src, ROW[i].dst, err.text);
        /* A missing value is not looked at. */
        c.nnodata = 1;
        memcpy(c.nodata[0].src, &ROW[i].in, 8);
        assert_int_equal(cm_conversion_run(&c, &got, &ROW[i].in, 1, &bad, &err), CM_OK);
        assert_true(got == 0);
    }
    const int64_t large = (INT64_C(1) << 53) + 1;
    const cm_conversion c = {.src = type_of("i8"), .dst = type_of("f8"), .exact = true};
    cm_error err = {0};
    double x;
    assert_int_equal(cm_conversion_run(&c, &x, &large, 1, NULL, &err), CM_EINVAL);
    assert_string_equal(err.text, "element 0: 9007199254740993 does not fit float64");
}

static void test_half_floats_all_survive(void **state)
{
    (void)state;
    const cm_dtype half = type_of("f2"), dbl = type_of("f8");
    const cm_conversion up = {.src = half, .dst = dbl}, down = {.src = dbl, .dst = half};
    for (unsigned i = 0; i < 65536; i++) {
        const uint16_t in = (uint16_t)i;
        double wide;
        uint16_t out;
        assert_int_equal(cm_conversion_run(&up, &wide, &in, 1, NULL, NULL), CM_OK);
        assert_int_equal(cm_conversion_run(&down, &out, &wide, 1, NULL, NULL), CM_OK);
        assert_int_equal(out, in);
    }
}

static void test_unpack_with_missing_values(void **state)
{
    (void)state;
    const int16_t packed[] = {0, 1, -32767, 100, -2};
    const int16_t missing = -32767;
    const float nan_value = NAN;
    cm_conversion c = {.src = type_of("i2"),
                       .dst = type_of("f4"),
                       .unpack = true,
                       .scale = 0.01,
                       .offset = 273.15,
                       .nnodata = 1};
    float out[5];
    memcpy(c.nodata[0].src, &missing, sizeof missing);
    memcpy(c.nodata[0].dst, &nan_value, sizeof nan_value);
    assert_int_equal(cm_conversion_check(&c, NULL), CM_OK);
    assert_false(cm_conversion_is_identity(&c));
    assert_int_equal(cm_conversion_run(&c, out, packed, 5, NULL, NULL), CM_OK);
    for (size_t i = 0; i < 5; i++) {
        if (i == 2)
            assert_true(isnan(out[i]));
        else
            assert_true(out[i] == (float)(packed[i] * 0.01 + 273.15));
    }
}

/* Machines that multiply and add in one step would have half of this. */
static void test_unpack_rounds_twice(void **state)
{
    (void)state;
    const int16_t packed = 3;
    double out = 0;
    const cm_conversion c = {
        .src = type_of("i2"), .dst = type_of("f8"), .unpack = true, .scale = 0.1, .offset = -0.3};
    assert_int_equal(cm_conversion_run(&c, &out, &packed, 1, NULL, NULL), CM_OK);
    assert_true(out == 0x1p-54);
}

static void test_missing_values_are_neither_refused_nor_rounded(void **state)
{
    (void)state;
    const float in[] = {1.1f, 1e20f, NAN, 2.6f};
    const float big = 1e20f, nan_value = NAN;
    const int8_t flag = -128;
    cm_error err = {0};
    uint64_t bad = 99;
    int8_t bytes[4];
    cm_conversion c = {.src = type_of("f4"), .dst = type_of("i1"), .nnodata = 1};
    memcpy(c.nodata[0].src, &big, sizeof big);
    memcpy(c.nodata[0].dst, &flag, sizeof flag);
    assert_int_equal(cm_conversion_run(&c, bytes, in, 4, &bad, &err), CM_EINVAL);
    assert_int_equal(bad, 2);
    assert_string_equal(err.text, "element 2: NaN does not fit int8");
    assert_int_equal(bytes[0], 1);
    assert_int_equal(bytes[1], flag);
    memcpy(c.nodata[0].src, &nan_value, sizeof nan_value);
    assert_int_equal(cm_conversion_run(&c, bytes, in, 4, &bad, &err), CM_EINVAL);
    assert_int_equal(bad, 1);

    float out[4];
    c = (cm_conversion){.src = type_of("f4"), .dst = type_of("f4"), .keepbits = 3, .nnodata = 1};
    memcpy(c.nodata[0].src, &big, sizeof big);
    memcpy(c.nodata[0].dst, &big, sizeof big);
    assert_int_equal(cm_conversion_run(&c, out, in, 4, &bad, &err), CM_OK);
    assert_true(out[0] == 1.125f && out[1] == 1e20f && isnan(out[2]) && out[3] == 2.5f);

    /* Rounding makes no finite number infinite. */
    const float large[] = {INFINITY, -3.2e38f, 3.4e38f, -3.4e38f};
    c = (cm_conversion){.src = type_of("f4"), .dst = type_of("f4"), .keepbits = 4};
    assert_int_equal(cm_conversion_run(&c, out, large, 2, &bad, &err), CM_OK);
    assert_true(out[0] == INFINITY && isfinite(out[1]));
    assert_int_equal(cm_conversion_run(&c, out, large, 3, &bad, &err), CM_EINVAL);
    assert_int_equal(bad, 2);
    assert_string_equal(
        err.text, "element 2: 3.3999999521443642e+38 does not fit float32 rounded by `keepbits` 4");
    c.nnodata = 1;
    memcpy(c.nodata[0].src, &large[2], sizeof large[2]);
    memcpy(c.nodata[0].dst, &large[2], sizeof large[2]);
    assert_int_equal(cm_conversion_run(&c, out, large, 4, &bad, &err), CM_EINVAL);
    assert_true(bad == 3 && out[2] == large[2]);

    /* Unsigned and 64 bits wide: no double may stand between. */
    const uint64_t wide[] = {UINT64_MAX, UINT64_MAX - 1};
    uint64_t got[2] = {0, 0};
    c = (cm_conversion){.src = type_of("u8"), .dst = type_of("u8"), .nnodata = 1};
    memcpy(c.nodata[0].src, &wide[0], 8);
    assert_int_equal(cm_conversion_run(&c, got, wide, 2, &bad, &err), CM_OK);
    assert_true(got[0] == 0 && got[1] == UINT64_MAX - 1);
}

static void test_numbers_that_would_become_missing_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *src, *dst;
        double fill, other, x;
        unsigned keepbits;
        bool saturate, refused;
    } ROW[] = {
        {"f8", "i2", -9, NAN, -8.6, 0, false, true},
        {"f8", "i2", -9, NAN, -8.4, 0, false, false},
        {"f8", "i2", 5, -9, -8.6, 0, false, true},
        {"f8", "u1", 255, NAN, 300, 0, true, true},
        {"f4", "f4", -9, NAN, -8.75, 3, false, true},
        {"f8", "f2", 0.5, NAN, 0.5 + 0x1p-20, 0, false, true},
        {"f8", "f4", NAN, NAN, NAN, 0, false, false},
        {"i8", "i4", 7, NAN, 8, 0, false, false},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_error err = {0};
        cm_conversion c = {.src = type_of(ROW[i].src),
                           .dst = type_of(ROW[i].dst),
                           .keepbits = ROW[i].keepbits,
                           .saturate = ROW[i].saturate,
                           .apart = true};
        const double marks[] = {ROW[i].fill, ROW[i].other};
        for (unsigned k = 0; k < (isnan(ROW[i].other) ? 1 : 2); k++, c.nnodata++) {
            assert_true(cm_element_from_double(&c.src, marks[k], c.nodata[k].src));
            assert_true(cm_element_from_double(&c.dst, marks[k], c.nodata[k].dst));
        }
        uint8_t in[2][8], out[2][8];
        const size_t size = c.src.nbytes;
        assert_true(cm_element_from_double(&c.src, ROW[i].fill, in[0]));
        assert_true(cm_element_from_double(&c.src, ROW[i].x, (uint8_t *)in + size));
        uint64_t bad = 99;
        const int rc = cm_conversion_run(&c, out, in, 2, &bad, &err);
        if (rc != (ROW[i].refused ? CM_EINVAL : CM_OK))
            fail_msg("row %zu, %s to %s: %s", i, ROW[i].src, ROW[i].dst, err.text);
        if (ROW[i].refused) {
            assert_int_equal(bad, 1);
            assert_non_null(strstr(err.text, "which stands for missing values"));
        }
    }
}

static void test_in_place_and_long_runs(void **state)
{
    (void)state;
    enum {
        N = 1300
    };
    uint32_t data[N];
    uint64_t bad = 0;
    cm_error err = {0};
    for (uint32_t i = 0; i < N; i++)
        data[i] = i * 3;
    const cm_conversion up = {
        .src = type_of("u4"), .dst = type_of("f4"), .unpack = true, .scale = 2, .offset = 1};
    const cm_conversion down = {.src = type_of("f4"), .dst = type_of("i4")};
    assert_int_equal(cm_conversion_run(&up, data, data, N, &bad, &err), CM_OK);
    assert_int_equal(cm_conversion_run(&down, data, data, N, &bad, &err), CM_OK);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(data[i], i * 6 + 1);

    double doubles[N];
    float floats[N];
    for (int i = 0; i < N; i++)
        doubles[i] = i;
    doubles[1111] = 1e300;
    const cm_conversion narrow = {.src = type_of("f8"), .dst = type_of("f4")};
    assert_int_equal(cm_conversion_run(&narrow, floats, doubles, N, &bad, &err), CM_EINVAL);
    assert_int_equal(bad, 1111);
    assert_string_equal(err.text, "element 1111: 1e+300 does not fit float32");
}

static void test_checks_and_identity(void **state)
{
    (void)state;
    const cm_dtype i2 = type_of("i2"), f4 = type_of("f4"), s = type_of("string"),
                   b = type_of("bool"), f8 = type_of("f8"), c8 = type_of("complex64");
    const struct {
        const char *name;
        cm_conversion c;
        int rc;
        bool identity;
    } ROW[] = {
        {"nothing, numbers", {.src = i2, .dst = i2}, CM_OK, true},
        {"nothing, strings", {.src = s, .dst = s}, CM_OK, true},
        {"cast", {.src = i2, .dst = f4}, CM_OK, false},
        {"unpack", {.src = i2, .dst = i2, .unpack = true, .scale = 1}, CM_OK, false},
        {"round", {.src = f4, .dst = f4, .keepbits = 22}, CM_OK, false},
        {"round to all bits", {.src = f4, .dst = f4, .keepbits = 23}, CM_OK, true},
        {"too many bits", {.src = f4, .dst = f4, .keepbits = 24}, CM_EINVAL, false},
        {"many bits after a cast", {.src = f4, .dst = f8, .keepbits = 52}, CM_OK, false},
        {"round integers", {.src = i2, .dst = i2, .keepbits = 3}, CM_EINVAL, false},
        {"from a string", {.src = s, .dst = f4}, CM_EINVAL, false},
        {"to bool", {.src = f4, .dst = b}, CM_EINVAL, false},
        {"from complex", {.src = c8, .dst = f4}, CM_EINVAL, false},
        {"unpack a string", {.src = s, .dst = s, .unpack = true, .scale = 1}, CM_EINVAL, false},
        {"scale of NaN", {.src = i2, .dst = f4, .unpack = true, .scale = NAN}, CM_EINVAL, false},
        {"missing value stays", {.src = i2, .dst = i2, .nnodata = 1}, CM_OK, true},
        {"missing value changes",
         {.src = i2, .dst = i2, .nnodata = 1, .nodata = {{.src = {1}}}},
         CM_OK,
         false},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_error err = {0};
        print_message("  %s\n", ROW[i].name);
        assert_int_equal(cm_conversion_check(&ROW[i].c, &err), ROW[i].rc);
        if (ROW[i].rc == CM_OK)
            assert_int_equal(cm_conversion_is_identity(&ROW[i].c), ROW[i].identity);
    }
}

static void test_single_elements(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        double value;
        bool exact;
    } ROW[] = {
        {"i1", -128, true},    {"i1", 128, false},     {"i1", 0.5, false},    {"u1", 255, true},
        {"u1", -1, false},     {"i8", -0x1p63, true},  {"i8", 0x1p63, false}, {"u8", 0x1p63, true},
        {"u8", 0x1p64, false}, {"f4", 0.5, true},      {"f4", 0.1, false},    {"f4", 1e300, false},
        {"f4", NAN, true},     {"f4", INFINITY, true}, {"f2", 65504, true},   {"f2", 65505, false},
        {"f2", 0x1p-24, true}, {"f8", 0.1, true},      {"f8", NAN, true},     {"bool", 1, true},
        {"bool", 0, true},     {"bool", 2, false},     {"string", 0, false},  {"i4", NAN, false},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        const cm_dtype t = type_of(ROW[i].type);
        uint8_t element[8];
        print_message("  %s %g\n", ROW[i].type, ROW[i].value);
        memset(element, 0x5A, sizeof element);
        assert_int_equal(cm_element_from_double(&t, ROW[i].value, element), ROW[i].exact);
        if (!ROW[i].exact) {
            for (size_t k = 0; k < sizeof element; k++)
                assert_int_equal(element[k], 0x5A);
            continue;
        }
        const double back = cm_element_to_double(&t, element);
        assert_true(back == ROW[i].value || (isnan(back) && isnan(ROW[i].value)));
    }
}

static void test_texts_of_elements(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        uint32_t nbytes; /* of text */
        uint8_t element[8];
        const char *text;
    } ROW[] = {
        {"i2", 0, {0xFE, 0xFF}, "-2"},
        {"u1", 0, {65}, "65"},
        {NULL, 4, {'a', 'b'}, "\"ab\""},
        {NULL, 4, {0}, "\"\""},
        {NULL, 4, "a\xC3\xA9z", "\"a\xC3\xA9z\""},
        {NULL, 2, {'a', 1}, "6101"},
        {NULL, 2, {0xE9}, "e900"},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        const bool bytes = ROW[i].nbytes > 0;
        const cm_dtype t =
            bytes ? cm_dtype_make(CM_KIND_BYTES, ROW[i].nbytes) : type_of(ROW[i].type);
        char text[32];
        cm_element_text(&t, ROW[i].element, text, sizeof text);
        assert_string_equal(text, ROW[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bitround),
        cmocka_unit_test(test_casts),
        cmocka_unit_test(test_exact_casts),
        cmocka_unit_test(test_half_floats_all_survive),
        cmocka_unit_test(test_unpack_with_missing_values),
        cmocka_unit_test(test_unpack_rounds_twice),
        cmocka_unit_test(test_missing_values_are_neither_refused_nor_rounded),
        cmocka_unit_test(test_numbers_that_would_become_missing_are_refused),
        cmocka_unit_test(test_in_place_and_long_runs),
        cmocka_unit_test(test_checks_and_identity),
        cmocka_unit_test(test_single_elements),
        cmocka_unit_test(test_texts_of_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
