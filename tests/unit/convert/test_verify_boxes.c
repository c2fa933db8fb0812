/* The boxes of a verification: whole chunks, not too many, and no more bytes than a thread has. */

#include "../unit.h"
#include "convert/source/span.h"
#include "convert/verify/verify_boxes.h"

typedef struct row {
    const char *what;
    uint64_t shape[2], source[2], target[2]; /* source 0: contiguous */
    unsigned nbytes;                         /* of an element */
    double share;
    bool small; /* a sample compares all */
    uint64_t whole[2], sample[2];
} row;

#define MIB (1024.0 * 1024)

static const row ROWS[] = {
    {"a million chunks of one byte",
     {1000, 1000},
     {1, 1},
     {1, 1},
     1,
     MIB,
     false,
     {1, 1000},
     {1, 1000}},
    {"a small array in few chunks", {30, 30}, {1, 1}, {1, 1}, 1, MIB, true, {30, 30}, {30, 30}},
    {"one value a chunk", {20000, 1}, {1, 1}, {20000, 1}, 8, MIB, false, {625, 1}, {1024, 1}},
    {"large chunks of both kinds",
     {4096, 4096},
     {512, 1024},
     {1024, 512},
     4,
     64 * MIB,
     false,
     {1024, 1024},
     {512, 512}},
    {"a box of both kinds exceeds the share",
     {4096, 4096},
     {512, 1024},
     {1024, 512},
     4,
     8 * MIB,
     false,
     {512, 1024},
     {512, 512}},
    {"small chunks of both kinds",
     {4096, 4096},
     {64, 64},
     {64, 64},
     4,
     64 * MIB,
     false,
     {64, 1024},
     {64, 1024}},
    {"a contiguous source",
     {4096, 4096},
     {0, 0},
     {256, 256},
     8,
     64 * MIB,
     false,
     {256, 256},
     {256, 256}},
    {"one element", {1, 1}, {0, 0}, {1, 1}, 8, MIB, true, {1, 1}, {1, 1}},
};

static void make(const row *r, cm_variable *source, cm_array *array, cm_job_var *v,
                 cm_verify_area *a, cm_grid *target)
{
    *array = (cm_array){.rank = 2, .shape = {r->shape[0], r->shape[1]}};
    *source = (cm_variable){.rank = 2, .array = array, .has_source_chunks = r->source[0] > 0};
    source->dtype.nbytes = r->nbytes;
    *v = (cm_job_var){.source = source, .view.rank = 2, .view.step = {1, 1}};
    v->view.type.nbytes = r->nbytes;
    memcpy(source->shape, r->shape, sizeof r->shape);
    memcpy(source->source_chunk, r->source, sizeof r->source);
    memcpy(v->view.shape, r->shape, sizeof r->shape);
    assert_int_equal(cm_grid_init(target, 2, r->shape, r->target, NULL), CM_OK);
    *a = (cm_verify_area){.var = v, .target = target, .area = {.rank = 2}};
    memcpy(a->area.shape, r->shape, sizeof r->shape);
}

static void test_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const row *r = &ROWS[i];
        cm_variable source;
        cm_array array;
        cm_job_var v;
        cm_verify_area a;
        cm_grid target;
        make(r, &source, &array, &v, &a, &target);
        print_message("%s\n", r->what);
        assert_int_equal(cm_verify_is_small(&a), r->small);
        for (int sample = 0; sample < 2; sample++) {
            uint64_t shape[CM_MAX_RANK];
            cm_verify_box_shape(&a, sample, r->share, shape);
            const uint64_t *want = sample ? r->sample : r->whole;
            assert_int_equal(shape[0], want[0]);
            assert_int_equal(shape[1], want[1]);
            assert_true(cm_span_nchunks(&v, shape) <= CM_SPAN_MAX_CHUNKS);
            assert_true(3.0 * r->nbytes * (double)(shape[0] * shape[1]) <= r->share);
        }
    }
}

static void test_numbers(void **state)
{
    (void)state;
    assert_int_equal(cm_verify_box_number(1000, 3, 0), 0);
    assert_int_equal(cm_verify_box_number(1000, 3, 1), 999);
    const uint64_t between = cm_verify_box_number(1000, 3, 2);
    assert_true(between > 0 && between < 999);
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(cm_verify_box_number(5, 5, i), i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
