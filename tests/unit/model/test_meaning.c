#include <math.h>

#include "../unit.h"
#include "model/meaning.h"

/* Elements are given as doubles, and stored in the type. */
typedef struct how {
    const char *type, *units, *sign; /* NULL: none */
    unsigned nmissing;
    double missing[2];
    bool packed, single;
    double scale, offset;
} how;

static void store(const cm_dtype *t, double x, uint8_t *out)
{
    const float f = (float)x;
    const int64_t i = x < 0x1p63 ? (int64_t)x : (int64_t)(uint64_t)x;
    memcpy(out,
           t->kind != CM_KIND_FLOAT ? (const void *)&i
           : t->nbytes == 4         ? (const void *)&f
                                    : &x,
           t->nbytes);
}

static cm_reading read_as(const how *h)
{
    cm_reading r = {
        .packed = h->packed, .single = h->single, .scale = h->scale, .offset = h->offset};
    assert_int_equal(cm_dtype_parse(h->type, &r.dtype, NULL), CM_OK);
    r.kind = r.dtype.kind;
    if (h->sign != NULL)
        r.kind = strcmp(h->sign, "true") == 0 ? CM_KIND_UINT : CM_KIND_INT;
    r.is_time = h->units != NULL;
    if (r.is_time)
        assert_int_equal(cm_time_axis_parse(h->units, NULL, &r.axis, NULL), CM_OK);
    for (unsigned i = 0; i < h->nmissing; i++)
        cm_reading_add_missing(&r, h->missing[i]);
    return r;
}

static cm_meaning meant(const how *h, double x)
{
    cm_meaning m;
    uint8_t element[8] = {0};
    const cm_reading r = read_as(h);
    store(&r.dtype, x, element);
    cm_reading_means(&r, element, &m);
    return m;
}

#define DAYS "days since 2000-01-01"

static void test_text(void **state)
{
    static const struct {
        how how;
        double element;
        const char *text;
    } CASES[] = {
        {{.type = "int32"}, -7, "-7"},
        {{.type = "uint64"}, 0x1p63, "9223372036854775808"},
        {{.type = "int8", .sign = "true"}, -1, "255"},
        {{.type = "uint8", .sign = "false"}, 255, "-1"},
        {{.type = "float64"}, 0.5, "0.5"},
        {{.type = "float32"}, NAN, "missing"},
        {{.type = "int16", .nmissing = 1, .missing = {-999}}, -999, "missing"},
        {{.type = "int16", .nmissing = 2, .missing = {-999, -1}}, -1, "missing"},
        {{.type = "int16", .nmissing = 1, .missing = {-999.5}}, -999, "-999"},
        {{.type = "float32", .nmissing = 1, .missing = {0}}, -0.0, "missing"},
        {{.type = "float32", .nmissing = 1, .missing = {-999.9}}, -999.9, "-999.9000244140625"},
        {{.type = "int16", .packed = true, .scale = 0.5, .offset = 1}, 3, "2.5"},
        {{.type = "int8", .sign = "true", .packed = true, .scale = 0.5}, -1, "127.5"},
        {{.type = "int16", .packed = true, .scale = 0.5, .nmissing = 1, .missing = {3}},
         3,
         "missing"},
        {{.type = "int32", .units = DAYS}, 31, "2000-02-01T00:00:00"},
        {{.type = "float64", .units = DAYS}, 0.25, "2000-01-01T06:00:00"},
        {{.type = "int16", .units = DAYS, .packed = true, .scale = 0.5}, 3, "2000-01-02T12:00:00"},
        {{.type = "int32", .units = DAYS, .nmissing = 1, .missing = {-999}}, -999, "missing"},
        {{.type = "float64", .units = DAYS}, 1e300, "a time out of range"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        char text[64];
        const cm_reading r = read_as(&CASES[i].how);
        const cm_meaning m = meant(&CASES[i].how, CASES[i].element);
        assert_string_equal(cm_meaning_text(&r, &m, text, sizeof(text)), CASES[i].text);
    }
}

static void test_equal(void **state)
{
    static const struct {
        how a;
        double x;
        how b;
        double y;
        bool equal;
    } CASES[] = {
        {{.type = "int32"}, 5, {.type = "float64"}, 5, true},
        {{.type = "int32"}, 5, {.type = "float64"}, 5.5, false},
        {{.type = "int32"}, 0, {.type = "float64"}, -0.0, false},
        {{.type = "float32"}, 0, {.type = "float32"}, -0.0, false},
        {{.type = "float32"}, 0.5, {.type = "float64"}, 0.5, true},
        {{.type = "float32"}, 0.1, {.type = "float64"}, 0.1, false},
        {{.type = "int64"}, -1, {.type = "uint64"}, 0x1p64 - 2048, false},
        {{.type = "uint64"}, 0x1p63, {.type = "float64"}, 0x1p63, true},
        {{.type = "int16", .packed = true, .scale = 0.5},
         8,
         {.type = "int16", .packed = true, .scale = 2},
         2,
         true},
        {{.type = "int16", .packed = true, .scale = 0.5},
         8,
         {.type = "int16", .packed = true, .scale = 2},
         8,
         false},
        {{.type = "int16", .packed = true, .scale = 0.5}, 8, {.type = "int32"}, 4, true},
        {{.type = "int16", .nmissing = 1, .missing = {-1}},
         -1,
         {.type = "int16", .nmissing = 1, .missing = {-2}},
         -2,
         true},
        {{.type = "int16", .nmissing = 1, .missing = {-1}},
         -1,
         {.type = "int16", .nmissing = 1, .missing = {-2}},
         -1,
         false},
        {{.type = "int16", .nmissing = 1, .missing = {-1}}, -1, {.type = "float32"}, NAN, true},
        {{.type = "int32", .units = DAYS},
         1,
         {.type = "float64", .units = "hours since 2000-01-01"},
         24,
         true},
        {{.type = "int32", .units = DAYS},
         1,
         {.type = "int32", .units = "days since 2000-01-03"},
         1,
         false},
        {{.type = "int32", .units = DAYS}, 1, {.type = "int32"}, 1, false},
        {{.type = "float64", .units = DAYS},
         1e300,
         {.type = "float64", .units = DAYS},
         1e301,
         false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        const cm_meaning a = meant(&CASES[i].a, CASES[i].x), b = meant(&CASES[i].b, CASES[i].y);
        if (cm_meaning_equal(&a, &b) != CASES[i].equal ||
            cm_meaning_equal(&b, &a) != CASES[i].equal)
            fail_msg("case %d", (int)i);
    }
}

static void test_first_that_differs(void **state)
{
    (void)state;
    const cm_reading a = read_as(&(how){.type = "int16", .nmissing = 1, .missing = {-1}});
    const cm_reading b = read_as(&(how){.type = "int32", .nmissing = 1, .missing = {-2}});
    const int16_t x[] = {1, -1, 3, -2};
    const int32_t same[] = {1, -2, 3}, other[] = {1, -2, 3, -2};
    assert_int_equal(cm_meanings_differ(&a, x, &b, same, 3), 3);
    assert_int_equal(cm_meanings_differ(&a, x, &b, other, 4), 3);
    assert_int_equal(cm_meanings_differ(&a, x, &a, x, 4), 4);
    assert_int_equal(cm_meanings_differ(&a, NULL, &b, NULL, 0), 0);
}

static void test_distance(void **state)
{
    (void)state;
    const cm_meaning day = meant(&(how){.type = "int32", .units = DAYS}, 1);
    const cm_meaning later = meant(&(how){.type = "int32", .units = "hours since 2000-01-02"}, 1);
    const cm_meaning two = meant(&(how){.type = "int32"}, 2),
                     half = meant(&(how){.type = "float32"}, 0.5);
    const cm_meaning nothing = {.kind = CM_MEANS_NOTHING};
    assert_true(cm_meaning_distance(&day, &later) == 3600);
    assert_true(cm_meaning_distance(&two, &half) == 1.5);
    assert_true(cm_meaning_distance(&nothing, &nothing) == 0);
    assert_true(isinf(cm_meaning_distance(&two, &nothing)));
    assert_true(isinf(cm_meaning_distance(&two, &day)));
}

static void test_numbers_are_packed_exactly_or_not_at_all(void **state)
{
    (void)state;
    const cm_reading r =
        read_as(&(how){.type = "int16", .packed = true, .scale = 0.5, .offset = 10});
    int16_t element = 0;
    assert_true(cm_reading_store_number(&r, 12.5, &element));
    assert_int_equal(element, 5);
    assert_false(cm_reading_store_number(&r, 12.25, &element));
    assert_false(cm_reading_store_number(&r, 1e9, &element));
    assert_false(cm_reading_store_number(&r, NAN, &element));
    const cm_reading missing = read_as(
        &(how){.type = "int16", .packed = true, .scale = 0.5, .nmissing = 1, .missing = {5}});
    assert_false(cm_reading_store_number(&missing, 2.5, &element));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_first_that_differs),
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_numbers_are_packed_exactly_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
