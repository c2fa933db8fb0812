/* Flatbuffers as trees: written ones are read again, damaged ones refused. */
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "format/icechunk/flex_write.h"
#include "format/icechunk/key.h"
#include "format/icechunk/repo_write.h"
#include "format/icechunk/session.h"
#include "format/icechunk/snapshot_write.h"

static void make_repo(cm_fb_tree *repo, cm_flat_writer *w)
{
    cm_error err = {0};
    assert_int_equal(cm_ice_repo_initial(repo, NULL, 1000000, &err), CM_OK);
    cm_ice_tip tip = {.branch = "main", .message = "first", .now_us = 1000010};
    memset(tip.id, 7, sizeof(tip.id));
    memcpy(tip.parent, cm_ice_initial_id, sizeof(tip.parent));
    assert_int_equal(cm_ice_repo_commit(repo, &tip, &err), CM_OK);
    tip.branch = "dev";
    tip.backup = "repo.1.A";
    tip.now_us += 10;
    memset(tip.parent, 7, sizeof(tip.parent));
    memset(tip.id, 3, sizeof(tip.id)); /* sorts before both */
    assert_int_equal(cm_ice_repo_commit(repo, &tip, &err), CM_OK);
    assert_int_equal(cm_fb_write(repo->root, CM_ICE_IDENTIFIER, w, &err), CM_OK);
}

static void check_repo(const cm_fb_table *root)
{
    const cm_fb_value *list = &root->value[CM_ICE_REPO_SNAPSHOTS];
    uint8_t id[CM_ICE_ID];
    memset(id, 3, sizeof(id));
    assert_memory_equal(cm_ice_repo_tip(root, "dev"), id, sizeof(id));
    memset(id, 7, sizeof(id));
    assert_memory_equal(cm_ice_repo_tip(root, "main"), id, sizeof(id));
    assert_null(cm_ice_repo_tip(root, "other"));
    assert_int_equal(list->n, 3);
    /* 03..., 07..., 0b1c...: each knows its parent by its place. */
    assert_int_equal(cm_fb_u64(list->item[0], CM_ICE_INFO_PARENT), 1);
    assert_int_equal(cm_fb_u64(list->item[1], CM_ICE_INFO_PARENT), 2);
    assert_int_equal(cm_fb_u64(list->item[2], CM_ICE_INFO_PARENT), UINT32_MAX);
    assert_true(cm_ice_repo_has(root, id));
    assert_int_equal(cm_ice_repo_updated(root), 1000020);
    assert_int_equal(root->value[CM_ICE_REPO_UPDATES].n, 4);
}

static void test_a_repository(void **state)
{
    cm_fb_tree repo, again;
    cm_flat_writer w = {0};
    cm_error err = {0};
    (void)state;
    make_repo(&repo, &w);
    check_repo(repo.root);
    assert_int_equal(cm_fb_read(w.buf.data, w.buf.nbytes, &cm_ice_repo, "repo", &again, &err),
                     CM_OK);
    check_repo(again.root);
    cm_fb_release(&again);
    cm_fb_release(&repo);
    cm_flat_release(&w);
}

/* Each byte changed in turn, and each length: read, or refused; never out of bounds. */
static void test_damage(void **state)
{
    cm_fb_tree repo, again;
    cm_flat_writer w = {0};
    cm_error err = {0};
    (void)state;
    make_repo(&repo, &w);
    for (size_t i = 0; i < w.buf.nbytes; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            uint8_t *copy = malloc(w.buf.nbytes);
            assert_non_null(copy);
            memcpy(copy, w.buf.data, w.buf.nbytes);
            copy[i] ^= (uint8_t)(1u << bit);
            int rc = cm_fb_read(copy, w.buf.nbytes, &cm_ice_repo, "repo", &again, &err);
            if (rc == CM_OK)
                cm_fb_release(&again);
            free(copy);
        }
        uint8_t *cut = malloc(i + 1);
        assert_non_null(cut);
        memcpy(cut, w.buf.data, i);
        assert_int_equal(cm_fb_read(cut, i, &cm_ice_repo, "repo", &again, &err), CM_EFORMAT);
        free(cut);
    }
    cm_fb_release(&repo);
    cm_flat_release(&w);
}

static void test_ids(void **state)
{
    char letters[CM_ICE_ID_TEXT + 1];
    (void)state;
    cm_ice_id_letters(cm_ice_initial_id, letters);
    assert_string_equal(letters, "1CECHNKREP0F1RSTCMT0");
}

/* As flexbuffers' own documentation lays values out, with 8 bytes for each number. */
static void test_flexbuffers(void **state)
{
    static const uint8_t text[] = {2, 0, 0, 0, 0, 0, 0, 0, 'h', 'i', 0, 0,  0,
                                   0, 0, 0, 8, 0, 0, 0, 0, 0,   0,   0, 23, 8};
    static const uint8_t truth[] = {1, 0, 0, 0, 0, 0, 0, 0, 107, 8};
    cm_buf out = {0};
    cm_error err = {0};
    cm_json *j = cm_json_string("hi");
    (void)state;
    assert_int_equal(cm_flex_write(j, &out, &err), CM_OK);
    cm_json_free(j);
    assert_int_equal(out.nbytes, sizeof(text));
    assert_memory_equal(out.data, text, sizeof(text));
    j = cm_json_bool(true);
    assert_int_equal(cm_flex_write(j, &out, &err), CM_OK);
    cm_json_free(j);
    assert_int_equal(out.nbytes, sizeof(truth));
    assert_memory_equal(out.data, truth, sizeof(truth));
    cm_buf_release(&out);
}

/* ---- what is in the way of a commit ---- */

#define GROUP "{\"node_type\":\"group\",\"attributes\":{}}"
#define TITLE "{\"node_type\":\"group\",\"attributes\":{\"title\":\"a\"}}"
#define OTHER "{\"node_type\":\"group\",\"attributes\":{\"title\":\"b\"}}"
#define ARRAY                                                                                      \
    "{\"node_type\":\"array\",\"shape\":[4],\"chunk_grid\":{\"name\":\"regular\","                 \
    "\"configuration\":{\"chunk_shape\":[2]}}}"

static void test_nodes_in_the_way(void **state)
{
    static const struct {
        const char *there, *document, *path, *fresh;
        bool replaces;
        int rc;
    } rows[] = {
        {"/a", GROUP, "/b", ARRAY, false, CM_OK},
        {"/a", ARRAY, "/a", ARRAY, false, CM_EEXIST},
        {"/a", ARRAY, "/a", ARRAY, true, CM_OK},
        {"/a", GROUP, "/a", TITLE, false, CM_OK},
        {"/a", TITLE, "/a", GROUP, false, CM_OK},
        {"/a", TITLE, "/a", TITLE, false, CM_OK},
        {"/a", TITLE, "/a", OTHER, false, CM_EEXIST},
        {"/a", TITLE, "/a", OTHER, true, CM_OK},
        {"/a", ARRAY, "/a/b", ARRAY, false, CM_EEXIST},
        {"/a", ARRAY, "/a/b", ARRAY, true, CM_EEXIST},
        {"/a", GROUP, "/a/b", ARRAY, false, CM_OK},
        {"/a", GROUP, "/a", ARRAY, true, CM_OK},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cm_fb_tree tree;
        cm_error err = {0};
        cm_fb_table *node, *data;
        cm_ice_new_node fresh = {
            .path = rows[i].path, .document = rows[i].fresh, .nbytes = strlen(rows[i].fresh)};
        const bool is_array = strcmp(rows[i].document, ARRAY) == 0;
        assert_int_equal(cm_ice_snapshot_initial(&tree, 1, &err), CM_OK);
        node = cm_fb_table_new(&tree, &cm_ice_node, &err);
        data = cm_fb_table_new(&tree, is_array ? &cm_ice_array : &cm_ice_group, &err);
        assert_int_equal(cm_fb_set(&tree, node, CM_ICE_NODE_NODE_ID, "12345678", 1, &err), CM_OK);
        assert_int_equal(cm_fb_set_text(&tree, node, CM_ICE_NODE_PATH, rows[i].there, &err), CM_OK);
        assert_int_equal(cm_fb_set_text(&tree, node, CM_ICE_NODE_DOCUMENT, rows[i].document, &err),
                         CM_OK);
        assert_int_equal(cm_fb_set_u64(&tree, node, CM_ICE_NODE_TYPE,
                                       is_array ? CM_ICE_IS_ARRAY : CM_ICE_IS_GROUP, &err),
                         CM_OK);
        assert_int_equal(cm_fb_set_tables(&tree, node, CM_ICE_NODE_DATA, &data, 1, &err), CM_OK);
        assert_int_equal(cm_fb_set_tables(&tree, tree.root, CM_ICE_SNAPSHOT_NODES, &node, 1, &err),
                         CM_OK);
        assert_int_equal(cm_ice_node_parse(&fresh, &err), CM_OK);
        const cm_ice_change change = {.node = &fresh, .n = 1, .replaces = rows[i].replaces};
        if (cm_ice_snapshot_check(tree.root, NULL, &change, &err) != rows[i].rc)
            fail_msg("row %zu: not %d (%s)", i, rows[i].rc, err.text);
        cm_ice_node_release(&fresh);
        cm_fb_release(&tree);
    }
}

/* Lists of chunks that wait for the name of their file: no more than there are, or a file holds. */
static void test_memory_of_packs(void **state)
{
    static const struct {
        uint64_t file_nbytes, nchunks;
        size_t least, most;
    } c[] = {
        {1 << 24, 0, 0, 0},
        {1 << 24, 10, 10 * 40, 10 * 200},
        {1 << 24, 1 << 30, 32768 * 40, 32768 * 200},
        {1 << 12, 1 << 30, 8 * 40, 10 * 200},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        cm_store *root = NULL, *session = NULL;
        cm_ice_records records = {.chunks = -1, .small = -1, .files = -1};
        size_t index;
        assert_int_equal(cm_store_open_memory(&root, NULL), CM_OK);
        assert_int_equal(cm_ice_session_open(root, &records, c[i].file_nbytes, &session, NULL),
                         CM_OK);
        assert_int_equal(cm_ice_session_add(session, "v", 1, &c[i].nchunks, &index, NULL), CM_OK);
        assert_in_range(cm_store_put_nbytes(session), c[i].least, c[i].most);
        assert_int_equal(cm_store_put_nbytes(root), 0);
        cm_store_free(session);
        cm_store_free(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_repository),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_flexbuffers),
        cmocka_unit_test(test_nodes_in_the_way),
        cmocka_unit_test(test_memory_of_packs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
