/* Opening hierarchies, writing their metadata, and erasing them. */
#include "zarr_support.h"

#include "format/zarr/erase.h"

/* The paths of STORE's nodes, joined; "!" behind those that are not supported. */
static void assert_paths(cm_store *store, bool consolidated, const char *want)
{
    cm_zarr_tree tree;
    cm_error err = {0};
    OK(cm_zarr_open(store, &tree, &err));
    char got[1000] = "";
    for (size_t i = 0; i < tree.nnodes; i++) {
        strcat(got, tree.node[i].path);
        strcat(got, tree.node[i].meta.is_group ? "/" : "");
        strcat(got, tree.node[i].unsupported ? "! " : " ");
        assert_ptr_equal(cm_zarr_find(&tree, tree.node[i].path), &tree.node[i]);
    }
    assert_string_equal(got, want);
    assert_int_equal(tree.consolidated, consolidated);
    assert_null(cm_zarr_find(&tree, "no/such"));
    cm_zarr_tree_release(&tree);
}

static void assert_refused(cm_store *store, int rc, const char *part)
{
    cm_zarr_tree tree;
    cm_error err = {0};
    assert_int_equal(cm_zarr_open(store, &tree, &err), rc);
    if (!strstr(err.text, part))
        fail_msg("%s", err.text);
    assert_int_equal(tree.nnodes, 0);
}

static void test_walk_v3(void **state)
{
    (void)state;
    char text[1000];
    array_json(text, sizeof text, "[4]", "[2]", "[\"bytes\"]");
    cm_store *s = memory_store();
    assert_refused(s, CM_EFORMAT, "no Zarr store");
    put_text(s, "a/zarr.json", GROUP_JSON);
    put_text(s, "a/x/zarr.json", text);
    assert_paths(s, false, "/ a/ a/x "); /* the root is implied */
    put_text(s, "zarr.json", GROUP_JSON);
    put_text(s, "a-b/zarr.json", GROUP_JSON);
    put_text(s, "a/x/c/0", "ab");
    put_text(s, "a/x/below/zarr.json", GROUP_JSON); /* nothing is below an array */
    put_text(s, "stray/folder/zarr.json", GROUP_JSON);
    array_json(text, sizeof text, "[4]", "[2]", "[\"mystery\"]");
    put_text(s, "z/zarr.json", text);
    put_text(s, "stray/notes", "mine");
    put_text(s, "empty/other/.zgroup", "{\"zarr_format\":2}"); /* of the other format */
    assert_paths(s, false, "/ a/ a-b/ a/x stray/ stray/folder/ z! ");
    cm_zarr_tree tree;
    assert_int_equal(cm_zarr_open(s, &tree, NULL), CM_OK);
    assert_true(cm_zarr_find(&tree, "stray")->implied);
    assert_false(cm_zarr_find(&tree, "stray/folder")->implied);
    assert_int_equal(tree.nforeign, 2);
    assert_string_equal(tree.foreign, "empty/other/.zgroup");
    cm_zarr_tree_release(&tree);

    put_text(s, "a/y/zarr.json", "{\"zarr_format\":3");
    assert_refused(s, CM_EFORMAT, "a/y/zarr.json: ");
    put_text(s, "a/y/zarr.json", "{\"zarr_format\":3,\"node_type\":\"array\"}");
    assert_refused(s, CM_EFORMAT, "a/y/zarr.json: shape");
    put_text(s, "zarr.json", "[]");
    assert_refused(s, CM_EFORMAT, "zarr.json: not an object");
    cm_store_free(s);
}

static void test_root_array(void **state)
{
    (void)state;
    char text[1000];
    cm_store *s = memory_store();
    put_text(s, "zarr.json", array_json(text, sizeof text, "[4]", "[2]", "[\"bytes\"]"));
    put_text(s, "c/zarr.json", GROUP_JSON);
    assert_paths(s, false, " ");
    cm_store_free(s);
}

#define ZARRAY                                                                                     \
    "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\"<i2\",\"compressor\":null,"       \
    "\"fill_value\":0,\"filters\":null,\"order\":\"C\"}"

static void test_walk_v2(void **state)
{
    (void)state;
    cm_store *s = memory_store();
    put_text(s, ".zgroup", "{\"zarr_format\":2}");
    put_text(s, "g/.zgroup", "{\"zarr_format\":2}");
    put_text(s, "g/.zattrs", "{\"a\":1}");
    put_text(s, "g/x/.zarray", ZARRAY);
    put_text(s, "g/x/.zattrs", "{\"_ARRAY_DIMENSIONS\":[\"t\"]}");
    put_text(s, "g/s/.zarray",
             "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":[[\"a\",\"<i2\"]],"
             "\"compressor\":null,\"fill_value\":null,\"filters\":null,\"order\":\"C\"}");
    assert_paths(s, false, "/ g/ g/s! g/x ");
    cm_zarr_tree tree;
    assert_int_equal(cm_zarr_open(s, &tree, NULL), CM_OK);
    assert_string_equal(cm_zarr_find(&tree, "g/x")->meta.dim_name[0], "t");
    assert_int_equal(cm_zarr_find(&tree, "g/s")->meta.shape[0], 4);
    cm_zarr_tree_release(&tree);
    put_text(s, "g/.zattrs", "{");
    assert_refused(s, CM_EFORMAT, "g/.zattrs: ");
    cm_store_free(s);
}

static void test_consolidated_v2(void **state)
{
    (void)state;
    cm_store *s = memory_store();
    put_text(s, ".zmetadata",
             "{\"zarr_consolidated_format\":1,\"metadata\":{\"b/c/x/.zattrs\":{\"u\":1},"
             "\"b/c/x/.zarray\":" ZARRAY ",\"b-/.zgroup\":{\"zarr_format\":2},"
             "\".zattrs\":{\"t\":2},\"lost/.zattrs\":{}}}");
    assert_paths(s, true, "/ b/ b-/ b/c/ b/c/x ");
    /* Not valid: the folders count. */
    put_text(s, ".zgroup", "{\"zarr_format\":2}");
    put_text(s, ".zmetadata",
             "{\"zarr_consolidated_format\":1,\"metadata\":{\"../x/.zgroup\":"
             "{\"zarr_format\":2}}}");
    assert_paths(s, false, "/ ");
    put_text(s, ".zmetadata", "{\"metadata\":{\".zgroup\":{\"zarr_format\":2}}}");
    assert_paths(s, false, "/ ");
    put_text(s, ".zmetadata", "oops");
    assert_paths(s, false, "/ ");
    cm_store_free(s);
}

static void test_consolidated_v3(void **state)
{
    (void)state;
    char array[1000], root[3000];
    array_json(array, sizeof array, "[4]", "[2]", "[\"bytes\"]");
    static const struct {
        const char *metadata;
        bool used;
        const char *paths;
    } row[] = {
        {"{\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{\"q/w/x\":%s}}", true,
         "/ q/ q/w/ q/w/x "},
        {"{\"kind\":\"inline\",\"metadata\":{}}", false, "/ real/ "},
        {"null", false, "/ real/ "},
        {"{\"kind\":\"elsewhere\",\"metadata\":{\"q\":%s}}", false, "/ real/ "},
        {"{\"kind\":\"inline\",\"metadata\":{\"/q\":%s}}", false, "/ real/ "},
        {"{\"kind\":\"inline\",\"metadata\":{\"q/../x\":%s}}", false, "/ real/ "},
        {"{\"kind\":\"inline\",\"metadata\":{\"q\":{\"zarr_format\":3}}}", false, "/ real/ "},
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_store *s = memory_store();
        char consolidated[2000];
        snprintf(consolidated, sizeof consolidated, row[i].metadata, array);
        snprintf(root, sizeof root,
                 "{\"zarr_format\":3,\"node_type\":\"group\",\"consolidated_metadata\":%s}",
                 consolidated);
        put_text(s, "zarr.json", root);
        put_text(s, "real/zarr.json", GROUP_JSON);
        assert_paths(s, row[i].used, row[i].paths);
        cm_store_free(s);
    }
}

/* ---- writing ---- */

static void test_hierarchy_write(void **state)
{
    (void)state;
    char text[1000];
    cm_error err = {0};
    cm_zarr_meta array = meta_v3(array_json(text, sizeof text, "[4]", "[2]", "[\"bytes\"]"));
    cm_zarr_meta group = meta_v3(GROUP_JSON);
    for (int format = 2; format <= 3; format++) {
        OK(cm_zarr_meta_set_format(&array, format, &err));
        OK(cm_zarr_meta_set_format(&group, format, &err));
        for (int consolidated = 0; consolidated <= 1; consolidated++) {
            cm_store *s = memory_store();
            const cm_zarr_entry entry[] = {
                {"g/B", &array}, {"g/a/deep/x", &array}, {"g", &group}, {"s", &array}};
            OK(cm_zarr_hierarchy_write(s, format, entry, COUNT(entry), consolidated, &err));
            assert_paths(s, consolidated, "/ g/ g/B g/a/ g/a/deep/ g/a/deep/x s ");
            assert_int_equal(has_key(s, ".zmetadata"), format == 2 && consolidated);
            cm_store_free(s);
        }
    }
    cm_zarr_meta_release(&array);
    cm_zarr_meta_release(&group);
}

static void test_hierarchy_refused(void **state)
{
    (void)state;
    char text[1000];
    cm_zarr_meta array = meta_v3(array_json(text, sizeof text, "[4]", "[2]", "[\"bytes\"]"));
    const struct {
        cm_zarr_entry entry[2];
        size_t n;
        const char *error;
    } row[] = {
        {{{"a", &array}, {"a", &array}}, 2, "two nodes a"},
        {{{"a", &array}, {"a/b", &array}}, 2, "a/b lies below a"},
        {{{"a", &array}, {"a/b/c", &array}}, 2, "a/b/c lies below a"},
        {{{"", &array}, {"b", &array}}, 2, "b lies below the root"},
        {{{"", &array}, {"", &array}}, 2, "two nodes /"},
        {{{"a/.zarray", &array}}, 1, "Zarr's own"},
        {{{"a//b", &array}}, 1, "empty"},
        {{{"a/", &array}}, 1, "ends with"},
        {{{"/a", &array}}, 1, "empty"},
        {{{"../a", &array}}, 1, "dots"},
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_store *s = memory_store();
        cm_error err = {0};
        assert_int_equal(cm_zarr_hierarchy_write(s, 3, row[i].entry, row[i].n, true, &err),
                         CM_EINVAL);
        if (!strstr(err.text, row[i].error))
            fail_msg("%s: %s", row[i].error, err.text);
        assert_int_equal(cm_store_count(s).nput, 0);
        cm_store_free(s);
    }
    cm_zarr_meta_release(&array);
}

/* ---- erasing ---- */

static void test_erase(void **state)
{
    (void)state;
    char text[1000];
    cm_error err = {0};
    static const struct {
        const char *keys; /* what chunk_key_encoding is */
        const char *mine[4], *foreign[6];
    } row[] = {
        {"\"default\"",
         {"x/c/0/0", "x/c/1/1"},
         {"x/c/1/0/0", "x/c/00/1", "x/c/1/2", "x/c/99/0", "x/0.0", "x/c/1/1.tmp"}},
        {"{\"name\":\"default\",\"configuration\":{\"separator\":\".\"}}",
         {"x/c.0.0", "x/c.1.0"},
         {"x/c.0", "x/c.0.0.0", "x/c.0.2", "x/c/0/1", "x/c.0.", "x/c.01.1"}},
        {"\"v2\"", {"x/0.0", "x/1.1"}, {"x/0", "x/7.1", "x/c/0/0", "x/.0", "x/-1.0", "x/0.0x"}},
        {"{\"name\":\"v2\",\"configuration\":{\"separator\":\"/\"}}",
         {"x/0/0", "x/1/0"},
         {"x/3/1", "x/1/x", "x/1/2/3", "y/0/0", "x/0.0", "x/99999999999999999999999/0"}},
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_store *s = memory_store();
        array_json(text, sizeof text, "[4,4]", "[2,2]", "[\"bytes\"]");
        char *at = strstr(text, "\"default\""), rest[1000];
        assert_non_null(at);
        strcpy(rest, at + strlen("\"default\""));
        sprintf(at, "%s%s", row[i].keys, rest);
        put_text(s, "zarr.json", GROUP_JSON);
        put_text(s, "x/zarr.json", text);
        size_t nforeign = 0;
        for (size_t k = 0; k < 4 && row[i].mine[k]; k++)
            put_text(s, row[i].mine[k], "chunk");
        for (; nforeign < 6 && row[i].foreign[nforeign]; nforeign++)
            put_text(s, row[i].foreign[nforeign], "not ours");
        cm_zarr_left left;
        OK(cm_zarr_erase(s, &err));
        OK(cm_zarr_count_left(s, &left, &err));
        assert_int_equal(left.n, nforeign);
        for (size_t k = 0; k < 4 && row[i].mine[k]; k++)
            assert_false(has_key(s, row[i].mine[k]));
        for (size_t k = 0; k < nforeign; k++)
            assert_true(has_key(s, row[i].foreign[k]));
        assert_false(has_key(s, "zarr.json") || has_key(s, "x/zarr.json"));
        assert_int_equal(cm_zarr_erase(s, &err), CM_EFORMAT);
        cm_store_free(s);
    }
}

static void test_erase_odd_stores(void **state)
{
    (void)state;
    cm_error err = {0};
    cm_zarr_left left;
    cm_store *s = memory_store();
    put_text(s, "data.csv", "1,2");
    put_text(s, "sub/zarr.json", GROUP_JSON); /* a folder of stores is no store */
    assert_int_equal(cm_zarr_erase(s, &err), CM_EFORMAT);
    assert_true(has_key(s, "data.csv") && has_key(s, "sub/zarr.json"));

    put_text(s, "zarr.json", GROUP_JSON);
    put_text(s, "broken/zarr.json", "{");
    put_text(s, "broken/c/0", "?");
    OK(cm_zarr_erase(s, &err));
    OK(cm_zarr_count_left(s, &left, &err));
    assert_int_equal(left.n, 2); /* data.csv, and what may or may not be a chunk */
    cm_store_free(s);

    s = memory_store(); /* v2 with consolidated metadata alone at its root */
    put_text(s, ".zmetadata", "{}");
    put_text(s, "x/.zarray", ZARRAY);
    put_text(s, "x/.zattrs", "{}");
    put_text(s, "x/0", "ab");
    OK(cm_zarr_erase(s, &err));
    OK(cm_zarr_count_left(s, &left, &err));
    assert_int_equal(left.n, 0);
    cm_store_free(s);

    s = memory_store();
    char text[1000];
    put_text(s, "zarr.json", array_json(text, sizeof text, "[]", "[]", "[\"bytes\"]"));
    put_text(s, "c", "ab");
    OK(cm_zarr_erase(s, &err));
    OK(cm_zarr_count_left(s, &left, &err));
    assert_int_equal(left.n, 0);
    cm_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk_v3),           cmocka_unit_test(test_root_array),
        cmocka_unit_test(test_walk_v2),           cmocka_unit_test(test_consolidated_v2),
        cmocka_unit_test(test_consolidated_v3),   cmocka_unit_test(test_hierarchy_write),
        cmocka_unit_test(test_hierarchy_refused), cmocka_unit_test(test_erase),
        cmocka_unit_test(test_erase_odd_stores),
    };
    return cmocka_run_group_tests_name("zarr/tree", tests, NULL, NULL);
}
