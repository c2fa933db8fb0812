/* Recognising UTF-8, and replacing bytes that are not. */

#include "../unit.h"
#include "base/utf8.h"

#define R CM_UTF8_REPLACEMENT

/* The repaired texts are what Python's bytes.decode("utf-8", "replace") gives. */
static const struct {
    const char *name, *text, *repaired;
} rows[] = {
    {"empty", "", ""},
    {"ASCII", "abc", "abc"},
    {"two bytes", "\xC3\xA4", "\xC3\xA4"},
    {"three bytes", "\xE2\x82\xAC", "\xE2\x82\xAC"},
    {"four bytes", "\xF0\x9F\x8C\x8D", "\xF0\x9F\x8C\x8D"},
    {"Latin-1", "K\xF6ln", "K" R "ln"},
    {"a lone continuation", "\x80x", R "x"},
    {"two lone continuations", "\x80\x81", R R},
    {"overlong", "\xC0\xAF", R R},
    {"a surrogate", "\xED\xA0\x80", R R R},
    {"past the last code point", "\xF4\x90\x80\x80", R R R R},
    {"three bytes cut off", "\xE2\x82", R},
    {"four bytes cut off, then text", "\xF0\x9F\x8C!", R "!"},
    {"a start, then a whole one", "\xE2\xC3\xA4", R "\xC3\xA4"},
    {"never a lead byte", "\xFF\xFE", R R},
};

static void test_repair(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cm_buf out = {0};
        assert_int_equal(cm_utf8_repair(rows[i].text, strlen(rows[i].text), &out, NULL), CM_OK);
        assert_int_equal(cm_buf_append(&out, "", 1, NULL), CM_OK);
        if (strcmp((const char *)out.data, rows[i].repaired) != 0)
            fail_msg("%s: %s", rows[i].name, (const char *)out.data);
        assert_int_equal(cm_utf8_is_valid(rows[i].text, strlen(rows[i].text)),
                         strcmp(rows[i].text, rows[i].repaired) == 0);
        assert_true(cm_utf8_is_valid(rows[i].repaired, strlen(rows[i].repaired)));
        char *copy = cm_utf8_strdup(rows[i].text, NULL);
        assert_string_equal(copy, rows[i].repaired);
        free(copy);
        cm_buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_repair)};
    return cmocka_run_group_tests_name("base/utf8", tests, NULL, NULL);
}
