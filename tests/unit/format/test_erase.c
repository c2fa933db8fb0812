/* Erasing takes documents, chunks and temporaries of a store, and nothing else. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zarr_support.h"

#include "format/zarr/erase.h"

static char folder[64], root[80];
static cm_store *store;

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/cm-erase-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    sprintf(root, "%s/out.zarr", folder);
    return cm_store_open_dir(root, true, &store, NULL);
}

static int remove_folder(void **state)
{
    char command[80];
    (void)state;
    cm_store_free(store);
    sprintf(command, "rm -rf %s", folder);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void make_folders(const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s", path_of(name));
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = '\0';
        mkdir(path, 0777);
    }
}

/* A file, past the store: it may have a temporary's name. */
static void put(const char *name, const char *text)
{
    make_folders(name);
    FILE *f = fopen(path_of(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void put_link(const char *name, const char *to)
{
    make_folders(name);
    assert_int_equal(symlink(to, path_of(name)), 0);
}

static bool exists(const char *name)
{
    struct stat st;
    return lstat(path_of(name), &st) == 0;
}

static void assert_root_is_empty(void)
{
    struct dirent *e;
    DIR *dir = opendir(root);
    assert_non_null(dir);
    while ((e = readdir(dir)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            fail_msg("%s is left", e->d_name);
    closedir(dir);
}

/* ---- keys of chunks ---- */

/* Metadata of version 3 or, with FORMAT 2, of version 2; a grid of 3x2 chunks, or of rank 0. */
static cm_zarr_meta meta_of(int format, const char *encoding, char separator, unsigned rank)
{
    char text[600];
    cm_json *j;
    cm_zarr_meta m;
    cm_error err = {0};
    const char *shape = rank == 0 ? "[]" : rank == 1 ? "[10]" : "[5, 4]";
    const char *chunk = rank == 0 ? "[]" : rank == 1 ? "[1]" : "[2, 2]";
    if (format == 3) {
        snprintf(
            text, sizeof text,
            "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":%s,\"data_type\":\"int16\","
            "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":%s}},"
            "\"chunk_key_encoding\":{\"name\":\"%s\",\"configuration\":{\"separator\":\"%c\"}},"
            "\"fill_value\":0,\"codecs\":[\"bytes\"]}",
            shape, chunk, encoding, separator);
        return meta_v3(text);
    }
    snprintf(text, sizeof text,
             "{\"zarr_format\":2,\"shape\":%s,\"chunks\":%s,\"dtype\":\"<i2\",\"fill_value\":0,"
             "\"order\":\"C\",\"compressor\":null,\"filters\":null,"
             "\"dimension_separator\":\"%c\"}",
             shape, chunk, separator);
    OK(cm_json_parse(text, strlen(text), &j, &err));
    OK(cm_zarr_meta_from_v2(j, NULL, &m, &err));
    cm_json_free(j);
    return m;
}

typedef struct layout_row {
    int format;
    const char *encoding;
    char separator;
    unsigned rank;
    const char *goes[6], *stays[16];
} layout_row;

static const layout_row LAYOUTS[] = {
    {3,
     "default",
     '/',
     2,
     {"c/0/0", "c/2/1", "c/1/0"},
     {"c/3/0", "c/0/2", "c/00/0", "c/0/01", "c/0/0.old", "c/0/0x/0", "c/0/1/0", "c/x", "0/0", "0.0",
      "c.0.0", "d/0/0", "c/-1/0", "c/ 0", "c/0/18446744073709551616", "README"}},
    {3,
     "default",
     '.',
     2,
     {"c.0.0", "c.2.1"},
     {"c.3.0", "c.0.2", "c.0", "c.0.0.0", "c.0.0.", "c/0/0", "0.0", "c0.0", "c.00.0", "C.0.0"}},
    {3,
     "v2",
     '/',
     2,
     {"0/0", "2/1"},
     {"3/0", "0/2", "c/0/0", "0.0", "1/0/0", "01/0", "0/notes", "99999"}},
    {3, "v2", '.', 2, {"0.0", "2.1"}, {"3.0", "0.2", "c.0.0", "0/0", "0.0.bak", "1", "0."}},
    {2, "", '.', 2, {"0.0", "2.1", "1.1"}, {"3.0", "0.2", "0/0", "0.0.0", "00.0", ".0.0", "0.0~"}},
    {2, "", '/', 2, {"0/0", "2/1"}, {"3/0", "0/2", "0.0", "1/0/0", "c/0/0"}},
    {2, "", '.', 1, {"0", "9"}, {"10", "0.0", "00", "c/0", "9x", "+1"}},
    {3, "default", '/', 1, {"c/0", "c/9"}, {"c/10", "c/0.0", "0", "c/9a", "c/5/0"}},
    {3, "default", '/', 0, {"c"}, {"0", "c.0", "d"}},
    {3, "v2", '.', 0, {"0"}, {"c", "0.0", "1"}},
    {2, "", '.', 0, {"0"}, {"c", "0.0", "1"}},
};

static void test_chunk_keys_inside_the_grid(void **state)
{
    (void)state;
    cm_error err = {0};
    for (size_t i = 0; i < COUNT(LAYOUTS); i++) {
        const layout_row *row = &LAYOUTS[i];
        char name[100];
        cm_zarr_meta m = meta_of(row->format, row->encoding, row->separator, row->rank);
        for (size_t k = 0; k < COUNT(row->goes) && row->goes[k] != NULL; k++) {
            snprintf(name, sizeof name, "a%zu/%s", i, row->goes[k]);
            put(name, "chunk");
        }
        for (size_t k = 0; k < COUNT(row->stays) && row->stays[k] != NULL; k++) {
            snprintf(name, sizeof name, "a%zu/%s", i, row->stays[k]);
            put(name, "mine");
        }
        snprintf(name, sizeof name, "a%zu", i);
        OK(cm_zarr_erase_chunks(store, name, &m, &err));
        for (size_t k = 0; k < COUNT(row->goes) && row->goes[k] != NULL; k++) {
            snprintf(name, sizeof name, "a%zu/%s", i, row->goes[k]);
            if (exists(name))
                fail_msg("%s is left", name);
        }
        for (size_t k = 0; k < COUNT(row->stays) && row->stays[k] != NULL; k++) {
            snprintf(name, sizeof name, "a%zu/%s", i, row->stays[k]);
            if (!exists(name))
                fail_msg("%s is gone", name);
        }
        cm_zarr_meta_release(&m);
    }
}

/* The chunks alone: then their folders go, and the array's. */
static void test_folders_go_when_they_are_empty(void **state)
{
    (void)state;
    cm_error err = {0};
    for (size_t i = 0; i < COUNT(LAYOUTS); i++) {
        const layout_row *row = &LAYOUTS[i];
        cm_zarr_meta m = meta_of(row->format, row->encoding, row->separator, row->rank);
        for (size_t k = 0; k < COUNT(row->goes) && row->goes[k] != NULL; k++) {
            char name[100];
            snprintf(name, sizeof name, "deep/a/%s", row->goes[k]);
            put(name, "chunk");
        }
        OK(cm_zarr_erase_chunks(store, "deep/a", &m, &err));
        assert_false(exists("deep/a"));
        assert_true(exists("deep"));
        cm_zarr_meta_release(&m);
    }
}

/* ---- documents ---- */

static void test_documents(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool goes;
    } row[] = {
        {"zarr.json", true},
        {".zarray", true},
        {".zgroup", true},
        {".zattrs", true},
        {".zmetadata", true},
        {".chunkmill-12-3.tmp", true},
        {"zarr.json~", false},
        {"ZARR.JSON", false},
        {".zarr", false},
        {"zarr.json.old", false},
        {"c", false},
        {"sub/zarr.json", false},
        {".chunkmill-12.tmp", false},
        {".chunkmill-a-3.tmp", false},
        {"my.tmp", false},
    };
    cm_error err = {0};
    char name[100];
    for (size_t i = 0; i < COUNT(row); i++) {
        snprintf(name, sizeof name, "n/%s", row[i].name);
        put(name, "{}");
    }
    OK(cm_zarr_erase_metadata(store, "n", &err));
    for (size_t i = 0; i < COUNT(row); i++) {
        snprintf(name, sizeof name, "n/%s", row[i].name);
        if (exists(name) == row[i].goes)
            fail_msg("%s", name);
    }
}

static void test_temporaries_alone(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool goes;
    } row[] = {
        {"a/.chunkmill-1-1.tmp", true},
        {"a/c/.chunkmill-1-2.tmp", true},
        {"a/c/2/.chunkmill-1-3.tmp", true},
        {"a/c/0/0", false},
        {"a/c/7/.chunkmill-1-4.tmp", false},
        {"a/data/.chunkmill-1-5.tmp", false},
        {"a/zarr.json", false},
        {"a/mine.tmp", false},
    };
    cm_error err = {0};
    cm_zarr_meta m = meta_of(3, "default", '/', 2);
    for (size_t i = 0; i < COUNT(row); i++)
        put(row[i].name, "x");
    OK(cm_zarr_erase_temporaries(store, "a", &m, &err));
    for (size_t i = 0; i < COUNT(row); i++)
        if (exists(row[i].name) == row[i].goes)
            fail_msg("%s", row[i].name);
    assert_true(exists("a/c/2"));     /* another part may be about to fill it */
    put("g/.chunkmill-1-1.tmp", "x"); /* of a group: in its own folder only */
    put("g/c/.chunkmill-1-2.tmp", "x");
    OK(cm_zarr_erase_temporaries(store, "g", NULL, &err));
    assert_false(exists("g/.chunkmill-1-1.tmp"));
    assert_true(exists("g/c/.chunkmill-1-2.tmp"));
    cm_zarr_meta_release(&m);
}

/* ---- links ---- */

static void test_no_link_is_followed_or_removed(void **state)
{
    (void)state;
    static const char *const outside[] = {"c/0/0", "0/0", "0", "zarr.json", ".chunkmill-1-1.tmp"};
    static const char *const links[] = {"a", "a/c", "a/c/0", "a/c/0/0", "a/zarr.json"};
    cm_error err = {0};
    char name[100], real[200];
    cm_zarr_meta m = meta_of(3, "default", '/', 2);
    for (size_t i = 0; i < COUNT(outside); i++) {
        snprintf(name, sizeof name, "../outside/%s", outside[i]);
        mkdir(path_of("../outside"), 0777);
        mkdir(path_of("../outside/c"), 0777);
        mkdir(path_of("../outside/c/0"), 0777);
        if (i != 2)
            put(name, "mine");
    }
    snprintf(real, sizeof real, "%s/outside", folder);
    for (size_t i = 0; i < COUNT(links); i++) {
        put_link(links[i], real);
        OK(cm_zarr_erase_metadata(store, "a", &err));
        OK(cm_zarr_erase_chunks(store, "a", &m, &err));
        OK(cm_zarr_erase_temporaries(store, "a", &m, &err));
        assert_true(exists(links[i]));
        for (size_t k = 0; k < COUNT(outside); k++) {
            snprintf(name, sizeof name, "../outside/%s", outside[k]);
            if (!exists(name))
                fail_msg("%s is gone through %s", outside[k], links[i]);
        }
        assert_int_equal(cm_zarr_check_free(store, "a", &m, &err), CM_EEXIST);
        assert_non_null(strstr(err.text, links[i]));
        assert_int_equal(unlink(path_of(links[i])), 0);
    }
    OK(cm_zarr_check_free(store, "a", &m, &err));
    put_link("a/notes", real); /* where no name of the array is */
    put_link("a/c/9", real);
    OK(cm_zarr_check_free(store, "a", &m, &err));
    cm_zarr_meta_release(&m);
}

/* ---- a store ---- */

static void put_store(void)
{
    char text[1000];
    put("zarr.json", GROUP_JSON);
    put("g/zarr.json", GROUP_JSON);
    put("g/x/zarr.json", array_json(text, sizeof text, "[4]", "[2]", "[\"bytes\"]"));
    put("g/x/c/0", "abcd");
    put("g/x/c/1", "abcd");
    put("g/x/c/.chunkmill-1-1.tmp", "ab");
    put("s/zarr.json", array_json(text, sizeof text, "[8]", "[4]", SHARDED("[2]", "end")));
    put("s/c/0", "shard");
    put("v/.zgroup", "{\"zarr_format\":2}");
    put("v/y/.zarray", "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\"<i2\","
                       "\"fill_value\":0,\"order\":\"C\",\"compressor\":null,\"filters\":null}");
    put("v/y/.zattrs", "{}");
    put("v/y/0", "abcd");
}

static void test_a_store_goes_whole(void **state)
{
    (void)state;
    cm_error err = {0};
    cm_zarr_left left;
    put_store();
    OK(cm_zarr_erase(store, &err));
    assert_root_is_empty();
    OK(cm_zarr_count_left(store, &left, &err));
    assert_int_equal(left.n, 0);
    assert_string_equal(left.names, "");
    put("notes.txt", "mine");
    assert_int_equal(cm_zarr_erase(store, &err), CM_EFORMAT);
    assert_true(exists("notes.txt"));
}

/* Documents as an erasure that was interrupted leaves them: nobody opens them, and we go on. */
static void test_an_erasure_is_taken_up_again(void **state)
{
    (void)state;
    static const char *const documents[] = {"zarr.json",   "g/zarr.json", "g/x/zarr.json",
                                            "s/zarr.json", "v/.zgroup",   "v/y/.zarray"};
    cm_error err = {0};
    for (size_t n = 1; n <= sizeof documents / sizeof *documents; n++) {
        cm_zarr_tree tree = {0};
        put_store();
        for (size_t i = 0; i < n; i++) {
            cm_buf text = {0};
            cm_json *j = NULL;
            OK(cm_store_get(store, documents[i], 1 << 20, &text, &err));
            OK(cm_json_parse(text.data, text.nbytes, &j, &err));
            OK(cm_json_set(j, "zarr_format", cm_json_string("none: this is being removed"), &err));
            text.nbytes = 0;
            OK(cm_json_write(j, false, &text, &err));
            OK(cm_store_put(store, documents[i], text.data, text.nbytes, &err));
            cm_buf_release(&text);
            cm_json_free(j);
        }
        assert_int_not_equal(cm_zarr_open(store, &tree, NULL), CM_OK);
        cm_zarr_tree_release(&tree);
        OK(cm_zarr_erase(store, &err));
        assert_root_is_empty();
    }
}

static void test_what_is_left_is_counted_and_named(void **state)
{
    (void)state;
    /* In the order in which they are named; of these, the first five. */
    static const char *const foreign[] = {
        "g/note", "g/x/c/2", "g/x/c/README", "other/c/0", "other/x.json", "s/c/0.old", "z"};
    for (size_t n = 0; n <= COUNT(foreign); n++) {
        cm_error err = {0};
        cm_zarr_left left;
        char want[240] = "";
        put_store();
        for (size_t i = 0; i < n; i++) {
            put(foreign[i], "mine");
            if (i < 5)
                sprintf(want + strlen(want), "%s%s", i > 0 ? ", " : "", foreign[i]);
        }
        OK(cm_zarr_erase(store, &err));
        OK(cm_zarr_count_left(store, &left, &err));
        assert_int_equal(left.n, n);
        assert_int_equal(left.nnamed, n < 5 ? n : 5);
        assert_string_equal(left.names, want);
        for (size_t i = 0; i < n; i++)
            assert_true(exists(foreign[i]));
    }
}

/* Links are counted, and what is behind them is not. */
static void test_names_that_do_not_fit_are_only_counted(void **state)
{
    (void)state;
    cm_error err = {0};
    cm_zarr_left left;
    char name[260];
    put_link("a", "/etc");
    memset(name, 'b', sizeof name);
    name[238] = '\0';
    put(name, "mine");
    put("c", "mine");
    OK(cm_zarr_count_left(store, &left, &err));
    assert_int_equal(left.n, 3);
    assert_int_equal(left.nnamed, 1);
    assert_string_equal(left.names, "a");
}

#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DISK(test_chunk_keys_inside_the_grid),
        ON_DISK(test_folders_go_when_they_are_empty),
        ON_DISK(test_documents),
        ON_DISK(test_temporaries_alone),
        ON_DISK(test_no_link_is_followed_or_removed),
        ON_DISK(test_a_store_goes_whole),
        ON_DISK(test_an_erasure_is_taken_up_again),
        ON_DISK(test_what_is_left_is_counted_and_named),
        ON_DISK(test_names_that_do_not_fit_are_only_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
