#include <errno.h>

#include <chunkmill/error.h>

#include "../unit.h"

static void test_fail_fills_and_returns(void **state)
{
    (void)state;
    cm_error err = {0};
    assert_int_equal(cm_fail(&err, CM_EFORMAT, "chunk %d is %s", 7, "short"), CM_EFORMAT);
    assert_int_equal(err.status, CM_EFORMAT);
    assert_string_equal(err.text, "chunk 7 is short");
    assert_int_equal(cm_fail(NULL, CM_EINVAL, "nobody listens"), CM_EINVAL);
}

static void test_arguments_may_be_the_old_text(void **state)
{
    (void)state;
    cm_error err = {0};
    cm_fail(&err, CM_EIO, "inner");
    cm_fail(&err, CM_EINVAL, "outer (%s)", err.text);
    assert_string_equal(err.text, "outer (inner)");
    cm_error_prefix(&err, "%s", "file.nc");
    cm_error_prefix(NULL, "nobody");
    assert_string_equal(err.text, "file.nc: outer (inner)");
    assert_int_equal(err.status, CM_EINVAL);
}

static void test_errno_chooses_the_status(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int errnum;
        cm_status status;
    } ROW[] = {
        {"ENOENT", ENOENT, CM_ENOTFOUND}, {"EEXIST", EEXIST, CM_EEXIST},
        {"ENOSPC", ENOSPC, CM_ENOSPC},    {"EDQUOT", EDQUOT, CM_ENOSPC},
        {"ENOMEM", ENOMEM, CM_ENOMEM},    {"EIO", EIO, CM_EIO},
        {"EACCES", EACCES, CM_EIO},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_error err = {0};
        print_message("  %s\n", ROW[i].name);
        assert_int_equal(cm_fail_errno(&err, ROW[i].errnum, "open x"), ROW[i].status);
        assert_int_equal(err.status, ROW[i].status);
        assert_memory_equal(err.text, "open x: ", 8);
        assert_string_equal(err.text + 8, strerror(ROW[i].errnum));
    }
}

static void test_long_text_keeps_what_matters(void **state)
{
    (void)state;
    cm_error err = {0};
    char name[3000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    cm_fail_errno(&err, ENOENT, "%s", name);
    const char *end = strstr(err.text, ": No such file or directory");
    assert_non_null(end);
    assert_string_equal(end, ": No such file or directory");
    cm_error_prefix(&err, "variable %s", "tas");
    assert_memory_equal(err.text, "variable tas: nnn", 17);
    assert_true(strlen(err.text) == sizeof err.text - 1);
    cm_error_prefix(&err, "%s", name);
    assert_true(strlen(err.text) == sizeof err.text - 1);
}

static void test_every_status_has_its_own_name(void **state)
{
    (void)state;
    for (int i = CM_OK; i <= CM_EINTERNAL; i++) {
        assert_string_not_equal(cm_status_name((cm_status)i), "unknown");
        for (int j = CM_OK; j < i; j++)
            assert_string_not_equal(cm_status_name((cm_status)i), cm_status_name((cm_status)j));
    }
    assert_string_equal(cm_status_name(CM_ENOTFOUND), "not-found");
    assert_string_equal(cm_status_name((cm_status)99), "unknown");
}

static void test_place(void **state)
{
    cm_error err = {0};
    (void)state;
    cm_error_place(NULL, "a");
    cm_fail(&err, CM_EIO, "chunk 0");
    cm_error_place(&err, NULL);
    assert_string_equal(err.text, "chunk 0");
    cm_error_place(&err, "in.zarr");
    assert_string_equal(err.text, "in.zarr: chunk 0");
    /* The innermost call knows best. */
    cm_error_place(&err, "out.zarr");
    assert_string_equal(err.text, "in.zarr: chunk 0");
    cm_error_prefix(&err, "batch 3");
    cm_error_place(&err, "out.zarr");
    cm_error_suffix(&err, "; wait");
    assert_string_equal(err.text, "batch 3: in.zarr: chunk 0; wait");
    /* Another error is about nothing yet; what it begins with is not said twice. */
    cm_fail_errno(&err, ENOENT, "in.zarr");
    cm_error_place(&err, "in.zarr");
    assert_string_equal(err.text, "in.zarr: No such file or directory");
    cm_fail(&err, CM_EIO, "in.zarr2: x");
    cm_error_place(&err, "in.zarr");
    assert_string_equal(err.text, "in.zarr: in.zarr2: x");
}

static void test_suffix_of_a_long_text(void **state)
{
    cm_error err = {0};
    char longer[2 * sizeof err.text];
    (void)state;
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    cm_fail(&err, CM_EIO, "%s", longer);
    cm_error_suffix(&err, "; do this");
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_string_equal(err.text + sizeof err.text - 1 - strlen("; do this"), "; do this");
    cm_error_suffix(NULL, "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_suffix_of_a_long_text),
        cmocka_unit_test(test_fail_fills_and_returns),
        cmocka_unit_test(test_arguments_may_be_the_old_text),
        cmocka_unit_test(test_errno_chooses_the_status),
        cmocka_unit_test(test_long_text_keeps_what_matters),
        cmocka_unit_test(test_every_status_has_its_own_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
