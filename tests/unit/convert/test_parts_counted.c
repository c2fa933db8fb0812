/* Tallies of parts, noted and heard: what all of them counted is what one process counts. */

#include "beside_fixture.h"
#include "convert/sink/part/parts_counted.h"
#include "convert/statistics/statistics_impl.h"
#include "job_fixture.h"

#define HASH "0123456789abcdef0123456789abcdef"

enum {
    NPARTS = 3
};
static const made_file GRID = {
    "/dev/null",
    .var = {{"v", "int16", "t*=12 y=4"}, {"c", "char", "t*=3"}, {"w", "int16", "t*=3"}}};
static const cm_transform_options OPTIONS = {.defaults = CM_DEFAULTS_KEEP,
                                             .statistics = true,
                                             .part = {.on = true, .nparts = NPARTS},
                                             .chunks = TEXTS("v:2x3", "w:1")};
static const cm_transform_options ALONE = {
    .defaults = CM_DEFAULTS_KEEP, .statistics = true, .chunks = TEXTS("v:2x3", "w:1")};

/* "v 48: 0 to 47, 23.5; w ...": what is counted of each variable. */
static const char *say_counted(planned *p)
{
    tell_begin(&p->text);
    for (size_t i = 0; i < p->job.nvars; i++) {
        const cm_job_var *v = &p->job.var[i];
        cm_tally t;
        if (v->statistics == NULL)
            continue;
        OK(cm_statistics_level(v, 0, &t, err));
        tell(&p->text, "%s%s %u: %g to %g, %.17g", p->text.nbytes > 0 ? "; " : "", v->name,
             (unsigned)t.count, t.min, t.max, t.mean + t.rest);
    }
    return (const char *)p->text.data;
}

/* Part NUMBER makes its share of STORE, and notes in B what it counted. */
static void make_part(uint64_t number, cm_store *store, const cm_beside *b)
{
    planned p;
    planned_into(&p, &GRID, &OPTIONS, STEP_PLAN, store);
    if (p.status != CM_OK)
        fail_msg("%s", p.error.text);
    cm_parts parts = {.number = number, .plan = {.nparts = NPARTS, .step = 1, .hash = HASH}};
    OK(cm_parts_propose(&p.job, &parts.plan.json, err));
    p.job.parts = &parts;
    OK(cm_parts_narrow(&p.job, cm_parts_weights(&parts.plan), NPARTS, number, err));
    OK(cm_job_run(&p.job, store, err));
    OK(cm_part_counted_write(&p.job, b, err));
    cm_json_free(parts.plan.json);
    p.job.parts = NULL;
    planned_release(&p);
}

/* Hears what the notes in B say; the outcome's status. */
static int hear_all(planned *p, cm_store *store, const cm_beside *b, cm_error *err)
{
    cm_parts parts = {.plan = {.nparts = NPARTS, .step = 1, .hash = HASH}};
    planned_into(p, &GRID, &OPTIONS, STEP_PLAN, store);
    p->job.parts = &parts;
    const int rc = cm_parts_counted_join(&p->job, b, err);
    p->job.parts = NULL;
    return rc;
}

static void joined(void **state)
{
    made_beside m;
    cm_store *store;
    planned p, alone;
    char digest[NPARTS + 1][33], again[33];
    (void)state;
    made_beside_begin(&m);
    OK(cm_store_open_memory(&store, err));
    for (uint64_t k = NPARTS; k-- > 0;)
        make_part(k, store, &m.beside);
    OK(hear_all(&p, store, &m.beside, err));
    planned_make(&alone, &GRID, &ALONE, STEP_RUN);
    if (alone.status != CM_OK)
        fail_msg("%s", alone.error.text);
    assert_string_equal(say_counted(&p), "v 48: 0 to 47, 23.5; w 3: 0 to 2, 1");
    assert_string_equal(say_counted(&p), say_counted(&alone));
    planned_release(&alone);
    planned_release(&p);

    for (uint64_t k = 0; k < NPARTS + 1; k++) {
        OK(cm_part_counted_digest(&m.beside, k, digest[k], err));
        assert_int_equal(strlen(digest[k]), k < NPARTS ? 32 : 0); /* the last is not there */
    }
    assert_string_not_equal(digest[0], digest[1]);
    make_part(0, store, &m.beside); /* again: the same bytes */
    OK(cm_part_counted_digest(&m.beside, 0, again, err));
    assert_string_equal(again, digest[0]);
    beside_put(&m.beside, "part-1.statistics", "x");
    OK(cm_part_counted_digest(&m.beside, 0, again, err));
    assert_string_not_equal(again, digest[0]);
    cm_store_free(store);
    made_beside_end(&m);
}

static void damaged(void **state)
{
    static const struct {
        const char *name, *hash;
        const char *note; /* NULL: there is none */
        const char *error;
    } ROWS[] = {
        {"no note", HASH, NULL, "what part 2 counted is damaged; run it again"},
        {"of another plan", "another", "{'variables': []}",
         "what part 2 counted is damaged; run it again"},
        {"of no variable", HASH, "{'variables': []}",
         "what part 2 counted is damaged; run it again"},
        {"of one of two", HASH, "{'variables': [{'name': 'v', 'counted': ''}]}", NULL},
        {"that is no text", HASH, "{'variables': [{'name': 'v', 'counted': 3}]}",
         "what part 2 counted is damaged; run it again"},
    };
    made_beside m;
    cm_store *store;
    (void)state;
    made_beside_begin(&m);
    OK(cm_store_open_memory(&store, err));
    for (uint64_t k = 0; k < NPARTS; k++)
        make_part(k, store, &m.beside);
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        planned p;
        cm_error why = {0};
        OK(cm_store_delete(m.beside.in, "part-2.statistics", err));
        if (ROWS[i].note != NULL)
            beside_note(&m.beside, "part-2.statistics", ROWS[i].hash, ROWS[i].note);
        if (hear_all(&p, store, &m.beside, &why) != CM_EFORMAT ||
            (ROWS[i].error != NULL && strcmp(why.text, ROWS[i].error) != 0))
            fail_msg("%s: %s", ROWS[i].name, why.text);
        planned_release(&p);
    }
    cm_store_free(store);
    made_beside_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(joined), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
