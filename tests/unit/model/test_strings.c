

#include "../unit.h"
#include "model/strings.h"

static void test_set_and_get(void **state)
{
    (void)state;
    cm_strings s = {0};
    cm_error err = {0};
    size_t n = 99;
    assert_int_equal(cm_strings_reset(&s, 4, &err), CM_OK);
    assert_string_equal(cm_strings_get(&s, 0, &n), "");
    assert_int_equal(n, 0);
    assert_int_equal(cm_strings_set(&s, 2, "two\0!", 5, &err), CM_OK);
    assert_int_equal(cm_strings_set(&s, 0, "zero", 4, &err), CM_OK);
    assert_int_equal(cm_strings_set(&s, 1, "", 0, &err), CM_OK);
    assert_memory_equal(cm_strings_get(&s, 2, &n), "two\0!", 5);
    assert_int_equal(n, 5);
    assert_memory_equal(cm_strings_get(&s, 0, &n), "zero", 4);
    assert_int_equal(n, 4);
    cm_strings_get(&s, 1, &n);
    assert_int_equal(n, 0);
    assert_int_equal(cm_strings_set(&s, 4, "x", 1, &err), CM_EINTERNAL);
    assert_int_equal(s.arena.nbytes, 9);
    cm_strings_release(&s);
}

static void test_reset_keeps_memory(void **state)
{
    (void)state;
    cm_strings s = {0};
    cm_error err = {0};
    size_t n;
    char text[1000];
    memset(text, 'a', sizeof text);
    assert_int_equal(cm_strings_reset(&s, 100, &err), CM_OK);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(cm_strings_set(&s, i, text, sizeof text, &err), CM_OK);
    const size_t memory = cm_strings_memory(&s);
    assert_true(memory >= 100 * sizeof text);
    assert_int_equal(cm_strings_reset(&s, 50, &err), CM_OK);
    assert_int_equal(cm_strings_memory(&s), memory);
    assert_int_equal(s.nelem, 50);
    for (size_t i = 0; i < 50; i++) {
        cm_strings_get(&s, i, &n);
        assert_int_equal(n, 0);
    }
    cm_strings_release(&s);
    assert_int_equal(cm_strings_memory(&s), 0);
    cm_strings_release(&s);
    cm_strings_release(NULL);
}

static void test_limits(void **state)
{
    (void)state;
    cm_strings s;
    cm_error err = {0};
    cm_strings_init(&s, 10);
    assert_int_equal(cm_strings_reset(&s, 3, &err), CM_OK);
    assert_int_equal(cm_strings_set(&s, 0, "12345678", 8, &err), CM_OK);
    assert_int_equal(cm_strings_set(&s, 1, "123", 3, &err), CM_EBUDGET);
    assert_int_equal(cm_strings_set(&s, 2, "12", 2, &err), CM_OK);
    assert_int_equal(cm_strings_reset(&s, SIZE_MAX / 8, &err), CM_ENOMEM);
    cm_strings_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_get),
        cmocka_unit_test(test_reset_keeps_memory),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
