/* Measurements for a sample, with arrays that count how often they are read. */

#include "../unit.h"
#include "chunkcalc/recommend.h"
#include "options/codec_option.h"

static unsigned nreads;

static int read_box(cm_array *a, const cm_box *box, void *dst, cm_error *err)
{
    uint8_t *to = dst;
    size_t n = a->dtype.nbytes;
    (void)err;
    for (unsigned j = 0; j < box->rank; j++)
        n *= box->shape[j];
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(i * i >> 9);
    nreads++;
    return CM_OK;
}

static const cm_array_ops OPS = {.read_box = read_box};

static int read_nothing(cm_array *a, const cm_box *box, void *dst, cm_error *err)
{
    (void)box;
    (void)dst;
    return cm_fail(err, CM_EFORMAT, "array %s: its bytes are gone", a->name);
}

static const cm_array_ops GONE = {.read_box = read_nothing};

static cm_array array_of(cm_kind kind, uint32_t nbytes, uint64_t rows)
{
    return (cm_array){.ops = &OPS,
                      .name = "v",
                      .dtype = cm_dtype_make(kind, nbytes),
                      .rank = 2,
                      .shape = {rows, 1024}};
}

/* Costs of A by nc2zarr's codec at LEVEL, without storage. */
static cm_suit_costs measure(cm_suit_run *run, cm_array *a, int level)
{
    cm_codec_choice choice = cm_codec_choice_default(&a->dtype);
    cm_codec_spec *specs;
    cm_suit_costs out;
    cm_error err = {0};
    size_t n;
    choice.compressor.level = level;
    assert_int_equal(cm_codec_choice_specs(&choice, &a->dtype, &specs, &n, &err), CM_OK);
    const cm_suit_source source = {.array = a, .codecs = specs, .ncodecs = n};
    assert_int_equal(cm_suit_measure(run, &source, "local", &out, &err), CM_OK);
    cm_codec_specs_free(specs, n);
    return out;
}

static void arrays_of_a_run_share_its_time(void **state)
{
    cm_array small = array_of(CM_KIND_FLOAT, 4, 2048), large = array_of(CM_KIND_FLOAT, 4, 65536);
    cm_array like_large = array_of(CM_KIND_FLOAT, 4, 40000);
    cm_array other = array_of(CM_KIND_FLOAT, 8, 2048);
    cm_suit_run run;
    (void)state;
    cm_suit_run_init(&run, UINT64_C(1) << 30);
    nreads = 0;
    const cm_suit_costs a = measure(&run, &small, 1), b = measure(&run, &large, 1);
    assert_true(a.decode && b.decode && !a.other && !b.other && nreads >= 2);
    assert_true(run.spent_ns > 0);

    run.spent_ns = UINT64_C(2000000000);
    nreads = 0;
    const cm_suit_costs c = measure(&run, &like_large, 1);
    assert_true(c.decode && c.other && nreads == 0);
    assert_memory_equal(&c.cost, &b.cost, sizeof c.cost);
    assert_non_null(strstr(c.text, "of an array of the same type and codec"));

    /* Nothing is known of another type or codec: these are measured all the same, once each. */
    assert_true(!measure(&run, &other, 1).other && nreads > 0);
    nreads = 0;
    assert_true(!measure(&run, &small, 5).other && nreads > 0);
    nreads = 0;
    assert_true(measure(&run, &other, 1).other && measure(&run, &large, 5).other && nreads == 0);
    cm_suit_run_release(&run);
}

static const struct {
    const char *name;
    uint64_t memory, box_nbytes;
    bool measured;
} memory_rows[] = {
    {"room for all", UINT64_C(2) << 30, 64 << 20, true},
    {"an eighth is less than the box", UINT64_C(256) << 20, 64 << 20, false},
    {"an eighth is the box alone", UINT64_C(512) << 20, 64 << 20, false},
    {"small boxes", UINT64_C(256) << 20, 1 << 20, true},
    {"hardly any memory", 1, 0, false},
};

static void memory_is_asked_before(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof memory_rows / sizeof *memory_rows; i++) {
        cm_array a = array_of(CM_KIND_FLOAT, 4, 2048);
        cm_suit_run run;
        a.box_nbytes = memory_rows[i].box_nbytes;
        cm_suit_run_init(&run, memory_rows[i].memory);
        nreads = 0;
        const cm_suit_costs costs = measure(&run, &a, 1);
        if (cm_suit_measured(&costs) != memory_rows[i].measured || (nreads > 0) != costs.decode)
            fail_msg("%s: %u reads", memory_rows[i].name, nreads);
        assert_true(costs.decode ? costs.needs == 0 : costs.needs > memory_rows[i].memory / 8);
        cm_suit_run_release(&run);
    }
}

static void small_arrays_are_not_read(void **state)
{
    cm_array a = array_of(CM_KIND_FLOAT, 4, 1000);
    cm_suit_run run;
    (void)state;
    cm_suit_run_init(&run, 0);
    nreads = 0;
    const cm_suit_costs costs = measure(&run, &a, 1);
    assert_true(!cm_suit_measured(&costs) && nreads == 0 && costs.needs == 0);
    cm_suit_run_release(&run);
}

/* The preset's numbers, and the sentence that says why. */
static void what_cannot_be_read_is_said(void **state)
{
    (void)state;
    cm_array a = array_of(CM_KIND_FLOAT, 4, 2048);
    cm_suit_run run;
    a.ops = &GONE;
    cm_suit_run_init(&run, UINT64_C(2) << 30);
    const cm_suit_costs costs = measure(&run, &a, 1);
    assert_false(cm_suit_measured(&costs));
    assert_true(costs.cost.decode == cm_cost_preset_find("local")->model.decode);
    assert_string_equal(costs.refused, "array v: its bytes are gone");
    assert_non_null(strstr(costs.text, "not measured: array v: its bytes are gone"));
    a.ops = &OPS;
    const cm_suit_costs good = measure(&run, &a, 1);
    assert_true(good.decode && good.refused[0] == '\0' && strstr(good.text, "not") == NULL);
    cm_suit_run_release(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_of_a_run_share_its_time),
        cmocka_unit_test(memory_is_asked_before),
        cmocka_unit_test(what_cannot_be_read_is_said),
        cmocka_unit_test(small_arrays_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
