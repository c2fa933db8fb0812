#include <math.h>

#include "../unit.h"
#include "plan/cost.h"

static void presets_are_complete(void **context)
{
    size_t n = 0;

    (void)context;
    for (; cm_cost_preset_at(n) != NULL; n++) {
        const cm_cost_preset *p = cm_cost_preset_at(n);
        assert_ptr_equal(cm_cost_preset_find(p->name), p);
        assert_int_equal(cm_cost_model_check(&p->model, NULL), 0);
        assert_true(strlen(p->source) > 20);
    }
    assert_int_equal(n, 3);
    assert_null(cm_cost_preset_find("floppy"));
}

static void the_formula_holds(void **context)
{
    cm_cost_model m = {
        .latency = 0.1, .bandwidth = 100, .decode = 50, .concurrency = 4, .ratio = 2};

    (void)context;
    /* (0.1 * 3 + 400/2/100 + 400/50) / 4 */
    cm_cost_work work = {.objects = 3, .chunks = 3, .decoded = 400};
    assert_true(fabs(cm_cost_work_seconds(&m, &work) - 2.575) < 1e-12);
    m.chunk = 0.2;
    m.range = 0.01;
    /* that and 0.2 * 3 / 4 */
    assert_true(fabs(cm_cost_work_seconds(&m, &work) - 2.725) < 1e-12);
    work = (cm_cost_work){.objects = 1, .ranges = 5, .chunks = 12, .decoded = 400};
    assert_true(fabs(cm_cost_work_seconds(&m, &work) - (0.1 + 5 * 0.01 + 12 * 0.2 + 2 + 8) / 4) <
                1e-12);
}

/* A read among few waits for its own requests, as many at a time as it has. */
static void a_read_waits_for_its_own_requests(void **context)
{
    cm_cost_model m = {
        .latency = 0.1, .bandwidth = 100, .decode = 50, .concurrency = 8, .ratio = 2, .reads = 1};
    cm_cost_work work = {.objects = 1, .chunks = 1, .decoded = 10};

    (void)context;
    assert_true(fabs(cm_cost_work_waiting(&m, &work) - 0.1) < 1e-12);
    assert_true(fabs(cm_cost_work_seconds(&m, &work) - (0.1 + 0.05 + 0.2)) < 1e-12);
    work = (cm_cost_work){.objects = 8, .chunks = 8, .decoded = 10};
    assert_true(fabs(cm_cost_work_waiting(&m, &work) - 0.1) < 1e-12);
    assert_true(fabs(cm_cost_work_moving(&m, &work) - 0.05 / 8) < 1e-12);
    m.reads = 4; /* two requests at a time each */
    assert_true(fabs(cm_cost_work_waiting(&m, &work) - 0.4) < 1e-12);
    m.reads = 16;
    assert_true(fabs(cm_cost_work_waiting(&m, &work) - 0.8) < 1e-12);
    /* One request at a time: as if there were any number of reads. */
    m.concurrency = 1;
    const double all = cm_cost_work_seconds(&m, &work);
    m.reads = 0;
    assert_true(fabs(cm_cost_work_seconds(&m, &work) - all) < 1e-12);
}

/* Chunk and byte stand in a ratio that is a power of four; bytes cost what they did. */
static void rounding_keeps_choices_apart_from_noise(void **context)
{
    cm_cost_model m = {.latency = 8e-6,
                       .range = 1e-6,
                       .chunk = 3e-6,
                       .bandwidth = 4e9,
                       .decode = 2e9,
                       .concurrency = 1,
                       .ratio = 2};
    const double byte = 1 / 8e9 + 1 / 2e9; /* 11 us are 17,600 bytes: 4^7 is nearest */

    (void)context;
    for (double noise = 0.6; noise < 1.8; noise += 0.1) {
        cm_cost_model n = m;
        n.latency *= noise;
        n.chunk *= noise;
        const cm_cost_model r = cm_cost_rounded(&n);
        assert_true(fabs((r.latency + r.chunk) / byte - 16384) < 1e-6);
        assert_true(r.bandwidth == m.bandwidth && r.decode == m.decode);
    }
    m.latency = m.chunk = 0;
    assert_true(cm_cost_rounded(&m).latency == 0);
}

static const struct {
    const char *name;
    cm_cost_model model;
    int want;
} model_rows[] = {
    {"zero latency",
     {.latency = 0, .bandwidth = 1, .decode = 1, .concurrency = 1, .ratio = 1},
     CM_OK},
    {"negative latency",
     {.latency = -1, .bandwidth = 1, .decode = 1, .concurrency = 1, .ratio = 1},
     CM_EINVAL},
    {"no bandwidth",
     {.latency = 0, .bandwidth = 0, .decode = 1, .concurrency = 1, .ratio = 1},
     CM_EINVAL},
    {"infinite decode",
     {.latency = 0, .bandwidth = 1, .decode = INFINITY, .concurrency = 1, .ratio = 1},
     CM_EINVAL},
    {"not a number",
     {.latency = 0, .bandwidth = 1, .decode = 1, .concurrency = NAN, .ratio = 1},
     CM_EINVAL},
    {"negative range",
     {.range = -1, .bandwidth = 1, .decode = 1, .concurrency = 1, .ratio = 1},
     CM_EINVAL},
    {"no ratio",
     {.latency = 0, .bandwidth = 1, .decode = 1, .concurrency = 1, .ratio = 0},
     CM_EINVAL},
};

static void senseless_models_are_refused(void **context)
{
    (void)context;
    for (size_t i = 0; i < sizeof model_rows / sizeof *model_rows; i++)
        if (cm_cost_model_check(&model_rows[i].model, NULL) != model_rows[i].want)
            fail_msg("%s", model_rows[i].name);
}

static void footprints_count_what_is_stored(void **context)
{
    uint64_t shape[] = {10, 100}, chunk[] = {4, 25}, shard[] = {8, 50}, odd[] = {8, 30};
    cm_footprint f;

    (void)context;
    assert_int_equal(cm_footprint_count(2, shape, chunk, NULL, 4, 2, &f, NULL), 0);
    assert_int_equal(f.nchunks, 12);
    assert_int_equal(f.nobjects, 12);
    assert_int_equal(f.chunk_nbytes, 400);
    assert_int_equal(f.array_nbytes, 4000);
    assert_int_equal(f.decoded_nbytes, 4800);
    assert_int_equal(f.padding_nbytes, 800);
    assert_int_equal(f.index_nbytes, 0);
    assert_true(f.stored_nbytes == 2400);
    assert_int_equal(cm_footprint_count(2, shape, chunk, shard, 4, 1, &f, NULL), 0);
    assert_int_equal(f.nobjects, 4);
    assert_int_equal(f.index_nbytes, 4 * (16 * 4 + 4));
    assert_int_equal(cm_footprint_count(2, shape, chunk, odd, 4, 1, &f, NULL), CM_EINVAL);
    assert_int_equal(cm_footprint_count(0, NULL, NULL, NULL, 8, 1, &f, NULL), 0);
    assert_int_equal(f.decoded_nbytes, 8);
    uint64_t huge[] = {UINT64_MAX, UINT64_MAX}, one[] = {1, 1};
    assert_int_equal(cm_footprint_count(2, huge, one, NULL, 1, 1, &f, NULL), CM_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_are_complete),
        cmocka_unit_test(the_formula_holds),
        cmocka_unit_test(a_read_waits_for_its_own_requests),
        cmocka_unit_test(rounding_keeps_choices_apart_from_noise),
        cmocka_unit_test(senseless_models_are_refused),
        cmocka_unit_test(footprints_count_what_is_stored),
    };
    return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
