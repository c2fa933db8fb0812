/* The estimated size of an output: elements times the ratio of the chunk in the middle. */

#include "job_fixture.h"

#define RAW(...) .codec = TEXTS("none"), .chunks = TEXTS(__VA_ARGS__)

static const made_file SMALL = {"f",
                                .var = {{"v", "int16", "t*=8 y=4"},
                                        {"w", "int16", "t*=5"},
                                        {"p", "int16", "x=4", .attrs = "{'scale_factor': 0.5}"},
                                        {"none", "int16", "z=0 y=4"},
                                        {"one", "float64", "", .values = "7"}}};

/* "v 64 of 64": stored bytes of decoded ones, and their sum, which must be the report's. */
static const char *say_estimates(planned *p)
{
    uint64_t all = 0;
    tell_begin(&p->text);
    for (size_t i = 0; i < p->report.nvariables; i++) {
        const cm_transform_variable *v = &p->report.variable[i];
        tell(&p->text, "%s%s %u of %u", i > 0 ? "; " : "", v->name, (unsigned)v->stored_nbytes,
             (unsigned)v->decoded_nbytes);
        all += v->stored_nbytes;
    }
    assert_int_equal(all, p->report.stored_nbytes);
    return (const char *)p->text.data;
}

static const struct {
    const char *name;
    cm_transform_options options;
    const char *estimates;
} ROWS[] = {
    {"one chunk", {RAW("v:8x4"), .variable = TEXTS("v")}, "v 64 of 64"},
    {"several", {RAW("v:2x3"), .variable = TEXTS("v")}, "v 64 of 64"},
    {"three, the last of which is cut", {RAW("w:2"), .variable = TEXTS("w")}, "w 10 of 10"},
    {"two, the last of which is cut", {RAW("w:4"), .variable = TEXTS("w")}, "w 10 of 10"},
    {"the only one is longer than the array", {RAW("w:8"), .variable = TEXTS("w")}, "w 16 of 10"},
    {"every second element",
     {RAW("v:2x2"), .variable = TEXTS("v"), .subset = TEXTS("t=1::2")},
     "v 32 of 32"},
    {"the last elements",
     {RAW("w:1"), .variable = TEXTS("w"), .subset = TEXTS("t=4:5")},
     "w 2 of 2"},
    {"converted", {RAW("p:4"), .variable = TEXTS("p"), .unpack = TEXTS("p")}, "p 32 of 32"},
    {"nothing", {.codec = TEXTS("none"), .variable = TEXTS("none")}, "none 0 of 0"},
    {"one element", {.codec = TEXTS("none"), .variable = TEXTS("one")}, "one 8 of 8"},
    {"two variables", {RAW("v:8x4", "w:5"), .variable = TEXTS("v", "w")}, "v 64 of 64; w 10 of 10"},
};

static void uncompressed(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned p;
        planned_make(&p, &SMALL, &ROWS[i].options, STEP_PLAN);
        if (p.status != CM_OK)
            fail_msg("%s: %s", ROWS[i].name, p.error.text);
        OK(cm_job_report(&p.job, false, err));
        OK(cm_job_estimate(&p.job, err));
        tell_compare(ROWS[i].name, say_estimates(&p), ROWS[i].estimates, &bad);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

static const made_file NOISE = {"f", .var = {{"v", "int16", "t*=3072"}}};

#define ZSTD(shape, ...)                                                                           \
    {                                                                                              \
        .chunks = TEXTS(shape), .codec = TEXTS("zstd"), __VA_ARGS__                                \
    }
static const struct {
    const char *name;
    cm_transform_options options;
    unsigned first, end; /* zeros, where all others are noise */
    bool small;
} MIDDLE[] = {
    {"the second of three", ZSTD("v:1024"), 1024, 2048, true},
    {"not the first", ZSTD("v:1024"), 0, 1024, false},
    {"nor the last", ZSTD("v:1024"), 2048, 3072, false},
    {"all of the only one", ZSTD("v:3072"), 0, 2900, true},
    {"the second of four", ZSTD("v:768"), 768, 1536, true},
    {"of a subset", ZSTD("v:512", .subset = TEXTS("t=1536:3072")), 2048, 2560, true},
    {"elements side by side stand for every third", ZSTD("v:256", .subset = TEXTS("t=0::3")), 768,
     1024, true},
};

/* Which source elements stand for all: those of the chunk in the middle, within the source. */
static void the_middle(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(MIDDLE); i++) {
        planned p;
        planned_make(&p, &NOISE, &MIDDLE[i].options, STEP_PLAN);
        if (p.status != CM_OK)
            fail_msg("%s: %s", MIDDLE[i].name, p.error.text);
        uint8_t *at = ((made_dataset *)p.made)->array[0].values;
        uint32_t noise = 1;
        for (unsigned k = 0; k < 2 * 3072; k++) {
            noise = noise * 1664525 + 1013904223;
            at[k] = k / 2 >= MIDDLE[i].first && k / 2 < MIDDLE[i].end ? 0 : (uint8_t)(noise >> 24);
        }
        OK(cm_job_report(&p.job, false, err));
        OK(cm_job_estimate(&p.job, err));
        const cm_transform_variable *v = &p.report.variable[0];
        if ((v->stored_nbytes < v->decoded_nbytes / 4) != MIDDLE[i].small)
            fail_msg("%s: %u of %u bytes", MIDDLE[i].name, (unsigned)v->stored_nbytes,
                     (unsigned)v->decoded_nbytes);
        planned_release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(uncompressed),
                                       cmocka_unit_test(the_middle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
