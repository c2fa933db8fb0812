#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/fileurl.h"

static void test_texts(void **state)
{
    static const struct {
        const char *text, *path; /* NULL: refused */
    } rows[] = {
        {"a.nc", "a.nc"},
        {"/x/a%20b", "/x/a%20b"}, /* no URL: nothing is decoded */
        {"a:b", "a:b"},
        {"a::b", "a::b"},
        {"/x://y", "/x://y"},
        {"file:", "file:"},
        {"file:/x", "file:/x"},
        {"file:///x/a", "/x/a"},
        {"FILE:///x/a", "/x/a"},
        {"file:////x", "//x"},
        {"file://localhost/x/a", "/x/a"},
        {"file://LocalHost/x", "/x"},
        {"file:///x/a%20b%2fc%2Fd%C3%A4", "/x/a b/c/d\xc3\xa4"},
        {"file:///x/a#b?c", "/x/a#b?c"},
        {"file:///x/100%25", "/x/100%"},
        {"file:///%2541", "/%41"},
        {"file:///x/100%", NULL},
        {"file:///x/%4", NULL},
        {"file:///x/%4g", NULL},
        {"file:///x/%00", NULL},
        {"file://", NULL},
        {"file://localhost", NULL},
        {"file://localhost:80/x", NULL},
        {"file://localhostx/x", NULL},
        {"file://other/x", NULL},
        {"file://127.0.0.1/x", NULL},
        {"file://rel.zarr", NULL},
        {"s3://bucket/x", NULL},
        {"S3://bucket/x", NULL},
        {"https://host/x", NULL},
        {"gs://bucket/x", NULL},
        {"a+b-c.1://x", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *path = (char *)"";
        cm_error err = {0};
        int rc = cm_fileurl_path(rows[i].text, &path, &err);
        if (rows[i].path == NULL) {
            if (rc != CM_EINVAL || path != NULL)
                fail_msg("%s became %s", rows[i].text, path);
            continue;
        }
        if (rc != CM_OK || strcmp(path, rows[i].path) != 0)
            fail_msg("%s became %s, %s", rows[i].text, rc == CM_OK ? path : "nothing", err.text);
        free(path);
    }
}

static void test_a_file_of_the_literal_name_wins(void **state)
{
    char folder[] = "/tmp/chunkmill-XXXXXX", text[128], literal[64], *path;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(literal, sizeof literal, "%s/a%%20b", folder);
    snprintf(text, sizeof text, "file://%s", literal);
    assert_int_equal(cm_fileurl_path(text, &path, NULL), CM_OK);
    assert_string_not_equal(path, literal);
    free(path);
    assert_int_equal(mkdir(literal, 0777), 0);
    assert_int_equal(cm_fileurl_path(text, &path, NULL), CM_OK);
    assert_string_equal(path, literal);
    free(path);
    rmdir(literal);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_a_file_of_the_literal_name_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
