#include <math.h>
#include <stdio.h>

#include "../unit.h"
#include "base/json.h"

static cm_json *parse(const char *text)
{
    cm_error err = {0};
    cm_json *j = NULL;
    if (cm_json_parse(text, strlen(text), &j, &err))
        fail_msg("'%s': %s", text, err.text);
    return j;
}

/* The text of J in a buffer of the caller's. */
static char *text_of(const cm_json *j, bool pretty, char *text, size_t size)
{
    cm_buf buf = {0};
    cm_error err = {0};
    assert_int_equal(cm_json_write(j, pretty, &buf, &err), CM_OK);
    assert_true(buf.nbytes < size);
    memcpy(text, buf.data, buf.nbytes);
    text[buf.nbytes] = 0;
    cm_buf_release(&buf);
    return text;
}

/* A list outlives the object that it was parsed in. */
static void test_share(void **state)
{
    char text[64];
    (void)state;
    cm_json *j = parse("{\"a\": [1, 2, {\"b\": null}], \"c\": 3}");
    cm_json *shared = cm_json_share(cm_json_member(j, "a"));
    cm_json *other = cm_json_object();
    assert_int_equal(cm_json_set(other, "d", cm_json_share(shared), NULL), CM_OK);
    cm_json_free(j);
    assert_string_equal(text_of(shared, false, text, sizeof text), "[1,2,{\"b\":null}]");
    cm_json_free(shared);
    assert_string_equal(text_of(other, false, text, sizeof text), "{\"d\":[1,2,{\"b\":null}]}");
    cm_json_free(other);
    assert_null(cm_json_share(NULL));
}

static void test_round_trip(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } ROW[] = {
        {"null", "null"},
        {" true\n", "true"},
        {"[false,0,-1]", "[false,0,-1]"},
        {"18446744073709551615", "18446744073709551615"},
        {"9223372036854775808", "9223372036854775808"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"1.0", "1.0"},
        {"1e3", "1000.0"},
        {"-0.0", "-0.0"},
        {"0.1", "0.1"},
        {"1e-5", "1e-05"},
        {"9.969209968386869e+36", "9.969209968386869e+36"},
        {"[NaN, Infinity, -Infinity]", "[\"NaN\",\"Infinity\",\"-Infinity\"]"},
        {"NaN", "\"NaN\""},
        {"-Infinity", "\"-Infinity\""},
        {"100000000000000000000", "1e+20"},
        {"[18446744073709551616,-100000000000000000000, 7]", "[1.8446744073709552e+19,-1e+20,7]"},
        {"{\"99999999999999999999\":\"\\\"99999999999999999999\"}",
         "{\"99999999999999999999\":\"\\\"99999999999999999999\"}"},
        {"[0.10000000000000000000000000001,1e0000000000000000000000000000001]", "[0.1,10.0]"},
        {"{\"z\":1,\"a\":{\"m\":[]},\"k\":{}}", "{\"z\":1,\"a\":{\"m\":[]},\"k\":{}}"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"},
        {"\"\\u00e9\\ud83d\\ude00\"", "\"\xC3\xA9\xF0\x9F\x98\x80\""},
        {"{\"\xC3\xA9\":[\"\xE2\x82\xAC\\n\xF0\x9F\x98\x80z\",100000000000000000000,\"\xC2\xBA\"]}",
         "{\"\xC3\xA9\":[\"\xE2\x82\xAC\\n\xF0\x9F\x98\x80z\",1e+20,\"\xC2\xBA\"]}"},
        {"\"a\\u0000b\\u001f\\n\\\\\\/\"", "\"a\\u0000b\\u001f\\n\\\\/\""},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        char text[256];
        cm_json *j = parse(ROW[i].in);
        assert_string_equal(text_of(j, false, text, sizeof text), ROW[i].out);
        cm_json_free(j);
    }
}

static void test_bad_input(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        size_t nbytes, offset;
    } ROW[] = {
        {"nothing", "", 0, 0},
        {"only space", "  ", 2, 2},
        {"cut short", "{\"a\": [1", 8, 8},
        {"no value", "{\"a\":}", 6, 5},
        {"a second value", "1 2", 3, 2},
        {"a second value behind space", "[1]  x", 6, 5},
        {"trailing comma", "[1,]", 4, 3},
        {"comment", "/* */1", 6, 0},
        {"single quotes", "'a'", 3, 0},
        {"letters outside of strings", "[1,\xC3\xA9]", 6, 3},
        {"byte order mark", "\xEF\xBB\xBF{}", 5, 0},
        {"letters behind the value", "[1]\xC3\xA9", 5, 3},
        {"trailing comma behind letters", "[\"\xC3\xA9\",]", 7, 6},
        {"string without end", "[\"\xC3\xA9", 4, 4},
        {"control character in a string", "[\"a\n\"]", 6, 3},
        {"control character in a name", "{\"\x17\":1}", 7, 2},
        {"control character behind an escape", "[\"\\\"\t\"]", 7, 4},
        {"half of a surrogate pair", "[\"\\ud800\"]", 10, 2},
        {"second half alone", "[\"a\\\\\\udc00\"]", 13, 5},
        {"two first halves", "[\"\\uD83D\\ud83d\"]", 16, 2},
        {"half of a pair in a name", "{\"\\uDFFF\":1}", 12, 2},
        {"bytes that are not UTF-8", "[\"caf\xE9\"]", 8, 5},
        {"NUL", "[1,\0 2]", 7, 3},
        {"NUL at the end", "1\0", 2, 1},
        {"lower-case nan", "nan", 3, 1},
        {"no JSON", "<html>", 6, 0},
        {"integer above 64 bits", "[1, 18446744073709551617]", 25, 4},
        {"integer below 64 bits", "-9223372036854775809", 20, 1},
        {"integer of many digits",
         "{\"a\":123456789012345678901234567890123456789012345678901234567890}", 66, 5},
        {"after a number made double", "[100000000000000000000,!]", 25, 23},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        char expected[32];
        cm_error err = {0};
        cm_json *j = (cm_json *)&err;
        /* A copy of the exact size lets a sanitizer see a byte read too far. */
        char *text = malloc(ROW[i].nbytes ? ROW[i].nbytes : 1);
        assert_non_null(text);
        memcpy(text, ROW[i].text, ROW[i].nbytes);
        print_message("  %s\n", ROW[i].name);
        assert_int_equal(cm_json_parse(text, ROW[i].nbytes, &j, &err), CM_EFORMAT);
        free(text);
        assert_null(j);
        snprintf(expected, sizeof expected, "byte %zu", ROW[i].offset);
        if (!strstr(err.text, expected))
            fail_msg("'%s' lacks '%s'", err.text, expected);
    }
}

static void test_depth(void **state)
{
    (void)state;
    /* One level too many around a 1; without the outermost brackets it is just right. */
    enum {
        N = CM_JSON_MAX_DEPTH + 1
    };
    char text[2 * N + 1];
    cm_error err = {0};
    cm_json *j = NULL;
    cm_buf buf = {0};
    memset(text, '[', N);
    text[N] = '1';
    memset(text + N + 1, ']', N);
    assert_int_equal(cm_json_parse(text, sizeof text, &j, &err), CM_EFORMAT);
    assert_int_equal(cm_json_parse(text + 1, sizeof text - 2, &j, &err), CM_OK);
    assert_int_equal(cm_json_write(j, false, &buf, &err), CM_OK);
    assert_int_equal(buf.nbytes, sizeof text - 2);
    assert_memory_equal(buf.data, text + 1, buf.nbytes);

    cm_json *deeper = cm_json_array();
    assert_int_equal(cm_json_append(deeper, j, &err), CM_OK);
    assert_int_equal(cm_json_write(deeper, false, &buf, &err), CM_EINVAL);
    cm_json_free(deeper);
    cm_buf_release(&buf);
}

static void test_pretty(void **state)
{
    (void)state;
    char text[256];
    cm_json *j = parse("{\"a\":[1,{\"b\":null}],\"c\":[],\"d\":{}}");
    assert_string_equal(text_of(j, true, text, sizeof text), "{\n"
                                                             "  \"a\": [\n"
                                                             "    1,\n"
                                                             "    {\n"
                                                             "      \"b\": null\n"
                                                             "    }\n"
                                                             "  ],\n"
                                                             "  \"c\": [],\n"
                                                             "  \"d\": {}\n"
                                                             "}");
    cm_json_free(j);
}

static void test_bad_utf8_is_replaced(void **state)
{
    (void)state;
#define FFFD "\xEF\xBF\xBD"
    static const struct {
        const char *name, *in, *out;
    } ROW[] = {
        {"Latin-1", "caf\xE9!", "caf" FFFD "!"},
        {"cut at the end", "x\xE2\x82", "x" FFFD},
        {"overlong", "\xC0\xAF", FFFD FFFD},
        {"overlong of three", "\xE0\x80\xAF", FFFD FFFD FFFD},
        {"surrogate", "\xED\xA0\x80", FFFD FFFD FFFD},
        {"above U+10FFFF", "\xF4\x90\x80\x80", FFFD FFFD FFFD FFFD},
        {"continuation alone", "a\x80z", "a" FFFD "z"},
        {"fine", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F",
         "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F"},
        {"last valid", "\xF4\x8F\xBF\xBF\xED\x9F\xBF", "\xF4\x8F\xBF\xBF\xED\x9F\xBF"},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        char text[64], expected[64];
        cm_json *j = cm_json_string(ROW[i].in);
        print_message("  %s\n", ROW[i].name);
        snprintf(expected, sizeof expected, "\"%s\"", ROW[i].out);
        assert_string_equal(text_of(j, false, text, sizeof text), expected);
        cm_json_free(j);
    }
}

static void test_reading_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool u_ok, i_ok, d_ok;
        uint64_t u;
        int64_t i;
        double d;
    } ROW[] = {
        {"5", true, true, true, 5, 5, 5},
        {"-5", false, true, true, 0, -5, -5},
        {"9223372036854775807", true, true, true, INT64_MAX, INT64_MAX, 0x1p63},
        {"9223372036854775808", true, false, true, UINT64_C(1) << 63, 0, 0x1p63},
        {"18446744073709551615", true, false, true, UINT64_MAX, 0, 0x1p64},
        {"-9223372036854775808", false, true, true, 0, INT64_MIN, -0x1p63},
        {"1.0", false, false, true, 0, 0, 1},
        {"-Infinity", false, false, true, 0, 0, -INFINITY},
        {"\"5\"", false, false, false, 0, 0, 0},
        {"true", false, false, false, 0, 0, 0},
        {"null", false, false, false, 0, 0, 0},
        {"[5]", false, false, false, 0, 0, 0},
    };
    for (size_t k = 0; k < sizeof ROW / sizeof *ROW; k++) {
        cm_json *j = parse(ROW[k].text);
        uint64_t u = 77;
        int64_t i = 77;
        double d = 77;
        print_message("  %s\n", ROW[k].text);
        assert_int_equal(cm_json_get_u64(j, &u), ROW[k].u_ok);
        assert_true(u == (ROW[k].u_ok ? ROW[k].u : 77));
        assert_int_equal(cm_json_get_i64(j, &i), ROW[k].i_ok);
        assert_true(i == (ROW[k].i_ok ? ROW[k].i : 77));
        assert_int_equal(cm_json_get_double(j, &d), ROW[k].d_ok);
        assert_true(d == (ROW[k].d_ok ? ROW[k].d : 77));
        cm_json_free(j);
    }
}

static void test_reading_structure(void **state)
{
    (void)state;
    cm_json *j = parse("{\"n\":null,\"s\":\"a\\u0000b\",\"l\":[1,null],\"b\":true}");
    size_t n = 0;
    bool b = false;
    assert_true(cm_json_is(j, CM_JSON_OBJECT));
    assert_int_equal(cm_json_length(j), 4);
    assert_true(cm_json_has(j, "n"));
    assert_false(cm_json_has(j, "x"));
    assert_null(cm_json_member(j, "n"));
    assert_null(cm_json_member(j, "x"));
    assert_null(cm_json_member(cm_json_member(j, "l"), "x"));
    assert_memory_equal(cm_json_text(cm_json_member(j, "s"), &n), "a\0b", 4);
    assert_int_equal(n, 3);
    assert_true(cm_json_get_bool(cm_json_member(j, "b"), &b) && b);
    assert_false(cm_json_get_bool(cm_json_member(j, "l"), &b));
    assert_int_equal(cm_json_length(cm_json_member(j, "l")), 2);
    assert_null(cm_json_at(cm_json_member(j, "l"), 1));
    assert_null(cm_json_at(cm_json_member(j, "l"), 2));
    assert_null(cm_json_at(j, 0));
    assert_null(cm_json_text(j, &n));
    assert_int_equal(cm_json_length(NULL), 0);
    assert_int_equal(cm_json_type(NULL), CM_JSON_NULL);

    static const char *const NAME[] = {"n", "s", "l", "b"};
    size_t i = 0;
    for (cm_json_iter it = cm_json_begin(j); cm_json_next(&it); i++) {
        assert_string_equal(it.name, NAME[i]);
        assert_ptr_equal(it.value, cm_json_member(j, NAME[i]));
    }
    assert_int_equal(i, 4);
    cm_json_iter none = cm_json_begin(NULL);
    assert_false(cm_json_next(&none));
    cm_json_free(j);
}

static void test_making(void **state)
{
    (void)state;
    char text[256];
    cm_error err = {0};
    cm_json *o = cm_json_object(), *a = cm_json_array();
    assert_int_equal(cm_json_append(a, cm_json_u64(UINT64_MAX), &err), CM_OK);
    assert_int_equal(cm_json_append(a, cm_json_i64(INT64_MIN), &err), CM_OK);
    assert_int_equal(cm_json_append(a, cm_json_double(1), &err), CM_OK);
    assert_int_equal(cm_json_append(a, cm_json_float(1e20f), &err), CM_OK);
    assert_int_equal(cm_json_append_null(a, &err), CM_OK);
    assert_int_equal(cm_json_set(o, "a", a, &err), CM_OK);
    assert_int_equal(cm_json_set(o, "b", cm_json_bool(true), &err), CM_OK);
    assert_int_equal(cm_json_set(o, "c", cm_json_string_n("xyz", 2), &err), CM_OK);
    assert_int_equal(cm_json_set_null(o, "d", &err), CM_OK);
    assert_int_equal(cm_json_set(o, "b", cm_json_double(NAN), &err), CM_OK);
    cm_json_remove(o, "c");
    assert_string_equal(text_of(o, false, text, sizeof text),
                        "{\"a\":[18446744073709551615,-9223372036854775808,1.0,"
                        "1.0000000200408773e+20,null],\"b\":\"NaN\",\"d\":null}");
    assert_int_equal(cm_json_set(o, "x", NULL, &err), CM_ENOMEM);
    assert_int_equal(cm_json_append(NULL, cm_json_bool(true), &err), CM_ENOMEM);
    assert_int_equal(cm_json_set(a, "x", cm_json_bool(true), &err), CM_EINTERNAL);
    assert_int_equal(cm_json_append(o, cm_json_bool(true), &err), CM_EINTERNAL);
    cm_json_free(o);
    cm_json_free(NULL);
}

static void test_equality_and_copies(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool equal;
    } ROW[] = {
        {"{\"a\":1,\"b\":[1,2]}", "{\"b\":[1,2],\"a\":1}", true},
        {"{\"a\":1}", "{\"a\":1,\"b\":null}", false},
        {"{\"a\":null}", "{\"b\":null}", false},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,1]", false},
        {"1", "1.0", false},
        {"[NaN]", "[NaN]", true},
        {"NaN", "1.0", false},
        {"18446744073709551615", "-1", false},
        {"\"a\"", "\"b\"", false},
        {"null", "0", false},
        {"null", "null", true},
        {"true", "true", true},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_json *a = parse(ROW[i].a), *b = parse(ROW[i].b), *copy = cm_json_copy(a);
        print_message("  %s = %s\n", ROW[i].a, ROW[i].b);
        assert_int_equal(cm_json_equal(a, b), ROW[i].equal);
        assert_int_equal(cm_json_equal(b, a), ROW[i].equal);
        assert_true(cm_json_equal(a, copy));
        cm_json_free(a);
        cm_json_free(b);
        cm_json_free(copy);
    }
    /* A copy shares nothing with what it was made of. */
    cm_json *a = parse("{\"l\":[1]}"), *copy = cm_json_copy(a);
    cm_json_remove(a, "l");
    assert_int_equal(cm_json_length(copy), 1);
    cm_json_free(a);
    cm_json_free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share),           cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bad_input),       cmocka_unit_test(test_depth),
        cmocka_unit_test(test_pretty),          cmocka_unit_test(test_bad_utf8_is_replaced),
        cmocka_unit_test(test_reading_numbers), cmocka_unit_test(test_reading_structure),
        cmocka_unit_test(test_making),          cmocka_unit_test(test_equality_and_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
