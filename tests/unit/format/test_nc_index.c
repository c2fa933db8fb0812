/*
 * The parsers of chunk B-trees and object headers on bytes made by hand, and the index they
 * fill.
 */
#include "format/nc/chunk_index.h"
#include "format/nc/h5_btree.h"
#include "format/nc/h5_object.h"
#include "nc_support.h"

enum {
    RANK = 1,
    KEY = 8 + 8 * (RANK + 1),
    ENTRY = KEY + 8,
    NODE = 512, /* where each node of the test lies: a multiple of this */
    FILE_NBYTES = 8 * NODE
};

static const cm_h5_super super = {.offset_nbytes = 8, .length_nbytes = 8};

static void put_node(uint8_t *file, unsigned at, unsigned level, unsigned nentries)
{
    uint8_t *p = file + at * NODE;
    memcpy(p, "TREE", 4);
    p[4] = 1;
    p[5] = (uint8_t)level;
    p[6] = (uint8_t)nentries;
    memset(p + 8, 0xff, 16);
}

static void put_entry(uint8_t *file, unsigned at, unsigned i, uint32_t nbytes, uint32_t mask,
                      uint64_t offset, uint64_t child)
{
    uint8_t *p = file + at * NODE + 24 + i * ENTRY;
    cm_store_le32(p, nbytes);
    cm_store_le32(p + 4, mask);
    cm_store_le64(p + 8, offset);
    cm_store_le64(p + KEY, child);
}

/* Root at node 1, leaves at 2 and 3 with two chunks each, of an array of 8 chunks of 10. */
static void make_tree(uint8_t *file)
{
    memset(file, 0, FILE_NBYTES);
    put_node(file, 1, 1, 2);
    put_entry(file, 1, 0, 0, 0, 0, 2 * NODE);
    put_entry(file, 1, 1, 0, 0, 40, 3 * NODE);
    for (unsigned leaf = 2; leaf < 4; leaf++) {
        put_node(file, leaf, 0, 2);
        for (unsigned i = 0; i < 2; i++) {
            unsigned chunk = (leaf - 2) * 4 + i;
            put_entry(file, leaf, i, 100 + chunk, chunk, 10 * chunk, 1000 + chunk);
        }
    }
}

typedef struct target {
    cm_grid grid;
    cm_chunk_index index;
    unsigned nvisits;
} target;

static int add(void *context, const cm_h5_chunk *c, cm_error *err)
{
    target *t = context;
    t->nvisits++;
    return cm_chunk_index_add(&t->index, &t->grid, c->offset, c->address, c->nbytes, c->mask, err);
}

static int index_tree(const uint8_t *file, target *t, cm_error *err)
{
    static const uint64_t shape[1] = {75}, chunk[1] = {10};
    cm_source source = cm_source_of_memory(file, FILE_NBYTES);
    *t = (target){0};
    ASSERT_OK(cm_grid_init(&t->grid, 1, shape, chunk, err), *err);
    int rc = cm_h5_btree_visit(&source, &super, NODE, RANK, add, t, err);
    return rc ? rc : cm_chunk_index_finish(&t->index, &t->grid, err);
}

static void test_tree(void **state)
{
    (void)state;
    uint8_t file[FILE_NBYTES];
    target t;
    cm_error err;
    make_tree(file);
    ASSERT_OK(index_tree(file, &t, &err), err);
    assert_int_equal(t.nvisits, 4);
    assert_int_equal(t.index.nentries, 4);
    assert_int_equal(t.index.stored_nbytes, 100 + 101 + 104 + 105);
    assert_int_equal(t.index.max_nbytes, 105);
    for (uint64_t i = 0; i < 8; i++) {
        cm_chunk_place place;
        bool stored = i % 4 < 2;
        assert_int_equal(cm_chunk_index_find(&t.index, i, &place), stored);
        if (stored) {
            assert_int_equal(place.address, 1000 + i);
            assert_int_equal(place.nbytes, 100 + i);
            assert_int_equal(place.mask, i);
        }
    }
    cm_chunk_place place;
    assert_false(cm_chunk_index_find(&t.index, 8, &place));
    cm_chunk_index_release(&t.index);
}

/* One change to the tree, and what is said of it. */
static const struct {
    const char *name;
    unsigned at; /* byte */
    uint8_t value[8];
    unsigned nbytes;
    const char *text; /* NULL: fine */
} changes[] = {
    {"no signature", NODE, "TRED", 4, "has no signature"},
    {"a node of symbols", NODE + 4, {0}, 1, "is not one of chunks"},
    {"a high level", NODE + 5, {200}, 1, "too high a level"},
    {"a leaf as a node", 2 * NODE + 5, {1}, 1, "is of the wrong level"},
    {"a child of itself", NODE + 24 + KEY, {0, 2}, 2, "is of the wrong level"},
    {"a child outside", NODE + 24 + KEY, {0xff, 0xff, 0xff, 0x7f}, 4, "lies outside the file"},
    {"no child",
     NODE + 24 + KEY,
     {255, 255, 255, 255, 255, 255, 255, 255},
     8,
     "a child without an address"},
    {"no chunk",
     2 * NODE + 24 + KEY,
     {255, 255, 255, 255, 255, 255, 255, 255},
     8,
     "a chunk without an address"},
    {"too many entries", 3 * NODE + 6, {0xff, 0xff}, 2, "reaches past the end"},
    {"twice the same", 3 * NODE + 24 + 8, {10}, 1, "chunk number 1 is there twice"},
    {"between chunks", 3 * NODE + 24 + 8, {41}, 1, "element 41 of dimension 0 begins no chunk"},
    {"an empty chunk", 2 * NODE + 24, {0}, 1, "a chunk of 0 bytes"},
    {"a leaf named twice", NODE + 24 + ENTRY + KEY + 1, {4}, 1, "is there twice"},
    {"past the array", 3 * NODE + 24 + ENTRY + 8, {200}, 1, NULL},
    {"an empty leaf", 3 * NODE + 6, {0}, 1, NULL},
};

static void test_corrupt_tree(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        uint8_t file[FILE_NBYTES];
        target t;
        cm_error err = {0};
        make_tree(file);
        memcpy(file + changes[i].at, changes[i].value, changes[i].nbytes);
        int rc = index_tree(file, &t, &err);
        if (changes[i].text ? rc != CM_EFORMAT || !strstr(err.text, changes[i].text) : rc)
            fail_msg("%s: %d, %s", changes[i].name, rc, err.text);
        cm_chunk_index_release(&t.index);
    }
}

/* Fifteen levels of nodes with all children the same would be visited 8^15 times. */
static void test_endless_tree(void **state)
{
    (void)state;
    enum {
        LEVELS = 16
    };
    static uint8_t file[(LEVELS + 1) * NODE];
    target t = {0};
    cm_error err;
    for (unsigned n = 1; n <= LEVELS; n++) {
        put_node(file, n, LEVELS - n, n < LEVELS ? 8 : 0);
        for (unsigned i = 0; i < 8; i++)
            put_entry(file, n, i, 1, 0, 0, (n + 1) * NODE);
    }
    cm_source source = cm_source_of_memory(file, sizeof file);
    assert_int_equal(cm_h5_btree_visit(&source, &super, NODE, RANK, add, &t, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, "a tree larger than the file"));
}

static int count_visit(void *context, const cm_h5_chunk *c, cm_error *err)
{
    (void)c;
    (void)err;
    ++*(uint64_t *)context;
    return CM_OK;
}

/* A root that names one leaf as often as it can: 65,535 x 65,535 chunks of a file of 5 MB. */
static void test_leaf_named_often(void **state)
{
    (void)state;
    enum {
        N = 65535,
        LEAF = 24 + N * ENTRY
    };
    size_t nbytes = 2 * (size_t)LEAF;
    uint8_t *file = calloc(nbytes, 1);
    assert_non_null(file);
    for (size_t node = 0; node < 2; node++) {
        put_node(file + node * LEAF, 0, 1 - (unsigned)node, 0);
        memset(file + node * LEAF + 6, 0xff, 2); /* N */
        for (unsigned i = 0; i < N; i++)
            put_entry(file + node * LEAF, 0, i, 10, 0, 10 * i, LEAF);
    }
    static const uint64_t shape[1] = {10 * N}, chunk[1] = {10};
    cm_source source = cm_source_of_memory(file, nbytes);
    uint64_t nvisits = 0;
    cm_error err;
    assert_int_equal(cm_h5_btree_visit(&source, &super, 0, RANK, count_visit, &nvisits, &err),
                     CM_EFORMAT);
    assert_non_null(strstr(err.text, "a tree larger than the file"));
    assert_int_equal(nvisits, N);
    target t = {0};
    ASSERT_OK(cm_grid_init(&t.grid, 1, shape, chunk, &err), err);
    assert_int_equal(cm_h5_btree_visit(&source, &super, 0, RANK, add, &t, &err), CM_EFORMAT);
    assert_int_equal(t.index.nentries, N);
    cm_chunk_index_release(&t.index);
    free(file);
}

/* No index lists more chunks than its grid has, however it came to be read. */
static void test_more_than_the_grid(void **state)
{
    (void)state;
    static const uint64_t shape[1] = {30}, chunk[1] = {10}, offset[1] = {20};
    cm_chunk_index index = {0};
    cm_grid grid;
    cm_error err;
    ASSERT_OK(cm_grid_init(&grid, 1, shape, chunk, &err), err);
    for (int i = 0; i < 3; i++)
        ASSERT_OK(cm_chunk_index_add(&index, &grid, offset, 100, 10, 0, &err), err);
    assert_int_equal(cm_chunk_index_add(&index, &grid, offset, 100, 10, 0, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, "more than the 3 chunks"));
    cm_chunk_index_release(&index);
}

/* Few chunks of a large grid are kept as a list, in whatever order they come. */
static void test_sparse(void **state)
{
    (void)state;
    static const uint64_t shape[2] = {1u << 20, 1u << 20}, chunk[2] = {1, 2};
    static const uint64_t offset[][2] = {{5, 8}, {0, 0}, {1048575, 1048574}, {5, 6}};
    cm_grid grid;
    cm_chunk_index index = {0};
    cm_error err;
    ASSERT_OK(cm_grid_init(&grid, 2, shape, chunk, &err), err);
    for (uint64_t i = 0; i < 4; i++)
        ASSERT_OK(cm_chunk_index_add(&index, &grid, offset[i], 10 * i, i + 1, 0, &err), err);
    ASSERT_OK(cm_chunk_index_finish(&index, &grid, &err), err);
    assert_null(index.place);
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t coord[2] = {offset[i][0], offset[i][1] / 2};
        cm_chunk_place place;
        assert_true(cm_chunk_index_find(&index, cm_grid_number(&grid, coord), &place));
        assert_int_equal(place.address, 10 * i);
        assert_int_equal(place.nbytes, i + 1);
    }
    cm_chunk_place place;
    assert_false(cm_chunk_index_find(&index, 1, &place));
    assert_false(cm_chunk_index_find(&index, grid.nchunks - 2, &place));
    cm_chunk_index_release(&index);
    cm_chunk_index_release(NULL);

    cm_chunk_index nothing = {0};
    ASSERT_OK(cm_chunk_index_finish(&nothing, &grid, &err), err);
    assert_false(cm_chunk_index_find(&nothing, 0, &place));
    cm_chunk_index_release(&nothing);
}

/* Object headers, by hand from the specification. */
static const struct {
    const char *name;
    uint8_t bytes[96];
    unsigned nbytes; /* of the file */
    cm_h5_index index;
    unsigned rank;
    uint64_t address;
    const char *text; /* NULL: fine */
} headers[] = {
    {"version 1",
     {1, 0, 1,  0,    1,    0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, /* prefix */
      8, 0, 24, 0,    0,    0, 0, 0,                          /* layout message */
      3, 2, 3,  0x34, 0x12, 0, 0, 0, 0,  0, 0},
     64,
     CM_H5_INDEX_BTREE1,
     2,
     0x1234,
     NULL},
    {"version 1, an old layout",
     {1, 0, 1,  0, 1, 0, 0, 0, 40,   0,    0, 0, 0, 0, 0, 0, /**/
      8, 0, 24, 0, 0, 0, 0, 0,                               /**/
      1, 2, 2,  0, 0, 0, 0, 0, 0x78, 0x56, 0, 0, 0, 0, 0, 0},
     64,
     CM_H5_INDEX_BTREE1,
     1,
     0x5678,
     NULL},
    {"version 1, continued",
     {1,  0, 2,  0, 1,  0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, /**/
      16, 0, 16, 0, 0,  0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0,
      0,  0, 8,  0, 24, 0, 0, 0, 0,  0, 3, 2, 4, 9, 0, 0, 0,  0, 0, 0, 0},
     72,
     CM_H5_INDEX_BTREE1,
     3,
     9,
     NULL},
    {"version 1, continued for ever",
     {1,  0, 2,  0, 1, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, /**/
      16, 0, 16, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0},
     40,
     CM_H5_INDEX_NONE,
     0,
     0,
     "too many blocks"},
    {"version 2, contiguous",
     {'O', 'H', 'D', 'R', 2, 0, 24, 8, 18, 0, 0, 3, 1, 0x34, 0x12},
     64,
     CM_H5_INDEX_NONE,
     0,
     CM_H5_UNDEFINED,
     NULL},
    {"version 2, times and creation order",
     {'O', 'H', 'D', 'R', 2, 0x24, [22] = 30, 8, 22, 0, 0, 7, 0,    4,   2,
      0,   3,   1,   5,   6, 1,    4,         1, 2,  3, 4, 5, 0xef, 0xcd},
     96,
     CM_H5_INDEX_EXTENSIBLE_ARRAY,
     2,
     0xcdef,
     NULL},
    {"version 2, a single chunk",
     {'O', 'H', 'D', 'R', 2, 0, 40, 8, 29, 0, 0, 4, 2, 2, 2, 1,
      9,   4,   1,   77,  0, 0, 0,  0, 0,  0, 0, 2, 0, 0, 0, 0x44},
     96,
     CM_H5_INDEX_SINGLE,
     1,
     0x44,
     NULL},
    {"no layout",
     {'O', 'H', 'D', 'R', 2, 0, 4, 1, 0, 0, 0},
     32,
     CM_H5_INDEX_NONE,
     0,
     0,
     "it has no data layout"},
    {"a long message",
     {'O', 'H', 'D', 'R', 2, 0, 8, 8, 200, 0, 0},
     32,
     CM_H5_INDEX_NONE,
     0,
     0,
     "longer than its block"},
    {"a shared layout",
     {'O', 'H', 'D', 'R', 2, 0, 8, 8, 2, 0, 2},
     32,
     CM_H5_INDEX_NONE,
     0,
     0,
     "a shared one"},
    {"a long block",
     {'O', 'H', 'D', 'R', 2, 2, 0xff, 0xff, 0xff, 0x7f},
     32,
     CM_H5_INDEX_NONE,
     0,
     0,
     "a block is too long"},
    {"no header", {7}, 32, CM_H5_INDEX_NONE, 0, 0, "it has no signature"},
};

static void test_object_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        cm_source source = cm_source_of_memory(headers[i].bytes, headers[i].nbytes);
        cm_h5_layout_message m;
        cm_error err = {0};
        int rc = cm_h5_layout_read(&source, &super, 0, &m, &err);
        if (headers[i].text ? rc != CM_EFORMAT || !strstr(err.text, headers[i].text) : rc)
            fail_msg("%s: %d, %s", headers[i].name, rc, err.text);
        if (headers[i].text)
            continue;
        if (m.index != headers[i].index || m.rank != headers[i].rank ||
            m.address != headers[i].address)
            fail_msg("%s: index %d, rank %u, address %llx", headers[i].name, (int)m.index, m.rank,
                     (unsigned long long)m.address);
        if (m.index == CM_H5_INDEX_SINGLE) {
            assert_true(m.single_filtered);
            assert_int_equal(m.single_nbytes, 77);
            assert_int_equal(m.single_mask, 2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_corrupt_tree),
        cmocka_unit_test(test_leaf_named_often),
        cmocka_unit_test(test_more_than_the_grid),
        cmocka_unit_test(test_endless_tree),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_object_headers),
    };
    return cmocka_run_group_tests_name("nc_index", tests, NULL, NULL);
}
