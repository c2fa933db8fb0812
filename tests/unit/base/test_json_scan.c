/* The members of an object one by one, and what is refused. */
#include <stdio.h>

#include "../unit.h"
#include "base/json_scan.h"

/* "name=value " of all members, or the error. */
static const char *scan(const char *text, char *out, size_t size)
{
    cm_json_scan s;
    cm_json_slice name, value;
    cm_error err = {0};
    bool more = true;
    out[0] = '\0';
    int rc = cm_json_scan_begin(&s, text, strlen(text), &err);
    while (rc == CM_OK && (rc = cm_json_scan_next(&s, &name, &value, &more, &err)) == CM_OK && more)
        snprintf(out + strlen(out), size - strlen(out), "%.*s=%.*s ", (int)name.nbytes, name.text,
                 (int)value.nbytes, value.text);
    if (rc != CM_OK)
        snprintf(out, size, "%s", err.text);
    return out;
}

static void test_members(void **state)
{
    static const struct {
        const char *text, *found;
    } rows[] = {
        {"{}", ""},
        {" { \n} \t", ""},
        {"{\"a\":1}", "\"a\"=1 "},
        {" { \"a\" : 1 , \"b\" : [ 1 , {\"c\" : \"]}\"} ] }\r\n",
         "\"a\"=1 \"b\"=[ 1 , {\"c\" : \"]}\"} ] "},
        {"{\"a\":\"x\\\"y\",\"a\":\"\\\\\"}", "\"a\"=\"x\\\"y\" \"a\"=\"\\\\\" "},
        {"{\"\":{},\"\\u0041\":null}", "\"\"={} \"\\u0041\"=null "},
    };
    char text[2048];
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        assert_string_equal(scan(rows[r].text, text, sizeof text), rows[r].found);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "no object at byte 0"},
        {"[]", "no object at byte 0"},
        {"{", "no name at byte 1"},
        {"{,}", "no name at byte 1"},
        {"{\"a\"}", "no ':' at byte 4"},
        {"{\"a\":}", "no value at byte 5"},
        {"{\"a\":1", "the end of the text"},
        {"{\"a\":1 2}", "no ','"},
        {"{\"a\":1,}", "no name"},
        {"{\"a\":1,,\"b\":2}", "no name"},
        {"{\"a\":[1}", "the end of the text"},
        {"{\"a\":[[1]", "the end of the text"},
        {"{\"a\":\"x}", "the end of the text"},
        {"{\"a\":\"x\\\"}", "the end of the text"},
        {"{\"a\":\"x\\", "the end of the text"},
        {"{\"a\":1}{}", "more than one value at byte 7"},
        {"{\"a\":1}}", "more than one value"},
    };
    char text[2048];
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        if (strstr(scan(rows[r].text, text, sizeof text), rows[r].says) == NULL)
            fail_msg("'%s': %s", rows[r].text, text);
}

static void test_plain_strings(void **state)
{
    static const struct {
        const char *text;
        bool plain;
    } rows[] = {
        {"\"\"", true},      {"\"a b\"", true},   {"\"\xC3\xA9\"", true},      {"\"\xC3\"", false},
        {"\"a\\n\"", false}, {"\"a\nb\"", false}, {"\"\xED\xA0\x80\"", false}, {"12", false},
        {"\"", false}};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const cm_json_slice slice = {rows[r].text, strlen(rows[r].text)};
        if (cm_json_slice_is_plain(&slice) != rows[r].plain)
            fail_msg("row %zu", r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_plain_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
