/* Manifests searched in place, those that are kept, parts of arrays, ids and flexbuffers. */
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "format/icechunk/flex_read.h"
#include "format/icechunk/flex_write.h"
#include "format/icechunk/key.h"
#include "format/icechunk/read_impl.h"

enum {
    MOST = 4
};

/* References of one array: indices of RANK numbers. */
typedef struct array {
    const char *node;
    unsigned rank, n;
    uint32_t index[MOST][2];
} array;

static uint32_t table(cm_flat_writer *w, uint32_t from, const cm_flat_field *field, size_t n,
                      cm_flat_shape *shape)
{
    uint32_t at;
    assert_int_equal(cm_flat_shape_of(w, field, n, shape, NULL), CM_OK);
    assert_int_equal(cm_flat_table(w, shape, &at, NULL), CM_OK);
    cm_flat_point(w, from, at);
    return at;
}

/* A chunk "I" inline, or in a file at offset I, I being its number. */
static void add_ref(cm_flat_writer *w, uint32_t from, const array *a, unsigned i)
{
    static const cm_flat_field small[] = {CM_FLAT_OFFSET(CM_ICE_CHUNK_INDEX),
                                          CM_FLAT_OFFSET(CM_ICE_CHUNK_INLINE)};
    static const cm_flat_field file[] = {CM_FLAT_OFFSET(CM_ICE_CHUNK_INDEX),
                                         {CM_ICE_CHUNK_OFFSET, 8, 8},
                                         {CM_ICE_CHUNK_LENGTH, 8, 8},
                                         {CM_ICE_CHUNK_ID, CM_ICE_ID, 1}};
    cm_flat_shape shape;
    const bool in_file = i % 2 == 1;
    const uint8_t byte = (uint8_t)i, id[CM_ICE_ID] = {byte};
    uint8_t number[8] = {byte};
    const uint32_t at = table(w, from, in_file ? file : small, in_file ? 4 : 2, &shape);
    assert_int_equal(cm_flat_vector(w, at + shape.at[CM_ICE_CHUNK_INDEX], a->index[i], a->rank, 4,
                                    4, NULL, NULL),
                     CM_OK);
    if (!in_file) {
        assert_int_equal(
            cm_flat_vector(w, at + shape.at[CM_ICE_CHUNK_INLINE], &byte, 1, 1, 1, NULL, NULL),
            CM_OK);
        return;
    }
    cm_flat_set(w, at + shape.at[CM_ICE_CHUNK_OFFSET], number, 8);
    cm_flat_set(w, at + shape.at[CM_ICE_CHUNK_LENGTH], number, 8);
    cm_flat_set(w, at + shape.at[CM_ICE_CHUNK_ID], id, CM_ICE_ID);
}

static void make_manifest(cm_flat_writer *w, const array *a, size_t n)
{
    static const cm_flat_field fields[] = {{CM_ICE_MANIFEST_ID, CM_ICE_ID, 1},
                                           CM_FLAT_OFFSET(CM_ICE_MANIFEST_ARRAYS)};
    static const cm_flat_field refs[] = {{CM_ICE_REFS_NODE, CM_ICE_NODE_ID, 1},
                                         CM_FLAT_OFFSET(CM_ICE_REFS_LIST)};
    cm_flat_shape shape;
    uint32_t first, list;
    assert_int_equal(cm_flat_begin(w, CM_ICE_IDENTIFIER, NULL), CM_OK);
    const uint32_t root = table(w, 0, fields, 2, &shape);
    assert_int_equal(
        cm_flat_vector(w, root + shape.at[CM_ICE_MANIFEST_ARRAYS], NULL, n, 4, 4, &first, NULL),
        CM_OK);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = table(w, first + 4 * i, refs, 2, &shape);
        cm_flat_set(w, at + shape.at[CM_ICE_REFS_NODE], a[i].node, CM_ICE_NODE_ID);
        assert_int_equal(
            cm_flat_vector(w, at + shape.at[CM_ICE_REFS_LIST], NULL, a[i].n, 4, 4, &list, NULL),
            CM_OK);
        for (uint32_t k = 0; k < a[i].n; k++)
            add_ref(w, list + 4 * k, &a[i], k);
    }
}

/* Puts the manifest whose id begins with NUMBER. */
static void put_manifest(cm_store *root, uint8_t number, const cm_buf *flat)
{
    const uint8_t id[CM_ICE_ID] = {number};
    char key[CM_ICE_KEY_SIZE];
    cm_ice_key("manifests", id, key);
    assert_int_equal(cm_ice_file_write(root, key, CM_ICE_MANIFEST_FILE, flat, NULL, NULL), CM_OK);
}

static const array SOUND[] = {{"aaaaaaaa", 2, 4, {{0, 1}, {0, 7}, {2, 0}, {2, 9}}},
                              {"bbbbbbbb", 1, 3, {{0}, {3}, {UINT32_MAX}}},
                              {"cccccccc", 0, 1, {{0}}}};

static void test_search(void **state)
{
    const uint8_t id[CM_ICE_ID] = {1};
    cm_flat_writer w = {0};
    cm_ice_manifest_view m;
    cm_ice_chunk chunk;
    cm_store *root;
    (void)state;
    assert_int_equal(cm_store_open_memory(&root, NULL), CM_OK);
    make_manifest(&w, SOUND, 3);
    put_manifest(root, 1, &w.buf);
    assert_int_equal(cm_ice_manifest_read(root, id, &m, NULL), CM_OK);
    for (size_t i = 0; i < 3; i++) {
        const cm_ice_refs refs = cm_ice_manifest_refs(&m, (const uint8_t *)SOUND[i].node);
        assert_int_equal(refs.list.n, SOUND[i].n);
        assert_int_equal(refs.rank, SOUND[i].rank);
        for (unsigned k = 0; k < SOUND[i].n; k++) {
            assert_true(cm_ice_refs_find(&refs, SOUND[i].index[k], &chunk));
            assert_int_equal(chunk.where, k % 2 == 1 ? CM_ICE_IN_FILE : CM_ICE_INLINE);
            assert_int_equal(k % 2 == 1 ? chunk.id[0] : chunk.bytes[0], k);
            assert_int_equal(chunk.nbytes, k % 2 == 1 ? k : 1);
        }
    }
    const cm_ice_refs refs = cm_ice_manifest_refs(&m, (const uint8_t *)"aaaaaaaa");
    assert_false(cm_ice_refs_find(&refs, (const uint32_t[]){0, 2}, &chunk));
    assert_false(cm_ice_refs_find(&refs, (const uint32_t[]){2, 10}, &chunk));
    assert_int_equal(cm_ice_refs_bound(&refs, (const uint32_t[]){0}, 1, true), 2);
    assert_int_equal(cm_ice_refs_bound(&refs, (const uint32_t[]){1}, 1, false), 2);
    assert_int_equal(cm_ice_manifest_refs(&m, (const uint8_t *)"abbbbbbb").list.n, 0);
    cm_ice_manifest_release(&m);
    cm_store_free(root);
    cm_flat_release(&w);
}

static void test_what_is_not_sound(void **state)
{
    static const struct {
        array a[2];
        const char *why;
    } rows[] = {
        {{{"aaaaaaaa", 1, 2, {{1}, {0}}}, {"bbbbbbbb", 0, 0, {{0}}}}, "references are not sorted"},
        {{{"aaaaaaaa", 1, 2, {{1}, {1}}}, {"bbbbbbbb", 0, 0, {{0}}}}, "references are not sorted"},
        {{{"aaaaaaaa", 0, 2, {{0}, {0}}}, {"bbbbbbbb", 0, 0, {{0}}}}, "references are not sorted"},
        {{{"bbbbbbbb", 0, 0, {{0}}}, {"aaaaaaaa", 0, 0, {{0}}}}, "arrays are not sorted"},
        {{{"aaaaaaaa", 0, 0, {{0}}}, {"aaaaaaaa", 0, 0, {{0}}}}, "arrays are not sorted"},
    };
    const uint8_t id[CM_ICE_ID] = {1};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cm_flat_writer w = {0};
        cm_ice_manifest_view m;
        cm_error err = {0};
        cm_store *root;
        assert_int_equal(cm_store_open_memory(&root, NULL), CM_OK);
        make_manifest(&w, rows[i].a, 2);
        put_manifest(root, 1, &w.buf);
        assert_int_equal(cm_ice_manifest_read(root, id, &m, &err), CM_EFORMAT);
        if (strstr(err.text, rows[i].why) == NULL)
            fail_msg("row %zu: %s", i, err.text);
        cm_store_free(root);
        cm_flat_release(&w);
    }
}

/* Every byte changed in turn: each file that still opens is searched within its bounds. */
static void test_damage(void **state)
{
    const uint8_t id[CM_ICE_ID] = {1};
    cm_flat_writer w = {0};
    cm_store *root;
    (void)state;
    assert_int_equal(cm_store_open_memory(&root, NULL), CM_OK);
    make_manifest(&w, SOUND, 3);
    for (size_t i = 0; i < w.buf.nbytes; i++) {
        cm_ice_manifest_view m;
        w.buf.data[i] ^= 0x81;
        put_manifest(root, 1, &w.buf);
        w.buf.data[i] ^= 0x81;
        if (cm_ice_manifest_read(root, id, &m, NULL) != CM_OK)
            continue;
        for (size_t k = 0; k < 3; k++) {
            const cm_ice_refs refs = cm_ice_manifest_refs(&m, (const uint8_t *)SOUND[k].node);
            for (size_t j = 0; j < refs.list.n; j++) {
                uint32_t index[CM_MAX_RANK];
                cm_ice_chunk chunk;
                cm_ice_refs_index(&refs, j, index);
                assert_true(cm_ice_refs_find(&refs, index, &chunk));
            }
        }
        cm_ice_manifest_release(&m);
    }
    cm_store_free(root);
    cm_flat_release(&w);
}

/* Reads manifests NUMBER in turn; returns how many were read from the store. */
static uint64_t read_in_turn(size_t max_nbytes, const char *numbers)
{
    cm_flat_writer w = {0};
    cm_ice_shelf *shelf;
    cm_store *root;
    assert_int_equal(cm_store_open_memory(&root, NULL), CM_OK);
    assert_int_equal(cm_ice_shelf_create(root, max_nbytes, &shelf, NULL), CM_OK);
    make_manifest(&w, SOUND, 3);
    for (uint8_t i = 'a'; i <= 'c'; i++)
        put_manifest(root, i, &w.buf);
    for (; *numbers != '\0'; numbers++) {
        const uint8_t id[CM_ICE_ID] = {(uint8_t)*numbers};
        const cm_ice_manifest_view *m;
        assert_int_equal(cm_ice_shelf_take(shelf, id, &m, NULL), CM_OK);
        const cm_ice_manifest_view *same = cm_ice_shelf_peek(shelf, id);
        assert_ptr_equal(same, m);
        cm_ice_shelf_give(shelf, same);
        cm_ice_shelf_give(shelf, m);
    }
    const uint64_t nget = cm_store_count(root).nget;
    cm_ice_shelf_free(shelf);
    cm_store_free(root);
    cm_flat_release(&w);
    return nget;
}

static void test_those_that_stay(void **state)
{
    (void)state;
    assert_int_equal(read_in_turn(1 << 20, "abcabcc"), 3);
    assert_int_equal(read_in_turn(1, "aabbca"), 4);    /* the latest stays */
    assert_int_equal(read_in_turn(4000, "abacab"), 4); /* two of them: b goes for c, and c for b */
}

static void test_missing_manifest(void **state)
{
    const uint8_t id[CM_ICE_ID] = {1};
    const cm_ice_manifest_view *m;
    cm_ice_shelf *shelf;
    cm_store *root;
    cm_error err = {0};
    (void)state;
    assert_int_equal(cm_store_open_memory(&root, NULL), CM_OK);
    assert_int_equal(cm_ice_shelf_create(root, 1, &shelf, NULL), CM_OK);
    assert_null(cm_ice_shelf_peek(shelf, id));
    assert_int_equal(cm_ice_shelf_take(shelf, id, &m, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, "is missing"));
    cm_ice_shelf_free(shelf);
    cm_store_free(root);
}

/* Parts sorted by their first dimension; the first three overlap there. */
static void test_parts(void **state)
{
    static const uint32_t box[][4] = {
        {0, 4, 0, 5}, {0, 4, 5, 9}, {2, 8, 9, 12}, {8, 9, 0, 12}, {20, 21, 0, 1}};
    static const struct {
        uint32_t index[2];
        size_t part;
    } rows[] = {{{0, 0}, 0},  {{3, 4}, 0},   {{3, 5}, 1},  {{3, 9}, 2},  {{7, 11}, 2},
                {{1, 9}, 99}, {{7, 0}, 99},  {{8, 11}, 3}, {{20, 0}, 4}, {{20, 1}, 99},
                {{9, 0}, 99}, {{21, 0}, 99}, {{4, 5}, 99}};
    uint8_t bytes[5][16];
    cm_ice_part part[5];
    uint32_t reach = 0;
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < 4; j++)
            cm_store_le32(bytes[i] + 4 * j, box[i][j]);
        reach = box[i][1] > reach ? box[i][1] : reach;
        part[i] = (cm_ice_part){.box = bytes[i], .from = box[i][0], .reach = reach};
    }
    const cm_ice_seen node = {.rank = 2, .part = part, .nparts = 5};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t next = SIZE_MAX;
        const cm_ice_part *found = cm_ice_seen_part(&node, rows[i].index, &next);
        if ((found == NULL ? 99 : (size_t)(found - part)) != rows[i].part)
            fail_msg("row %zu", i);
        if (found != NULL)
            assert_null(cm_ice_seen_part(&node, rows[i].index, &next));
    }
}

static void test_letters(void **state)
{
    static const char *const none[] = {"",
                                       "1CECHNKREP0F1RSTCMT",
                                       "1CECHNKREP0F1RSTCMT00",
                                       "1CECHNKREP0F1RSTCMT1", /* bits behind the last */
                                       "1cechnkrep0f1rstcmt0",
                                       "1CECHNKREP0F1RSTCMU0",
                                       "../../../../../../.."};
    uint8_t id[CM_ICE_ID];
    char letters[CM_ICE_ID_TEXT + 1];
    (void)state;
    assert_true(cm_ice_id_parse("1CECHNKREP0F1RSTCMT0", id));
    cm_ice_id_letters(id, letters);
    assert_string_equal(letters, "1CECHNKREP0F1RSTCMT0");
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(cm_ice_id_parse(none[i], id));
}

static void test_flexbuffers(void **state)
{
    static const char text[] = "{\"containers\":{\"a\":{\"name\":\"one\",\"url\":\"s3://b/\"},"
                               "\"b\":{\"name\":null,\"url\":\"x\"}},\"n\":5}";
    cm_json *doc;
    cm_buf out = {0};
    size_t n;
    (void)state;
    assert_int_equal(cm_json_parse(text, strlen(text), &doc, NULL), CM_OK);
    assert_int_equal(cm_flex_write(doc, &out, NULL), CM_OK);
    cm_json_free(doc);
    for (size_t i = 0; i <= out.nbytes; i++) { /* changed at I, at last not at all */
        if (i < out.nbytes)
            out.data[i] ^= 0x41;
        const cm_flex root = cm_flex_root(out.data, out.nbytes);
        const cm_flex all = cm_flex_member(&root, "containers");
        for (size_t k = 0; k < cm_flex_count(&all); k++) {
            const cm_flex one = cm_flex_value(&all, k), name = cm_flex_member(&one, "name");
            const char *found = cm_flex_text(&name, &n);
            if (i < out.nbytes)
                continue;
            assert_int_equal(found != NULL, k == 0);
            assert_true(found == NULL || (n == 3 && memcmp(found, "one", 3) == 0));
        }
        if (i == out.nbytes)
            assert_int_equal(cm_flex_count(&all), 2);
        else
            out.data[i] ^= 0x41;
    }
    cm_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search),           cmocka_unit_test(test_what_is_not_sound),
        cmocka_unit_test(test_damage),           cmocka_unit_test(test_those_that_stay),
        cmocka_unit_test(test_missing_manifest), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_letters),          cmocka_unit_test(test_flexbuffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
