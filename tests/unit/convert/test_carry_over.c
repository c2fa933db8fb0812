/* An array that is not understood: what may be asked of all arrays, and what is refused. */

#include "convert/layout/carry_over.h"
#include "job_fixture.h"

static const made_file ONE = {"f",
                              .var = {{"v", "int16", "t*=4 y=6", .attrs = "{'coordinates': 'lat'}"},
                                      {"lat", "int16", "y=6"}}};
static const made_file TWO = {
    "f", .var = {{"v", "int16", "t*=4 y=6"}, {"w", "int16", "t*=4 y=6"}, {"lat", "int16", "y=6"}}};
static const made_file ALONE = {"f", .var = {{"v", "int16", "t*=4 y=6"}}};
static const made_file LINE = {"f", .var = {{"v", "int16", "t*=4"}, {"lat", "int16", "y=6"}}};

#define ALL_REFUSED "array v can only be carried over as it is: its codec is not known"
#define REFUSED                                                                                    \
    ALL_REFUSED "; name the arrays that are to be changed, or leave it out of those that are "     \
                "chosen"
#define KEEPS "array v keeps its chunks: its codec is not known"

static const struct {
    const char *name;
    const made_file *file;
    cm_transform_options options;
    int format; /* of the source */
    const char *error, *warning;
} ROWS[] = {
    {"nothing", &ONE, {0}, 3, NULL, NULL},
    {"chunks of all", &TWO, {.chunks = TEXTS("2x3")}, 3, NULL, KEEPS},
    {"chunks of all, which no other takes", &ONE, {.chunks = TEXTS("2x3")}, 3, REFUSED, NULL},
    {"chunks that the other has by its name",
     &TWO,
     {.chunks = TEXTS("2x3", "w:2x2")},
     3,
     REFUSED,
     NULL},
    {"chunks of all that it is", &ALONE, {.chunks = TEXTS("2x3")}, 3, ALL_REFUSED, NULL},
    {"shards of all that it is", &ALONE, {.shards = TEXTS("auto")}, 3, ALL_REFUSED, NULL},
    {"a codec of all that it is", &ALONE, {.codec = TEXTS("zstd")}, 3, ALL_REFUSED, NULL},
    {"chunks for a sample of it", &ALONE, {.sample = "t=2"}, 3, ALL_REFUSED, NULL},
    {"but its own for a sample of it",
     &ALONE,
     {.sample = "t=2", .chunks = TEXTS("v:source")},
     3,
     NULL,
     NULL},
    {"chunks for a sample", &TWO, {.sample = "t=2"}, 3, NULL, KEEPS},
    {"chunks for a sample of others", &ONE, {.sample = "z=2"}, 3, NULL, NULL},
    {"those of the source", &ONE, {.chunks = TEXTS("source")}, 3, NULL, NULL},
    {"that are its own", &ONE, {.chunks = TEXTS("v:source")}, 3, NULL, NULL},
    {"its chunks", &ONE, {.chunks = TEXTS("v:2x3")}, 3, REFUSED, NULL},
    {"by a pattern", &ONE, {.chunks = TEXTS("v*:2x3")}, 3, REFUSED, NULL},
    {"another's", &ONE, {.chunks = TEXTS("lat:3")}, 3, NULL, NULL},
    {"chunks of all, which a line is not asked for", &LINE, {.chunks = TEXTS("2")}, 3, NULL, NULL},
    {"shards of all", &TWO, {.shards = TEXTS("auto")}, 3, NULL, KEEPS},
    {"its shards", &ONE, {.shards = TEXTS("v:4x6")}, 3, REFUSED, NULL},
    {"a codec of all", &ONE, {.codec = TEXTS("zstd")}, 3, REFUSED, NULL},
    {"even of a line", &LINE, {.codec = TEXTS("zstd")}, 3, REFUSED, NULL},
    {"the same codec", &ONE, {.codec = TEXTS("same")}, 3, NULL, NULL},
    {"a codec of another", &ONE, {.codec = TEXTS("lat:zstd")}, 3, NULL, NULL},
    {"another format",
     &ONE,
     {0},
     2,
     "array v cannot become Zarr format 3: its codec is not known",
     NULL},
    {"some of its elements", &ONE, {.subset = TEXTS("t=1:3")}, 3, REFUSED, NULL},
    {"another name", &ONE, {.rename = TEXTS("v=w")}, 3, NULL, NULL},
    {"of a variable that its attributes name",
     &ONE,
     {.rename = TEXTS("lat=latitude")},
     3,
     REFUSED,
     NULL},
};

static void carried_over(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned p;
        cm_layout layout = {0};
        cm_error why = {0};
        cm_shape_option sample = {0};
        cm_varopts chunks = {0}, shards = {0}, codec = {0};
        const cm_zarr_meta words = {.zarr_format = ROWS[i].format, .chunk = {2, 5}};
        planned_make(&p, ROWS[i].file, &ROWS[i].options, STEP_VIEW);
        if (p.status != CM_OK)
            fail_msg("%s: %s", ROWS[i].name, p.error.text);
        OK(cm_varopts_parse("chunks", &p.options.chunks, NULL, &chunks, err));
        OK(cm_varopts_parse("shards", &p.options.shards, NULL, &shards, err));
        OK(cm_varopts_parse("codec", &p.options.codec, NULL, &codec, err));
        p.job.var[0].source->words = &words;
        p.job.var[0].source->unsupported = "its codec is not known";
        const size_t nbefore = p.report.nwarnings;
        if (ROWS[i].options.sample != NULL)
            OK(cm_shape_option_parse(ROWS[i].options.sample, &sample, err));
        const int rc = cm_job_carry_over(&p.job, &p.job.var[0], &layout, &chunks, &shards, &codec,
                                         ROWS[i].options.sample != NULL ? &sample : NULL, &why);
        assert_true(rc == CM_OK || rc == CM_EUNSUPPORTED);
        tell_compare(ROWS[i].name, rc == CM_OK ? "" : why.text,
                     ROWS[i].error != NULL ? ROWS[i].error : "", &bad);
        tell_compare(ROWS[i].name, p.report.nwarnings > nbefore ? p.report.warning[nbefore] : "",
                     ROWS[i].warning != NULL ? ROWS[i].warning : "", &bad);
        assert_true(layout.same_codec && layout.chunk[0] == 2 && layout.chunk[1] == 5);
        p.job.var[0].source->words = NULL;
        cm_varopts_release(&chunks);
        cm_varopts_release(&shards);
        cm_varopts_release(&codec);
        cm_shape_option_release(&sample);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(carried_over)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
