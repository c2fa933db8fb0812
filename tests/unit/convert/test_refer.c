/* References: which variables are referred to, by which chunks, and which stand in the document. */

#include "convert/layout/refer.h"
#include "job_fixture.h"

static const made_file PLACES = {"f", .located = true,
                                 .var = {{"t", "int32", "t*=8"},
                                         {"x", "float64", "x=4096"},
                                         {"chunks", "float32", "t*=8 x=4096", .chunk = "3 2048"},
                                         {"rows", "float32", "t*=8 x=4096"},
                                         {"large", "float64", "y=3 x=300000"},
                                         {"small", "int16", "x=4096"}}};
static const made_file NOWHERE = {"f", .var = {{"v", "float32", "t*=8 x=4096"}}};

/* "v: 3,2048, 6 there, 0 missing" or "v: 8,4096 inline": the chunks of each variable. */
static const char *say_references(planned *p)
{
    tell_begin(&p->text);
    for (size_t i = 0; i < p->job.nvars; i++) {
        const cm_job_var *v = &p->job.var[i];
        tell(&p->text, "%s%s:", i > 0 ? "; " : "", v->name);
        say_numbers(p, " ", v->layout.chunk, v->view.rank);
        if (v->layout.refer == NULL)
            tell(&p->text, " inline");
        else
            tell(&p->text, " of %u part, %u missing", (unsigned)v->layout.refer->nparts,
                 (unsigned)v->layout.refer->nmissing);
        assert_int_equal(v->layout.pass, v->layout.refer == NULL ? CM_PASS_NOTHING : CM_PASS_BYTES);
    }
    return (const char *)p->text.data;
}

static const struct {
    const char *name;
    const made_file *file;
    cm_transform_options options;
    const char *references;
} ROWS[] = {
    {"chunks as they lie, rows of about 4 MiB, and small ones and coordinates in the document",
     &PLACES,
     {.nthreads = 0},
     "t: 8 inline; x: 4096 inline; chunks: 3,2048 of 1 part, 0 missing; rows: 8,4096 of 1 part, 0 "
     "missing; large: 1,300000 of 1 part, 0 missing; small: 4096 inline"},
    {"what is changed",
     &PLACES,
     {.variable = TEXTS("chunks"), .dtype = TEXTS("chunks:float64")},
     "t: 8 inline; x: 4096 inline; chunks: 8,4096 inline"},
    {"a part",
     &PLACES,
     {.variable = TEXTS("rows"), .subset = TEXTS("t=0:4")},
     "t: 4 inline; x: 4096 inline; rows: 4,4096 inline"},
    {"what has no address", &NOWHERE, {.nthreads = 0}, "v: 8,4096 inline"},
};

static void references(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned p;
        planned_make(&p, ROWS[i].file, &ROWS[i].options, STEP_VIEW);
        OK(cm_job_refer_layout(&p.job, err));
        tell_compare(ROWS[i].name, say_references(&p), ROWS[i].references, &bad);
        for (size_t k = 0; k < p.job.nvars; k++)
            cm_refer_free(p.job.var[k].layout.refer);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

/* Chunks of data in a row are as long as they can be where no chunk reaches behind a part's end. */
static void chunks_of_rows(void **state)
{
    static const struct {
        const char *dims;
        uint64_t rows; /* of a chunk */
    } DIMS[] = {
        {"t=6 x=500000", 2}, {"t=7 x=500000", 1}, {"t=6 x=100000", 6}, {"t=12 x=150000", 6}};
    (void)state;
    for (size_t i = 0; i < COUNT(DIMS); i++) {
        const made_file file = {"f", .located = true, .var = {{"v", "float32", DIMS[i].dims}}};
        planned p;
        planned_make(&p, &file, NULL, STEP_VIEW);
        OK(cm_job_refer_layout(&p.job, err));
        assert_int_equal(p.job.var[0].layout.chunk[0], DIMS[i].rows);
        cm_refer_free(p.job.var[0].layout.refer);
        planned_release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(references),
                                       cmocka_unit_test(chunks_of_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
