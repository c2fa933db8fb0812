/* Stores opened by what a user types. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "store/open.h"

static char folder[] = "/tmp/chunkmill-open-XXXXXX";

static int make(void **state)
{
    char path[128];
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/a b", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/a b/object", folder);
    FILE *f = fopen(path, "w");
    fputs("bytes", f);
    return fclose(f);
}

static int removed(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof(path), "%s/a b/object", folder);
    unlink(path);
    snprintf(path, sizeof(path), "%s/a b", folder);
    rmdir(path);
    return rmdir(folder);
}

static void test_look(void **state)
{
    static const struct {
        const char *name, *format;
        int status;
        cm_place there;
    } row[] = {
        {"a folder", "%s/a b", CM_OK, CM_PLACE_FOLDER},
        {"a file", "%s/a b/object", CM_OK, CM_PLACE_FILE},
        {"nothing", "%s/c", CM_OK, CM_PLACE_NOTHING},
        {"below a file", "%s/a b/object/c", CM_OK, CM_PLACE_NOTHING},
        {"a URL", "file://%s/a%%20b", CM_OK, CM_PLACE_FOLDER},
        {"a URL with a host", "file://localhost%s/a%%20b", CM_OK, CM_PLACE_FOLDER},
        {"another host", "file://far%s", CM_EINVAL, CM_PLACE_NOTHING},
        {"another scheme", "gopher://%s", CM_EINVAL, CM_PLACE_NOTHING},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        char url[256];
        cm_place there;
        cm_error err = {0};
        cm_store *store = NULL;
        snprintf(url, sizeof(url), row[i].format, folder);
        print_message("%s\n", row[i].name);
        assert_int_equal(cm_store_probe(url, NULL, &there, &err), row[i].status);
        assert_int_equal(there, row[i].there);
        int rc = cm_store_open(url, NULL, &store, &err);
        assert_int_equal(rc == CM_OK, there == CM_PLACE_FOLDER);
        cm_store_free(store);
    }
}

static void test_reads(void **state)
{
    char url[256];
    cm_store *store;
    cm_buf buf = {0};
    (void)state;
    snprintf(url, sizeof(url), "file://%s/a%%20b", folder);
    for (cm_io io = CM_IO_PREAD; io <= CM_IO_MMAP; io++) {
        assert_int_equal(cm_store_open(url, &(cm_store_options){.io = io}, &store, NULL), CM_OK);
        assert_int_equal(cm_store_get(store, "object", 100, &buf, NULL), CM_OK);
        assert_int_equal(buf.nbytes, 5);
        assert_memory_equal(buf.data, "bytes", 5);
        cm_store_free(store);
    }
    cm_buf_release(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_look), cmocka_unit_test(test_reads)};
    return cmocka_run_group_tests(tests, make, removed);
}
