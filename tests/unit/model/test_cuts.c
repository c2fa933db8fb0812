/* Dimensions cut into pieces of any lengths, against lists with an entry for each element. */
#include "../unit.h"
#include "base/number.h"
#include "model/box.h"
#include "random.h"

enum {
    ROUNDS = 2000,
    MOST = 64 /* elements */
};

typedef struct naive {
    uint64_t n, end, first[MOST], length[MOST], piece[MOST]; /* PIECE: of each element */
} naive;

/* Pieces in runs, some of which continue the one before; the last may reach past the end. */
static void cut(uint64_t *seed, cm_cuts *cuts, naive *want)
{
    cm_error err = {0};
    *cuts = (cm_cuts){0};
    *want = (naive){0};
    const uint64_t past = random_below(seed, 4), room = MOST - 24 - random_below(seed, 16);
    while (want->end < room) {
        const uint64_t length = 1 + random_below(seed, 5), count = 1 + random_below(seed, 3);
        assert_int_equal(cm_cuts_add(cuts, length, count, &err), CM_OK);
        for (uint64_t k = 0; k < count; k++, want->n++) {
            want->first[want->n] = want->end;
            want->length[want->n] = length;
            for (uint64_t i = 0; i < length; i++)
                want->piece[want->end++] = want->n;
        }
    }
    if (past == 0)
        return;
    want->end -= past < 3 ? past : random_below(seed, want->end);
    while (want->n > 0 && want->first[want->n - 1] >= want->end)
        want->n--;
    cm_cuts_trim(cuts, want->end);
}

static void test_pieces(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < ROUNDS; round++) {
        cm_cuts cuts, copy;
        naive want;
        uint64_t longest = 0, sum = 0;
        cut(&seed, &cuts, &want);
        assert_int_equal(cuts.n, want.n);
        assert_int_equal(cuts.end, want.end);
        for (uint64_t k = 0; k < want.n; k++) {
            assert_int_equal(cm_cuts_first(&cuts, k), want.first[k]);
            assert_int_equal(cm_cuts_end(&cuts, k), k + 1 < want.n ? want.first[k + 1] : want.end);
            assert_int_equal(cm_cuts_length(&cuts, k), want.length[k]);
            assert_int_equal(cm_cuts_piece(&cuts, k), k);
            longest = cm_max_u64(longest, want.length[k]);
        }
        for (uint64_t i = 0; i < want.end; i++)
            assert_int_equal(cm_cuts_find(&cuts, i), want.piece[i]);
        assert_int_equal(cuts.longest, longest);
        const uint64_t lo = random_below(&seed, want.n + 1);
        for (uint64_t k = lo; k < want.n; k++)
            sum += want.length[k];
        assert_int_equal(cm_cuts_sum(&cuts, lo, want.n), sum);
        assert_int_equal(cm_cuts_copy(&cuts, &copy, NULL), CM_OK);
        assert_true(cm_cuts_equal(&cuts, &copy));
        cm_cuts_release(&copy);
        cm_cuts_release(&cuts);
    }
}

/* Positions START, START + STEP, ...: each lies in the piece that its element lies in. */
static void test_parts(void **state)
{
    (void)state;
    uint64_t seed = 6;
    for (int round = 0; round < ROUNDS; round++) {
        cm_cuts cuts, part;
        naive want;
        cut(&seed, &cuts, &want);
        if (want.end == 0)
            continue;
        const uint64_t start = random_below(&seed, want.end), step = 1 + random_below(&seed, 7);
        const uint64_t n = 1 + random_below(&seed, (want.end - start - 1) / step + 1);
        assert_int_equal(cm_cuts_part(&cuts, start, step, n, &part, NULL), CM_OK);
        assert_int_equal(part.end, n);
        uint64_t pieces = 0;
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t k = cm_cuts_find(&part, i), of = want.piece[start + i * step];
            pieces += i == 0 || of != want.piece[start + (i - 1) * step];
            assert_int_equal(k, pieces - 1);
            assert_int_equal(cm_cuts_piece(&part, k), of);
            assert_int_equal(cm_cuts_length(&part, k), want.length[of]);
            assert_true(cm_cuts_first(&part, k) <= i && i < cm_cuts_end(&part, k));
        }
        assert_int_equal(part.n, pieces);
        cm_cuts_release(&part);
        cm_cuts_release(&cuts);
    }
}

/* A run of any number of pieces takes the memory of one. */
static void test_long_runs(void **state)
{
    (void)state;
    const uint64_t many = UINT64_C(1) << 60;
    cm_cuts cuts = {0}, part;
    cm_error err = {0};
    assert_int_equal(cm_cuts_add(&cuts, 3, many, &err), CM_OK);
    assert_int_equal(cm_cuts_add(&cuts, 5, many, &err), CM_OK);
    assert_int_equal(cuts.nruns, 2);
    assert_int_equal(cm_cuts_find(&cuts, 3 * many + 12), many + 2);
    assert_int_equal(cm_cuts_first(&cuts, many + 2), 3 * many + 10);
    assert_int_equal(cm_cuts_part(&cuts, 1, 1, 3 * many, &part, &err), CM_OK);
    assert_true(part.nruns <= 4 && part.n == many + 1);
    cm_cuts_release(&part);
    assert_int_equal(cm_cuts_add(&cuts, 1, UINT64_MAX - 8 * many + 1, &err), CM_EFORMAT);
    assert_int_equal(cm_cuts_add(&cuts, UINT64_C(1) << 40, many, &err), CM_EFORMAT);
    assert_int_equal(cm_cuts_add(&cuts, 1, UINT64_MAX - 8 * many, &err), CM_OK);
    assert_int_equal(cuts.end, UINT64_MAX);
    cm_cuts_release(&cuts);
}

/* Chunks of a grid with such a dimension: those that a box meets, what they cover and store. */
static void test_grid(void **state)
{
    (void)state;
    uint64_t seed = 9;
    for (int round = 0; round < ROUNDS; round++) {
        cm_cuts cuts;
        naive want;
        cm_grid grid;
        cut(&seed, &cuts, &want);
        const cm_cuts *along[2] = {&cuts, NULL};
        const uint64_t shape[2] = {want.end, 7}, chunk[2] = {0, 1 + random_below(&seed, 8)};
        if (want.n == 0)
            continue;
        assert_int_equal(cm_grid_init_cut(&grid, 2, shape, chunk, along, NULL), CM_OK);
        assert_int_equal(grid.nchunks, want.n * cm_div_ceil(7, chunk[1]));
        for (uint64_t number = 0; number < grid.nchunks; number++) {
            uint64_t coord[2], stored[2];
            cm_box box;
            cm_grid_coord(&grid, number, coord);
            cm_grid_box(&grid, coord, &box);
            cm_grid_chunk_shape(&grid, coord, stored);
            assert_int_equal(box.start[0], want.first[coord[0]]);
            assert_int_equal(stored[0], want.length[coord[0]]);
            assert_int_equal(stored[1], chunk[1]);
            assert_int_equal(box.shape[0], cm_min_u64(want.end - box.start[0], stored[0]));
            assert_int_equal(cm_grid_is_edge(&grid, coord),
                             box.shape[0] < stored[0] || box.shape[1] < stored[1]);
            assert_int_equal(cm_grid_chunk_nelem(&grid, coord), stored[0] * stored[1]);
        }
        cm_box box = {.rank = 2, .start = {random_below(&seed, want.end), 1}, .shape = {0, 5}};
        uint64_t first[2], count[2];
        box.shape[0] = 1 + random_below(&seed, want.end - box.start[0]);
        cm_grid_cover(&grid, &box, first, count);
        assert_int_equal(first[0], want.piece[box.start[0]]);
        assert_int_equal(first[0] + count[0] - 1, want.piece[box.start[0] + box.shape[0] - 1]);
        cm_cuts_release(&cuts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_long_runs),
        cmocka_unit_test(test_grid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
