/* A plan and what comes of it: the elements that are stored, and counts that were foretold. */

#include "convert/plan/plan_option.h"
#include "job_fixture.h"

#define ONE(name) .variable = TEXTS(name), .defaults = CM_DEFAULTS_KEEP
static const made_file GRID = {
    "f", .var = {{"v", "int16", "t*=3 y=4", .chunk = "1 2"},
                 {"p", "int16", "t*=3", .values = "4 -9 6", .fill = "-9",
                  .attrs = "{'scale_factor': 0.5}"},
                 {"g", "float64", "x=3", .values = "1 1e30 3", .fill = "1e30"},
                 {"f", "float32", "x=4", .values = "1.2345 -2.5 1000.1 0"},
                 {"empty", "int16", "z=0 y=4"},
                 {"s", "float32", "", .values = "7"}}};

/* "12 chunks, 24 bytes read, 24 written": as they were foretold. */
static const char *say_counts(planned *p)
{
    tell_begin(&p->text);
    for (size_t i = 0; i < p->job.nvars; i++) {
        const cm_plan_counts *c = &p->job.var[i].plan.counts;
        tell(&p->text, "%s%u chunks, %u bytes read, %u written", i > 0 ? "; " : "",
             (unsigned)c->chunk_writes, (unsigned)c->element_nbytes_read,
             (unsigned)c->element_nbytes_written);
    }
    return (const char *)p->text.data;
}

static const struct {
    const char *name;
    cm_transform_options options;
    const char *stored, *counts;
} ROWS[] = {
    {"in chunks that the source has",
     {ONE("v")},
     "v: int16 3,4 = 0 1 2 3 4 5 6 7 8 9 10 11",
     "6 chunks, 24 bytes read, 24 written"},
    {"in rows",
     {ONE("v"), .chunks = TEXTS("v:1x4")},
     "v: int16 3,4 = 0 1 2 3 4 5 6 7 8 9 10 11",
     "3 chunks, 24 bytes read, 24 written"},
    {"in columns that the array does not fill",
     {ONE("v"), .chunks = TEXTS("v:2x3")},
     "v: int16 3,4 = 0 1 2 3 4 5 6 7 8 9 10 11",
     "4 chunks, 24 bytes read, 24 written"},
    {"in shards",
     {ONE("v"), .chunks = TEXTS("v:1x2"), .shards = TEXTS("v:2x4")},
     "v: int16 3,4 = 0 1 2 3 4 5 6 7 8 9 10 11",
     "6 chunks, 24 bytes read, 24 written"},
    {"a part",
     {ONE("v"), .subset = TEXTS("t=1:3", "y=1:3")},
     "v: int16 2,2 = 5 6 9 10",
     "2 chunks, 16 bytes read, 8 written"},
    {"every second from the second",
     {ONE("v"), .subset = TEXTS("t=0:3:2", "y=1::2")},
     "v: int16 2,2 = 1 3 9 11",
     "4 chunks, 16 bytes read, 8 written"},
    {"in another type, and what is missing stays so",
     {ONE("g"), .dtype = TEXTS("g:float32")},
     "g: float32 3 = 1 nan 3",
     "1 chunks, 24 bytes read, 12 written"},
    {"unpacked",
     {ONE("p"), .unpack = TEXTS("p")},
     "p: float64 3 = 2 nan 3",
     "1 chunks, 6 bytes read, 24 written"},
    {"of fewer bits",
     {ONE("f"), .keepbits = TEXTS("f:3")},
     "f: float32 4 = 1.25 -2.5 1024 0",
     "1 chunks, 16 bytes read, 16 written"},
    {"nothing", {ONE("empty")}, "empty: int16 0,4 =", "0 chunks, 0 bytes read, 0 written"},
    {"one element", {ONE("s")}, "s: float32 = 7", "1 chunks, 4 bytes read, 4 written"},
};

static void stored(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned p;
        planned_make(&p, &GRID, &ROWS[i].options, STEP_RUN);
        if (p.status != CM_OK)
            fail_msg("%s: %s", ROWS[i].name, p.error.text);
        tell_compare(ROWS[i].name, say_stored(&p), ROWS[i].stored, &bad);
        tell_compare(ROWS[i].name, say_counts(&p), ROWS[i].counts, &bad);
        for (size_t k = 0; k < p.job.nvars; k++) {
            const cm_job_var *v = &p.job.var[k];
            assert_int_equal(v->plan.counts.chunk_writes, v->moved.counts.delivered);
            assert_int_equal(v->plan.counts.element_nbytes_read,
                             v->moved.counts.nelem_read * v->source->dtype.nbytes);
            assert_int_equal(v->plan.counts.element_nbytes_written,
                             v->moved.counts.nelem_written * v->view.type.nbytes);
        }
        planned_release(&p);
    }
    assert_int_equal(bad, 0);
}

/* Less memory takes fewer threads, never more than there is, and too little is refused before. */
static void memory(void **state)
{
    static const made_file LARGE = {
        "f", .var = {{"v", "float64", "t*=64 y=64 x=64", .chunk = "1 64 64"}}};
    cm_transform_options options = {ONE("v"), .chunks = TEXTS("v:64x8x8"), .nthreads = 8};
    planned p;
    (void)state;
    planned_make(&p, &LARGE, &options, STEP_PLAN);
    assert_int_equal(p.status, CM_OK);
    const uint64_t most = p.report.memory_planned, held = p.job.budget.held_nbytes;
    assert_true(most > held && most <= p.job.budget.limit_nbytes);
    assert_int_equal(p.job.budget.nthreads, 8);
    planned_release(&p);
    options.memory = held + (most - held) / 2;
    planned_make(&p, &LARGE, &options, STEP_PLAN);
    assert_int_equal(p.status, CM_OK);
    assert_true(p.report.memory_planned <= options.memory);
    planned_release(&p);
    options.memory = 1 << 20;
    planned_make(&p, &LARGE, &options, STEP_PLAN);
    assert_int_equal(p.status, CM_EBUDGET);
    assert_non_null(strstr(p.error.text, "memory"));
    planned_release(&p);
}

static const struct {
    const char *name;
    bool probed;
    unsigned chosen;
    cm_plan_options options;
} CHOICES[] = {
    {"none", true, 0, {.n = 0}},
    {"the quickest",
     true,
     2,
     {{{.nthreads = 4, .cost = 1.2, .traffic = 1}, {.nthreads = 2, .cost = 1, .traffic = 2}}, 2}},
    {"of as quick ones as far as a probe tells, the fewest bytes",
     true,
     4,
     {{{.nthreads = 4, .cost = 1.05, .traffic = 1}, {.nthreads = 2, .cost = 1, .traffic = 2}}, 2}},
    {"of these the first",
     true,
     4,
     {{{.nthreads = 4, .cost = 1.05, .traffic = 1}, {.nthreads = 2, .cost = 1, .traffic = 1}}, 2}},
    {"no noise without a probe",
     false,
     2,
     {{{.nthreads = 4, .cost = 1.05, .traffic = 1}, {.nthreads = 2, .cost = 1, .traffic = 2}}, 2}},
    {"never by steps to what is slower",
     true,
     4,
     {{{.nthreads = 4, .cost = 1, .traffic = 3},
       {.nthreads = 2, .cost = 1.08, .traffic = 3},
       {.nthreads = 1, .cost = 1.16, .traffic = 1}},
      3}},
};

static void chosen(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(CHOICES); i++) {
        cm_plan_options options = CHOICES[i].options;
        const cm_plan_option *best = cm_plan_choose(&options, CHOICES[i].probed);
        if ((best != NULL ? best->nthreads : 0) != CHOICES[i].chosen)
            fail_msg("%s: %u", CHOICES[i].name, best != NULL ? best->nthreads : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stored), cmocka_unit_test(memory),
                                       cmocka_unit_test(chosen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
