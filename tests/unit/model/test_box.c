/* Boxes and grids, against marking every element of small arrays. */

#include "../unit.h"
#include "model/box.h"
#include "random.h"

enum {
    RANKS = 5,
    LONGEST = 7,
    ROUNDS = 3000
};

static cm_box random_box(uint64_t *seed, unsigned rank)
{
    cm_box box = {.rank = rank};
    for (unsigned j = 0; j < rank; j++) {
        box.start[j] = random_below(seed, LONGEST);
        box.shape[j] = random_below(seed, LONGEST + 1 - box.start[j]);
    }
    return box;
}

static bool contains(const cm_box *box, const uint64_t *at)
{
    for (unsigned j = 0; j < box->rank; j++) {
        if (at[j] < box->start[j] || at[j] - box->start[j] >= box->shape[j])
            return false;
    }
    return true;
}

/* Steps AT through SHAPE in C order; false after the last. */
static bool next(unsigned rank, const uint64_t *shape, uint64_t *at)
{
    for (unsigned j = rank; j-- > 0;) {
        if (++at[j] < shape[j])
            return true;
        at[j] = 0;
    }
    return false;
}

static void test_intersections(void **state)
{
    (void)state;
    const uint64_t everywhere[RANKS] = {LONGEST, LONGEST, LONGEST, LONGEST, LONGEST};
    uint64_t seed = 7;
    for (int round = 0; round < ROUNDS; round++) {
        const unsigned rank = (unsigned)random_below(&seed, 4);
        const cm_box a = random_box(&seed, rank), b = random_box(&seed, rank);
        cm_box both = {0};
        const bool meet = cm_box_intersect(&a, &b, &both);
        uint64_t at[RANKS] = {0}, shared = 0;
        do {
            const bool in = contains(&a, at) && contains(&b, at);
            shared += in;
            if (meet)
                assert_int_equal(contains(&both, at), in);
        } while (next(rank, everywhere, at));
        assert_int_equal(meet, shared > 0);
        if (meet)
            assert_int_equal(cm_box_nelem(&both), shared);
    }
}

static void test_intersection_of_the_far_end(void **state)
{
    (void)state;
    const cm_box a = {1, {UINT64_MAX - 1}, {1}}, b = {1, {0}, {UINT64_MAX}};
    cm_box both;
    assert_true(cm_box_intersect(&a, &b, &both));
    assert_true(cm_box_equal(&both, &a));
    assert_false(cm_box_equal(&both, &b));
    const cm_box scalar = {0};
    assert_false(cm_box_equal(&a, &scalar));
    assert_int_equal(cm_box_nelem(&scalar), 1);
}

static void random_grid(uint64_t *seed, cm_grid *grid)
{
    uint64_t shape[RANKS], chunk[RANKS];
    const unsigned rank = (unsigned)random_below(seed, RANKS);
    for (unsigned j = 0; j < rank; j++) {
        shape[j] = random_below(seed, LONGEST + 1);
        chunk[j] = 1 + random_below(seed, LONGEST + 2);
    }
    assert_int_equal(cm_grid_init(grid, rank, shape, chunk, NULL), CM_OK);
}

static void test_chunks_tile_the_array(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (int round = 0; round < ROUNDS; round++) {
        cm_grid grid;
        random_grid(&seed, &grid);
        uint64_t covered = 0, nelem, full;
        assert_true(cm_product_u64(grid.rank, grid.shape, &nelem));
        assert_true(cm_product_u64(grid.rank, grid.chunk, &full));
        assert_int_equal(grid.chunk_nelem, full);
        cm_box previous = {0};
        for (uint64_t number = 0; number < grid.nchunks; number++) {
            uint64_t coord[RANKS];
            cm_box box;
            cm_grid_coord(&grid, number, coord);
            assert_int_equal(cm_grid_number(&grid, coord), number);
            cm_grid_box(&grid, coord, &box);
            assert_int_equal(cm_grid_is_edge(&grid, coord), cm_box_nelem(&box) < full);
            for (unsigned j = 0; j < grid.rank; j++) {
                assert_int_equal(box.start[j] % grid.chunk[j], 0);
                assert_in_range(box.shape[j], 1, grid.chunk[j]);
                assert_true(box.start[j] + box.shape[j] <= grid.shape[j]);
            }
            /* In C order, hence all different. */
            if (number > 0)
                assert_true(memcmp(previous.start, box.start, sizeof box.start[0]) != 0 ||
                            !cm_box_equal(&previous, &box));
            covered += cm_box_nelem(&box);
            previous = box;
        }
        assert_int_equal(covered, nelem);
    }
}

static void test_cover_is_exact(void **state)
{
    (void)state;
    uint64_t seed = 13;
    for (int round = 0; round < ROUNDS; round++) {
        cm_grid grid;
        random_grid(&seed, &grid);
        if (grid.nchunks == 0)
            continue;
        cm_box box = {.rank = grid.rank};
        for (unsigned j = 0; j < grid.rank; j++) {
            box.start[j] = random_below(&seed, grid.shape[j]);
            box.shape[j] = 1 + random_below(&seed, grid.shape[j] - box.start[j]);
        }
        uint64_t first[RANKS], count[RANKS];
        cm_grid_cover(&grid, &box, first, count);
        for (uint64_t number = 0; number < grid.nchunks; number++) {
            uint64_t coord[RANKS];
            cm_box chunk, both;
            bool inside = true;
            cm_grid_coord(&grid, number, coord);
            cm_grid_box(&grid, coord, &chunk);
            for (unsigned j = 0; j < grid.rank; j++)
                inside = inside && coord[j] >= first[j] && coord[j] - first[j] < count[j];
            assert_int_equal(cm_box_intersect(&box, &chunk, &both), inside);
        }
    }
}

static void test_bad_grids(void **state)
{
    (void)state;
    const uint64_t big = UINT64_C(1) << 40;
    const struct {
        const char *name;
        unsigned rank;
        uint64_t shape[3], chunk[3];
        int rc;
        uint64_t nchunks;
    } ROW[] = {
        {"scalar", 0, {0}, {0}, CM_OK, 1},
        {"chunk longer than the array", 1, {5}, {9}, CM_OK, 1},
        {"empty", 2, {0, 5}, {3, 2}, CM_OK, 0},
        {"empty and large", 3, {big, big, 0}, {1, 1, 1}, CM_OK, 0},
        {"longest dimension", 1, {UINT64_MAX}, {1}, CM_OK, UINT64_MAX},
        {"longest chunk", 1, {UINT64_MAX}, {UINT64_MAX}, CM_OK, 1},
        {"zero chunk", 2, {4, 4}, {2, 0}, CM_EFORMAT, 0},
        {"too many elements", 2, {big, big}, {1, 1}, CM_EFORMAT, 0},
        {"too large a chunk", 2, {4, 4}, {big, big}, CM_EFORMAT, 0},
        {"rank above the limit", CM_MAX_RANK + 1, {1}, {1}, CM_EFORMAT, 0},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_grid grid;
        cm_error err = {0};
        print_message("  %s\n", ROW[i].name);
        const int rc = cm_grid_init(&grid, ROW[i].rank, ROW[i].shape, ROW[i].chunk, &err);
        assert_int_equal(rc, ROW[i].rc);
        if (rc == CM_OK)
            assert_true(grid.nchunks == ROW[i].nchunks);
        else
            assert_true(err.text[0] != 0);
    }
}

static void test_chunks_that_are_runs(void **state)
{
    static const struct {
        uint64_t chunk[3], shape[3]; /* of the box */
        bool are_runs;
    } ROW[] = {
        {{4, 5, 6}, {4, 5, 6}, true},  {{2, 5, 6}, {4, 5, 6}, true},  {{1, 2, 6}, {4, 5, 6}, true},
        {{1, 1, 2}, {4, 5, 6}, true},  {{2, 2, 6}, {4, 5, 6}, false}, {{2, 1, 6}, {4, 5, 6}, false},
        {{4, 5, 2}, {4, 5, 6}, false}, {{4, 5, 6}, {8, 5, 6}, true},  {{4, 5, 6}, {4, 5, 3}, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(ROW); i++) {
        const uint64_t shape[] = {8, 10, 12};
        cm_grid grid;
        cm_error err = {0};
        print_message("  %zu\n", i);
        assert_int_equal(cm_grid_init(&grid, 3, shape, ROW[i].chunk, &err), CM_OK);
        assert_int_equal(cm_grid_chunks_are_runs(&grid, ROW[i].shape), ROW[i].are_runs);
    }
}

static void test_texts(void **state)
{
    (void)state;
    const uint64_t v[] = {3, 0, 128};
    char buf[32], tiny[4];
    assert_string_equal(cm_coord_text(3, v, buf, sizeof buf), "3/0/128");
    assert_string_equal(cm_coord_text(0, v, buf, sizeof buf), "0");
    assert_string_equal(cm_shape_text(3, v, buf, sizeof buf), "3x0x128");
    assert_string_equal(cm_shape_text(0, v, buf, sizeof buf), "scalar");
    assert_string_equal(cm_shape_text(1, v, buf, sizeof buf), "3");
    assert_string_equal(cm_shape_text(3, v, tiny, sizeof tiny), "3x0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intersections),
        cmocka_unit_test(test_intersection_of_the_far_end),
        cmocka_unit_test(test_chunks_tile_the_array),
        cmocka_unit_test(test_cover_is_exact),
        cmocka_unit_test(test_bad_grids),
        cmocka_unit_test(test_chunks_that_are_runs),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
