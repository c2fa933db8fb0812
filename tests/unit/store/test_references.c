/* Documents of references: what they give, and what of a hostile one is refused. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "store/open.h"
#include "store/references.h"

static char folder[] = "/tmp/chunkmill-references-XXXXXX";
static char document[64];

static void write_file(const char *name, const void *data, size_t nbytes)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, nbytes, f), nbytes);
    assert_int_equal(fclose(f), 0);
}

static int make(void **state)
{
    char path[64];
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(document, sizeof document, "%s/d.json", folder);
    write_file("data.bin", "0123456789", 10);
    snprintf(path, sizeof path, "%s/pipe", folder);
    return mkfifo(path, 0600);
}

static int removed(void **state)
{
    static const char *const names[] = {"data.bin", "d.json", "pipe"};
    char path[128];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static int open_document(const char *text, cm_store **out, cm_error *err)
{
    write_file("d.json", text, strlen(text));
    return cm_store_open(document, NULL, out, err);
}

static void test_objects(void **state)
{
    static const struct {
        const char *what, *refs, *bytes;
        size_t nbytes;
    } rows[] = {
        {"a range", "\"k\": [\"data.bin\", 2, 3]", "234", 3},
        {"a file", "\"k\": [\"data.bin\"]", "0123456789", 10},
        {"nothing of it", "\"k\": [\"data.bin\", 10, 0]", "", 0},
        {"text", "\"k\": \"abc\"", "abc", 3},
        {"text with a NUL", "\"k\": \"a\\u0000c\"", "a\0c", 3},
        {"base64", "\"k\": \"base64:AAEC\"", "\0\1\2", 3},
        {"an empty text", "\"k\": \"\"", "", 0},
        {"a document", "\"k\": {\"zarr_format\": 2}", "{\"zarr_format\":2}", 17},
        {"the later of two", "\"k\": \"old\", \"k\": \"new\"", "new", 3},
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int version = 0; version < 2; version++) {
            char text[512];
            cm_store *store;
            cm_object_reader *reader;
            cm_buf buf = {0};
            uint64_t nbytes;
            char copy[32];
            snprintf(text, sizeof text, version ? "{\"version\": 1, \"refs\": {%s}}" : " {%s}",
                     rows[r].refs);
            assert_int_equal(open_document(text, &store, NULL), CM_OK);
            assert_int_equal(cm_store_get(store, "k", 100, &buf, NULL), CM_OK);
            if (buf.nbytes != rows[r].nbytes ||
                (buf.nbytes > 0 && memcmp(buf.data, rows[r].bytes, buf.nbytes) != 0))
                fail_msg("%s: %zu bytes: %.*s", rows[r].what, buf.nbytes, (int)buf.nbytes,
                         (char *)buf.data);
            assert_int_equal(cm_store_size(store, "k", &nbytes, NULL), CM_OK);
            assert_int_equal(nbytes, rows[r].nbytes);
            assert_int_equal(cm_object_open(store, "k", &reader, NULL), CM_OK);
            assert_int_equal(cm_object_nbytes(reader), rows[r].nbytes);
            assert_int_equal(cm_object_read(reader, 0, copy, nbytes, NULL), CM_OK);
            assert_memory_equal(copy, rows[r].bytes, nbytes);
            cm_object_close(reader);
            assert_int_equal(cm_store_get(store, "l", 100, &buf, NULL), CM_ENOTFOUND);
            if (rows[r].nbytes > 0)
                assert_int_equal(cm_store_get(store, "k", 1, &buf, NULL), CM_EFORMAT);
            cm_buf_release(&buf);
            cm_store_free(store);
        }
}

static int gather(void *context, const char *name, bool is_prefix, cm_error *err)
{
    char *text = context;
    (void)err;
    strcat(text, name);
    strcat(text, is_prefix ? "/ " : " ");
    return CM_OK;
}

static void test_names(void **state)
{
    static const struct {
        const char *prefix, *names;
    } rows[] = {
        {"", ".zgroup a/ a.b ab/ b/ "}, {"a", ".zarray 0 1/ "}, {"a/1", "0 "}, {"ab", "c "}};
    char names[128];
    cm_store *store;
    (void)state;
    assert_int_equal(
        open_document("{\"version\": 1, \"refs\": {\"b/x\": \"1\", \"a/1/0\": \"2\", "
                      "\"a.b\": \"3\", \"a/.zarray\": \"4\", \"ab/c\": \"5\", \"a/0\": "
                      "\"6\", \".zgroup\": \"7\"}}",
                      &store, NULL),
        CM_OK);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        names[0] = '\0';
        assert_int_equal(cm_store_list(store, rows[r].prefix, gather, names, NULL), CM_OK);
        assert_string_equal(names, rows[r].names);
    }
    assert_int_equal(cm_store_list(store, "c", gather, names, NULL), CM_ENOTFOUND);
    cm_store_free(store);
}

static void test_templates(void **state)
{
    char text[512];
    cm_store *store;
    cm_buf buf = {0};
    (void)state;
    snprintf(text, sizeof text,
             "{\"version\": 1, \"templates\": {\"u\": \"%s\", \"v\": \"data\"}, \"refs\": {\"k\": "
             "[\"{{u}}/{{v}}.bin\", 0, 4]}}",
             folder);
    assert_int_equal(open_document(text, &store, NULL), CM_OK);
    assert_int_equal(cm_store_get(store, "k", 100, &buf, NULL), CM_OK);
    assert_memory_equal(buf.data, "0123", 4);
    cm_buf_release(&buf);
    cm_store_free(store);
}

/* Refused when it is opened. */
static void test_hostile_documents(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"{\"version\": 1, \"refs\": {\"k\": [\"../data.bin\", 0, 1]}}", ".."},
        {"{\"version\": 1, \"refs\": {\"k\": [\"a/../../data.bin\", 0, 1]}}", ".."},
        {"{\"version\": 1, \"refs\": {\"../k\": \"x\"}}", "key '../k'"},
        {"{\"version\": 1, \"refs\": {\"/etc/k\": \"x\"}}", "begins with '/'"},
        {"{\"version\": 1, \"refs\": {\"a//k\": \"x\"}}", "empty name"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"https://host/x\", 0, 1]}}",
         "`allow` https://host permits"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"/dev/zero\", 0, 1]}}", "`allow` /dev permits"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"/dev\"]}}", "`allow` / permits"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"abfs://bucket/x\", 0, 1]}}",
         "s3:// and gs:// are read"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"https://host/a/../x\", 0, 1]}}", "'..'"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"https://host/%2e%2e/x\", 0, 1]}}", "'..'"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"s3://bucket//x\", 0, 1]}}", "begins with"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"s3:///x\", 0, 1]}}", "no bucket"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"http://h/x?s=1\", 0, 1]}}", "query"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"file://far/x\", 0, 1]}}", "host far"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"{{f(c='x')}}\", 0, 1]}}", "templates"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"{{u\", 0, 1]}}", "templates"},
        {"{\"version\": 1, \"templates\": {\"u\": \"{{u}}{{u}}\"}, \"refs\": {\"k\": [\"{{u}}\"]}}",
         "templates"},
        {"{\"version\": 1, \"gen\": [{\"key\": \"{{i}}\"}], \"refs\": {}}", "generated"},
        {"{\"version\": 2, \"refs\": {}}", "other than 1"},
        {"{\"version\": 1}", "no \"refs\""},
        {"{\"version\": 1, \"refs\": {\"k\": [\"data.bin\", -1, 1]}}", "from 0 to 2^63 - 1"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"data.bin\", 9223372036854775807, 1]}}",
         "from 0 to 2^63 - 1"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"data.bin\", 1.5, 1]}}", "from 0 to 2^63 - 1"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"data.bin\", 1]}}", "neither [URL]"},
        {"{\"version\": 1, \"refs\": {\"k\": [\"data\\u0000.bin\", 1, 1]}}", "neither [URL]"},
        {"{\"version\": 1, \"refs\": {\"k\": 7}}", "reference k"},
        {"{\"version\": 1, \"refs\": {\"k\": null}}", "reference k"},
        {"{\"version\": 1, \"refs\": {\"k\": \"x\"", "d.json"},
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        cm_store *store;
        cm_error err = {0};
        assert_int_not_equal(open_document(rows[r].text, &store, &err), CM_OK);
        if (strstr(err.text, rows[r].says) == NULL || strstr(err.text, "d.json") == NULL)
            fail_msg("row %zu: %s", r, err.text);
    }
}

/* Refused when the object is read: only the file can tell. */
static void test_hostile_objects(void **state)
{
    static const struct {
        const char *ref, *says;
    } rows[] = {
        {"[\"data.bin\", 8, 3]", "bytes 8 to 11 of"}, {"[\"data.bin\", 100, 1]", "which has 10"},
        {"[\"gone.bin\", 0, 1]", "No such file"},     {"[\"pipe\", 0, 1]", "not a regular file"},
        {"\"base64:!!!\"", "not valid base64"},
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char text[256];
        cm_store *store;
        cm_object_reader *reader;
        cm_buf buf = {0};
        cm_error err = {0};
        snprintf(text, sizeof text, "{\"version\": 1, \"refs\": {\"k\": %s}}", rows[r].ref);
        assert_int_equal(open_document(text, &store, NULL), CM_OK);
        assert_int_not_equal(cm_store_get(store, "k", 100, &buf, &err), CM_OK);
        if (strstr(err.text, rows[r].says) == NULL)
            fail_msg("row %zu: %s", r, err.text);
        assert_int_not_equal(cm_object_open(store, "k", &reader, NULL), CM_OK);
        cm_buf_release(&buf);
        cm_store_free(store);
    }
}

/* A few bytes of templates could stand for terabytes. */
static void test_templates_are_bounded(void **state)
{
    cm_buf text = {0};
    cm_store *store;
    cm_error err = {0};
    (void)state;
    assert_int_equal(cm_buf_printf(&text, NULL,
                                   "{\"version\": 1, \"templates\": {\"u\": \"%0*d\"}, "
                                   "\"refs\": {\"k\": [\"",
                                   4000, 0),
                     CM_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(cm_buf_append(&text, "{{u}}", 5, NULL), CM_OK);
    assert_int_equal(cm_buf_append(&text, "\"]}}", 5, NULL), CM_OK);
    assert_int_equal(open_document((char *)text.data, &store, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, "longer than"));
    cm_buf_release(&text);
}

/* A cached copy belongs to one document: another at its path may define a key differently. */
static void test_a_cache_tells_documents_apart(void **state)
{
    static const char *const refs[][2] = {{"[\"data.bin\", 0, 3]", "012"},
                                          {"[\"data.bin\", 4, 3]", "456"},
                                          {"\"abc\"", "abc"},
                                          {"\"def\"", "def"},
                                          {"\"base64:AAEC\"", "\0\1\2"},
                                          {"[\"data.bin\", 0, 3]", "012"}};
    char cache[64], text[128];
    (void)state;
    snprintf(cache, sizeof cache, "%s/cache", folder);
    for (size_t i = 0; i < sizeof refs / sizeof *refs; i++) {
        cm_store *store, *cached;
        cm_buf buf = {0};
        snprintf(text, sizeof text, "{\"version\": 1, \"refs\": {\"k\": %s}}", refs[i][0]);
        assert_int_equal(open_document(text, &store, NULL), CM_OK);
        assert_int_equal(cm_store_open_disk_cache(store, cache, 1 << 20, &cached, NULL), CM_OK);
        assert_int_equal(cm_store_get(cached, "k", 100, &buf, NULL), CM_OK);
        assert_int_equal(buf.nbytes, 3);
        assert_memory_equal(buf.data, refs[i][1], 3);
        cm_buf_release(&buf);
        cm_store_free(cached);
        cm_store_free(store);
    }
    snprintf(text, sizeof text, "rm -r '%s'", cache);
    assert_int_equal(system(text), 0);
}

static void test_nothing_is_written(void **state)
{
    cm_store *store;
    (void)state;
    assert_int_equal(open_document("{\"version\": 1, \"refs\": {\"k\": \"x\"}}", &store, NULL),
                     CM_OK);
    assert_int_equal(cm_store_put(store, "k", "y", 1, NULL), CM_EINVAL);
    assert_int_equal(cm_store_delete(store, "k", NULL), CM_EINVAL);
    cm_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_templates_are_bounded),
        cmocka_unit_test(test_hostile_documents),
        cmocka_unit_test(test_hostile_objects),
        cmocka_unit_test(test_a_cache_tells_documents_apart),
        cmocka_unit_test(test_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, make, removed);
}
