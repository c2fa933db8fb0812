/* Parts of a store: what each makes, and what plans are the same. */

#include "job_fixture.h"

static const made_file TWO = {
    "/dev/null", .var = {{"v", "int16", "t*=12 y=4", .chunk = "3 4"}, {"w", "int16", "t*=3"}}};

/* The parts that OPTIONS make of TWO, each with its run of objects: "v 0-2 w 0-1 | v 2-4 w 1-1". */
static const char *say_runs(planned *p)
{
    cm_parts parts = {0};
    cm_json *plan;
    OK(cm_parts_propose(&p->job, &plan, err));
    parts.plan =
        (cm_parts_plan){.json = plan, .nparts = p->options.part.nparts, .first = 1, .step = 1};
    p->job.parts = &parts;
    tell_begin(&p->text);
    for (; parts.number < parts.plan.nparts; parts.number++) {
        cm_part_run run[8];
        OK(cm_parts_runs(&p->job, cm_parts_weights(&parts.plan), parts.plan.nparts, parts.number, 1,
                         run, err));
        tell(&p->text, "%s", parts.number > 0 ? " |" : "");
        for (size_t i = 0; i < p->job.nvars; i++)
            if (run[i].first < run[i].end)
                tell(&p->text, " %s %u-%u", p->job.var[i].name, (unsigned)run[i].first,
                     (unsigned)run[i].end);
    }
    p->job.parts = NULL;
    cm_json_free(plan);
    return (const char *)p->text.data;
}

static const made_file LONG = {"/dev/null", .var = {{"v", "int16", "t*=4004", .chunk = "3"}}};

#define PARTS(n) .defaults = CM_DEFAULTS_KEEP, .part = {.on = true, .nparts = n}
static const struct {
    const char *name;
    const made_file *file;
    cm_transform_options options;
    const char *runs;
} RUNS[] = {
    {"one makes all", &TWO, {PARTS(1)}, " v 0-4 w 0-1"},
    {"two", &TWO, {PARTS(2)}, " v 0-2 | v 2-4 w 0-1"},
    {"as many as there are chunks", &TWO, {PARTS(4)}, " v 0-1 | v 1-2 | v 2-3 w 0-1 | v 3-4"},
    {"more than there are chunks", &TWO, {PARTS(7)}, " v 0-1 | w 0-1 | v 1-2 | | v 2-3 | | v 3-4"},
    {"cut where the source's chunks end",
     &TWO,
     {PARTS(2), .chunks = TEXTS("v:1x4")},
     " v 0-6 | v 6-12 w 0-1"},
    {"a shard is one object",
     &TWO,
     {PARTS(2), .chunks = TEXTS("v:1x4"), .shards = TEXTS("v:6x4")},
     " v 0-1 | v 1-2 w 0-1"},
    {"of many, where the source's chunks end, not where half of the bytes are",
     &LONG,
     {PARTS(2), .chunks = TEXTS("v:1")},
     " v 0-2001 | v 2001-4004"},
};

static void runs(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(RUNS); i++) {
        planned p;
        planned_make(&p, RUNS[i].file, &RUNS[i].options, STEP_DESCRIBE);
        if (p.status != CM_OK)
            fail_msg("%s: %s", RUNS[i].name, p.error.text);
        tell_compare(RUNS[i].name, say_runs(&p), RUNS[i].runs, &bad);
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

/* Parts make what one process makes, each chunk once, in any order of them. */
static void all_parts_make_the_whole(void **state)
{
    static const char STORED[] =
        "v: int16 12,4 = 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 "
        "24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47; "
        "w: int16 3 = 0 1 2";
    const cm_transform_options options = {PARTS(3), .chunks = TEXTS("v:2x3")};
    uint64_t nchunks = 0, nelements = 0;
    cm_store *store;
    (void)state;
    OK(cm_store_open_memory(&store, err));
    for (uint64_t number = 3; number-- > 0;) {
        planned p;
        planned_into(&p, &TWO, &options, STEP_PLAN, store);
        assert_int_equal(p.status, CM_OK);
        cm_parts parts = {.number = number, .plan.nparts = 3};
        OK(cm_parts_propose(&p.job, &parts.plan.json, err));
        p.job.parts = &parts;
        OK(cm_parts_narrow(&p.job, cm_parts_weights(&parts.plan), parts.plan.nparts, parts.number,
                           err));
        OK(cm_job_run(&p.job, p.store, err));
        for (size_t i = 0; i < p.job.nvars; i++) {
            cm_box area[CM_PART_MAX_BOXES];
            const unsigned n = cm_parts_areas(&p.job.var[i], area);
            nchunks += p.job.var[i].moved.counts.delivered;
            for (unsigned k = 0; k < n; k++)
                nelements += cm_box_nelem(&area[k]);
        }
        if (number == 0)
            assert_string_equal(say_stored(&p), STORED);
        cm_json_free(parts.plan.json);
        p.job.parts = NULL;
        planned_release(&p);
    }
    assert_int_equal(nelements, 12 * 4 + 3);
    assert_int_equal(nchunks, 6 * 2 + 1);
    cm_store_free(store);
}

static const struct {
    const char *name;
    cm_transform_options options;
    const char *error;
} PLANS[] = {
    {"the same", {PARTS(3)}, NULL},
    {"as many parts as the plan says", {PARTS(0)}, NULL},
    {"other chunks",
     {PARTS(3), .chunks = TEXTS("v:2x4")},
     "is being made by another plan (`chunks` differs)"},
    {"another type",
     {PARTS(3), .dtype = TEXTS("v:int32")},
     "is being made by another plan (`dtype` differs)"},
    {"fewer variables",
     {PARTS(3), .variable = TEXTS("v")},
     "is being made by another plan (`variable` differs)"},
    {"other parts", {PARTS(4)}, "is being made in 3 parts, not in 4"},
    {"another thread", {PARTS(3), .nthreads = 7}, NULL},
};

static void plans_are_compared(void **state)
{
    const cm_transform_options options = {PARTS(3)};
    planned first;
    cm_parts_plan plan = {.nparts = 3};
    unsigned bad = 0;
    (void)state;
    planned_make(&first, &TWO, &options, STEP_DESCRIBE);
    OK(cm_parts_propose(&first.job, &plan.json, err));
    for (size_t i = 0; i < COUNT(PLANS); i++) {
        planned p;
        cm_error err = {0};
        planned_make(&p, &TWO, &PLANS[i].options, STEP_DESCRIBE);
        const int rc = cm_parts_compare(&p.job, &plan, &err);
        tell_compare(PLANS[i].name, rc == CM_OK ? "" : err.text,
                     PLANS[i].error != NULL ? PLANS[i].error : "", &bad);
        planned_release(&p);
    }
    cm_json_free(plan.json);
    planned_release(&first);
    assert_int_equal(bad, 0);
}

static void numbers_of_launchers(void **state)
{
    static const struct {
        cm_part_choice part;
        int number; /* -1: there is none */
    } ROWS[] = {
        {{.number = 0}, 0},
        {{.number = 3}, 3},
        {{.number = 4}, -1},
        {{.by_index = true, .index = 10}, 0},
        {{.by_index = true, .index = 16}, 3},
        {{.by_index = true, .index = 11}, -1},
        {{.by_index = true, .index = 8}, -1},
        {{.by_index = true, .index = 18}, -1},
    };
    const cm_parts_plan plan = {.nparts = 4, .first = 10, .step = 2};
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const cm_transform_options options = {.part = ROWS[i].part};
        const cm_job job = {.options = &options};
        uint64_t number;
        const int rc = cm_parts_number(&job, &plan, &number, NULL);
        assert_int_equal(rc == CM_OK ? (int)number : -1, ROWS[i].number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs), cmocka_unit_test(all_parts_make_the_whole),
        cmocka_unit_test(plans_are_compared), cmocka_unit_test(numbers_of_launchers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
