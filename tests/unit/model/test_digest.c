/* The digest against vectors that tests/support/digest.py computed from the definition. */

#include "../unit.h"
#include "base/mem.h"
#include "model/copy.h"
#include "model/digest.h"
#include "random.h"

static void assert_digest(const cm_digest *d, const char *expected)
{
    char text[33];
    assert_string_equal(cm_digest_text(d, text), expected);
}

static void test_fixed_elements(void **state)
{
    (void)state;
    int16_t ramp[10];
    float halves[1000];
    const int16_t minus_one = -1;
    const int64_t minus_one_64 = -1;
    const uint64_t doubles[] = {UINT64_C(0x3ff8000000000000), UINT64_C(0x7ff8000000000000)};
    const double complex_number[] = {1, 2};
    for (int i = 0; i < 10; i++)
        ramp[i] = (int16_t)i;
    for (int i = 0; i < 1000; i++)
        halves[i] = (float)i / 2;
    const struct {
        const char *name;
        uint64_t first;
        const void *data;
        uint64_t nelem;
        size_t itemsize;
        const char *digest;
    } ROW[] = {
        {"no elements", 0, NULL, 0, 4, "00000000000000000000000000000000"},
        {"uint8 0", 0, "", 1, 1, "68850ac74e2e5a269ca066f1a4ab2eea"},
        {"uint8 0 at index 1", 1, "", 1, 1, "d1cb87aadeb44dafd30b054265133dd7"},
        {"int16 0 ... 9", 0, ramp, 10, 2, "97bf3118a1cc09f018467636c0e55b15"},
        {"int16 -1", 0, &minus_one, 1, 2, "9c83d43247225f0ff558375f686bf693"},
        {"float32 0 ... 499.5", 0, halves, 1000, 4, "ab1b8bfed8c038b987c837589afd1141"},
        {"float64 1.5, NaN", 0, doubles, 2, 8, "2144d5ef492a8d0183a0cb9ef42cc3a1"},
        {"int64 -1 at 2^32", UINT64_C(1) << 32, &minus_one_64, 1, 8,
         "77562ad2db1f51c4cdff92f09814867e"},
        {"bytes of 3", 0, "abc", 1, 3, "90a0f0f8fe592ffdd9f77184aebaa13f"},
        {"complex128", 0, complex_number, 1, 16, "57e3d1c358c5691a4d6d1d5a01611019"},
        {"bytes of 12", 0, "hello world", 1, 12, "3f15f49197a997e716a7bdedf4cabd9d"},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        cm_digest d = {0, 0};
        print_message("  %s\n", ROW[i].name);
        cm_digest_run(&d, ROW[i].first, ROW[i].data, ROW[i].nelem, ROW[i].itemsize);
        assert_digest(&d, ROW[i].digest);
    }
}

static void test_strings(void **state)
{
    (void)state;
    /* The last e in octal: as a letter it would continue the escape before it. */
    static const char *const TEXT[] = {"Gr\xC3\xBC\xC3\x9F\145", "", "chunkmill"};
    cm_digest d = {0, 0};
    cm_digest_element(&d, 0, NULL, 0);
    assert_digest(&d, "68850ac74e2e5a269ca066f1a4ab2eea");
    d = (cm_digest){0, 0};
    for (size_t i = 0; i < 3; i++)
        cm_digest_element(&d, i, TEXT[i], strlen(TEXT[i]));
    assert_digest(&d, "a28ec0b1d2b56baf3d3e87c00b775b8a");
}

/* One element at a time takes no part in vector code, so that both ways check each other. */
static void test_runs_equal_single_elements(void **state)
{
    (void)state;
    static const size_t ITEMSIZE[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16};
    uint64_t seed = 17;
    uint8_t data[16 * 101 + 1];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)random_next(&seed);
    for (size_t k = 0; k < sizeof ITEMSIZE / sizeof *ITEMSIZE; k++) {
        const size_t itemsize = ITEMSIZE[k];
        for (uint64_t n = 0; n <= 100; n += n < 20 ? 1 : 16) {
            const uint64_t first = random_next(&seed) >> 8;
            cm_digest whole = {5, UINT64_MAX}, parts = {5, UINT64_MAX};
            cm_digest_run(&whole, first, data + 1, n, itemsize);
            for (uint64_t i = n; i-- > 0;) {
                cm_digest one = {0, 0};
                cm_digest_run(&one, first + i, data + 1 + i * itemsize, 1, itemsize);
                cm_digest_add(&parts, &one);
            }
            assert_true(whole.lo == parts.lo && whole.hi == parts.hi);
        }
    }
}

static void test_boxes_add_up_to_the_array(void **state)
{
    (void)state;
    static const size_t ITEMSIZE[] = {1, 2, 4, 8, 16};
    uint64_t seed = 23;
    for (int round = 0; round < 500; round++) {
        uint64_t shape[4], chunk[4], coord[4];
        int64_t stride[4], box_stride[4];
        const unsigned rank = (unsigned)random_below(&seed, 5);
        const size_t itemsize = ITEMSIZE[random_below(&seed, 5)];
        for (unsigned j = 0; j < rank; j++) {
            shape[j] = random_below(&seed, 8);
            chunk[j] = 1 + random_below(&seed, 8);
        }
        cm_grid grid;
        uint64_t nelem;
        assert_int_equal(cm_grid_init(&grid, rank, shape, chunk, NULL), CM_OK);
        assert_true(cm_product_u64(rank, shape, &nelem));
        uint8_t *data = malloc(nelem * itemsize + 1);
        uint8_t *part = malloc(grid.chunk_nelem * itemsize);
        assert_non_null(data);
        assert_non_null(part);
        for (size_t i = 0; i < nelem * itemsize; i++)
            data[i] = (uint8_t)random_next(&seed);
        cm_strides_c(rank, shape, itemsize, stride);
        cm_digest whole = {0, 0}, sum = {0, 0};
        cm_digest_run(&whole, 0, data, nelem, itemsize);
        for (uint64_t number = grid.nchunks; number-- > 0;) {
            cm_box box;
            cm_grid_coord(&grid, number, coord);
            cm_grid_box(&grid, coord, &box);
            const uint8_t *corner = data;
            for (unsigned j = 0; j < rank; j++)
                corner += (int64_t)box.start[j] * stride[j];
            cm_strides_c(rank, box.shape, itemsize, box_stride);
            cm_copy_nd(rank, box.shape, itemsize, part, box_stride, corner, stride);
            cm_digest_box(&sum, shape, &box, part, itemsize);
        }
        assert_true(whole.lo == sum.lo && whole.hi == sum.hi);
        free(data);
        free(part);
    }
}

static void test_differences_show(void **state)
{
    (void)state;
    float a[64], b[64];
    for (int i = 0; i < 64; i++)
        a[i] = (float)(i % 8);
    static const struct {
        const char *name;
        int i, j; /* swapped; the same index: its sign bit flips */
    } ROW[] = {{"neighbours change places", 3, 4},
               {"a row apart", 2, 11},
               {"zero becomes minus zero", 8, 8}};
    cm_digest da = {0, 0};
    cm_digest_run(&da, 0, a, 64, 4);
    for (size_t k = 0; k < sizeof ROW / sizeof *ROW; k++) {
        memcpy(b, a, sizeof b);
        b[ROW[k].i] = ROW[k].i == ROW[k].j ? -a[ROW[k].i] : a[ROW[k].j];
        if (ROW[k].i != ROW[k].j)
            b[ROW[k].j] = a[ROW[k].i];
        cm_digest db = {0, 0};
        print_message("  %s\n", ROW[k].name);
        cm_digest_run(&db, 0, b, 64, 4);
        assert_true(da.lo != db.lo && da.hi != db.hi);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixed_elements),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_runs_equal_single_elements),
        cmocka_unit_test(test_boxes_add_up_to_the_array),
        cmocka_unit_test(test_differences_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
