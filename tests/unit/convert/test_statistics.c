/* Statistics, counted while a store is made: by levels, and by parts that are put together. */

#include "convert/statistics/statistics_impl.h"
#include "job_fixture.h"

static const made_file GRID = {
    "f", .var = {{"t", "int32", "t*=4", .values = "10 11 12 13"},
                 {"v", "int16", "t*=4 level=2", .values = "1 10 2 20 3 -9 6 30", .fill = "-9"},
                 {"p", "int16", "t*=4", .values = "0 2 4 -1", .fill = "-1",
                  .attrs = "{'scale_factor': 0.5, 'add_offset': 1.0}"},
                 {"m", "float32", "t*=4", .values = "1 NaN 5 7",
                  .attrs = "{'missing_value': [3.0, 7.0]}"},
                 {"level", "int32", "level=2", .values = "100 200"},
                 {"c", "char", "t*=4", .values = "abcd"}}};

/* "v 0: 4 of 4, 1 to 6, mean 3 std 1.87": each level of what is counted. */
static const char *say_tallies(planned *p)
{
    tell_begin(&p->text);
    for (size_t i = 0; i < p->job.nvars; i++) {
        const cm_job_var *v = &p->job.var[i];
        for (uint64_t level = 0; v->statistics != NULL && level < v->statistics->nlevels; level++) {
            cm_tally t;
            OK(cm_statistics_level(v, level, &t, err));
            tell(&p->text, "%s%s %u: %u of %u, %g to %g, mean %g std %.4g",
                 p->text.nbytes > 0 ? "; " : "", v->name, (unsigned)level, (unsigned)t.count,
                 (unsigned)(t.count + t.missing), t.min, t.max, t.mean + t.rest, cm_tally_std(&t));
        }
    }
    return (const char *)p->text.data;
}

#define COUNTED .statistics = true
static const struct {
    const char *name;
    cm_transform_options options;
    const char *tallies, *error;
} ROWS[] = {
    {"each level, as readers show it, without what is missing",
     {COUNTED},
     "v 0: 4 of 4, 1 to 6, mean 3 std 1.871; v 1: 3 of 4, 10 to 30, mean 20 std 8.165; p 0: 3 of "
     "4, 1 to 3, mean 2 std 0.8165; m 0: 2 of 4, 1 to 5, mean 3 std 2",
     NULL},
    {"however it is cut",
     {COUNTED, .chunks = TEXTS("v:3x1"), .variable = TEXTS("v")},
     "v 0: 4 of 4, 1 to 6, mean 3 std 1.871; v 1: 3 of 4, 10 to 30, mean 20 std 8.165",
     NULL},
    {"of a range",
     {COUNTED, .variable = TEXTS("v"), .statistics_range = TEXTS("t=11..12")},
     "v 0: 2 of 2, 2 to 3, mean 2.5 std 0.5; v 1: 1 of 2, 20 to 20, mean 20 std 0",
     NULL},
    {"of a range of what is written",
     {COUNTED, .variable = TEXTS("v"), .subset = TEXTS("t=::2"),
      .statistics_range = TEXTS("t=11..13")},
     "v 0: 1 of 1, 3 to 3, mean 3 std 0; v 1: 0 of 1, inf to -inf, mean 0 std nan",
     NULL},
    {"of a level",
     {COUNTED, .variable = TEXTS("v"), .statistics_range = TEXTS("level=100..150")},
     "v 0: 4 of 4, 1 to 6, mean 3 std 1.871; v 1: 0 of 0, inf to -inf, mean 0 std nan",
     NULL},
    {"of nothing that is written",
     {COUNTED, .variable = TEXTS("v"), .subset = TEXTS("t=:2"),
      .statistics_range = TEXTS("t=12..13")},
     NULL,
     "`statistics_range` t=12..13: nothing that is written lies in that range"},
    {"of a dimension that none has",
     {COUNTED, .statistics_range = TEXTS("x=1..2")},
     NULL,
     "`statistics_range` x=1..2: no variable that is counted has that dimension"},
    {"by index",
     {COUNTED, .statistics_range = TEXTS("t=1:2")},
     NULL,
     "`statistics_range` t=1:2: not of the form DIM=FROM..TO"},
};

static void tallies(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned p;
        planned_make(&p, &GRID, &ROWS[i].options, STEP_RUN);
        tell_compare(ROWS[i].name, p.status == CM_OK ? "" : p.error.text,
                     ROWS[i].error != NULL ? ROWS[i].error : "", &bad);
        if (p.status == CM_OK)
            tell_compare(ROWS[i].name, say_tallies(&p), ROWS[i].tallies, &bad);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

/* Three parts tell what they counted to one that counted nothing: not a bit is other. */
static void parts_are_put_together(void **state)
{
    static const made_file LONG = {"/dev/null",
                                   .var = {{"v", "float64", "t*=40 level=3", .chunk = "1 3"}}};
    const cm_transform_options options = {COUNTED, .chunks = TEXTS("v:3x2"), .part = {.nparts = 3}};
    planned whole, all;
    (void)state;
    planned_make(&whole, &LONG, &options, STEP_RUN);
    planned_make(&all, &LONG, &options, STEP_PLAN);
    assert_int_equal(whole.status, CM_OK);
    for (uint64_t k = 3; k-- > 0;) {
        planned p;
        cm_buf text = {0};
        planned_make(&p, &LONG, &options, STEP_PLAN);
        cm_parts parts = {.number = k, .plan.nparts = 3};
        OK(cm_parts_propose(&p.job, &parts.plan.json, err));
        p.job.parts = &parts;
        OK(cm_parts_narrow(&p.job, cm_parts_weights(&parts.plan), parts.plan.nparts, k, err));
        OK(cm_job_run(&p.job, p.store, err));
        OK(cm_statistics_tell(&p.job.var[0], &text, err));
        OK(cm_statistics_hear(&all.job.var[0], (const char *)text.data,
                              strlen((const char *)text.data), err));
        cm_buf_release(&text);
        cm_json_free(parts.plan.json);
        p.job.parts = NULL;
        planned_release(&p);
    }
    for (uint64_t level = 0; level < 3; level++) {
        cm_tally a, b;
        OK(cm_statistics_level(&whole.job.var[0], level, &a, err));
        OK(cm_statistics_level(&all.job.var[0], level, &b, err));
        assert_int_equal(a.count, 40);
        assert_memory_equal(&a, &b, sizeof a);
    }
    planned_release(&whole);
    planned_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tallies),
                                       cmocka_unit_test(parts_are_put_together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
