/* Decoding for verification: the rules by which xarray shows a file, and a store. */

#include "../unit.h"
#include "convert/verify/decoding.h"

/* A variable of one element, as attributes say it. */
typedef struct said {
    cm_kind kind;
    unsigned nbytes;
    const char *attrs;
    double value;
    bool has_fill;
    double fill;
} said;

static void put(const cm_dtype *t, double value, uint8_t *out)
{
    const int64_t whole = (int64_t)value;
    const float narrow = (float)value;
    if (t->kind != CM_KIND_FLOAT)
        memcpy(out, &whole, t->nbytes);
    else if (t->nbytes == 4)
        memcpy(out, &narrow, sizeof narrow);
    else
        memcpy(out, &value, sizeof value);
}

static void understand(const said *s, cm_decoding *m, cm_json **attrs, uint8_t *element)
{
    uint8_t fill[16] = {0};
    const cm_dtype type = cm_dtype_make(s->kind, s->nbytes);
    *attrs = NULL;
    assert_int_equal(cm_json_parse(s->attrs, strlen(s->attrs), attrs, NULL), CM_OK);
    put(&type, s->value, element);
    put(&type, s->fill, fill);
    const cm_decoding_of of = {.dtype = type, .attrs = *attrs, .fill = s->has_fill ? fill : NULL};
    assert_int_equal(cm_decoding_read(&of, m, NULL), CM_OK);
}

typedef struct shown {
    const char *what;
    said said;
    const char *text; /* what a reader sees */
} shown;

#define I1 CM_KIND_INT, 1
#define I2 CM_KIND_INT, 2
#define I4 CM_KIND_INT, 4
#define I8 CM_KIND_INT, 8
#define U1 CM_KIND_UINT, 1
#define F4 CM_KIND_FLOAT, 4
#define F8 CM_KIND_FLOAT, 8

static const shown SHOWN[] = {
    {"a number", {I2, "{}", 7, false, 0}, "7"},
    {"its fill value", {I2, "{}", -1, true, -1}, "missing"},
    {"another number", {I2, "{}", -2, true, -1}, "-2"},
    {"missing_value beside a fill value", {I2, "{\"missing_value\": -9}", -9, true, -1}, "missing"},
    {"the second of several", {F8, "{\"missing_value\": [1, -999.0]}", -999, false, 0}, "missing"},
    {"missing_value of double precision",
     {F4, "{\"missing_value\": 0.1}", 0.1, false, 0},
     "0.10000000149011612"},
    {"missing_value of single precision",
     {F4, "{\"missing_value\": 0.10000000149011612}", 0.1, false, 0},
     "missing"},
    {"NaN", {F8, "{}", __builtin_nan(""), false, 0}, "missing"},
    {"packed", {I2, "{\"scale_factor\": 0.5, \"add_offset\": 10}", 3, false, 0}, "11.5"},
    {"an offset alone", {I2, "{\"add_offset\": 0.25}", 3, false, 0}, "3.25"},
    {"packed and missing", {I2, "{\"scale_factor\": 0.5}", -1, true, -1}, "missing"},
    {"unsigned", {I1, "{\"_Unsigned\": \"true\", \"scale_factor\": 2.0}", -1, false, 0}, "510"},
    {"unsigned, its fill value", {I1, "{\"_Unsigned\": \"true\"}", -1, true, -1}, "missing"},
    {"unsigned, missing_value with a sign",
     {I1, "{\"_Unsigned\": \"true\", \"missing_value\": -2}", -2, false, 0},
     "-2"},
    {"unsigned, missing_value without",
     {I1, "{\"_Unsigned\": \"true\", \"missing_value\": 254}", -2, false, 0},
     "missing"},
    {"signed", {U1, "{\"_Unsigned\": \"false\", \"scale_factor\": 1.0}", 255, false, 0}, "-1"},
    {"a date", {I4, "{\"units\": \"days since 2000-02-28\"}", 1, false, 0}, "2000-02-29T00:00:00"},
    {"of another calendar",
     {I4, "{\"units\": \"days since 2000-02-28\", \"calendar\": \"noleap\"}", 1, false, 0},
     "2000-03-01T00:00:00"},
    {"a packed date",
     {I2, "{\"units\": \"hours since 2000-01-01\", \"scale_factor\": 0.5}", 5, false, 0},
     "2000-01-01T02:30:00"},
    {"a missing date",
     {I4, "{\"units\": \"days since 2000-01-01\", \"missing_value\": -999}", -999, false, 0},
     "missing"},
};

static void shows_what_readers_see(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(SHOWN); i++) {
        cm_decoding m;
        cm_json *attrs;
        uint8_t element[16] = {0};
        char text[64];
        understand(&SHOWN[i].said, &m, &attrs, element);
        if (strcmp(cm_decoding_text(&m, element, text, sizeof text), SHOWN[i].text) != 0)
            fail_msg("%s: %s, not %s", SHOWN[i].what, text, SHOWN[i].text);
        cm_json_free(attrs);
    }
}

typedef struct pair {
    const char *what;
    said file, store;
    cm_decoding_leeway leeway;
    bool same;
} pair;

#define JANUARY  "{\"units\": \"days since 2000-01-01\"}"
#define FEBRUARY "{\"units\": \"days since 2000-02-01\"}"
#define NANOS    "{\"units\": \"nanoseconds since 2000-01-01\"}"
#define HALVES   "{\"scale_factor\": 0.5}"
#define NARROW   "{\"scale_factor\": 0.1}"

static const pair PAIRS[] = {
    {"one number of two types", {I2, "{}", 3, 0, 0}, {F8, "{}", 3, 0, 0}, {0, 0}, true},
    {"two numbers", {I2, "{}", 3, 0, 0}, {I2, "{}", 4, 0, 0}, {0, 0}, false},
    {"two missing ones", {I2, "{}", -1, 1, -1}, {F4, "{}", -9, 1, -9}, {0, 0}, true},
    {"one is missing", {I2, "{}", -1, 1, -1}, {I2, "{}", -1, 1, -2}, {0, 0}, false},
    {"one number of two dates", {I4, JANUARY, 0, 0, 0}, {I4, FEBRUARY, 0, 0, 0}, {0, 0}, false},
    {"one date", {I4, JANUARY, 31, 0, 0}, {F8, FEBRUARY, 0, 0, 0}, {0, 0}, true},
    {"a nanosecond apart", {I8, NANOS, 1, 0, 0}, {I8, NANOS, 2, 0, 0}, {0, 0}, false},
    {"days that are rounded", {F8, JANUARY, 1 + 1e-11, 0, 0}, {I4, JANUARY, 1, 0, 0}, {0, 0}, true},
    {"days and a number", {I4, JANUARY, 1, 0, 0}, {I4, "{}", 1, 0, 0}, {0, 0}, false},
    {"unpacked", {I2, HALVES, 3, 0, 0}, {F4, "{}", 1.5, 0, 0}, {0, 0}, true},
    {"unpacked and rounded", {I2, NARROW, 3, 0, 0}, {F4, "{}", 0.3, 0, 0}, {0, 0}, true},
    {"left packed", {I2, HALVES, 3, 0, 0}, {I2, "{}", 3, 0, 0}, {0, 0}, false},
    {"apart", {F8, "{}", 1, 0, 0}, {F8, "{}", 1.5, 0, 0}, {0.25, 0}, false},
    {"within the tolerance", {F8, "{}", 1, 0, 0}, {F8, "{}", 1.5, 0, 0}, {0.5, 0}, true},
    {"not as precise", {F8, "{}", 0.1, 0, 0}, {F4, "{}", 0.1, 0, 0}, {0, 0}, false},
    {"cast", {F8, "{}", 0.1, 0, 0}, {F4, "{}", 0.1, 0, 0}, {0, 1}, true},
    {"rounded to even", {F8, "{}", 2.5, 0, 0}, {I2, "{}", 2, 0, 0}, {0, 1}, true},
    {"cast to another", {F8, "{}", 2.75, 0, 0}, {I2, "{}", 2, 0, 0}, {0, 1}, false},
};

static void knows_what_is_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(PAIRS); i++) {
        const pair *p = &PAIRS[i];
        cm_decoding file, store;
        cm_json *attrs[2];
        uint8_t element[2][16] = {{0}};
        cm_decoded a, b;
        understand(&p->file, &file, &attrs[0], element[0]);
        understand(&p->store, &store, &attrs[1], element[1]);
        cm_decoded_read(&file, element[0], &a);
        cm_decoded_read(&store, element[1], &b);
        if (cm_decoded_same(&file, &a, &store, &b, &p->leeway) != p->same)
            fail_msg("%s: are %s", p->what, p->same ? "the same" : "not the same");
        /* Like decodings allow comparing bytes. */
        if (cm_decoding_alike(&file, &store) && p->leeway.tolerance == 0)
            assert_int_equal(memcmp(element[0], element[1], file.dtype.nbytes) == 0, p->same);
        cm_json_free(attrs[0]);
        cm_json_free(attrs[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_what_readers_see),
        cmocka_unit_test(knows_what_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
