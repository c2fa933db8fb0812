/* cast_value and scale_offset: the rules of zarr-extensions, one value a row. */
#include <math.h>

#include "../unit.h"
#include "codec/codec.h"
#include "model/half.h"

#define TYPE(k, n)                                                                                 \
    {                                                                                              \
        .kind = CM_KIND_##k, .nbytes = n                                                           \
    }
#define I1 TYPE(INT, 1)
#define I2 TYPE(INT, 2)
#define I4 TYPE(INT, 4)
#define I8 TYPE(INT, 8)
#define U1 TYPE(UINT, 1)
#define U2 TYPE(UINT, 2)
#define U8 TYPE(UINT, 8)
#define F2 TYPE(FLOAT, 2)
#define F4 TYPE(FLOAT, 4)
#define F8 TYPE(FLOAT, 8)

enum {
    EVEN = CM_ROUND_NEAREST_EVEN,
    ZERO = CM_ROUND_TOWARDS_ZERO,
    UP = CM_ROUND_UP,
    DOWN = CM_ROUND_DOWN,
    AWAY = CM_ROUND_NEAREST_AWAY,
    ERROR = CM_RANGE_ERROR,
    CLAMP = CM_RANGE_CLAMP,
    WRAP = CM_RANGE_WRAP
};

/* A number as text: "nan", "inf", "-0" and hexadecimal floats are for floats only. */
static void element_of(const cm_dtype *t, const char *text, uint8_t out[8])
{
    memset(out, 0, 8);
    if (t->kind != CM_KIND_FLOAT) {
        uint64_t v = text[0] == '-' ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
        memcpy(out, &v, t->nbytes);
        return;
    }
    double v = strtod(text, NULL);
    float single = (float)v;
    uint16_t half = cm_half_from_double(v);
    memcpy(out,
           t->nbytes == 8   ? (void *)&v
           : t->nbytes == 4 ? (void *)&single
                            : (void *)&half,
           t->nbytes);
}

static const struct cast_row {
    cm_dtype from;
    const char *value;
    cm_dtype to;
    int rounding, range;
    const char *want; /* NULL: an error */
} casts[] = {
    /* integers */
    {I8, "0", U1, EVEN, ERROR, "0"},
    {I8, "255", U1, EVEN, ERROR, "255"},
    {I8, "256", U1, EVEN, ERROR, NULL},
    {I8, "-1", U1, EVEN, ERROR, NULL},
    {I8, "256", U1, EVEN, CLAMP, "255"},
    {I8, "-1", U1, EVEN, CLAMP, "0"},
    {I8, "257", U1, EVEN, WRAP, "1"},
    {I8, "-1", U1, EVEN, WRAP, "255"},
    {I4, "32768", I2, EVEN, WRAP, "-32768"},
    {I4, "32769", I2, EVEN, WRAP, "-32767"},
    {I4, "-32769", I2, EVEN, WRAP, "32767"},
    {I4, "-32768", I2, EVEN, ERROR, "-32768"},
    {I4, "-32769", I2, EVEN, ERROR, NULL},
    {I4, "-32769", I2, EVEN, CLAMP, "-32768"},
    {U8, "18446744073709551615", I8, EVEN, ERROR, NULL},
    {U8, "18446744073709551615", I8, EVEN, CLAMP, "9223372036854775807"},
    {U8, "18446744073709551615", I8, EVEN, WRAP, "-1"},
    {I8, "-9223372036854775808", U8, EVEN, WRAP, "9223372036854775808"},
    {I8, "-9223372036854775808", I8, EVEN, ERROR, "-9223372036854775808"},
    /* floats to integers */
    {F8, "128", I1, EVEN, ERROR, NULL},
    {F8, "128", I1, EVEN, CLAMP, "127"},
    {F8, "128", I1, EVEN, WRAP, "-128"},
    {F8, "127.4", I1, EVEN, ERROR, "127"},
    {F8, "127.5", I1, EVEN, ERROR, NULL},
    {F8, "127.5", I1, ZERO, ERROR, "127"},
    {F8, "2.5", I1, EVEN, ERROR, "2"},
    {F8, "3.5", I1, EVEN, ERROR, "4"},
    {F8, "2.5", I1, AWAY, ERROR, "3"},
    {F8, "-2.5", I1, AWAY, ERROR, "-3"},
    {F8, "2.1", I1, UP, ERROR, "3"},
    {F8, "-2.1", I1, UP, ERROR, "-2"},
    {F8, "2.9", I1, DOWN, ERROR, "2"},
    {F8, "-2.1", I1, DOWN, ERROR, "-3"},
    {F8, "-2.9", I1, ZERO, ERROR, "-2"},
    {F8, "-0.4", U1, EVEN, ERROR, "0"},
    {F8, "-0.6", U1, EVEN, ERROR, NULL},
    {F8, "nan", I1, EVEN, CLAMP, NULL},
    {F8, "inf", I1, EVEN, CLAMP, NULL},
    {F8, "-inf", I1, EVEN, WRAP, NULL},
    {F8, "0x1p64", U8, EVEN, ERROR, NULL},
    {F8, "0x1p64", U8, EVEN, CLAMP, "18446744073709551615"},
    {F8, "-1e300", I8, EVEN, CLAMP, "-9223372036854775808"},
    {F8, "0x1.0000000000001p60", I8, EVEN, ERROR, "1152921504606847232"},
    {F8, "0x1p70", U1, EVEN, WRAP, "0"},
    {F8, "-0x1.8p64", U8, EVEN, WRAP, "9223372036854775808"},
    {F4, "-257", U1, EVEN, WRAP, "255"},
    {F2, "65504", U2, EVEN, ERROR, "65504"},
    /* integers to floats */
    {I4, "16777217", F4, EVEN, ERROR, "16777216"},
    {I4, "16777217", F4, UP, ERROR, "16777218"},
    {I4, "16777217", F4, AWAY, ERROR, "16777218"},
    {I4, "-16777217", F4, UP, ERROR, "-16777216"},
    {I4, "-16777217", F4, DOWN, ERROR, "-16777218"},
    {I4, "16777219", F4, EVEN, ERROR, "16777220"},
    {I4, "16777219", F4, ZERO, ERROR, "16777218"},
    {U8, "18446744073709551615", F8, EVEN, ERROR, "0x1p64"},
    {U8, "18446744073709551615", F8, ZERO, ERROR, "0x1.fffffffffffffp63"},
    {I8, "9007199254740993", F8, EVEN, ERROR, "9007199254740992"},
    {I8, "9007199254740993", F8, UP, ERROR, "9007199254740994"},
    {I4, "70000", F2, EVEN, ERROR, NULL},
    {I4, "70000", F2, EVEN, CLAMP, "inf"},
    {I4, "-70000", F2, EVEN, CLAMP, "-inf"},
    {I4, "65519", F2, EVEN, ERROR, "65504"},
    {I4, "65520", F2, EVEN, ERROR, NULL},
    {I4, "0", F2, EVEN, ERROR, "0"},
    /* floats */
    {F8, "-0", F4, EVEN, ERROR, "-0"},
    {F8, "nan", F4, EVEN, ERROR, "nan"},
    {F8, "-inf", F2, EVEN, ERROR, "-inf"},
    {F8, "0.1", F4, EVEN, ERROR, "0x1.99999ap-4"},
    {F8, "0.1", F4, DOWN, ERROR, "0x1.999998p-4"},
    {F8, "-0.1", F4, UP, ERROR, "-0x1.999998p-4"},
    {F8, "0x1.000001p0", F4, EVEN, ERROR, "1"},
    {F8, "0x1.000003p0", F4, EVEN, ERROR, "0x1.000004p0"},
    {F8, "0x1.000001p0", F4, AWAY, ERROR, "0x1.000002p0"},
    {F8, "1e39", F4, EVEN, ERROR, NULL},
    {F8, "1e39", F4, EVEN, CLAMP, "inf"},
    {F8, "1e39", F4, ZERO, ERROR, NULL},
    {F8, "0x1.fffffefp127", F4, EVEN, ERROR, "0x1.fffffep127"},
    {F8, "0x1.ffffffp127", F4, EVEN, ERROR, NULL},
    {F8, "0x1.ffffffp127", F4, ZERO, ERROR, "0x1.fffffep127"},
    {F8, "0x1p-149", F4, EVEN, ERROR, "0x1p-149"},
    {F8, "0x1p-150", F4, EVEN, ERROR, "0"},
    {F8, "0x1p-150", F4, UP, ERROR, "0x1p-149"},
    {F8, "0x1.8p-150", F4, EVEN, ERROR, "0x1p-149"},
    {F8, "0x1p-1074", F4, EVEN, ERROR, "0"},
    {F8, "0x1p-1074", F4, UP, ERROR, "0x1p-149"},
    {F8, "-0x1p-1074", F4, DOWN, ERROR, "-0x1p-149"},
    {F8, "-0x1p-1074", F4, EVEN, ERROR, "-0"},
    {F8, "0x1p-1074", F8, EVEN, ERROR, "0x1p-1074"},
    {F4, "0x1p-149", F8, EVEN, ERROR, "0x1p-149"},
    {F8, "0x1p-24", F2, EVEN, ERROR, "0x1p-24"},
    {F8, "0x1.8p-25", F2, ZERO, ERROR, "0"},
};

/* One element through SPEC, encoded or decoded; the status. */
static int run(const cm_codec_spec *spec, const cm_dtype *type, bool decode, const uint8_t *in,
               uint8_t out[8], cm_error *err)
{
    cm_chain *chain = NULL;
    cm_codec_ctx *ctx = cm_codec_ctx_create(err);
    if (!ctx || cm_chain_create(spec, 1, type, 0, NULL, &chain, err))
        fail_msg("%s", err->text);
    size_t n = 0;
    memset(out, 0, 8);
    int rc = decode ? cm_chain_decode(chain, ctx, in, cm_chain_encoded_bound(chain), 0, out, err)
                    : cm_chain_encode(chain, ctx, in, out, &n, err);
    cm_chain_free(chain);
    cm_codec_ctx_free(ctx);
    return rc;
}

static bool same(const cm_dtype *t, const uint8_t *a, const uint8_t *b)
{
    if (t->kind == CM_KIND_FLOAT && t->nbytes == 8) {
        double x, y;
        memcpy(&x, a, 8);
        memcpy(&y, b, 8);
        if (isnan(x) && isnan(y))
            return true;
    }
    if (t->kind == CM_KIND_FLOAT && t->nbytes == 4) {
        float x, y;
        memcpy(&x, a, 4);
        memcpy(&y, b, 4);
        if (isnan(x) && isnan(y))
            return true;
    }
    return memcmp(a, b, 8) == 0;
}

static void test_cast(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof casts / sizeof casts[0]; i++) {
        const struct cast_row *r = &casts[i];
        /* Decoding is the same with the types exchanged. */
        for (int decode = 0; decode < 2; decode++) {
            if (decode && r->range == WRAP && r->from.kind == CM_KIND_FLOAT)
                continue; /* `data_type` must be an integer then */
            cm_cast_spec cast = {.to = decode ? r->from : r->to};
            cast.rounding = r->rounding;
            cast.out_of_range = r->range;
            cm_codec_spec spec = {.id = CM_CODEC_CAST_VALUE, .cast = &cast};
            uint8_t in[8], out[8], want[8];
            cm_error err = {0};
            element_of(&r->from, r->value, in);
            int rc = run(&spec, decode ? &r->to : &r->from, decode, in, out, &err);
            if (!r->want) {
                if (rc != CM_EFORMAT)
                    fail_msg("row %zu, %s: no error", i, r->value);
                continue;
            }
            element_of(&r->to, r->want, want);
            if (rc || !same(&r->to, out, want))
                fail_msg("row %zu, %s: not %s; %s", i, r->value, r->want, err.text);
        }
    }
}

static void test_scalar_map(void **state)
{
    (void)state;
    cm_cast_pair encode_map[3] = {0}, decode_map[1] = {0};
    cm_dtype f8 = F8, u1 = U1;
    element_of(&f8, "nan", encode_map[0].from);
    element_of(&u1, "255", encode_map[0].to);
    element_of(&f8, "-1", encode_map[1].from);
    element_of(&u1, "7", encode_map[1].to);
    element_of(&f8, "-1", encode_map[2].from); /* the first of two counts */
    element_of(&u1, "8", encode_map[2].to);
    element_of(&u1, "255", decode_map[0].from);
    element_of(&f8, "nan", decode_map[0].to);
    cm_cast_spec cast = {.to = U1,
                         .encode_map = encode_map,
                         .nencode_map = 3,
                         .decode_map = decode_map,
                         .ndecode_map = 1};
    cm_codec_spec spec = {.id = CM_CODEC_CAST_VALUE, .cast = &cast};
    static const struct {
        const char *in, *out;
    } rows[] = {{"nan", "255"}, {"-nan", "255"}, {"-1", "7"}, {"3", "3"}};
    uint8_t in[8], out[8], want[8];
    cm_error err = {0};
    for (size_t i = 0; i < 4; i++) {
        element_of(&f8, rows[i].in, in);
        element_of(&u1, rows[i].out, want);
        assert_int_equal(run(&spec, &f8, false, in, out, &err), CM_OK);
        assert_memory_equal(out, want, 8);
    }
    element_of(&u1, "255", in);
    element_of(&f8, "nan", want);
    assert_int_equal(run(&spec, &f8, true, in, out, &err), CM_OK);
    assert_true(same(&f8, out, want));
}

static const struct scale_row {
    cm_dtype type;
    const char *scale, *offset, *value, *want; /* NULL: an error */
    bool back;                                 /* decoding gives the value again */
} scalings[] = {
    {U2, "1", "1000", "1255", "255", true},
    {U2, "1", "1000", "999", NULL, false},
    {I2, "3", "-5", "7", "36", true},
    {I2, "3", "-5", "32767", NULL, false},
    {I2, "3", "0", "10923", NULL, false},
    {I1, "-1", "0", "-128", NULL, false},
    {I8, "2", "0", "4611686018427387904", NULL, false},
    {U8, "1", "0", "18446744073709551615", "18446744073709551615", true},
    {F4, "0.5", "5", "8", "1.5", true},
    {F8, "0.1", "-10", "2540", "255", true},
    {F8, "0.1", "-10", "nan", "nan", true},
    {F2, "0.25", "1", "3", "0.5", true},
};

static void test_scale_offset(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scalings / sizeof scalings[0]; i++) {
        const struct scale_row *r = &scalings[i];
        cm_codec_spec spec = {.id = CM_CODEC_SCALE_OFFSET};
        uint8_t in[8], out[8], want[8], back[8];
        cm_error err = {0};
        element_of(&r->type, r->scale, spec.exact_scale);
        element_of(&r->type, r->offset, spec.exact_offset);
        element_of(&r->type, r->value, in);
        int rc = run(&spec, &r->type, false, in, out, &err);
        if (!r->want) {
            assert_int_equal(rc, CM_EFORMAT);
            continue;
        }
        element_of(&r->type, r->want, want);
        if (rc || !same(&r->type, out, want))
            fail_msg("row %zu: %s", i, err.text);
        assert_int_equal(run(&spec, &r->type, true, out, back, &err), CM_OK);
        if (r->back && !same(&r->type, back, in))
            fail_msg("row %zu: not restored", i);
    }
    /* A quotient that is no integer cannot be decoded, nor one that overflows. */
    static const struct {
        cm_dtype type;
        const char *scale, *offset, *stored;
    } bad[] = {{I2, "3", "0", "7"}, {I1, "-1", "0", "-128"}, {U1, "1", "200", "100"}};
    for (size_t i = 0; i < 3; i++) {
        cm_codec_spec spec = {.id = CM_CODEC_SCALE_OFFSET};
        uint8_t in[8], out[8];
        cm_error err = {0};
        element_of(&bad[i].type, bad[i].scale, spec.exact_scale);
        element_of(&bad[i].type, bad[i].offset, spec.exact_offset);
        element_of(&bad[i].type, bad[i].stored, in);
        assert_int_equal(run(&spec, &bad[i].type, true, in, out, &err), CM_EFORMAT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cast),
                                       cmocka_unit_test(test_scalar_map),
                                       cmocka_unit_test(test_scale_offset)};
    return cmocka_run_group_tests_name("cast_value and scale_offset", tests, NULL, NULL);
}
