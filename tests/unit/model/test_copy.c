/* Strided copies against one loop that moves byte after byte. */

#include "../unit.h"
#include "base/mem.h"
#include "model/copy.h"
#include "random.h"

enum {
    RANKS = 5,
    ROUNDS = 4000
};

/* An array in memory of which every other element may be left out, in any order of dimensions. */
typedef struct view {
    uint8_t *memory, *first;
    size_t nbytes;
    int64_t stride[RANKS];
} view;

static void view_init(view *v, uint64_t *seed, unsigned rank, const uint64_t *shape,
                      size_t itemsize)
{
    unsigned order[RANKS] = {0, 1, 2, 3, 4};
    for (unsigned j = rank; j > 1; j--) {
        const unsigned k = (unsigned)random_below(seed, j), t = order[j - 1];
        if (random_below(seed, 3) == 0) {
            order[j - 1] = order[k];
            order[k] = t;
        }
    }
    /* The offset makes elements unaligned. */
    size_t step = itemsize, start = random_below(seed, 4);
    for (unsigned j = rank; j-- > 0;) {
        const unsigned dim = order[j];
        if (random_below(seed, 4) == 0)
            step += itemsize * random_below(seed, 3);
        v->stride[dim] = (int64_t)step;
        if (random_below(seed, 4) == 0) {
            start += step * (shape[dim] - 1);
            v->stride[dim] = -v->stride[dim];
        }
        step *= shape[dim];
    }
    v->nbytes = step + 8 + start;
    v->memory = malloc(v->nbytes);
    assert_non_null(v->memory);
    for (size_t i = 0; i < v->nbytes; i++)
        v->memory[i] = (uint8_t)random_next(seed);
    v->first = v->memory + start;
}

static uint8_t *element(const view *v, unsigned rank, const uint64_t *at)
{
    uint8_t *p = v->first;
    for (unsigned j = 0; j < rank; j++)
        p += (int64_t)at[j] * v->stride[j];
    return p;
}

static bool next(unsigned rank, const uint64_t *shape, uint64_t *at)
{
    for (unsigned j = rank; j-- > 0;) {
        if (++at[j] < shape[j])
            return true;
        at[j] = 0;
    }
    return false;
}

/* The memory expected of DST after the copy, made in the plainest way. */
static uint8_t *expected_memory(const view *dst, const view *src, const void *value, unsigned rank,
                                const uint64_t *shape, size_t itemsize)
{
    uint8_t *memory = malloc(dst->nbytes);
    assert_non_null(memory);
    memcpy(memory, dst->memory, dst->nbytes);
    uint64_t at[RANKS] = {0};
    do {
        const uint8_t *from = src ? element(src, rank, at) : value;
        uint8_t *to = memory + (element(dst, rank, at) - dst->memory);
        for (size_t i = 0; i < itemsize; i++)
            to[i] = from[i];
    } while (next(rank, shape, at));
    return memory;
}

static void random_shape(uint64_t *seed, unsigned *rank, uint64_t *shape, size_t *itemsize)
{
    static const size_t ITEMSIZE[] = {1, 2, 4, 8, 16, 3, 12, 40};
    *rank = (unsigned)random_below(seed, RANKS + 1);
    *itemsize = ITEMSIZE[random_below(seed, 8)];
    for (unsigned j = 0; j < *rank; j++)
        shape[j] = 1 + random_below(seed, *rank <= 2 ? 80 : 6);
}

static void test_copies(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned rank;
        uint64_t shape[RANKS];
        size_t itemsize;
        view dst, src;
        random_shape(&seed, &rank, shape, &itemsize);
        view_init(&dst, &seed, rank, shape, itemsize);
        view_init(&src, &seed, rank, shape, itemsize);
        uint8_t *expected = expected_memory(&dst, &src, NULL, rank, shape, itemsize);
        cm_copy_nd(rank, shape, itemsize, dst.first, dst.stride, src.first, src.stride);
        if (memcmp(dst.memory, expected, dst.nbytes))
            fail_msg("round %d: rank %u, items of %zu bytes", round, rank, itemsize);
        free(expected);
        free(dst.memory);
        free(src.memory);
    }
}

static void test_fills(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned rank;
        uint64_t shape[RANKS];
        size_t itemsize;
        uint8_t value[40];
        view dst;
        random_shape(&seed, &rank, shape, &itemsize);
        view_init(&dst, &seed, rank, shape, itemsize);
        for (size_t i = 0; i < sizeof value; i++)
            value[i] = round % 3 ? (uint8_t)random_next(&seed) : round % 2 ? 7 : 0;
        bool no_value = round % 6 == 0; /* zero bytes */
        uint8_t *expected = expected_memory(&dst, NULL, value, rank, shape, itemsize);
        cm_fill_nd(rank, shape, itemsize, dst.first, dst.stride, no_value ? NULL : value);
        if (memcmp(dst.memory, expected, dst.nbytes))
            fail_msg("round %d: rank %u, items of %zu bytes", round, rank, itemsize);
        free(expected);
        free(dst.memory);
    }
}

static void test_nothing_to_copy(void **state)
{
    (void)state;
    const uint64_t shape[] = {3, 0, 2};
    const int64_t stride[] = {8, 8, 8};
    uint8_t dst[4] = {1, 2, 3, 4};
    cm_copy_nd(3, shape, 4, dst, stride, NULL, stride);
    cm_fill_nd(3, shape, 4, dst, stride, "abcd");
    cm_fill(dst, 0, 4, "abcd");
    assert_memory_equal(dst, "\1\2\3\4", 4);
}

static void test_scatter_and_gather_of_a_box(void **state)
{
    (void)state;
    /* 3 x 4 from the middle of 5 x 7, and back into an array of zeros. */
    const uint64_t whole[] = {5, 7}, part[] = {3, 4};
    int64_t whole_stride[2], part_stride[2];
    int32_t array[5][7], box[3][4], back[5][7] = {{0}};
    for (int i = 0; i < 35; i++)
        array[i / 7][i % 7] = i;
    cm_strides_c(2, whole, 4, whole_stride);
    cm_strides_c(2, part, 4, part_stride);
    cm_copy_nd(2, part, 4, box, part_stride, &array[1][2], whole_stride);
    cm_copy_nd(2, part, 4, &back[1][2], whole_stride, box, part_stride);
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 7; j++) {
            const bool inside = i >= 1 && i < 4 && j >= 2 && j < 6;
            assert_int_equal(back[i][j], inside ? array[i][j] : 0);
        }
    }
}

static void test_strides(void **state)
{
    (void)state;
    const uint64_t shape[] = {2, 3, 5};
    int64_t stride[3];
    cm_strides_c(3, shape, 4, stride);
    assert_int_equal(stride[0], 60);
    assert_int_equal(stride[1], 20);
    assert_int_equal(stride[2], 4);
}

static void test_fill_and_all_equal(void **state)
{
    (void)state;
    static const size_t ITEMSIZE[] = {1, 2, 4, 8, 16, 3, 5000};
    static const uint64_t NELEM[] = {1, 2, 3, 100, 5000};
    uint64_t seed = 9;
    uint8_t value[5000];
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (uint8_t)random_next(&seed);
    for (size_t k = 0; k < sizeof ITEMSIZE / sizeof *ITEMSIZE; k++) {
        for (size_t m = 0; m < sizeof NELEM / sizeof *NELEM; m++) {
            const size_t itemsize = ITEMSIZE[k], nbytes = itemsize * NELEM[m];
            uint8_t *data = malloc(nbytes + 1);
            assert_non_null(data);
            data[nbytes] = 0xA5;
            cm_fill(data, NELEM[m], itemsize, value);
            for (size_t i = 0; i < nbytes; i++)
                assert_int_equal(data[i], value[i % itemsize]);
            assert_int_equal(data[nbytes], 0xA5);
            assert_true(cm_all_equal(data, NELEM[m], itemsize, value));
            const size_t at[] = {0, nbytes / 2, nbytes - 1};
            for (size_t i = 0; i < 3; i++) {
                data[at[i]] ^= 4;
                assert_false(cm_all_equal(data, NELEM[m], itemsize, value));
                data[at[i]] ^= 4;
            }
            free(data);
        }
    }
    assert_true(cm_all_equal(NULL, 0, 4, value));
}

static void test_swaps(void **state)
{
    (void)state;
    static const uint32_t UNIT[] = {1, 2, 4, 8};
    uint8_t src[1 + 8 * 67], dst[sizeof src], expected[sizeof src];
    uint64_t seed = 21;
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)random_next(&seed);
    for (size_t k = 0; k < 4; k++) {
        for (uint64_t n = 0; n <= 67; n++) {
            const uint32_t unit = UNIT[k];
            memset(dst, 0xEE, sizeof dst);
            memset(expected, 0xEE, sizeof expected);
            for (uint64_t i = 0; i < n * unit; i++)
                expected[1 + i] = src[1 + i / unit * unit + (unit - 1 - i % unit)];
            cm_swap_bytes(dst + 1, src + 1, n, unit);
            assert_memory_equal(dst, expected, sizeof dst);
            memcpy(dst + 1, src + 1, n * unit);
            cm_swap_bytes(dst + 1, dst + 1, n, unit);
            assert_memory_equal(dst, expected, sizeof dst);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),          cmocka_unit_test(test_fills),
        cmocka_unit_test(test_nothing_to_copy), cmocka_unit_test(test_scatter_and_gather_of_a_box),
        cmocka_unit_test(test_strides),         cmocka_unit_test(test_fill_and_all_equal),
        cmocka_unit_test(test_swaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
