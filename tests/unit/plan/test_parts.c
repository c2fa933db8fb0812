/*
 * The promises of a share: every object once, balance, and boxes that are exactly the
 * run, held against enumeration.
 */

#include "../unit.h"
#include "plan/parts.h"

enum {
    MAX_ITEMS = 40
};

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* Bytes of each part; checks that the parts together are every object once. */
static void cut_all(const cm_part_item *item, size_t n, uint64_t nparts, uint64_t *nbytes,
                    uint64_t *most_objects)
{
    uint64_t end[MAX_ITEMS] = {0};
    *most_objects = 0;
    for (uint64_t k = 0; k < nparts; k++) {
        cm_part_run share[MAX_ITEMS];
        uint64_t nobjects = 0;
        cm_error err = {0};
        assert_int_equal(cm_part_cut(item, n, nparts, k, 1, share, &err), CM_OK);
        nbytes[k] = 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t all = cm_part_nobjects(&item[i]);
            assert_true(share[i].first == end[i] || all == 0);
            assert_true(share[i].end >= share[i].first);
            end[i] = share[i].end;
            nobjects += share[i].end - share[i].first;
            if (all > 0)
                nbytes[k] += (uint64_t)((double)item[i].nbytes / (double)all *
                                        (double)(share[i].end - share[i].first));
            if (item[i].whole)
                assert_true(share[i].end - share[i].first == 0 ||
                            share[i].end - share[i].first == all);
        }
        *most_objects = nobjects > *most_objects ? nobjects : *most_objects;
    }
    for (size_t i = 0; i < n; i++)
        assert_int_equal(end[i], cm_part_nobjects(&item[i]));
}

static void test_every_object_once(void **state)
{
    uint64_t seed = 7, nbytes[80], most;
    (void)state;
    for (unsigned run = 0; run < 2000; run++) {
        cm_part_item item[MAX_ITEMS] = {0};
        size_t n = 1 + next(&seed) % 12;
        for (size_t i = 0; i < n; i++) {
            item[i].rank = (unsigned)(next(&seed) % 4);
            for (unsigned j = 0; j < item[i].rank; j++)
                item[i].count[j] = next(&seed) % 9;
            item[i].nbytes = next(&seed) % 3 == 0 ? 0 : next(&seed) % 1000000;
            item[i].whole = next(&seed) % 5 == 0;
            item[i].grain = next(&seed) % 4;
        }
        cut_all(item, n, 1 + next(&seed) % 80, nbytes, &most);
    }
}

/* More than 20 objects a part: the busiest has at most 1.1 of the mean. */
static void test_balance(void **state)
{
    uint64_t seed = 11, nbytes[64], most;
    (void)state;
    for (unsigned run = 0; run < 500; run++) {
        cm_part_item item[MAX_ITEMS] = {0};
        uint64_t nparts = 2 + next(&seed) % 62, total = 0, busiest = 0;
        size_t n = 1 + next(&seed) % 30;
        for (size_t i = 0; i < n; i++) {
            item[i].rank = 3;
            item[i].count[0] = 1 + next(&seed) % 100 + (i == 0 ? 21 * nparts : 0);
            item[i].count[1] = 1 + next(&seed) % 4;
            item[i].count[2] = 1 + next(&seed) % 4;
            item[i].nbytes = cm_part_nobjects(&item[i]) * 1000;
            item[i].grain = 1 + next(&seed) % 3;
            total += item[i].nbytes;
        }
        cut_all(item, n, nparts, nbytes, &most);
        for (uint64_t k = 0; k < nparts; k++)
            busiest = nbytes[k] > busiest ? nbytes[k] : busiest;
        assert_true((double)busiest <= 1.1 * (double)total / (double)nparts);
    }
}

/* Twenty variables of one object more than there are parts: none gets all the spare ones. */
static void test_rounding_is_shared(void **state)
{
    cm_part_item item[20] = {0};
    uint64_t nbytes[8], most;
    (void)state;
    for (size_t i = 0; i < 20; i++)
        item[i] = (cm_part_item){.rank = 1, .count = {9}, .nbytes = 9000, .grain = 1};
    cut_all(item, 20, 8, nbytes, &most);
    assert_true(most <= 24); /* 22.5 is the mean */
}

static void test_bytes_decide(void **state)
{
    /* All bytes lie in the last tenth. */
    uint64_t below[11] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1000000};
    cm_part_item item = {
        .rank = 1, .count = {1000}, .nbytes = 1000000, .grain = 1, .below = below, .nbelow = 10};
    cm_part_run share;
    (void)state;
    assert_int_equal(cm_part_cut(&item, 1, 4, 0, 1, &share, NULL), CM_OK);
    assert_int_equal(share.first, 0);
    assert_int_equal(share.end, 925);
    assert_int_equal(cm_part_cut(&item, 1, 4, 3, 1, &share, NULL), CM_OK);
    assert_int_equal(share.first, 975);
    assert_int_equal(share.end, 1000);
}

/* Cuts lie at the ends of rows where a share has many of them. */
static void test_rows_stay_together(void **state)
{
    cm_part_item item = {.rank = 3, .count = {4000, 2, 2}, .nbytes = 16000000, .grain = 5};
    cm_part_run share;
    (void)state;
    for (uint64_t k = 0; k < 7; k++) {
        assert_int_equal(cm_part_cut(&item, 1, 7, k, 1, &share, NULL), CM_OK);
        assert_int_equal(share.first % 20, 0);
    }
}

static void test_boxes_are_the_run(void **state)
{
    static const uint64_t counts[][4] = {{5, 1, 1, 1}, {3, 4, 1, 1}, {1, 7, 3, 1}, {3, 3, 2, 4}};
    (void)state;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        for (unsigned rank = 0; rank <= 4; rank++) {
            uint64_t all = 1;
            for (unsigned j = 0; j < rank; j++)
                all *= counts[c][j];
            for (uint64_t first = 0; first <= all; first++) {
                for (uint64_t end = first; end <= all; end++) {
                    cm_box box[CM_PART_MAX_BOXES];
                    uint64_t at = first;
                    unsigned n = cm_part_boxes(counts[c], rank, (cm_part_run){first, end}, box);
                    assert_true(n <= (rank > 0 ? 2 * rank - 1 : 1));
                    for (unsigned i = 0; i < n; i++) {
                        uint64_t number = 0;
                        for (unsigned j = 0; j < rank; j++)
                            number = number * counts[c][j] + box[i].start[j];
                        assert_int_equal(number, at);
                        for (unsigned j = 0; j < rank; j++)
                            assert_true(box[i].start[j] + box[i].shape[j] <= counts[c][j]);
                        at += cm_box_nelem(&box[i]);
                    }
                    assert_int_equal(at, end);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_object_once),  cmocka_unit_test(test_balance),
        cmocka_unit_test(test_rounding_is_shared), cmocka_unit_test(test_bytes_decide),
        cmocka_unit_test(test_rows_stay_together), cmocka_unit_test(test_boxes_are_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
