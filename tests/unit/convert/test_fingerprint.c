/* The fingerprint of a run: which options change it, and which do not. */

#include "convert/sink/store/fingerprint.h"
#include "job_fixture.h"

static const made_file GRID = {"/dev/null",
                               .var = {{"v", "int16", "t*=3 y=4"}, {"w", "int16", "y=4"}}};
static const made_file OTHER = {"/", .var = {{"v", "int16", "t*=3 y=4"}, {"w", "int16", "y=4"}}};

static const struct {
    const char *name;
    cm_transform_options options;
    bool other; /* run */
} ROWS[] = {
    {"nothing", {.nthreads = 0}, false},
    {"threads", {.nthreads = 7}, false},
    {"memory", {.memory = 1 << 30}, false},
    {"a proof", {.verify = CM_VERIFY_FULL}, false},
    {"where scratch lies", {.scratch = "/tmp"}, false},
    {"consolidated metadata", {.no_consolidate = true}, false},
    {"statistics of one process", {.statistics = true}, false},
    {"statistics of parts", {.statistics = true, .part.on = true}, true},
    {"defaults", {.defaults = CM_DEFAULTS_KEEP}, true},
    {"format", {.zarr_format = 2}, true},
    {"chunks", {.chunks = TEXTS("v:1x4")}, true},
    {"shards", {.shards = TEXTS("v:3x4")}, true},
    {"codec", {.codec = TEXTS("gzip")}, true},
    {"sample", {.sample = "t=1"}, true},
    {"variable", {.variable = TEXTS("v")}, true},
    {"exclude", {.exclude = TEXTS("w")}, true},
    {"rename", {.rename = TEXTS("w=x")}, true},
    {"subset", {.subset = TEXTS("t=0:2")}, true},
    {"dtype", {.dtype = TEXTS("int32")}, true},
    {"overflow", {.overflow = CM_OVERFLOW_SATURATE}, true},
    {"keepbits", {.keepbits = TEXTS("v:3")}, true},
    {"unpack", {.unpack = TEXTS("v")}, true},
    {"fill value", {.fill_value = TEXTS("v:1")}, true},
    {"characters", {.char_mode = CM_CHAR_JOIN}, true},
    {"what is left out", {.skip_unsupported = true}, true},
    {"stack", {.stack = TEXTS("s=v,w")}, true},
    {"merge_along", {.merge_along = TEXTS("t=0")}, true},
};

static cm_json *fingerprint_of(const made_file *file, const cm_transform_options *options)
{
    cm_json *out = NULL;
    cm_dataset *ds = made_open(file);
    const cm_job job = {.options = options,
                        .terms = {.alike = options->part.on},
                        .source = ds,
                        .from = {.path = ds->path, .group = ""},
                        .zarr_format = options->zarr_format == 0 ? 3 : options->zarr_format};
    OK(cm_fingerprint(&job, &out, err));
    cm_dataset_close(ds);
    return out;
}

static void options_that_change_it(void **state)
{
    cm_json *plain = fingerprint_of(&GRID, &ROWS[0].options);
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        cm_json *own = fingerprint_of(&GRID, &ROWS[i].options);
        if (cm_json_equal(plain, own) == ROWS[i].other)
            fail_msg("%s: the fingerprint %s", ROWS[i].name,
                     ROWS[i].other ? "is the same" : "changes");
        cm_json_free(own);
    }
    cm_json *source = fingerprint_of(&OTHER, &ROWS[0].options);
    assert_false(cm_json_equal(plain, source));
    cm_json_free(source);
    cm_json_free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(options_that_change_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
