/* The memory of a JSON tree, told before it is parsed: never less than it takes. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/json_size.h"

/* PIECE, COUNT times, between BEGIN and END. */
typedef struct row {
    const char *name, *begin, *piece, *end;
    size_t count;
} row;

static const row ROWS[] = {
    {"objects", "[", "{},", "0]", 20000},
    {"lists", "[", "[],", "0]", 20000},
    {"integers", "[", "1,", "0]", 100000},
    {"fractions", "[", "1.5,", "0]", 100000},
    {"texts", "[", "\"\",", "0]", 50000},
    {"escaped quotes", "\"", "\\\"", "\"", 100000},
    {"brackets in a text", "\"", "{[,:", "\"", 100000},
    {"one text", "\"", "xxxxxxxxxx", "\"", 100000},
    {"nulls", "[", "null,", "0]", 100000},
    {"objects of one member", "[", "{\"a\":1},", "0]", 10000},
    {"nothing", "", "", "0", 0},
};

static char *text_of(const row *r)
{
    char *text = malloc(strlen(r->begin) + r->count * strlen(r->piece) + strlen(r->end) + 1);
    assert_non_null(text);
    char *at = stpcpy(text, r->begin);
    for (size_t i = 0; i < r->count; i++)
        at = stpcpy(at, r->piece);
    strcpy(at, r->end);
    return text;
}

static uint64_t in_use(void)
{
#if __GLIBC_PREREQ(2, 33)
    const struct mallinfo2 m = mallinfo2();
#else /* of the portable build: sizes are ints */
    const struct mallinfo m = mallinfo();
#endif
    return (uint64_t)m.uordblks + (uint64_t)m.hblkhd;
}

static void test_never_less(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char *text = text_of(&ROWS[i]);
        const uint64_t told = cm_json_tree_nbytes(text, strlen(text)), before = in_use();
        cm_json *j = NULL;
        cm_error err = {0};
        assert_int_equal(cm_json_parse(text, strlen(text), &j, &err), CM_OK);
        const uint64_t took = in_use() - before;
        /* A sanitizer's allocator is not told of by mallinfo2. */
        if (took > told)
            fail_msg("%s: %llu bytes were told, and %llu taken", ROWS[i].name,
                     (unsigned long long)told, (unsigned long long)took);
        cm_json_free(j);
        free(text);
    }
}

/* Members have names and tables; the largest is one that has just doubled. */
static void test_members(void **state)
{
    (void)state;
    for (unsigned n = 1; n < 40000; n = n * 3 / 2 + 1) {
        cm_buf text = {0};
        cm_error err = {0};
        cm_json *j = NULL;
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(cm_buf_printf(&text, &err, "%c\"%u\":%u", i == 0 ? '{' : ',', i, i),
                             CM_OK);
        assert_int_equal(cm_buf_append(&text, "}", 1, &err), CM_OK);
        const uint64_t told = cm_json_tree_nbytes(text.data, text.nbytes), before = in_use();
        assert_int_equal(cm_json_parse(text.data, text.nbytes, &j, &err), CM_OK);
        assert_true(in_use() - before <= told);
        cm_json_free(j);
        cm_buf_release(&text);
    }
}

static void test_limit(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": [1, 2, \"}{\\\"]\"]}";
    const uint64_t needs = cm_json_tree_nbytes(text, strlen(text));
    cm_json *j = NULL;
    cm_error err = {0};
    assert_int_equal(cm_json_parse_within(text, strlen(text), needs - 1, &j, &err), CM_EBUDGET);
    assert_null(j);
    assert_non_null(strstr(err.text, "`memory`"));
    assert_int_equal(cm_json_parse_within(text, strlen(text), needs, &j, &err), CM_OK);
    cm_json_free(j);
    /* Of what is no JSON nothing is read past the end. */
    for (size_t n = 0; n < strlen(text); n++)
        (void)cm_json_tree_nbytes(text, n);
    assert_int_equal(cm_json_tree_nbytes("\\", 1), cm_json_tree_nbytes("x", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_never_less),
                                       cmocka_unit_test(test_members),
                                       cmocka_unit_test(test_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
