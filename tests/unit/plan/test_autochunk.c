#include <inttypes.h>

#include "../unit.h"
#include "base/number.h"
#include "chance.h"
#include "plan/autochunk.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

typedef unsigned __int128 u128;

static const struct {
    const char *name;
    unsigned rank;
    uint64_t shape[4];
    uint32_t itemsize;
    uint64_t target;
    uint64_t fixed[4], source[4];
    uint64_t want[4];
} chunk_rows[] = {
    {"scalar", 0, {0}, 4, 4 * MIB, {0}, {0}, {0}},
    {"small stays whole", 2, {721, 1440}, 4, 4 * MIB, {0}, {0}, {721, 1440}},
    {"exactly the target stays whole", 2, {1024, 1024}, 4, 4 * MIB, {0}, {0}, {1024, 1024}},
    {"empty dimension", 3, {0, 721, 1440}, 4, 4 * MIB, {0}, {0}, {1, 721, 1440}},
    {"maps and series", 3, {256, 721, 1440}, 4, 4 * MIB, {0}, {0}, {16, 181, 360}},
    {"one time step", 3, {1, 4096, 4096}, 4, 4 * MIB, {0}, {0}, {1, 1024, 1024}},
    {"one dimension", 1, {1 << 22}, 8, 4 * MIB, {0}, {0}, {1 << 19}},
    {"fixed time", 3, {1024, 1024, 1024}, 4, MIB, {1}, {0}, {1, 512, 512}},
    {"all fixed", 2, {4096, 4096}, 8, MIB, {3, 5}, {0}, {3, 5}},
    {"fixed exceeds the target", 2, {4096, 4096}, 8, 1024, {0, 4096}, {0}, {1, 4096}},
    {"element exceeds the target", 2, {10, 10}, 4096, 1024, {0}, {0}, {1, 1}},
    {"nests with the source", 1, {1000000}, 1, 10000, {0}, {3000}, {9000}},
};

static void chunks_are_as_listed(void **context)
{
    (void)context;
    for (size_t i = 0; i < sizeof chunk_rows / sizeof *chunk_rows; i++) {
        uint64_t chunk[4] = {0};
        cm_error err = {0};
        int rc = cm_autochunk(chunk_rows[i].rank, chunk_rows[i].shape, chunk_rows[i].itemsize,
                              chunk_rows[i].target, chunk_rows[i].fixed, chunk_rows[i].source,
                              chunk, &err);
        if (rc != 0 || memcmp(chunk, chunk_rows[i].want, chunk_rows[i].rank * sizeof *chunk) != 0)
            fail_msg("%s: rc %d, %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, chunk_rows[i].name,
                     rc, chunk[0], chunk[1], chunk[2], chunk[3]);
    }
}

static u128 nbytes_of(unsigned rank, const uint64_t *shape, uint32_t itemsize)
{
    u128 total = itemsize;
    for (unsigned j = 0; j < rank; j++)
        total *= shape[j] == 0 ? 1 : shape[j];
    return total;
}

/* Bytes stored beyond the array's edges over bytes of the array. */
static double waste(unsigned rank, const uint64_t *shape, const uint64_t *chunk)
{
    double ratio = 1;
    for (unsigned j = 0; j < rank; j++)
        if (shape[j] != 0)
            ratio *= (double)cm_div_ceil(shape[j], chunk[j]) * (double)chunk[j] / (double)shape[j];
    return ratio - 1;
}

static void random_arrays_keep_the_bounds(void **context)
{
    static const uint32_t itemsizes[] = {1, 2, 4, 8, 16, 12};
    double worst = 0, sum = 0;
    int cut = 0;

    (void)context;
    for (int n = 0; n < 10000; n++) {
        unsigned rank = 1 + (unsigned)random_below(5);
        uint64_t shape[5], fixed[5] = {0}, source[5], chunk[5];
        uint32_t itemsize = itemsizes[random_below(6)];
        uint64_t target = 1 + random_below(UINT64_C(1) << random_below(27));
        bool any_fixed = random_below(4) == 0;
        u128 fixed_nbytes = itemsize, whole;

        for (unsigned j = 0; j < rank; j++) {
            shape[j] = random_below(1 + (UINT64_C(1) << random_below(20)));
            source[j] = 1 + random_below(UINT64_C(1) << random_below(12));
            if (any_fixed && random_below(2) == 0)
                fixed_nbytes *= fixed[j] = 1 + random_below(100);
        }
        assert_int_equal(cm_autochunk(rank, shape, itemsize, target, fixed,
                                      random_below(2) ? source : NULL, chunk, NULL),
                         0);
        whole = fixed_nbytes;
        for (unsigned j = 0; j < rank; j++) {
            uint64_t length = shape[j] == 0 ? 1 : shape[j];
            assert_true(chunk[j] >= 1);
            if (fixed[j] != 0)
                assert_int_equal(chunk[j], fixed[j]);
            else
                assert_true(chunk[j] <= length);
            whole *= fixed[j] != 0 ? 1 : length;
        }
        u128 nbytes = nbytes_of(rank, chunk, itemsize);
        if (whole <= target) {
            assert_true(nbytes == whole);
        } else if (fixed_nbytes > target) {
            assert_true(nbytes == fixed_nbytes);
        } else {
            assert_true(nbytes <= target);
            assert_true(2 * nbytes >= target);
            if (!any_fixed) {
                double w = waste(rank, shape, chunk);
                worst = w > worst ? w : worst;
                sum += w;
                cut++;
            }
        }
    }
    assert_true(cut > 3000);
    assert_true(sum / cut < 0.025);
    assert_true(worst < 0.7);
}

/* Neither a map nor a series meets more than a few times sqrt(K) chunks. */
static void maps_and_series_are_balanced(void **context)
{
    (void)context;
    for (int n = 0; n < 2000; n++) {
        uint64_t shape[3] = {100 + random_below(100000), 100 + random_below(2000),
                             100 + random_below(4000)};
        uint64_t chunk[3];
        assert_int_equal(cm_autochunk(3, shape, 4, 4 * MIB, NULL, NULL, chunk, NULL), 0);
        double k[3], all = 1;
        for (int j = 0; j < 3; j++) {
            k[j] = (double)cm_div_ceil(shape[j], chunk[j]);
            all *= k[j];
        }
        assert_true(k[0] * k[0] <= 6 * all + 4);
        assert_true(k[1] * k[2] * k[1] * k[2] <= 6 * all + 4);
    }
}

static void lengths_nest_with_the_source(void **context)
{
    int nested = 0, total = 0;

    (void)context;
    for (int n = 0; n < 1000; n++) {
        uint64_t shape[3] = {5000 + random_below(50000), 721, 1440};
        uint64_t source[3] = {1 + random_below(40), 20 + random_below(100), 20 + random_below(100)};
        uint64_t chunk[3];
        assert_int_equal(cm_autochunk(3, shape, 4, 4 * MIB, NULL, source, chunk, NULL), 0);
        for (int j = 0; j < 3; j++, total++)
            nested +=
                chunk[j] == shape[j] || chunk[j] % source[j] == 0 || source[j] % chunk[j] == 0;
    }
    assert_true(nested * 10 > total * 9);
}

static void hostile_numbers_are_refused(void **context)
{
    uint64_t shape[33], chunk[33], shard[33];
    cm_error err;

    (void)context;
    for (int j = 0; j < 33; j++)
        shape[j] = UINT64_MAX, chunk[j] = 1;
    assert_int_equal(cm_autochunk(33, shape, 4, MIB, NULL, NULL, chunk, &err), CM_EINVAL);
    assert_int_equal(cm_autochunk(2, shape, 0, MIB, NULL, NULL, chunk, &err), CM_EINVAL);
    assert_int_equal(cm_autochunk(2, shape, 4, 0, NULL, NULL, chunk, &err), CM_EINVAL);
    assert_int_equal(cm_autochunk(2, shape, 4, MIB, shape, NULL, chunk, &err), CM_EINVAL);
    assert_int_equal(cm_autochunk(32, shape, 4, MIB, NULL, NULL, chunk, &err), 0);
    u128 nbytes = nbytes_of(32, chunk, 4);
    assert_true(nbytes <= MIB && 2 * nbytes >= MIB);
    assert_int_equal(cm_autochunk(2, shape, 4, UINT64_MAX, NULL, NULL, chunk, &err), 0);

    uint64_t zero[1] = {0}, ten[1] = {10}, fifteen[1] = {15}, huge[2] = {UINT64_MAX, UINT64_MAX};
    assert_int_equal(cm_autoshard(1, ten, 4, zero, MIB, NULL, shard, &err), CM_EINVAL);
    assert_int_equal(cm_autoshard(1, ten, 4, ten, MIB, fifteen, shard, &err), CM_EINVAL);
    assert_non_null(strstr(err.text, "not a multiple"));
    assert_int_equal(cm_autoshard(2, shape, 4, huge, MIB, NULL, shard, &err), CM_EINVAL);
}

static const struct {
    const char *name;
    unsigned rank;
    uint64_t shape[3], chunk[3], target, fixed[3], want[3];
} shard_rows[] = {
    {"scalar", 0, {0}, {0}, MIB, {0}, {0}},
    {"whole array", 2, {100, 100}, {30, 30}, MIB, {0}, {120, 120}},
    {"chunk exceeds the target", 2, {4096, 4096}, {1024, 1024}, MIB, {0}, {1024, 1024}},
    {"empty", 1, {0}, {10}, MIB, {0}, {10}},
    {"square grid", 2, {8192, 8192}, {64, 64}, MIB, {0}, {512, 512}},
    {"fixed rows", 2, {8192, 8192}, {64, 64}, MIB, {64, 0}, {64, 4096}},
};

static void shards_are_as_listed(void **context)
{
    (void)context;
    for (size_t i = 0; i < sizeof shard_rows / sizeof *shard_rows; i++) {
        uint64_t shard[3] = {0};
        int rc = cm_autoshard(shard_rows[i].rank, shard_rows[i].shape, 4, shard_rows[i].chunk,
                              shard_rows[i].target, shard_rows[i].fixed, shard, NULL);
        if (rc != 0 || memcmp(shard, shard_rows[i].want, shard_rows[i].rank * sizeof *shard) != 0)
            fail_msg("%s: rc %d, %" PRIu64 " %" PRIu64 " %" PRIu64, shard_rows[i].name, rc,
                     shard[0], shard[1], shard[2]);
    }
}

static void random_shards_keep_the_bounds(void **context)
{
    (void)context;
    for (int n = 0; n < 10000; n++) {
        unsigned rank = 1 + (unsigned)random_below(4);
        uint64_t shape[4], chunk[4], shard[4], cover[4];
        uint64_t target = 1 + random_below(UINT64_C(1) << random_below(30));

        for (unsigned j = 0; j < rank; j++) {
            shape[j] = random_below(UINT64_C(1) << random_below(18));
            chunk[j] = 1 + random_below(UINT64_C(1) << random_below(8));
            cover[j] = cm_div_ceil(shape[j] == 0 ? 1 : shape[j], chunk[j]) * chunk[j];
        }
        assert_int_equal(cm_autoshard(rank, shape, 4, chunk, target, NULL, shard, NULL), 0);
        uint64_t count, product = 1;
        assert_int_equal(cm_autoshard_count(rank, shape, 4, chunk, target, &count, NULL), 0);
        for (unsigned j = 0; j < rank; j++)
            product *= cm_div_ceil(shape[j], shard[j]);
        assert_int_equal(count, product);
        for (unsigned j = 0; j < rank; j++) {
            assert_int_equal(shard[j] % chunk[j], 0);
            assert_true(shard[j] >= chunk[j] && shard[j] <= cover[j]);
        }
        u128 nbytes = nbytes_of(rank, shard, 4), one = nbytes_of(rank, chunk, 4);
        if (nbytes_of(rank, cover, 4) <= target)
            assert_memory_equal(shard, cover, rank * sizeof *shard);
        else if (one > target)
            assert_memory_equal(shard, chunk, rank * sizeof *shard);
        else
            assert_true(nbytes <= target && 2 * nbytes >= target);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_as_listed),
        cmocka_unit_test(random_arrays_keep_the_bounds),
        cmocka_unit_test(maps_and_series_are_balanced),
        cmocka_unit_test(lengths_nest_with_the_source),
        cmocka_unit_test(hostile_numbers_are_refused),
        cmocka_unit_test(shards_are_as_listed),
        cmocka_unit_test(random_shards_keep_the_bounds),
    };
    return cmocka_run_group_tests_name("autochunk", tests, NULL, NULL);
}
