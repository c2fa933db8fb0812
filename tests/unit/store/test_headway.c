/* Listings without an end; tests/cli/test_remote_hostile.py has servers that go round. */
#include <stdio.h>

#include "../unit.h"
#include "store/net/headway.h"

/* How many pages, each of new names with NBYTES, there are before one is refused. */
static uint64_t count_pages(uint64_t nbytes, uint64_t end, cm_error *err)
{
    char token[32];
    cm_headway h = {0};
    uint64_t n = 0;
    int rc = CM_OK;
    while (rc == CM_OK && n < end) {
        snprintf(token, sizeof(token), "token%llu", (unsigned long long)n);
        rc = cm_headway_check(&h, token, n, nbytes, "s3://b/a", err);
        n += rc == CM_OK;
    }
    assert_true(rc == CM_OK || rc == CM_EIO);
    cm_headway_release(&h);
    return n;
}

static void test_new_names_for_ever(void **state)
{
    (void)state;
    const struct {
        uint64_t nbytes, npages;
    } row[] = {{1000, CM_HEADWAY_MAX_PAGES}, {8 << 20, CM_HEADWAY_MAX_NBYTES / (8 << 20)}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        cm_error err = {0};
        assert_int_equal(count_pages(row[i].nbytes, UINT64_MAX, &err), row[i].npages);
        assert_non_null(strstr(err.text, "s3://b/a: the server's listing has no end"));
        assert_non_null(strstr(err.text, "more than any store has"));
    }
}

/* Fifty million names of a hundred bytes are a store. */
static void test_a_large_store(void **state)
{
    (void)state;
    cm_error err = {0};
    assert_int_equal(count_pages(100 * 1000, 50000, &err), 50000);
}

/* Pages of nothing but deleted objects have no names; a page of names does not come twice. */
static void test_pages_without_names(void **state)
{
    (void)state;
    cm_headway h = {0};
    assert_int_equal(cm_headway_check(&h, "a", 7, 0, "s3://b/a", NULL), CM_OK);
    assert_int_equal(cm_headway_check(&h, "b", 7, 0, "s3://b/a", NULL), CM_OK);
    assert_int_equal(cm_headway_check(&h, "c", 8, 100, "s3://b/a", NULL), CM_OK);
    cm_headway_release(&h);
    assert_int_equal(cm_headway_check(&h, "a", 8, 100, "s3://b/a", NULL), CM_OK);
    assert_int_equal(cm_headway_check(&h, "b", 8, 100, "s3://b/a", NULL), CM_EIO);
    cm_headway_release(&h);
    cm_error err = {0};
    assert_int_equal(count_pages(0, UINT64_MAX, &err), CM_HEADWAY_MAX_EMPTY);
    assert_non_null(strstr(err.text, "s3://b/a: the server's listing has no end"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_names_for_ever),
        cmocka_unit_test(test_a_large_store),
        cmocka_unit_test(test_pages_without_names),
    };
    return cmocka_run_group_tests_name("headway", tests, NULL, NULL);
}
