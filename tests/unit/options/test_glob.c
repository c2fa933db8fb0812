/* Patterns of paths: what matches, and that matching takes no longer than patterns are long. */

#include "../unit.h"
#include "options/glob.h"

static const struct {
    const char *pattern, *path;
    bool matches;
} ROWS[] = {
    {"tas", "tas", true},
    {"tas", "tasmax", false},
    {"", "", true},
    {"*", "", true},
    {"t*s", "tas", true},
    {"t*s", "ts", true},
    {"t*s", "t/s", false},
    {"*a*b*c", "xaxbxxc", true},
    {"*a*b*c", "xaxbxxcd", false},
    {"a*a*b", "aaab", true},
    {"?", "ü", true},
    {"?", "/", false},
    {"[a-c]x", "bx", true},
    {"[!a-c]x", "bx", false},
    {"[]a]", "]", true},
    {"[é-ü]", "ö", true},
    {"flux[1", "flux[1", true},
    {"a\\*b", "a*b", true},
    {"a\\*b", "axb", false},
    {"**", "a/b", true},
    {"**", "", false},
    {"**/t", "t", true},
    {"**/t", "a/b/t", true},
    {"a/**/t", "a/t", true},
    {"a/**/t", "a/b/c/t", true},
    {"a/**/t", "b/t", false},
    {"a/**", "a/", false},
    {"a/**", "a/b", true},
    {"**/a/**/b", "x/a/a/y/b", true},
    {"**/a*/b*c/**/d", "a1/b2/a3/b4c/x/d", true},
    {"a**b", "axxb", true},
    {"a**b", "a/b", false},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        if (cm_glob_matches(ROWS[i].pattern, ROWS[i].path) != ROWS[i].matches)
            fail_msg("'%s' and '%s'", ROWS[i].pattern, ROWS[i].path);
    }
}

/* Trying every share of the text for every star would outlast the universe. */
static void test_many_stars(void **state)
{
    char pattern[512] = "", path[512] = "";
    (void)state;
    for (size_t i = 0; i < 60; i++) {
        strcat(pattern, "*a");
        strcat(path, "aaaaaaa");
    }
    assert_true(cm_glob_matches(pattern, path));
    strcat(pattern, "b");
    assert_false(cm_glob_matches(pattern, path));
    pattern[0] = path[0] = '\0';
    for (size_t i = 0; i < 60; i++) {
        strcat(pattern, "**/a/");
        strcat(path, "a/a/a/");
    }
    strcat(path, "b");
    assert_false(cm_glob_matches(strcat(pattern, "c"), path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_many_stars),
    };
    return cmocka_run_group_tests_name("glob", tests, NULL, NULL);
}
