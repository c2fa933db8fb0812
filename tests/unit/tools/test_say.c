/* cm_print formats as fprintf does, and shows what texts would do to a terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../tools/common/say.h"
#include "../unit.h"

/* Both of the same arguments, which hold nothing to be shown. */
#define SAME(...)                                                                                  \
    do {                                                                                           \
        char *ours = NULL, *theirs = NULL;                                                         \
        size_t n;                                                                                  \
        FILE *f = open_memstream(&ours, &n), *g = open_memstream(&theirs, &n);                     \
        cm_print(f, __VA_ARGS__);                                                                  \
        fprintf(g, __VA_ARGS__);                                                                   \
        fclose(f);                                                                                 \
        fclose(g);                                                                                 \
        assert_string_equal(ours, theirs);                                                         \
        free(ours);                                                                                \
        free(theirs);                                                                              \
    } while (0)

static void test_formats(void **state)
{
    (void)state;
    SAME("plain\n  100 %%\n");
    SAME("%s|%8s|%-8s|%.3s|%*s|%-*.*s|", "abcd", "ab", "ab", "abcd", 6, "x", 5, 2, "abc");
    SAME("%d %+d %05d %-5d| %i %ld %lld %zd", -7, 7, 42, 42, 3, -8L, -9LL, (ssize_t)-1);
    SAME("%u %x %X %#o %lu %llu %zu", 7U, 255U, 255U, 8U, 9UL, 1ULL << 63, (size_t)12);
    SAME("%f %.1f %8.3g %+.0f %e %G %.*f", 1.5, 2.25, 1e9, 0.5, 3e-4, 1e-9, 2, 3.14159);
    SAME("%c%c", 'a', '%');
}

static void test_texts(void **state)
{
    char *text = NULL;
    size_t n;
    (void)state;
    FILE *f = open_memstream(&text, &n);
    cm_print(f, "%s\n\t%s %c|%-6s|%.3s|\n", "a\033[2Jb", "line\nbreak\xe2\x80\xae", 7, "\n",
             "\xc3\xa9\xc3\xa9");
    fclose(f);
    assert_string_equal(text, "a\\x1b[2Jb\n\tline\\x0abreak\\u202e \\x07|\\x0a     |\xc3\xa9|\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formats),
                                       cmocka_unit_test(test_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
