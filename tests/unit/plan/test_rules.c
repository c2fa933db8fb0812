#include <inttypes.h>

#include "../unit.h"
#include "plan/rules.h"

static const struct {
    const char *name;
    unsigned rank;
    uint64_t shape[4], itemsize, max_nbytes, want[4];
} rew_rows[] = {
    /* The first three are published with the rule. */
    {"4 KiB", 3, {98128, 277, 349}, 4, 4096, {33, 5, 6}},
    {"1 MiB", 3, {98128, 277, 349}, 4, 1 << 20, {516, 20, 25}},
    {"4 MiB", 3, {98128, 277, 349}, 4, 4 << 20, {1032, 29, 35}},
    {"short first dimension", 3, {2, 1000, 1000}, 4, 4096, {1, 32, 32}},
    {"fits", 2, {10, 10}, 8, 1 << 20, {10, 10}},
    {"one dimension", 1, {1000}, 1, 100, {100}},
    {"plane", 2, {1000, 1000}, 1, 10000, {100, 100}},
    {"scalar", 0, {0}, 8, 4096, {0}},
};

static void rew_is_as_published(void **context)
{
    (void)context;
    for (size_t i = 0; i < sizeof rew_rows / sizeof *rew_rows; i++) {
        uint64_t chunk[4] = {0};
        assert_int_equal(cm_rule_rew(rew_rows[i].rank, rew_rows[i].shape, rew_rows[i].itemsize,
                                     rew_rows[i].max_nbytes, chunk, NULL),
                         0);
        if (memcmp(chunk, rew_rows[i].want, rew_rows[i].rank * sizeof *chunk) != 0)
            fail_msg("%s: %" PRIu64 " %" PRIu64 " %" PRIu64, rew_rows[i].name, chunk[0], chunk[1],
                     chunk[2]);
    }
}

/* Chunks that zarr-python 3.1 chose for arrays of these shapes. */
static const struct {
    unsigned rank;
    uint64_t shape[4], itemsize, want[4];
} zarr_rows[] = {
    {3, {98128, 277, 349}, 4, {3067, 18, 22}},
    {3, {256, 721, 1440}, 4, {32, 91, 180}},
    {1, {1000}, 8, {1000}},
    {1, {1000000000}, 8, {488282}},
    {4, {10, 10, 10, 10}, 2, {10, 10, 10, 10}},
    {4, {87600, 37, 721, 1440}, 4, {2738, 2, 23, 90}},
    {2, {1, 5}, 1, {1, 5}},
    {2, {7, 10000000}, 2, {1, 625000}},
};

static void zarr_python_is_as_it_does(void **context)
{
    (void)context;
    for (size_t i = 0; i < sizeof zarr_rows / sizeof *zarr_rows; i++) {
        uint64_t chunk[4] = {0};
        assert_int_equal(cm_rule_zarr_python(zarr_rows[i].rank, zarr_rows[i].shape,
                                             zarr_rows[i].itemsize, chunk, NULL),
                         0);
        if (memcmp(chunk, zarr_rows[i].want, zarr_rows[i].rank * sizeof *chunk) != 0)
            fail_msg("row %zu: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, i, chunk[0], chunk[1],
                     chunk[2], chunk[3]);
    }
}

static void wrong_shapes_are_refused(void **context)
{
    uint64_t shape[33] = {0}, chunk[33];

    (void)context;
    assert_int_equal(cm_rule_rew(2, shape, 4, 4096, chunk, NULL), CM_EINVAL);
    assert_int_equal(cm_rule_zarr_python(33, shape, 4, chunk, NULL), CM_EINVAL);
    for (int j = 0; j < 33; j++)
        shape[j] = UINT64_MAX;
    assert_int_equal(cm_rule_rew(32, shape, 4, 4096, chunk, NULL), CM_EUNSUPPORTED);
    assert_int_equal(cm_rule_rew(16, shape, 4, 4096, chunk, NULL), CM_OK);
    assert_int_equal(cm_rule_zarr_python(32, shape, 4, chunk, NULL), CM_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rew_is_as_published),
        cmocka_unit_test(zarr_python_is_as_it_does),
        cmocka_unit_test(wrong_shapes_are_refused),
    };
    return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
