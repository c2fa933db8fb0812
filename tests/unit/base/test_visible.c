/* Text from outside: what a terminal would obey is shown, and everything else stays as it is. */
#include <string.h>

#include "../unit.h"
#include "base/visible.h"

static void test_what_is_shown(void **state)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"plain text ~", "plain text ~"},
        {"\033[2J\a\b", "\\x1b[2J\\x07\\x08"},
        {"a\nb\rc\td", "a\\x0ab\\x0dc\\x09d"},
        {"\x7f", "\\x7f"},
        {"\xc2\x9b"
         "31m",
         "\\x9b31m"}, /* C1 in UTF-8 */
        {"\x9b"
         "31m",
         "\\x9b31m"}, /* and as a byte */
        {"\xe2\x80\xae"
         "abc",
         "\\u202eabc"}, /* right to left */
        {"\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf", "\\u2066\\u200b\\ufeff"},
        {"\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029"}, /* lines and paragraphs */
        {"\xf3\xa0\x81\x81", "\\U000e0041"},            /* a tag */
        {"\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80", "\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80"},
        {"\xe2\x80\x8d", "\xe2\x80\x8d"}, /* a joiner */
        {"\xff\xc3", "\\xff\\xc3"},       /* no UTF-8, also where it is cut */
        {"\xc0\x9b\xed\xa0\x80", "\\xc0\\x9b\\xed\\xa0\\x80"},
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char shown[128] = "", one[CM_VISIBLE_SIZE];
        size_t left = strlen(rows[r].text), nbytes, used;
        for (const char *p = rows[r].text; left > 0; p += used, left -= used) {
            used = cm_visible(p, left, one, &nbytes);
            assert_in_range(used, 1, left);
            strncat(shown, one, nbytes);
        }
        assert_string_equal(shown, rows[r].shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_shown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
